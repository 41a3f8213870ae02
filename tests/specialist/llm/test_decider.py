"""The decider `llm` over HTTP: what it sees, what it may propose, and that a round that was killed goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from automem.errors import UserError
from automem.runs import PlayedModel
from automem.trace import RunTrace
from specialist import recipe as recipes
from specialist.example import FACTS
from specialist.search import deciders, storage
from specialist.search.decider import Proposal
from specialist.search.deciders.llm.changes import LARGEST, changed, flat
from specialist.search.ledger import Row, Seen
from specialist.search.run import SearchRequest, plan
from specialist.search.settings import BaseSettings, DeciderSettings, EngineSettings
from specialist.search.storage import SearchFolder
from specialist.select import select
from specialist.select.llm import Criteria
from specialist.select.rules import Rules
from tests.meta.reviewers.llm.setting import Call, Script, calling, in_text
from tests.models.fake_openai import completion, fake_openai, refusal

START = recipes.load("tiny")
WHY = "the training loss is still falling at the end"
REVISED = "## one\n" + "what is written must be found again " * 5


def propose(why: str = WHY, **more: Any) -> Call:
    return ("propose", {"changes": {"lora.rank": 8}, "why": why} | more)


FINISH: Call = ("finish", {"why": "one thing at a time"})


def search(base: str, engine: str = "rules", width: int = 2, **options: Any) -> SearchFolder:
    """A search that learns from the run ``taught``, on disk; nothing of it has run."""
    scripted = PlayedModel(name="scripted")
    planned = plan(
        SearchRequest(
            game="Crafter",
            base=BaseSettings(name="smollm2"),
            gameplay=scripted,
            recipe=START,
            scaffold="crafter/v0",
            traces=("taught",),
            held_out="300..303",
            name="decided",
            engine=EngineSettings(kind=engine, model="hosted_vllm/toy", api_base=base),
            decider=DeciderSettings(
                kind="llm", model="hosted_vllm/toy", api_base=base, rounds=3, width=width,
                options={"retries": 0} | options,
            ),
        )
    )  # fmt: skip
    return storage.create(planned.config, planned.scaffold)


def proposed(made: SearchFolder, number: int = 1, rows: Sequence[Row] = (), start: Any = START) -> list[Proposal]:
    """What the decider of this search proposes."""

    async def once() -> list[Proposal]:
        decider = deciders.make(made.config.decider, made.folder)
        try:
            await decider.ready()
            return list(await decider.propose(number, rows, start))
        finally:
            await decider.close()

    return asyncio.run(once())


def row(number: str = "1.1.1", rank: int = 6, **more: Any) -> Row:
    """A training run that was judged."""
    given: dict[str, Any] = {
        "number": number, "recipe": changed(START, {"lora.rank": rank}), "why": "to begin with", "data": "d" * 64,
        "examples": 20, "training": "t", "adapter": "a" * 64, "outcome": "inconclusive", "told": "not enough seeds",
        "losses": {"train": 1.0, "held_out_before": 2.5, "held_out_after": 1.25},
        "looks": (Seen(seeds=8, mean=0.02, lower=-0.01, upper=0.05, why="so it is"),),
        "before": {"progression": 0.2, "duplicate_write_share": 0.5},
        "after": {"progression": 0.22, "duplicate_write_share": 0.25},
        "seconds": 61.0, "tokens": 12_345, "cost": 0.5,
    }  # fmt: skip
    return Row(**(given | more))


def test_wrong_proposals_are_told_what_is_wrong_and_corrected(folder: Path) -> None:
    script = Script(
        [
            calling(
                propose(changes={"lora.rank": 1024}),
                propose(changes={"train.learning_rate": 2, "lora.size": 3}),
                propose(changes={"train.learning_rate": 2}),
                propose(changes={"lora.alpha": float("inf")}),
                propose(changes={"lora.targets": ["../../etc"]}),
                propose(changes={"data.minimum": 500, "data.examples": 400}),
                propose(changes={"name": "mine"}),
                propose(base="../ledger"),
                propose(data="regenerate"),
                propose(criteria="1"),
                ("propose", {"changes": "rank 8", "why": WHY}),
                FINISH,
            ),
            calling(propose(changes={"lora": {"rank": 512}, "train.epochs": 1})),
            calling(propose(changes={"lora.rank": 512, "train.epochs": 1}), propose(), propose(changes={}), FINISH),
        ]
    )
    with fake_openai(script) as fake:
        made = search(fake.base)
        found = proposed(made)
    answers = [message["content"] for message in script.asked[1]["messages"][3:]]
    for answer, told in zip(
        answers,
        [
            "lora.rank: at most 512", "a recipe has no 'lora.size'; it has data.", "train.learning_rate: Input",
            "lora.alpha: has to be finite", "lora.targets: one of all, attention, qv, mlp", "data.minimum 500 is more",
            "a recipe has no 'name'", "there is no training run '../ledger'", "it collects none",
            "the engine rules has no written criteria", "changes: Input should be a valid dictionary",
            "propose a recipe first",
        ],
        strict=True,
    ):  # fmt: skip
        assert told in answer
    assert [(one.recipe.lora.rank, one.recipe.train.epochs) for one in found] == [(512, 1), (8, START.train.epochs)]
    assert all(one.why == WHY and one.data == "reuse" and one.criteria == "" for one in found)
    transcript = (made.folder / "decided/1/transcript.jsonl").read_text().splitlines()
    last = next(json.loads(line) for line in reversed(transcript) if '"answers"' in line[:20])
    assert "it is proposal 1 of this round" in last["answers"][0][0]
    assert "2 proposals at most" in last["answers"][2][0]


def test_it_sees_the_ledger_the_selection_and_some_of_what_was_played(folder: Path, taught: RunTrace) -> None:
    script = Script(
        [
            calling(
                ("ledger", {}),
                ("training_run", {"number": "1.1.1"}),
                ("curve", {"number": "1.1.1"}),
                ("selection", {"number": "1.1.1"}),
                ("decisions", {"number": "1.1.1", "accepted": False, "why": "duplicates"}),
                ("read_steps", {"seed": 7, "start": 2, "count": 1}),
                ("run_stats", {"run": "held-out"}),
                ("run_stats", {"run": "1.1.1"}),
                ("training_run", {"number": "../../x"}),
                ("read_criteria", {}),
            ),
            calling(propose(base="1.1.1", changes={"lora.rank": 16}), FINISH),
        ]
    )
    with fake_openai(script) as fake:
        made = search(fake.base)
        data = made.data("k")
        (data / "dataset").mkdir(parents=True)
        (data / "dataset" / FACTS).write_text(json.dumps({"identity": "d" * 64}))
        small = START.data.model_copy(update={"minimum": 2, "best_episodes": 1.0})
        asyncio.run(select([taught], small, Rules(), data / "selection", {99_000}))
        found = proposed(made, 2, [row()])
    opening = script.asked[0]["messages"][1]["content"]
    assert "round 2 of 3" in opening and "lora.rank = " in opening and "collect-1" in opening
    assert "held-out loss 2.5000 -> 1.2500" in opening and "+2.0 points [-1.0, +5.0] over 8 seeds" in opening
    assert "candidates accepted" in opening, "what was selected last"
    offered = [tool["function"]["name"] for tool in script.asked[0]["tools"]]
    assert "propose" in offered and "revise_criteria" not in offered
    answers = [message["content"] for message in script.asked[1]["messages"][3:]]
    assert "1.1.1 inconclusive; lora.rank 6" in answers[0] and "0.50 USD" in answers[0]
    assert "duplicate writes %: 50.0 -> 25.0" in answers[1]
    assert "no curve" in answers[2]
    assert "PLAN: " in answers[3] and "read_back" in answers[3]
    assert "taught/Crafter/seed-" in answers[4] and "duplicates" in answers[4]
    assert "=== step 2" in answers[5]
    assert all("there is no run" in answer and "collect-1" in answer for answer in answers[6:8])
    assert "there is no training run" in answers[8] and "there is no tool" in answers[9]
    assert found[0].recipe.lora.rank == 16


def test_only_some_gate_seeds_can_be_read(folder: Path, taught: RunTrace) -> None:
    script = Script(
        [calling(("sql", {"run": "base", "query": "SELECT seed FROM episodes"})), calling(propose(), FINISH)]
    )
    with fake_openai(script) as fake:
        made = search(fake.base, shown=1)
        seeds = made.config.gate_seeds
        played = made.play("base", "gate")
        played.mkdir(parents=True)
        text = (taught.run.folder / "run.toml").read_text().replace("7,", f"{seeds[0]},").replace("8,", f"{seeds[1]},")
        (played / "run.toml").write_text(text)
        for old, new in ((7, seeds[0]), (8, seeds[1])):
            (played / "episodes/Crafter").mkdir(parents=True, exist_ok=True)
            (played / f"episodes/Crafter/seed-{new}").symlink_to(taught.run.folder / f"episodes/Crafter/seed-{old}")
        proposed(made)
    assert "collect-1, base" in script.asked[0]["messages"][1]["content"]
    assert str(seeds[0]) in script.told(1) and str(seeds[1]) not in script.told(1)


def test_what_was_trained_already_is_not_proposed_again(folder: Path) -> None:
    script = Script([calling(propose(changes={"lora.rank": 6}), propose(changes={"lora.rank": 5}), FINISH)])
    with fake_openai(script) as fake:
        made = search(fake.base)
        found = proposed(made, 2, [row()])
    assert [one.recipe.lora.rank for one in found] == [5]
    assert "it was tried as 1.1.1" in (made.folder / "decided/2/transcript.jsonl").read_text()


def test_criteria_are_revised_and_a_change_is_undone_by_a_proposal(folder: Path) -> None:
    revise = ("revise_criteria", {"text": REVISED, "why": "notes were never found again"})
    script = Script(
        [
            calling(
                ("criteria_versions", {}),
                ("read_criteria", {"version": "../1"}),
                revise,
                ("revise_criteria", {"text": REVISED + "more", "why": "a second one in the same round"}),
                propose(criteria="7"),
                propose(criteria="2"),
                FINISH,
            )
        ]
    )
    with fake_openai(script) as fake:
        made = search(fake.base, engine="llm", width=1)
        kept = Criteria(made.folder)
        (found,) = proposed(made)
        assert found.criteria == "2" and kept.version("2").text.strip() == REVISED.strip()
        assert kept.in_force().number == 1, "the search adopts it, once the round is written"
        said = (made.folder / "decided/1/transcript.jsonl").read_text()
        for told in (
            "1 (in force), by AutoMem",
            "there is no version '../1'",
            "no version 7 of",
            "you wrote 2 in this",
        ):
            assert told in said
        kept.adopt(kept.version("2"))
    undo = Script([calling(propose(changes={"lora.rank": 6}, criteria="1"), FINISH)])
    with fake_openai(undo) as fake:
        moved = deciders.make(made.config.decider.model_copy(update={"api_base": fake.base}), made.folder)

        async def once() -> Sequence[Proposal]:
            try:
                return await moved.propose(2, [row(criteria="2")], START)
            finally:
                await moved.close()

        (found,) = asyncio.run(once())
    assert found.criteria == "1", "the same recipe by other criteria is another training run"
    assert "version 2, by the decider, round 1" in undo.asked[0]["messages"][1]["content"]


def test_it_decides_by_the_text_protocol(folder: Path) -> None:
    script = Script([completion(in_text(propose(), FINISH))])
    with fake_openai(script) as fake:
        (found,) = proposed(search(fake.base, tools="text"))
    assert found.recipe.lora.rank == 8
    assert "revise_criteria" not in script.asked[0]["messages"][0]["content"]


def test_a_round_that_was_killed_goes_on_and_pays_for_nothing_twice(folder: Path) -> None:
    replies = [calling(("ledger", {})), calling(propose()), calling(propose(changes={"lora.rank": 16}), FINISH)]
    with fake_openai(Script([*replies[:2], refusal(503, "gone")])) as fake:
        made = search(fake.base)
        with pytest.raises(UserError):
            proposed(made)
    rest = Script([refusal(500, "asked twice"), refusal(500, "asked twice"), replies[2]])
    with fake_openai(rest) as fake:
        config = made.config.model_copy(
            update={"decider": made.config.decider.model_copy(update={"api_base": fake.base})}
        )
        found = proposed(SearchFolder(made.folder, config))
        assert len(rest.asked) == 1
        assert proposed(SearchFolder(made.folder, config)) == found and len(rest.asked) == 1
    assert [one.recipe.lora.rank for one in found] == [8, 16]


def test_a_decider_that_comes_to_nothing_trains_the_start_once_and_then_ends_the_search(folder: Path) -> None:
    with fake_openai(Script([completion("I would train it longer.")])) as fake:
        made = search(fake.base, malformed=2, tools="native")
        (found,) = proposed(made)
        assert found.recipe == START and "2 replies in a row without a call" in found.why
        assert proposed(made, 2, [row()]) == []


def test_it_may_end_the_search(folder: Path) -> None:
    stop = ("finish", {"why": "nothing is left to try", "stop": True})
    script = Script([calling(propose(), stop), calling(("withdraw", {"number": 2}), ("withdraw", {"number": 1}), stop)])
    with fake_openai(script) as fake:
        assert proposed(search(fake.base)) == []
    assert "stop ends the search, and there are proposals" in script.told(1)


@given(
    st.dictionaries(
        st.sampled_from([*flat(START), "name", "lora", "x.y", ""]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
        | st.lists(st.integers(), max_size=2) | st.dictionaries(st.sampled_from(["rank", "z"]), st.integers(0, 9)),
        max_size=3,
    )
)  # fmt: skip
def test_whatever_is_changed_is_refused_or_a_recipe_within_bounds(changes: dict[str, Any]) -> None:
    try:
        made = changed(START, changes)
    except UserError as error:
        assert str(error)
        return
    values = flat(made)
    assert all(values[name] <= max(most, flat(START)[name]) for name, most in LARGEST.items())
    assert recipes.Recipe.model_validate_json(made.model_dump_json()) == made
