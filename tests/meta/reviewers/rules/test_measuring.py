"""Figures come out of traces as they were played."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from automem import scaffold, trace
from automem.errors import UserError
from automem.metrics import rates
from automem.models.fixed import Fixed
from automem.models.protocol import Message
from automem.trace import EpisodeTrace, RunTrace
from meta.reviewers.rules.findings import FileFigures
from meta.reviewers.rules.lines import Lines
from meta.reviewers.rules.measuring import measure
from tests import traces


def lines(*told: str, entry: str = "") -> Lines:
    found = Lines(entry)
    found.begin()
    for step, text in enumerate(told):
        found.add(text, step)
    return found


def test_lines_of_a_template_are_read_field_by_field() -> None:
    entry = "Step {step}, {action}: {observation}"
    found = lines("Step 0, go: a tree; a lake", "Step 1, go: a tree; a cow", "no such line", entry=entry)
    assert found.share(found.followed) == pytest.approx(2 / 3)
    figures = found.field_figures()
    assert figures["observation"].chars == len("a tree; a lake  a tree; a cow") / 2 - 1
    assert figures["action"].repeated == 0.5
    assert figures["observation"].repeated == 6 / 27  # "a tree" of the second line


def test_keys_are_coordinates_or_words_before_a_colon() -> None:
    found = lines("tree at 3,4", "at (3, 4): water", "Lake: cold", "lake: warm", "nothing here")
    assert found.share(found.with_key) == 0.8
    assert found.same_key == 2


def test_a_step_number_does_not_make_a_line_new() -> None:
    found = lines("Step 0 all quiet here", "Step 1 all quiet here", "Step 2 a noise")
    assert found.repeated_chars == len("all quiet here")


def test_short_fields_that_say_the_same_again_are_counted() -> None:
    view = "a very long view of everything that is around, " * 2
    told = [f"Step {n}, north at 3,{y}: {view}{n}" for n, y in enumerate([4, 5, 4, 4])]
    found = lines(*told, entry="Step {step}, {action} at {x},{y}: {seen}")
    assert (found.short, found.short_again) == (4, 2)
    # Without a place, or with everything in one field, nothing can be said of what a shorter line would say.
    assert lines(*told, entry="Step {step}, {action} at 3,{y}: {seen}").short == 0
    assert lines(*told, entry="Step {step}, {action} at {x},{y}: {observation}").short == 0


def test_another_episode_begins_with_nothing_told() -> None:
    found = lines("a lake at 3,4")
    found.begin()
    found.add("a lake at 3,4", 0)
    assert found.repeated_chars == 0 and found.same_key == 0


def test_topics_are_those_that_lines_speak_of() -> None:
    found = lines("stone to the north", "health 3/9", "never step into lava", "my plan: find iron")
    assert {topic: found.share(count) for topic, count in found.topics.items()} == {
        "places": 0.25, "state": 0.25, "rules": 0.25, "goals": 0.25,
    }  # fmt: skip


class OneRun:
    """A run that has these episodes."""

    def __init__(self, *episodes: EpisodeTrace) -> None:
        self.episodes = episodes


def test_what_was_read_written_and_missed_is_counted_by_file(tmp_path: Path) -> None:
    loaded = traces.mapping_scaffold(tmp_path / "scaffold")
    log = iter(
        [
            "<|APPEND|>map_notes.txt|a tree at 1,2<|END|><|UPSERT|>grid_0_0.txt|1,2|tree<|END|>",
            "<|APPEND|>map_notes.txt|a tree at 1,2<|END|><|SEARCH|>map_notes.txt|gold<|END|>",
            "<|UPSERT|>grid_1_0.txt|9,2|water<|END|><|SEARCH|>map_notes.txt|tree<|END|><|READ|>../x<|END|>",
            "<|READ|>grid_0_0.txt<|END|><|UPSERT|>grid_0_0.txt|1,2|stump<|END|><|APPEND|>new.txt|mine<|END|>",
        ]
    )

    def rule(asked: Sequence[Message]) -> str:
        return f"{next(log)}<|DONE|><|END|>" if "# LOG" in asked[1]["content"] else "<|ACTION|>Noop<|END|>"

    folder = tmp_path / "episodes" / "Crafter" / "seed-5"
    folder.mkdir(parents=True)
    traces.play(folder, loaded, 5, Fixed(rule))
    found = measure(OneRun(trace.EpisodeTrace(folder, loaded)), loaded)  # type: ignore[arg-type]
    assert (found.steps, found.episodes) == (5, 1)
    notes = found.files["map_notes.txt"]
    assert notes.writes == 2 and notes.duplicate_share == 0.5
    assert (notes.searches, notes.empty, dict(notes.misses)) == (2, 1, {"gold": 1})
    assert notes.read_steps == 0.4
    grid = found.files["grid_{block}.txt"]
    assert grid.writes == 3 and grid.reads == 1 and grid.planned is not None and grid.planned.block == 8
    assert grid.with_key == 1.0 and grid.same_key == pytest.approx(1 / 3)
    # What code writes is not the model's; what nothing planned is a file all the same.
    assert found.files["state.txt"].writes == 0 and found.files["state.txt"].added_bytes > 0
    assert found.files["new.txt"].writes == 1 and found.files["new.txt"].planned is None


@pytest.fixture(scope="module")
def crafter_run(tmp_path_factory: pytest.TempPathFactory) -> RunTrace:
    """Two short real episodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        return RunTrace(traces.a_run("real", steps=40))


def test_figures_of_a_real_run_agree_with_its_own(crafter_run: RunTrace) -> None:
    loaded = scaffold.load("crafter/v0")
    found = measure(crafter_run, loaded)
    told = crafter_run.stats().summary["overall"]["behaviour"]
    own = rates(found.counts)
    assert found.episodes == 2 and found.steps == 80
    for name in ("duplicate_write_share", "added_bytes_per_step", "prompt_tokens_per_step"):
        assert own[name] == pytest.approx(told[name], rel=1e-4)
    notes = found.files["map_notes.txt"]
    assert notes.writes == 78 and notes.follows == 1.0 and notes.repeated > 0.4 and notes.placed == 1.0
    assert notes.added_bytes == found.counts.added_bytes
    assert notes.end_bytes == pytest.approx(found.counts.added_bytes / 2)
    assert max(notes.fields, key=lambda name: notes.fields[name].chars) == "observation"
    assert found.shows["facing"] and found.shows["achieved"]
    assert not found.shows["level"] and not found.shows["message"]
    assert found.first_prompt > 5000


def test_a_trace_that_ends_in_the_middle_counts_as_far_as_it_goes(crafter_run: RunTrace, tmp_path: Path) -> None:
    loaded = scaffold.load("crafter/v0")
    whole = crafter_run.episodes[0]
    (tmp_path / "seed-7").mkdir()
    copy = tmp_path / "seed-7" / whole.path.name
    copy.write_bytes(whole.path.read_bytes()[: whole.size // 2])
    found = measure(OneRun(trace.EpisodeTrace(copy.parent, loaded)), loaded)  # type: ignore[arg-type]
    assert 0 < found.steps < 40


def test_a_run_without_steps_is_told(tmp_path: Path) -> None:
    class Nothing(OneRun):
        class run:
            class config:
                name = "empty"

    with pytest.raises(UserError, match="no step"):
        measure(Nothing(), scaffold.load("crafter/v0"))  # type: ignore[arg-type]


def test_actions_that_were_none_are_known_with_what_was_meant(tmp_path: Path) -> None:
    """From the line that the model is told, and from what it played then."""
    folder = tmp_path / "episodes" / "Crafter" / "seed-5"
    folder.mkdir(parents=True)
    loaded = scaffold.load("crafter/v0")
    said = iter(["go west", "Move West"] * 20)

    def rule(asked: Sequence[Message]) -> str:
        return "<|DONE|><|END|>" if "# LOG" in asked[1]["content"] else f"<|ACTION|>{next(said)}<|END|>"

    traces.play(folder, loaded, 4, Fixed(rule))
    found = measure(OneRun(trace.EpisodeTrace(folder, loaded)), loaded)  # type: ignore[arg-type]
    assert found.invalid == {"go west": 4} and found.meant == {"go west": "Move West"}


def test_a_file_without_writes_has_no_shares() -> None:
    nothing = FileFigures("empty.txt")
    assert nothing.line_chars == 0 and nothing.duplicate_share == 0
