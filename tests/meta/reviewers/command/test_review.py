"""What a user sees of an agent that means well: its revision, its second chance, and what a kill leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from automem import scaffold
from automem.runs import Run
from meta.reviewer import ReviewFailed
from tests.meta.reviewers.command.conftest import HIDDEN, ROOT, VERSION, Bench, make_bench, running

HONEST = """
import json, subprocess
def automem(*words):
    ran = subprocess.run(["automem", *words], capture_output=True, text=True)
    print(ran.stdout, ran.stderr)
    assert ran.returncode == 0, words
    return ran.stdout
task = sys.stdin.read()
assert task == open("TASK.md").read() and "1.1.0" in task and "Pin the goals" in task
stats = json.loads(automem("trace", "stats", "traces/parent", "--json"))
assert stats == json.loads(open("figures/parent.json").read())
automem("trace", "stats", "traces/1.1.0")
automem("trace", "steps", "traces/parent", "--from", "2", "--to", "4", "--full")
automem("trace", "memory", "traces/parent", "--step", "5")
automem("trace", "search", "traces/parent", "grass", "--in", "observation")
counted = automem("trace", "sql", "traces/parent", "select count(*) as n from steps", "--csv").split()[1]
assert "scaffold.toml" in open("SCAFFOLDS.md").read() and open("attempts/1.1.0/scaffold.toml")
edit()
open("candidate/hooks.py", "w").write("class Hooks:\\n    def reset(self, game, task):\\n        pass\\n")
automem("scaffold", "check", "candidate")
automem("scaffold", "diff", "parent", "candidate")
say(f"# Show fewer lines of a search\\n\\nIn {counted} steps of {len(stats['episodes'])} episode nobody read them.\\n")
"""


def test_an_agent_that_asks_edits_checks_and_says_what_it_did(bench: Bench) -> None:
    bench.smoke, bench.containment = True, None
    index = next(bench.evidence.run.run.folder.rglob("*.index"))
    index.unlink()  # where it cannot be written again, either
    revision = bench.review(HONEST)
    assert revision.description == "Show fewer lines of a search"
    assert revision.analysis == "In 12 steps of 1 episode nobody read them."
    assert revision.spent.seconds > 0
    changed = scaffold.load(str(bench.candidate))
    assert changed.schema.limits.search_results == 50
    assert changed.schema.scaffold.version == VERSION
    assert changed.hooks is not None
    assert [report.ok for report in bench.reports] == [True]
    # The check inside played an episode, its hooks contained there, too.
    assert "a smoke episode" in bench.log and "not checked" not in bench.log
    assert not index.exists()


def test_nothing_of_other_seeds_is_in_the_workspace(bench: Bench) -> None:
    assert len(bench.evidence.run.run.jobs()) == 2
    bench.review(
        f"""
        import subprocess
        def words(path):
            data = path.read_bytes()
            return data if path.suffix != ".zst" else b""
        held = [p for p in pathlib.Path(".").rglob("*") if "seed-{HIDDEN}" in str(p)]
        told = [p for p in pathlib.Path("traces").rglob("run.toml") if "    {HIDDEN},\\n" in p.read_text()]
        print("seen", held, told, sorted(p.name for p in pathlib.Path("traces/parent").iterdir()))
        edit(), say()
        """
    )
    assert "seen [] [] ['episodes', 'run.toml', 'scaffolds']" in bench.log
    assert f"    {HIDDEN},\n" in (bench.evidence.run.run.folder / "run.toml").read_text()


SECOND = """
check = pathlib.Path("CHECK.md")
if check.exists():
    assert "search_results" in check.read_text(), check.read_text()
    assert pathlib.Path("REVISION.md").read_text().startswith("First")
    edit("search_results = -1", "search_results = 40")
    say("Second try\\n\\nIt counts from 1.")
else:
    edit(new="search_results = -1")
    say("First try")
"""


def test_what_the_checker_refuses_is_told_and_mended_in_a_second_round(bench: Bench) -> None:
    revision = bench.review(SECOND)
    assert revision.description == "Second try"
    assert [report.ok for report in bench.reports] == [False, True]
    assert scaffold.load(str(bench.candidate)).schema.limits.search_results == 40


def test_with_one_round_the_loop_is_left_to_tell(bench: Bench) -> None:
    assert bench.review(SECOND, rounds=1).description == "First try"
    assert [report.ok for report in bench.reports] == [False]


def test_what_cannot_be_a_revision_is_told_and_mended_too(bench: Bench) -> None:
    revision = bench.review(
        """
        if pathlib.Path("CHECK.md").exists():
            print(pathlib.Path("CHECK.md").read_text())
            say()
        else:
            edit()
        """
    )
    assert revision.description == "Show fewer lines of a search"
    assert "there is no file REVISION.md" in bench.log
    assert len(bench.reports) == 1


def test_a_review_that_is_over_is_not_made_again(bench: Bench) -> None:
    first = bench.review("edit(), say()")
    again = bench.review("sys.exit('run again')")
    assert again == first
    assert "run again" not in bench.log


def test_a_failure_is_not_made_again_either(bench: Bench) -> None:
    for source in ("sys.exit('no model answers')", "edit(), say()"):
        with pytest.raises(ReviewFailed, match=r"exit code 1, .* the last that it printed: no model answers"):
            bench.review(source)


RESUMED = """
count = pathlib.Path({home!r}, "written", "count")
with count.open("a") as file:
    file.write("x")
if not pathlib.Path("CHECK.md").exists():
    edit(new="search_results = -1")
    say("First try")
    sys.exit()
import subprocess, time
if count.read_text() == "xx":
    subprocess.Popen(["sh", "-c", "while :; do sleep 1; done", {home!r}], start_new_session=True)
    with count.open("a") as file:
        file.write("!")
    time.sleep(600)
edit("search_results = -1", "search_results = 40")
say("Second try")
"""


def test_after_a_kill_the_finished_round_is_kept_and_the_other_one_run_again(
    bench: Bench, played: Run, tmp_path: Path
) -> None:
    (bench.home / "written").mkdir()
    source = RESUMED.format(home=str(bench.home))
    program = (
        "import sys; from pathlib import Path; from tests.meta.reviewers.command.conftest import make_bench; "
        f"make_bench(Path({str(played.folder)!r}), Path({str(tmp_path)!r})).review({source!r}, "
        f"write=[{str(bench.home / 'written')!r}])"
    )
    count = bench.home / "written" / "count"
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, start_new_session=True) as first:
        while not count.exists() or "!" not in count.read_text():
            assert first.poll() is None
            time.sleep(0.05)
        assert running(str(bench.script))
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    while running(str(bench.home)):  # the kernel needs a moment
        time.sleep(0.05)
    resumed = make_bench(played.folder, tmp_path)
    revision = resumed.review(source, write=[str(bench.home / "written")])
    assert revision.description == "Second try"
    assert count.read_text() == "xx!x"
    assert [report.ok for report in resumed.reports] == [False, True]
