"""What a user opens, what is refused before anything starts, and what is done where nothing contains."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from automem.errors import UserError
from meta.reviewer import ReviewerUnavailable, ReviewFailed
from meta.reviewers.command import CommandOptions, CommandReviewer
from tests.meta.reviewers.command.conftest import Bench, running
from tests.meta.reviewers.command.test_contained import DAEMON


def ready(command: str, **options: Any) -> CommandReviewer:
    reviewer = CommandReviewer(CommandOptions(command=command, **options))
    asyncio.run(reviewer.ready())
    return reviewer


@pytest.mark.usefixtures("_bubblewrap")
def test_a_program_of_the_system_is_ready() -> None:
    assert ready("/bin/sh -c true").name == "command sh"


@pytest.mark.usefixtures("_bubblewrap")
@pytest.mark.parametrize(
    ("command", "options", "why"),
    [
        ("no-such-agent exec", {}, r"'no-such-agent exec' cannot be started: no program no-such-agent.*read=FOLDER"),
        ("true", {"env": ["AUTOMEM_NOT_SET"]}, "--reviewer-option env=AUTOMEM_NOT_SET: there is no such variable"),
        ("true", {"read": ["/no/such/folder"]}, "--reviewer-option read=/no/such/folder: there is no such"),
        ("true", {"write": ["/no/such/folder"]}, "--reviewer-option write=/no/such/folder: there is no such"),
    ],
)
def test_what_is_missing_is_told_before_anything_starts(command: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ReviewerUnavailable, match=why):
        ready(command, **options)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"command": " "}, "it is empty"),
        ({"command": "agent 'open"}, "cannot be read as a command line"),
        ({"command": "agent", "env": "KEY=secret-value"}, "give the name of a variable"),
        ({"command": "agent", "rounds": 0}, "greater than or equal to 1"),
        ({"command": "agent", "netwrok": True}, "netwrok"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        CommandOptions.model_validate(options)


def test_settings_come_as_words_of_a_command_line() -> None:
    given = {"command": "agent", "network": "true", "env": "KEY", "read": ["/a", "/b"], "memory_mb": "512"}
    options = CommandOptions.model_validate(given)
    assert options.network and options.env == ("KEY",) and options.read == (Path("/a"), Path("/b"))
    assert options.memory_mb == 512


@pytest.mark.parametrize("option", ["read", "write"])
@pytest.mark.parametrize("below", [".", "runs", "runs/loop/evaluations"])
def test_the_runs_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, below: str) -> None:
    (tmp_path / "runs" / "loop" / "evaluations").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)
    with pytest.raises(ReviewerUnavailable, match=f"{option}=.*held-out episodes and scores"):
        ready("true", **{option: [tmp_path / below]})


@pytest.mark.parametrize("option", ["read", "write"])
def test_the_review_itself_cannot_be_opened(bench: Bench, option: str) -> None:
    with pytest.raises(ReviewerUnavailable, match="held-out"):
        bench.review("edit(), say()", **{option: [bench.folder.parents[1]]})


def test_what_is_opened_is_there_at_its_own_place(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    home = bench.home / "home"
    for name in ("config", "state", "tools"):
        (home / name).mkdir(parents=True)
    (home / "config" / "key").write_text("from home")
    tool = home / "tools" / "some-tool"
    tool.write_text("#!/bin/sh\necho from a tool\n")
    tool.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'tools'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AGENT_PASS", "from environment")
    bench.review(
        """
        import subprocess
        home = pathlib.Path.home()
        print((home / "config" / "key").read_text(), "/", os.environ["AGENT_PASS"], "/", os.getuid(), "/", os.getcwd())
        print(sorted(path.name for path in home.iterdir()))
        subprocess.run(["some-tool"])
        (home / "state" / "session").write_text("kept")
        (home / "other").write_text("not kept")
        try:
            (home / "config" / "new").write_text("x")
        except OSError as error:
            print(error.strerror)
        edit(), say()
        """,
        env=["AGENT_PASS"],
        read=[home / "config", home / "tools"],
        write=[home / "state"],
    )
    log = bench.log
    assert "from home / *** / 1000 / /workspace" in log
    assert "['config', 'state', 'tools']" in log
    assert "contained by bubblewrap; network: no; variables: AGENT_PASS\n" in log
    assert f"may be changed, and stays: {home / 'state'}\n" in log
    assert "from a tool" in log and "Read-only file system" in log
    assert (home / "state" / "session").read_text() == "kept"
    assert not (home / "other").exists()


CONNECT = """
def connected(family, address):
    import socket
    try:
        with socket.socket(family) as made:
            made.connect(address)
        return True
    except OSError:
        return False
print("tcp", connected(2, ("127.0.0.1", {port})), "abstract", connected(1, "\\0{name}"))
edit(), say()
"""


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_there_when_it_is_opened_and_abstract_sockets_never_are(bench: Bench, network: bool) -> None:
    name = f"automem-command-network-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        bench.review(CONNECT.format(port=server.getsockname()[1], name=name), network=network)
        assert f"tcp {network} abstract False" in bench.log
        with socket.socket(socket.AF_UNIX) as outside:
            outside.connect(f"\0{name}")


def without_bubblewrap(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = bench.home / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    bench.containment = None


def test_where_nothing_contains_it_a_command_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    without_bubblewrap(bench, monkeypatch)
    with pytest.raises(ReviewerUnavailable) as refused:
        bench.review("edit(), say()")
    assert isinstance(refused.value, UserError)
    for told in ("bubblewrap is not installed", "apt-get install bubblewrap", "--reviewer-option unsafe=true"):
        assert told in str(refused.value)
    assert not (bench.folder / "command.log").exists()


def test_unsafe_runs_it_all_the_same_and_still_ends_what_it_leaves(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in bench.evidence.run.run.folder.rglob("*") if path.is_file()}
    without_bubblewrap(bench, monkeypatch)
    monkeypatch.setenv("AUTOMEM_TEST_CANARY", "secret")
    revision = bench.review(
        f"""{DAEMON}
leave_behind()
import subprocess
subprocess.run(["automem", "trace", "stats", "traces/parent"], check=True)
with open("traces/parent/run.toml", "a") as file:
    file.write("changed")
for path in pathlib.Path("traces/parent/episodes").rglob("*.json"):
    path.write_text("changed")
print(os.environ.get("AUTOMEM_TEST_CANARY"), os.access("{Path(__file__)}", os.R_OK))
edit(), say()
""",
        unsafe=True,
    )
    assert revision.description == "Show fewer lines of a search"
    assert "None True" in bench.log  # it sees the disk: nothing contains it
    assert not running(str(bench.script))
    assert {path: path.read_bytes() for path in bench.evidence.run.run.folder.rglob("*") if path.is_file()} == before
    assert not (bench.folder / "workspace").exists()


def test_unsafe_is_not_used_where_it_is_not_needed(bench: Bench) -> None:
    bench.containment = None
    bench.review("print('at', os.getcwd())\nedit(), say()", unsafe=True)
    assert "at /workspace" in bench.log


def test_unsafe_ends_a_command_whose_time_runs_out(bench: Bench) -> None:
    bench.containment = "unsafe"
    with pytest.raises(ReviewFailed, match="was not done within"):
        bench.review(f"{DAEMON}\nleave_behind()\nprint('waiting', flush=True)\nwhile True: pass", 0.1, unsafe=True)
    assert "waiting" in bench.log
    assert not running(str(bench.script))
