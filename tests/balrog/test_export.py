"""Exports: a folder that BALROG's summariser reads as it reads its own, and that says what is not in it."""

from __future__ import annotations

import errno
import json
import math
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import crafter.constants
import pytest
import tomli_w
import typer

from automem import cli_export, runs
from automem.balrog import episode_log, scoring
from automem.balrog import export as exporting
from automem.balrog.export import MARK, export
from automem.bench.storage import BenchConfig, PlannedAgent
from automem.episode import RESULT, STEPS, EpisodeResult, load_result, write_json
from automem.errors import UserError
from automem.metrics import Counts
from automem.records import Prompt, StepRecord, Turn
from automem.runs import Run
from automem.trace import EpisodeTrace
from tests.balrog import reader
from tests.traces import a_run

STEPS_PLAYED = 12
EPISODES = 8


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of `scripted` over all three games, two seeds a task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        yield a_run("three", "42..43", STEPS_PLAYED, "smoke")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def copied(played: Run, folder: Path) -> Run:
    """A copy of the run that may be spoilt."""
    shutil.copytree(played.folder, folder / "runs" / "three")
    return runs.load(str(folder / "runs" / "three"))


def results(run: Run) -> list[tuple[Path, EpisodeResult]]:
    """Every finished episode."""
    found = [(job.folder, load_result(job.folder)) for job in run.jobs()]
    return [(where, result) for where, result in found if result is not None]


def close(ours: Any, theirs: Any) -> bool:
    """Equal, numbers to the last digits, which depend on the order of a sum."""
    if isinstance(theirs, dict):
        return set(theirs) <= set(ours) and all(close(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-12)
    return ours == theirs


def test_the_summariser_gets_our_figures(played: Run) -> None:
    (done,) = export(str(played.folder), Path("out"))
    per_environment, whole = reader.summed_up(Path("out"))
    assert set(per_environment) == {"crafter", "minihack", "nle"}
    assert done.episodes == EPISODES == sum(one["episodes_played"] for one in per_environment.values())
    for name, theirs in per_environment.items():
        assert close(json.loads(Path(f"out/{name}/{name}_summary.json").read_text()), theirs)
        values = [
            value
            for where, result in results(played)
            if scoring.environment(result.task) == name and (value := scoring.progression(result, where)) is not None
        ]
        ours = scoring.pooled(values)
        assert theirs["progression_percentage"] == pytest.approx(100 * ours.progression, abs=1e-12)
        assert theirs["standard_error"] == pytest.approx(100 * ours.standard_error, abs=1e-12)
    assert close(json.loads(Path("out/summary.json").read_text()), whole)
    assert whole["total_input_tokens"] == sum(r.counts.prompt_tokens for _, r in results(played)) > 0
    assert reader.leaderboard_line(Path("out"))["average"][0] == pytest.approx(whole["average_progress"])


def test_a_log_says_what_the_result_and_the_trace_say(played: Run) -> None:
    export(str(played.folder), Path("out"))
    for job in played.jobs():
        env, task = scoring.environment(job.task), scoring.task_name(job.task)
        number = job.seed - 42
        assert env is not None and reader.is_complete(Path("out"), env, task, number)
        file = Path("out", env, task, f"{task}_run_{number:02d}")
        log = json.loads(file.with_name(f"{file.name}.json").read_text())
        result = load_result(job.folder)
        assert result is not None
        records = list(EpisodeTrace(job.folder).steps())
        assert (log["task"], log["seed"], log["num_steps"]) == (task, job.seed, len(records))
        assert log["action_frequency"] == Counter(record.action for record in records)
        assert log["episode_return"] == sum(record.reward for record in records)
        assert log["done"] is True
        assert log["failed_candidates"] == []
        assert log["client"]["model_id"] == "scripted" and log["agent"]["type"] == "memory"
        rows = reader.rows_of(file.with_name(f"{file.name}.csv"))
        assert [int(row["Step"]) for row in rows] == list(range(len(records)))
        assert [row["Action"] for row in rows] == [record.action for record in records]
        assert [float(row["Reward"]) for row in rows] == [record.reward for record in records]
        assert [row["Done"] for row in rows] == ["False"] * (len(rows) - 1) + ["True"]
        later = [*(record.observation for record in records[1:]), result.final_observation]
        for row, text in zip(rows, later, strict=True):
            assert text.startswith(row["Observation"]) and len(row["Observation"]) < len(text)
            rest = text.removeprefix(row["Observation"]).strip()
            assert rest.startswith("Your status:" if env == "crafter" else "inventory:")


def test_each_environment_has_its_own_fields(played: Run) -> None:
    export(str(played.folder), Path("out"))
    logs = reader.episodes_of(Path("out"))
    for log in logs["crafter"]:
        assert tuple(log["achievements"]) == episode_log.ACHIEVEMENTS
        assert log["score"] == sum(count > 0 for count in log["achievements"].values()) == 22 * log["progression"]
    for log in logs["nle"]:
        assert log["dlvl_list"] == ["Dlvl:1"] and log["xplvl_list"] == ["Xp:1"]
        assert (log["depth"], log["experience_level"], log["highest_achievement"]) == (1, 1, None)
        assert log["time"] > 1 and "end_reason" not in log
    for log in logs["minihack"]:
        solved = log["success"]
        assert log["end_reason"] == (episode_log.SOLVED if solved else episode_log.ABORTED)
        assert solved or log["progression"] == 0.0


def test_crafters_achievements_are_the_simulators() -> None:
    assert tuple(crafter.constants.achievements) == episode_log.ACHIEVEMENTS


def test_a_win_that_cost_the_penalty_is_none_for_balrog(copied: Run) -> None:
    where = copied.folder / "episodes" / "MiniHack-Corridor-R3-v0" / "seed-42"
    result = load_result(where)
    assert result is not None and result.progression == 0.0
    won = {"success": 1, "balrog_success": 0}
    _store(where, replace(result, progression=1.0, terminated=True, truncated=False, achievements=won))
    export(str(copied.folder), Path("out"))
    log = json.loads(next(Path("out").rglob("*Corridor*_run_00.json")).read_text())
    assert (log["progression"], log["success"], log["end_reason"]) == (0.0, True, episode_log.SOLVED)
    assert "last reward" in Path("out/README.md").read_text()


def test_what_is_not_finished_is_left_out_named_and_its_number_stays_free(copied: Run) -> None:
    episodes = copied.folder / "episodes"
    (episodes / "Crafter" / "seed-42" / RESULT).unlink()
    shutil.rmtree(episodes / "NetHackChallenge-v0" / "seed-43")
    trace = episodes / "MiniHack-Corridor-R3-v0" / "seed-42" / STEPS
    trace.write_bytes(trace.read_bytes()[:-40])
    (done,) = export(str(copied.folder), Path("out"))
    whys = {(one.task, one.seed): one.why for one in done.left_out}
    assert whys.pop(("Crafter", 42)) == "not finished"
    assert whys.pop(("NetHackChallenge-v0", 43)) == "not begun"
    assert "11 of 12 steps" in whys.pop(("MiniHack-Corridor-R3-v0", 42))
    assert not whys and done.episodes == EPISODES - 3
    assert not reader.is_complete(Path("out"), "crafter", "default", 0)
    assert reader.is_complete(Path("out"), "crafter", "default", 1)
    assert not list(Path("out").rglob("*Corridor-R3-v0_run_00*"))
    told = json.loads(Path("out", MARK).read_text())
    assert not told["complete"] and len(told["left_out"]) == 3
    note = Path("out/README.md").read_text()
    assert "**Incomplete**: 3 planned episodes (38 %)" in note and "`Crafter`, seed 42: `not finished`" in note


def test_nothing_is_overwritten_unasked_and_nothing_half_written(copied: Run, folder: Path) -> None:
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(UserError, match="no export of AutoMem"):
            export(str(copied.folder), Path("mine"), force)
    export(str(copied.folder), Path("out"))
    with pytest.raises(UserError, match="--force"):
        export(str(copied.folder), Path("out"))
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    for result in copied.folder.rglob(RESULT):
        result.unlink()
    with pytest.raises(UserError, match="no episode is finished"):
        export(str(copied.folder), Path("out"), force=True)
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before
    assert Path("mine/thesis.txt").read_text() == "mine"
    assert {path.name for path in folder.iterdir()} == {"runs", "mine", "out"}


def test_on_a_full_disk_nothing_is_left_and_what_was_there_stays(
    copied: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(str(copied.folder), Path("out"))
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}

    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(exporting, "note", full)
    for out, force in (("new", False), ("out", True)):
        with pytest.raises(UserError, match=f"{out}: cannot create the export: No space left"):
            export(str(copied.folder), Path(out), force)
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before
    assert {path.name for path in folder.iterdir()} == {"runs", "out"}


def test_generated_levels_are_told_wherever_they_count(copied: Run) -> None:
    where = copied.folder / "episodes" / "MiniHack-Corridor-R3-v0" / "seed-43"
    result = load_result(where)
    assert result is not None
    _store(where, replace(result, facts={"levels": "generated"}))
    export(str(copied.folder), Path("out"))
    log = json.loads(next(Path("out").rglob("*Corridor*_run_01.json")).read_text())
    assert log["facts"] == {"levels": "generated"}
    assert "- `MiniHack-Corridor-R3-v0: levels: generated`" in Path("out/README.md").read_text()


def test_force_replaces_an_earlier_export(copied: Run, folder: Path) -> None:
    export(str(copied.folder), Path("out"))
    (copied.folder / "episodes" / "Crafter" / "seed-43" / RESULT).unlink()
    export(str(copied.folder), Path("out"), force=True)
    assert not reader.is_complete(Path("out"), "crafter", "default", 1)
    assert {path.name for path in folder.iterdir()} == {"runs", "out"}


def test_a_bench_gives_a_folder_for_each_agent(copied: Run, folder: Path) -> None:
    bench = folder / "runs" / "both"
    for label in ("memory", "other"):
        shutil.copytree(copied.folder, bench / label)
    agents = [PlannedAgent(label=label, agent="memory") for label in ("memory", "other", "not-begun")]
    config = BenchConfig(
        name="both", suite="smoke", created="", agents=tuple(agents), suite_seeds=True, suite_steps=True, command=""
    )
    (bench / "bench.toml").write_text(tomli_w.dumps(config.model_dump(mode="json")))
    (bench / "other" / "episodes" / "Crafter" / "seed-42" / RESULT).unlink()
    done = export(str(bench), Path("out"))
    assert [(part.folder, part.episodes, len(part.left_out)) for part in done] == [
        (Path("out/memory"), EPISODES, 0),
        (Path("out/other"), EPISODES - 1, 1),
    ]
    for part in done:
        assert set(reader.summed_up(part.folder)[0]) == {"crafter", "minihack", "nle"}


@pytest.mark.parametrize("label", ["..", "../..", "/tmp/x", "a/b", ""])
def test_a_bench_of_somebody_else_writes_nowhere_but_in_the_export(folder: Path, label: str) -> None:
    agent = {"label": label, "agent": "memory"}
    stored = {"name": "theirs", "suite": "smoke", "created": "", "agents": [agent], "suite_seeds": True}
    bench = folder / "runs" / "theirs"
    bench.mkdir(parents=True)
    (bench / "bench.toml").write_text(tomli_w.dumps(stored | {"suite_steps": True, "command": ""}))
    with pytest.raises(UserError, match=r"agents\.0\.label"):
        export(str(bench), Path("out"))


def test_exports_of_the_same_run_are_the_same(played: Run) -> None:
    export(str(played.folder), Path("one"))
    export(str(played.folder), Path("two"))
    for path in Path("one").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == Path("two", path.relative_to("one")).read_bytes()


HOSTILE = '=cmd|"/c calc"!A1˘, "quoted"\r\n\x1b[31m\0 </script>`# heading'


def test_any_text_comes_back_out_of_the_table(folder: Path) -> None:
    texts = [HOSTILE, "˘", '"', "a\nb", "", "x" * 50_000, "\N{SNOWMAN}\0,"]
    records = [_record(step, text, reasoning=text) for step, text in enumerate(texts)]
    path = folder / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        episode_log.write_trajectory(file, _result(len(texts)), records)
    rows = reader.rows_of(path)
    assert [row["Action"].removeprefix("'") for row in rows] == texts
    assert [row["Observation"] for row in rows] == [*texts[1:], "the end"]
    assert not any(row[column].startswith(("=", "+", "-", "@")) for row in rows for column in ("Action", "Reasoning"))


def test_reasoning_is_what_was_written_before_the_action() -> None:
    said = "I am hungry.\nThe cow is east."
    assert episode_log.reasoning(_record(0, "o", reasoning=f"{said}\n<|ACTION|>Do<|END|> more")) == said
    assert episode_log.reasoning(_record(0, "o", reasoning="<|ACTION|>Do<|END|>")) == ""
    assert episode_log.reasoning(_record(0, "o", reasoning=" o ")) == ""
    assert episode_log.reasoning(replace(_record(0, "o"), plan=())) == ""


def test_what_was_written_instead_of_an_action_is_a_failed_candidate(folder: Path) -> None:
    records = [
        replace(_record(0, "fly away"), fallback=True, action="Noop"),
        replace(_record(1, "x", reasoning="let me think"), fallback=True, raw_action=None, action="Noop"),
        replace(_record(2, "do"), action="Do"),
    ]
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        seen = episode_log.write_trajectory(file, _result(3), records)
    assert seen.failed == ["fly away", "let me think"]
    assert seen.actions == {"Noop": 2, "Do": 1}


def test_the_long_term_part_ends_where_the_trace_says_or_before_what_is_only_true_now() -> None:
    assert episode_log.long_term("abc\n\ndef", 3) == "abc"
    crafter_text = "You see:\n- grass\n\nYou face grass.\n\nYour status:\n- health: 9/9\n\nYou have nothing"
    assert episode_log.long_term(crafter_text, None) == "You see:\n- grass\n\nYou face grass."
    # Somebody engraved the word; the inventory is the last one.
    nethack = "message:\nYou read:\n\ninventory:\nnone\n\nmap:\n.@.\n\ninventory:"
    assert episode_log.long_term(nethack, None) == "message:\nYou read:\n\ninventory:\nnone\n\nmap:\n.@."
    assert episode_log.long_term("nothing of that", None) == "nothing of that"


def test_nethacks_levels_are_listed_as_they_were_first_seen(folder: Path) -> None:
    lines = [(1, 1), (4, 1), (3, 2), (4, 2)]
    screens = [f"map:\n@\nDlvl:{depth} $:{depth}0 HP:5(5) Pw:1(1) AC:9 Xp:{xp}/3 T:9" for depth, xp in lines]
    shown = [f"{screen}\n\ninventory:" for screen in ["Hello", *screens]]
    records = [_record(step, text) for step, text in enumerate(shown)]
    reached = {"dungeon_level": 4, "experience_level": 2, "score": 7, "turns": 9}
    result = replace(
        _result(5), task="NetHackChallenge-v0", achievements=reached, progression=0.021221378364235505,
        final_observation="No Points",
    )  # fmt: skip
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        seen = episode_log.write_trajectory(file, result, records)
    log = episode_log.log(result, result.progression, seen, {}, {})
    assert log["dlvl_list"] == ["Dlvl:1", "Dlvl:4", "Dlvl:3"] and log["xplvl_list"] == ["Xp:1", "Xp:2"]
    assert (log["depth"], log["gold"], log["experience_level"], log["score"], log["time"]) == (4, 40, 2, 7, 9)
    assert log["highest_achievement"] == "Dlvl:4"


def test_hostile_names_and_reasons_are_no_markdown(copied: Run) -> None:
    for where, result in results(copied):
        _store(where, replace(result, model="`x`\n# big"))
    (copied.folder / "episodes" / "Crafter" / "seed-42" / RESULT).write_text("`</code><script>\n# x")
    text = (copied.folder / "run.toml").read_text().replace('name = "scripted"', 'name = "`x`\\n# big"')
    (copied.folder / "run.toml").write_text(text)
    export(str(copied.folder), Path("out"))
    note = Path("out/README.md").read_text()
    assert not any(line.startswith("# ") and line != "# `three`" for line in note.splitlines())
    assert all(line.count("`") % 2 == 0 for line in note.splitlines())


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def automem(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run ``automem export`` in this process; returns exit code, output and errors."""
    app = typer.Typer()
    app.command()(cli_export.export)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["export", *arguments])
        code = 0
        try:
            app()
        except SystemExit as end:
            code = int(end.code or 0)
        except UserError as error:
            return 2, "", str(error)
        out, err = capfd.readouterr()
        return code, " ".join(out.split()), " ".join(err.split())

    return run


def test_the_command_names_what_it_left_out(automem: Command, copied: Run) -> None:
    (copied.folder / "episodes" / "Crafter" / "seed-42" / RESULT).unlink()
    code, out, err = automem(str(copied.folder), "--out", "out")
    assert (code, out) == (0, f"out: {EPISODES - 1} episodes, 1 left out")
    assert err == "three: left out: Crafter, seed 42: not finished"
    assert automem(str(copied.folder), "--out", "out")[0] == 2
    assert automem(str(copied.folder), "--out", "out", "--force")[0] == 0
    assert automem(str(copied.folder))[1].startswith("balrog-three: ")


def test_mistakes_are_told(automem: Command, played: Run) -> None:
    assert automem("nosuchrun")[2].startswith("no run 'nosuchrun'")
    assert automem(str(played.folder), "--format", "helm")[2] == "--format helm: there is balrog"


def _store(where: Path, result: EpisodeResult) -> None:
    write_json(where / RESULT, {**asdict(result), "counts": result.counts.as_dict()})


def _record(step: int, text: str, reasoning: str = "") -> StepRecord:
    turn = Turn("m", Prompt(""), reasoning, (), (), 1, 1, 0, None, 0.0)
    return StepRecord(
        step=step, observation=text, log=(), plan=(turn,), raw_action=text, action=text, invalid=0, fallback=False,
        reward=0.0, progression=0.0, achievements={}, terminated=False, truncated=False,
    )  # fmt: skip


def _result(steps: int) -> EpisodeResult:
    return EpisodeResult(
        task="Crafter", seed=1, steps_limit=steps, steps=steps, progression=0.0, achievements={}, reached_at={},
        episode_return=0.0, terminated=False, truncated=True, facts={}, scaffold="", model="m",
        counts=Counts(steps=steps), final_observation="the end",
    )  # fmt: skip
