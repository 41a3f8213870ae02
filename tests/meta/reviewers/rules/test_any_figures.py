"""Whatever was measured: a proposal can be carried out, or says why not, and leaves a scaffold that loads."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from automem import scaffold
from automem.metrics import Counts
from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import CannotEdit, Draft
from meta.reviewers.rules.findings import FieldFigures, FileFigures, Measured
from meta.reviewers.rules.proposal import Tried
from meta.reviewers.rules.rules import ALL

SHARES = st.sampled_from([0.0, 0.05, 0.3, 0.6, 1.0])
NUMBERS = st.sampled_from([0, 1, 40, 500, 100_000])
TEXTS = st.text(max_size=12)
SCAFFOLDS = ("crafter/v0", "minihack/v0", "nethack/v0", "crafter/v1", "minihack/v1", "nethack/v1")


@st.composite
def any_file(draw: st.DrawFn, loaded: Scaffold) -> FileFigures:
    planned = draw(st.sampled_from([*loaded.schema.files, None]))
    names = draw(st.lists(st.sampled_from(["step", "action", "x", "y", "seen", "observation"]), unique=True))
    return FileFigures(
        name=planned.name if planned else draw(st.sampled_from(["diary.txt", "*", "{block}"])),
        planned=planned,
        writes=draw(NUMBERS), duplicates=draw(NUMBERS), added_bytes=draw(NUMBERS), lines=draw(NUMBERS),
        chars=draw(NUMBERS), repeated=draw(SHARES), placed=draw(SHARES), with_key=draw(SHARES), by_place=draw(SHARES),
        same_key=draw(SHARES),
        topics={name: draw(SHARES) for name in ("places", "state", "rules", "goals")},
        reads=draw(NUMBERS), truncated=draw(NUMBERS), searches=draw(NUMBERS), empty=draw(NUMBERS),
        nothing=draw(NUMBERS), misses=draw(st.dictionaries(TEXTS, NUMBERS, max_size=3)), read_steps=draw(SHARES),
        fields={name: FieldFigures(draw(NUMBERS), draw(SHARES)) for name in names}, follows=draw(SHARES),
        short_again=draw(st.none() | SHARES), end_bytes=draw(NUMBERS), end_lines=draw(NUMBERS),
    )  # fmt: skip


@st.composite
def anything(draw: st.DrawFn, loaded: Scaffold) -> Measured:
    files = draw(st.lists(any_file(loaded), max_size=4))
    words = draw(st.lists(TEXTS, max_size=3))
    return Measured(
        game=loaded.game,
        episodes=draw(st.integers(1, 9)),
        steps=1000,
        counts=Counts(
            steps=1000, stuck=draw(NUMBERS), oscillating=draw(NUMBERS), invalid=draw(NUMBERS),
            truncated_reads=draw(NUMBERS), prompt_tokens=draw(NUMBERS) * 1000,
            operations={"COUNT": draw(NUMBERS), "SEARCH": draw(NUMBERS)},
        ),
        files={file.name: file for file in files},
        invalid={word: draw(NUMBERS) for word in words},
        meant={word: draw(TEXTS) for word in words},
        full_log=draw(SHARES), full_plan=draw(SHARES), first_prompt=draw(NUMBERS),
        shows={name: draw(st.booleans()) for name in ("facing", "level", "message", "planted", "achieved")},
    )  # fmt: skip


@pytest.mark.parametrize("ref", SCAFFOLDS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_proposal_leaves_a_scaffold_that_loads(ref: str, data: st.DataObject) -> None:
    loaded = scaffold.load(ref)
    measured = data.draw(anything(loaded))
    for rule in ALL:
        tried = Tried()
        for _ in range(8):
            proposal = rule.propose(measured, loaded, tried)
            if proposal is None:
                break
            assert (proposal.name, proposal.parameters) not in tried
            assert "\n" not in proposal.change and math.isfinite(proposal.expected)
            tried = tried.adding(proposal)
            draft = Draft(loaded.sources, "candidate", loaded.identity)
            try:
                proposal.edit(draft)
            except CannotEdit:
                continue
            with tempfile.TemporaryDirectory() as folder:
                draft.save(Path(folder), "")
                made = scaffold.load(folder)
            assert made.sources != loaded.sources
            assert made.schema.scaffold.game == loaded.game
