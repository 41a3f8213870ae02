"""Two stored runs held against each other: the first step that differs, and what made it differ."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from automem import reproduced, rerun, rerun_view, runs, trace
from automem.episode import MEMORY, RESULT, STEPS
from automem.records import Executed, HookEvent, StepRecord
from automem.reproduced import EpisodeVerdict
from automem.runs import Run
from automem.trace import TraceWriter
from tests.traces import a_run

STEP = 17
Change = Callable[[StepRecord], StepRecord]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of Crafter, 2 seeds of 40 steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        yield a_run("first", seeds="42..43", steps=40)


@pytest.fixture
def other(stored: Run, tmp_path: Path) -> Run:
    """A copy of it, to be altered."""
    shutil.copytree(stored.folder, tmp_path / "other")
    return runs.load(str(tmp_path / "other"))


def folder(run: Run, seed: int = 42) -> Path:
    return run.folder / "episodes" / "Crafter" / f"seed-{seed}"


def alter(run: Run, changes: dict[int, Change], keep: int | None = None) -> None:
    """Write the trace of seed 42 anew with some steps changed, and only the first so many."""
    path = folder(run) / STEPS
    records, damage = trace.read(path)
    assert damage is None and len(records) == 40
    path.unlink()
    writer = TraceWriter(path)
    for record in records[:keep]:
        writer.append(changes.get(record.step, lambda same: same)(record))
    writer.close()


def result(run: Run, **changes: object) -> None:
    """Change the stored result of seed 42."""
    path = folder(run) / RESULT
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | changes))


def compare(then: Run, now: Run) -> tuple[EpisodeVerdict, EpisodeVerdict]:
    found = reproduced.compare(then, now, rerun.episodes(then.config.tasks), ("first", "other"))
    altered, untouched = found.episodes
    assert (altered.seed, untouched.seed, untouched.status) == (42, 43, "same")
    return altered, untouched


def turn(phase: str, number: int, **changes: object) -> Change:
    """Change a turn of a phase; a function is given what is there."""

    def change(record: StepRecord) -> StepRecord:
        turns = list(getattr(record, phase))
        now = {k: v(getattr(turns[number], k)) if callable(v) else v for k, v in changes.items()}
        turns[number] = replace(turns[number], **now)
        return replace(record, **{phase: tuple(turns)})

    return change


def operation(**changes: object) -> Callable[[tuple[Executed, ...]], tuple[Executed, ...]]:
    """Change the first operation of a turn."""
    return lambda ops: (replace(ops[0], **changes), *ops[1:])


def prompt_with(text: str) -> Callable:
    return lambda prompt: replace(prompt, after=f"{prompt.after}{text}")


def event(method: str, kind: str, text: str) -> Change:
    return lambda record: replace(record, hooks=(*record.hooks, HookEvent(0, method, kind, text)))  # type: ignore[arg-type]


MAINTAINED = Executed("APPEND", ("goals.txt", "x"), (0, 0), "APPEND goals.txt", "added", by="maintain")

ORDER: list[tuple[str, Change, str, str, str | None]] = [
    ("observation", lambda r: replace(r, observation=f"{r.observation}!"), "observation", "observation", None),
    ("observe hook", event("observe", "error", "no"), "hook", "observe", None),
    ("LOG prompt", turn("log", 0, prompt=prompt_with("Hurry.")), "prompt", "user message 1", "log"),
    ("LOG reply", turn("log", 0, text=lambda text: f"{text} so"), "reply", "reply", "log"),
    ("LOG reading", turn("log", 0, ops=operation(args=("goals.txt", "x"))), "parsing", "operation", "log"),
    ("LOG result", turn("log", 0, ops=operation(result="nothing")), "operation", "result", "log"),
    ("LOG errors", turn("log", 0, errors=("no such file",)), "parsing", "wrong with the reply", "log"),
    ("maintain", lambda r: replace(r, maintained=(MAINTAINED,)), "hook", "maintain asked for", None),
    ("PLAN prompt", turn("plan", 0, prompt=prompt_with("Hurry.")), "prompt", "user message 1", "plan"),
    ("PLAN reply", turn("plan", -1, text=lambda text: f"{text} so"), "reply", "reply", "plan"),
    ("check_action", event("check_action", "again", "a wall"), "hook", "check_action", None),
    ("action", lambda r: replace(r, action="Noop"), "action", "action", None),
    ("reward", lambda r: replace(r, reward=r.reward + 1), "outcome", "reward", None),
    ("progression", lambda r: replace(r, progression=1.0), "outcome", "progression", None),
    ("achievements", lambda r: replace(r, achievements={"wake_up": 9}), "outcome", "achievements", None),
    ("end", lambda r: replace(r, terminated=True), "outcome", "terminated", None),
]


@pytest.mark.parametrize("first", range(len(ORDER)), ids=[name for name, *_ in ORDER])
def test_the_first_cause_in_the_order_of_a_step_is_told_at_its_step(stored: Run, other: Run, first: int) -> None:
    def all_from(record: StepRecord) -> StepRecord:
        """This cause and all that come after it in a step, as they would."""
        for _, change, *_ in ORDER[first:]:
            record = change(record)
        return record

    alter(other, {STEP: all_from, STEP + 3: ORDER[0][1]})
    _, _, cause, what, phase = ORDER[first]
    altered, _ = compare(stored, other)
    assert altered.status == "differs" and altered.steps == STEP and altered.difference is not None
    found = altered.difference
    assert (found.step, found.cause, found.phase) == (STEP, cause, phase)
    assert what in found.what and found.then != found.now
    assert altered.why


@pytest.mark.parametrize("number", range(len(ORDER)), ids=[name for name, *_ in ORDER])
def test_each_cause_is_told_when_nothing_else_differs(stored: Run, other: Run, number: int) -> None:
    name, change, cause, what, _ = ORDER[number]
    alter(other, {STEP: change})
    altered, _ = compare(stored, other)
    assert altered.difference is not None, name
    assert (altered.difference.step, altered.difference.cause) == (STEP, cause) and what in altered.difference.what


def test_a_system_message_is_the_scaffolds_or_agents_doing(stored: Run, other: Run) -> None:
    alter(other, {0: lambda r: replace(r, system=f"{r.system}\nBe quick.")})
    altered, _ = compare(stored, other)
    assert altered.difference is not None and altered.difference.step == 0
    assert (altered.difference.cause, altered.difference.what) == ("prompt", "system message")
    assert altered.difference.now[altered.difference.at :] == "\nBe quick."


def test_a_phase_that_goes_on_after_the_same_replies(stored: Run, other: Run) -> None:
    alter(other, {STEP: lambda r: replace(r, plan=(*r.plan, r.plan[-1]))})
    altered, _ = compare(stored, other)
    assert altered.difference is not None
    assert (altered.difference.step, altered.difference.cause) == (STEP, "turns")


def test_what_a_play_took_and_what_was_noticed_is_no_difference(stored: Run, other: Run) -> None:
    taken = turn("plan", 0, prompt_tokens=7, completion_tokens=7, cached_tokens=7, cost=1.5, seconds=99.0)
    alter(other, {STEP: taken, STEP + 1: lambda r: replace(r, warnings=("the folder was changed",))})
    counts = orjson.loads((folder(other) / RESULT).read_bytes())["counts"]
    result(other, counts=counts | {"prompt_tokens": 7, "cost": 1.5, "model_seconds": 99.0, "cached_tokens": 1})
    assert compare(stored, other)[0].status == "same"


def test_the_words_of_an_error_inside_a_hook_are_no_difference(stored: Run, other: Run, tmp_path: Path) -> None:
    shutil.copytree(other.folder, tmp_path / "third")
    third = runs.load(str(tmp_path / "third"))
    alter(other, {STEP: event("observe", "error", "<object at 0x7f11>")})
    alter(third, {STEP: event("observe", "error", "<object at 0x7f22>")})
    assert compare(other, third)[0].status == "same"


def test_the_last_answer_of_the_game_counts(stored: Run, other: Run) -> None:
    result(other, final_observation="You see nothing.")
    altered, _ = compare(stored, other)
    assert altered.difference is not None
    assert (altered.difference.step, altered.difference.cause) == (39, "outcome")
    assert altered.difference.now == "You see nothing."


def test_results_and_memory_that_differ_after_the_same_steps(stored: Run, other: Run) -> None:
    result(other, progression=0.5, episode_return=2.0)
    memory = folder(other) / MEMORY / "map_notes.txt"
    memory.write_text(memory.read_text() + "lies\n")
    (folder(other) / MEMORY / "new.txt").write_text("\x1b[31mred\n")
    altered, _ = compare(stored, other)
    assert altered.status == "differs" and altered.difference is None and altered.steps == 40
    figures = {figure.name: figure for figure in altered.figures}
    assert set(figures) == {"progression", "episode_return", "memory/map_notes.txt", "memory/new.txt"}
    assert figures["progression"].now == 0.5
    assert "+lies" in figures["memory/map_notes.txt"].now and figures["memory/new.txt"].now.startswith("created")


def test_a_result_that_only_one_format_tells_is_no_difference(stored: Run, other: Run) -> None:
    path = folder(other) / RESULT
    stored_result = orjson.loads(path.read_bytes())
    del stored_result["counts"]["turns"]
    path.write_bytes(orjson.dumps(stored_result))
    assert compare(stored, other)[0].status == "same"


def test_an_unfinished_episode_is_compared_as_far_as_it_goes(stored: Run, other: Run) -> None:
    alter(other, {}, keep=25)
    (folder(other) / RESULT).unlink()
    altered, _ = compare(stored, other)
    assert (altered.status, altered.steps, altered.difference) == ("incomplete", 25, None)
    assert altered.notes == ("now: not finished",)
    reverse, _ = compare(other, stored)
    assert (reverse.status, reverse.steps, reverse.notes) == ("incomplete", 25, ("then: not finished",))


def test_an_unfinished_episode_that_differs_says_so(stored: Run, other: Run) -> None:
    alter(other, {STEP: ORDER[0][1]}, keep=25)
    (folder(other) / RESULT).unlink()
    altered, _ = compare(stored, other)
    assert altered.status == "differs" and altered.difference is not None and altered.difference.step == STEP


def test_a_trace_that_was_torn_or_lost_is_not_called_the_same(stored: Run, other: Run) -> None:
    alter(other, {}, keep=25)
    altered, _ = compare(stored, other)
    assert (altered.status, altered.steps) == ("incomplete", 25) and "25 of the 40 steps" in altered.notes[0]
    with (folder(other) / STEPS).open("r+b") as file:
        file.truncate((folder(other) / STEPS).stat().st_size - 5)
    altered, _ = compare(stored, other)
    assert (altered.status, altered.steps) == ("incomplete", 24) and "record 24" in altered.notes[0]
    (folder(other) / STEPS).unlink()
    assert compare(stored, other)[0].status == "incomplete"


def test_an_episode_that_went_on_where_the_other_ended(stored: Run, other: Run) -> None:
    alter(other, {}, keep=25)
    result(other, steps=25)
    altered, _ = compare(stored, other)
    assert altered.status == "differs" and altered.difference is not None
    assert (altered.difference.cause, altered.difference.then, altered.difference.now) == (
        "length",
        "40 steps",
        "25 steps",
    )


@pytest.mark.parametrize(
    ("change", "package", "told"),
    [
        (ORDER[0][1], "crafter", "Probably: crafter"),
        (ORDER[2][1], "automem", "Probably: automem"),
        (ORDER[3][1], "automem", "Probably: automem"),
        (ORDER[12][1], "numpy", "Probably: numpy"),
        (ORDER[0][1], "vllm", "All versions that decide this are the same"),
    ],
)
def test_versions_are_blamed_for_what_they_decide(
    stored: Run, other: Run, change: Change, package: str, told: str
) -> None:
    alter(other, {STEP: change})
    config = other.config.model_copy(update={"versions": other.config.versions | {package: "0.0.1"}})
    altered, _ = compare(stored, replace(other, config=config))
    assert told in " ".join(altered.why)


def test_another_step_limit_is_blamed_for_an_earlier_end(stored: Run, other: Run) -> None:
    alter(other, {STEP: lambda r: replace(r, truncated=True)}, keep=STEP + 1)
    result(other, steps=STEP + 1)
    tasks = tuple(task.model_copy(update={"steps": STEP + 1}) for task in stored.config.tasks)
    found, _ = compare(stored, replace(other, config=other.config.model_copy(update={"tasks": tasks})))
    assert found.difference is not None and found.difference.what == "truncated"
    assert "at most 40 steps in the one run, 18 in the other" in found.why[-1]


@pytest.mark.parametrize(
    ("name", "temperature", "told"),
    [
        ("openai/x", 0.7, "temperature 0.7"),
        ("openai/x", 0.0, "not deterministic"),
        ("fixed", 0.0, "AutoMem's code was changed"),  # a program is deterministic, and no server's doing
    ],
)
def test_a_reply_is_the_models_doing(stored: Run, other: Run, name: str, temperature: float, told: str) -> None:
    alter(other, {STEP: turn("plan", 0, text="<|ACTION|>Noop<|END|>")})
    model = stored.config.model.model_copy(update={"name": name, "temperature": temperature})
    then, now = (replace(run, config=run.config.model_copy(update={"model": model})) for run in (stored, other))
    altered, _ = compare(then, now)
    assert altered.difference is not None and altered.difference.cause == "reply"
    assert name in altered.why[0] and told in " ".join(altered.why)


def test_hostile_text_is_shown_as_signs(stored: Run, other: Run, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    hostile = "\x1b[2J[bold]\u202e\n" * 3 + "x" * 5000
    alter(other, {STEP: turn("log", 0, text=hostile)})
    found = reproduced.compare(stored, other, rerun.episodes(stored.config.tasks), ("first", "other"))
    rerun_view.show(found, Console(width=100))
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\u202e" not in said and "[bold]" in said
    assert max(map(len, said.splitlines())) < 700
    assert "automem trace steps first --seed 42 --from 17 --to 17 --full" in said
