"""``automem trace …`` as a person uses it: what is printed, what is safe to print, and exit codes."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from automem import cli_trace, scaffold, stats_view
from automem.episode import RESULT, STEPS
from automem.metric_names import METRICS
from automem.runs import Run
from automem.trace import TraceWriter, read
from tests.commands import caller
from tests.traces import Written, a_run

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two Crafter episodes and one of MiniHack."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        return a_run("first", steps=8)


@pytest.fixture
def automem(made: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run ``automem trace`` in this process; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOMEM_RUNS", str(made.folder.parent))

    call = caller(monkeypatch, capfd, "trace")

    def run(*arguments: str) -> tuple[int, str, str]:
        code, out, err = call(*arguments)
        assert "Traceback" not in err and "\x1b" not in out
        return code, out, err

    return run


def test_every_command_has_help_with_an_example(automem: Command) -> None:
    for command in ("stats", "steps", "memory", "search", "sql"):
        code, said, _ = automem(command, "--help")
        assert code == 0 and f"Example: automem trace {command} first" in said
    assert cli_trace.complete_run("fi") == ["first"] and cli_trace.complete_where("re") == ["reply", "result"]


def test_statistics_of_a_run_and_of_an_episode(automem: Command, made: Run) -> None:
    code, said, _ = automem("stats", "first")
    assert code == 0 and "first: episodes" in said and "APPEND" in said and "duplicate writes %" in said
    for name in (*METRICS.values(), *stats_view.ENTRIES.values()):
        assert (name if isinstance(name, str) else name.label) in said
    assert "steps at which achievements fell, in 2 episodes" in said and "collect_wood" in said
    assert "progression" in automem("stats", "first", "--seed", "7")[1]
    run = json.loads(automem("stats", str(made.folder), "--json")[1])
    one = json.loads(automem("stats", "first", "--seed", "8", "--json")[1])
    assert run["planned"] == 2 and run["episodes"][1] == one and one["steps"] == 8 and one["finished"]
    assert json.loads(automem("stats", "first", "--task", "crafter", "--json")[1]) == run


def other_scaffold(made: Run, folder: Path) -> Path:
    """A copy of the run in which seed 7 did what its scaffold does not let it do."""
    shutil.copytree(made.folder, folder / "other")
    trace = folder / "other" / "episodes" / "Crafter" / "seed-7" / STEPS
    records = read(trace)[0]
    op = replace(records[1].log[0].ops[0], name="UPSERT_MAP", args=("1,2", "x"))
    turn = replace(records[1].log[0], ops=(op,))
    trace.unlink()
    with_index = TraceWriter(trace, None, "")
    for record in (records[0], replace(records[1], log=(turn,)), *records[2:]):
        with_index.append(record)
    with_index.close()
    return folder / "other"


def test_sizes_of_memory_files_over_the_steps(automem: Command, made: Run, tmp_path: Path) -> None:
    folder = made.folder / "episodes" / "Crafter" / "seed-7"
    text = (folder / "memory" / "map_notes.txt").read_text()
    code, said, _ = automem("stats", "first", "--seed", "7", "--files", "--every", "3")
    rows = [line.split() for line in said.splitlines() if line.split()[:1] == ["map_notes.txt"]]
    assert code == 0 and [row[4] for row in rows] == [str(text.count("\n")), str(len(text.encode()))]
    assert "Crafter, seed 7: lines of memory files by step" in said
    assert ["0", "3", "6", "7"] in [line.split() for line in said.splitlines()]
    assert automem("stats", str(folder), "--files", "--every", "3")[1] == said
    assert "Crafter: bytes of memory files by step, means of 2 episodes" in automem("stats", "first", "--files")[1]
    first, second = json.loads(automem("stats", "first", "--files", "--json")[1])
    assert (first["seed"], second["seed"]) == (7, 8)
    assert first["files"]["map_notes.txt"][-1]["bytes"] == len(text.encode())
    code, said, err = automem("stats", str(other_scaffold(made, tmp_path)), "--files")
    assert code == 0 and "Crafter, seed 8: lines" in said and "seed 7" not in said and "is refused now" in err
    code, _, err = automem("stats", "first", "--every", "3")
    assert code == 2 and "add --files" in err


def test_steps_in_short_and_in_full(automem: Command, made: Run) -> None:
    code, said, _ = automem("steps", "first", "--seed", "7", "--from", "2", "--to", "3")
    assert code == 0 and said.count("=== step") == 2 and "=== step 2" in said and "=== step 3" in said
    full = automem("steps", "first", "--seed", "7", "--from", "2", "--to", "3", "--full")[1]
    assert len(full) > len(said) and "[observation]" in full
    folder = made.folder / "episodes" / "Crafter" / "seed-7"
    assert automem("steps", str(folder), "--from", "2", "--to", "3")[1] == said
    code, said, err = automem("steps", "first")
    assert code == 2 and "choose one" in err and "Crafter: 7, 8" in err and not said
    code, _, err = automem("steps", "first", "--seed", "7", "--from", "100")
    assert code == 2 and "no step 100; the trace has steps 0 to 7" in err
    assert automem("steps", "first", "--seed", "7", "--from", "5", "--to", "3")[0] == 2
    assert automem("steps", "nosuch")[0] == 2 and "no run 'nosuch'" in automem("steps", "nosuch")[2]


def test_memory_and_what_changed(automem: Command, made: Run) -> None:
    folder = made.folder / "episodes" / "Crafter" / "seed-7" / "memory"
    code, said, _ = automem("memory", "first", "--seed", "7", "--step", "7")
    assert code == 0 and all(f"--- {path.name}: " in said and path.read_text() in said for path in folder.iterdir())
    said = automem("memory", "first", "--seed", "7", "--step", "7", "--file", "map_notes.txt")[1]
    assert said == (folder / "map_notes.txt").read_text()
    code, said, err = automem("memory", "first", "--seed", "7", "--step", "7", "--file", "no.txt")
    assert code == 2 and "no memory file 'no.txt' at step 7; there were goals.txt" in err
    code, said, _ = automem("memory", "first", "--seed", "7", "--step", "7", "--diff", "6")
    assert code == 0 and "map_notes.txt: changed" in said and "\n+" in said and "goals.txt" not in said
    said = automem("memory", "first", "--seed", "7", "--step", "7", "--diff", "6", "--file", "goals.txt")[1]
    assert said == "goals.txt did not change from step 6 to step 7\n"


def test_search(automem: Command) -> None:
    code, said, _ = automem("search", "first", "grass", "--in", "observation", "--seed", "7", "--limit", "2")
    assert code == 0 and said.count("observation: ") == 2 and said.startswith("step 0 observation: ")
    assert automem("search", "first", "grass", "--limit", "1")[1].startswith("Crafter 7 step 0")
    assert "--limit shows more" in automem("search", "first", "grass", "--limit", "1")[2]
    assert automem("search", "first", "gr[a]ss", "--regex")[0] == 0
    code, said, err = automem("search", "first", "nowhere at all")
    assert code == 1 and not said and "nothing matches" in err
    assert automem("search", "first", "(", "--regex")[0] == 2
    assert "choose from" in automem("search", "first", "x", "--in", "replies")[2]


def test_sql(automem: Command) -> None:
    asked = "select seed, step, action, achievements from steps where step < 2 order by all"
    code, said, _ = automem("sql", "first", asked)
    assert code == 0 and "achievements" in said
    found = [json.loads(line) for line in automem("sql", "first", asked, "--json")[1].splitlines()]
    assert [(row["seed"], row["step"]) for row in found] == [(7, 0), (7, 1), (8, 0), (8, 1)]
    rows = list(csv.DictReader(io.StringIO(automem("sql", "first", asked, "--csv")[1])))
    assert [row["action"] for row in rows] == [row["action"] for row in found]
    assert "--rows shows more" in automem("sql", "first", asked, "--rows", "1")[2]
    code, said, err = automem("sql", "first", "select nosuch from steps")
    assert code == 2 and "nosuch" in err and not said
    assert automem("sql", "first", "drop view steps")[0] == 2
    assert automem("sql")[0] == 2 and automem("sql", "first")[0] == 2
    assert "hook_events: each row is" in automem("sql", "--schema")[1]
    assert automem("sql", "first", asked, "--csv", "--json")[0] == 2


HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]markup[/bold red] \u202eright\r\n=1+1"


def test_what_a_model_wrote_is_shown_and_not_obeyed(automem: Command, tmp_path: Path) -> None:
    folder = tmp_path / "Crafter" / "seed-1"
    written = Written(folder, scaffold.load("crafter/v0"))
    written.step([("APPEND", "own.txt", HOSTILE), ("MARK", HOSTILE)], note=HOSTILE)
    written.step([("WRITE", "own.txt", f"{HOSTILE} again")], note=HOSTILE)
    written.writer.close()
    scaffold_known = Path(folder.parent.parent / "run.toml")
    assert not scaffold_known.exists()
    commands = (
        ("steps", str(folder)),
        ("steps", str(folder), "--full"),
        ("stats", str(folder)),
        ("search", str(folder), "markup"),
        ("sql", str(folder), "select observation, system from steps"),
        ("sql", str(folder), "select observation from steps", "--csv"),
    )
    for command in commands:
        code, said, _ = automem(*command)
        assert code == 0 and "\x07" not in said and "\r" not in said, command
        assert "[bold red]markup[/bold red]" in said or command[0] == "stats", command
    code, said, _ = automem("sql", str(folder), "select observation from steps", "--json")
    assert json.loads(said.splitlines()[0])["observation"].endswith(HOSTILE)
    code, _, err = automem("memory", str(folder), "--step", "0")
    assert code == 2 and "belongs to no run" in err


@pytest.mark.parametrize("kept", [True, False])
def test_a_damaged_trace_is_told_and_the_rest_is_shown(automem: Command, made: Run, tmp_path: Path, kept: bool) -> None:
    shutil.copytree(made.folder, tmp_path / "copy")
    folder = tmp_path / "copy" / "episodes" / "Crafter" / "seed-7"
    data = (folder / STEPS).read_bytes()
    (folder / STEPS).write_bytes(data[: len(data) // 2])
    if not kept:
        (folder / RESULT).unlink()
    run = str(tmp_path / "copy")
    code, said, err = automem("steps", run, "--seed", "7")
    assert code == 0 and "=== step 0" in said and f"{folder / STEPS}: record" in err and "incomplete" in err
    assert automem("memory", run, "--seed", "7", "--step", "1")[0] == 0
    code, said, err = automem("search", run, "grass", "--seed", "7")
    assert code == 0 and said and f"{folder / STEPS}: record" in err
    code, said, err = automem("sql", run, "select seed, count(*) as n from steps group by all order by all", "--json")
    rows = [json.loads(line) for line in said.splitlines()]
    assert code == 0 and rows[1] == {"seed": 8, "n": 8} and 0 < rows[0]["n"] < 8 and f"{folder / STEPS}: record" in err
    code, said, err = automem("stats", run)
    assert code == 0 and ("damaged" in said or kept)
    code, said, err = automem("stats", run, "--seed", "7")
    assert code == 0 and f"{folder / STEPS}: record" in said + err
    code, said, err = automem("stats", run, "--seed", "7", "--files")
    assert code == 0 and "map_notes.txt" in said and f"{folder / STEPS}: record" in err


def test_a_trace_that_lost_its_end_is_told(automem: Command, made: Run, tmp_path: Path) -> None:
    shutil.copytree(made.folder, tmp_path / "copy")
    path = tmp_path / "copy" / "episodes" / "Crafter" / "seed-7" / STEPS
    path.write_bytes(b"")
    told, run = f"! {path}: holds 0 of the 8 steps that were played", str(tmp_path / "copy")
    assert told in automem("stats", run, "--seed", "7")[2]
    assert told in automem("search", run, "grass", "--limit", "100000")[2]
    assert told in automem("sql", run, "select count(*) from steps")[2]
    assert told not in automem("stats", run, "--seed", "8")[2]
