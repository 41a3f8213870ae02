"""Commands that try to get out, see more than they should, or take more than their share."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from automem.runs import Run
from meta.reviewer import ReviewFailed
from meta.reviewers.command import contained
from tests.meta.reviewers.command.conftest import ROOT, Bench, make_bench, running

SECRET = "canary-value-5d1c"
HALVES = f"{SECRET[:9]!r} + {SECRET[9:]!r}"
"""How a script names the secret without holding it."""

TRY = """
import ctypes, glob, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    result = getattr(libc, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def connected(family, address):
    with socket.socket(family) as made:
        made.connect(address)
    return True
def environments(value):
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if value.encode() in open(path, "rb").read():
                return path
        except OSError:
            pass
    raise LookupError("in none")
told = {}
for name, expression in EXPRESSIONS.items():
    try:
        told[name] = f"did {eval(expression)!r}"
    except BaseException as error:
        told[name] = f"{type(error).__name__} {error}"
print("TOLD", told)
"""

REACHING_OUT = {
    "read the repository": "open('{root}/meta/reviewer.py').read(1)",
    "list the repository": "os.listdir('{root}/tests')",
    "read a run": "open('{run}/summary.json').read(1)",
    "read the attempt's own folder": "os.listdir('{attempt}')",
    "read a key in the home folder": "open('{home}/.ssh/key').read(1)",
    "find the home folder": "os.listdir(os.path.expanduser('~'))[0]",
    "read its environment": "os.environ['AUTOMEM_TEST_CANARY']",
    "read another's environment": f"environments({HALVES})",
    "see the host's processes": "open('/proc/{host}/cmdline').read().index('pytest')",
    "signal the host": "os.kill({host}, 0)",
    "make a hard link to a file outside": "os.link('{home}/.ssh/key', 'linked')",
    "write a file outside": "open('{home}/made', 'w').write('x')",
    "remove a file outside": "os.remove('{home}/removed')",
    "connect to a server of this machine": "connected(socket.AF_INET, ('127.0.0.1', {port}))",
    "connect to a Unix socket": "connected(socket.AF_UNIX, '{home}/server')",
    "connect to an abstract socket": "connected(socket.AF_UNIX, '\\0{name}')",
    "be root": "open('/etc/shadow').read(1)",
    "read the machine's accounts": "open('/etc/passwd').read().index('root:')",
}
"""What an uncontained command can do here, though its environment and home folder are shown to be its own."""

RIGHTS = {
    "make a user namespace": "call('unshare', 0x10000000)",
    "mount": "call('mount', b'none', b'/tmp', b'tmpfs', 0, None)",
    "trace another process": "call('ptrace', 16, os.getppid(), 0, 0)",
    "end the watcher": "os.kill(1, signal.SIGKILL)",
    "look into the watcher": "open('/proc/1/mem', 'rb').read(1)",
    "use what the watcher has open": "os.readlink('/proc/1/fd/3')",
    "write to the system": "open('/usr/bin/automem-canary', 'w')",
    "write to a device's folder": "open('/dev/automem-canary', 'w')",
    "write beside the workspace": "open('/automem-canary', 'w')",
    "write to the accounts": "open('/etc/passwd', 'a')",
    "change the parent": "open('parent/scaffold.toml', 'a')",
    "remove the parent": "os.rename('parent', 'other')",
    "change the task": "open('TASK.md', 'a')",
    "change a trace": "open(glob.glob('traces/parent/episodes/*/*/steps.jsonl.zst')[0], 'ab')",
    "remove a trace": "os.remove(glob.glob('traces/parent/episodes/*/*/episode.json')[0])",
    "add a trace": "os.mkdir('traces/parent/episodes/Crafter/seed-1')",
    "change the plan of a run": "open('traces/parent/run.toml', 'a')",
    "change an attempt": "open('attempts/1.1.0/scaffold.toml', 'a')",
    "change the program": "open(__import__('automem').__file__, 'a')",
    "change what watches it": "open('/given/inside.py', 'a')",
    "link the parent into the candidate": "os.link('parent/scaffold.toml', 'candidate/linked')",
    "reach a hypervisor": "socket.socket(40)",
    "speak to the kernel's cryptography": "socket.socket(38)",
    "ask the kernel to read for it": "call('syscall', 425, 8, 0)",
}
"""What nothing may do inside."""


def attempts(expressions: dict[str, str]) -> str:
    return f"EXPRESSIONS = {expressions!r}\n{TRY}"


def told(printed: str) -> dict[str, str]:
    line = next(line for line in printed.splitlines() if line.startswith("TOLD "))
    return ast.literal_eval(line.removeprefix("TOLD "))


class Outside:
    """What is there to be reached: files, servers, a process with a secret."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / ".ssh").mkdir(parents=True)
        (home / ".ssh" / "key").write_text(SECRET)
        self.fill()
        self.servers = [
            socket.create_server(("127.0.0.1", 0)),
            socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX),
        ]
        self.name = f"automem-command-{os.getpid()}"
        self.servers[1].bind(str(home / "server"))
        self.servers[2].bind(f"\0{self.name}")
        for server in self.servers:
            server.listen()
            server.setblocking(False)
        self.bystander = subprocess.Popen(["sleep", "3600"], env={"AUTOMEM_TEST_CANARY": SECRET})

    def fill(self) -> None:
        (self.home / "removed").touch()
        (self.home / "made").unlink(missing_ok=True)

    @property
    def port(self) -> int:
        return self.servers[0].getsockname()[1]

    def visits(self) -> int:
        """How many connected since it was last asked."""
        count = 0
        for server in self.servers:
            with contextlib.suppress(BlockingIOError):
                server.accept()[0].close()
                count += 1
        return count

    def close(self) -> None:
        self.bystander.kill()
        self.bystander.wait()
        for server in self.servers:
            server.close()


class Compared:
    """The same attempts, contained and not."""

    def __init__(self, bench: Bench, outside: Outside) -> None:
        known = {
            "root": ROOT, "run": bench.evidence.run.run.folder, "attempt": bench.folder, "home": outside.home,
            "host": os.getpid(), "port": outside.port, "name": outside.name,
        }  # fmt: skip
        expressions = {name: text.format(**known) for name, text in REACHING_OUT.items()}
        self.review = bench.review(f"{attempts(expressions | RIGHTS)}\nedit(), say()")
        self.inside = told(bench.log)
        self.after = (outside.visits(), (outside.home / "made").exists(), (outside.home / "removed").exists())
        self.script = bench.home / "uncontained.py"
        self.script.write_text(f"import os\n{attempts(expressions)}")
        ran = subprocess.run(
            [sys.executable, str(self.script)], cwd=bench.home, capture_output=True, text=True, check=True
        )
        self.outside = told(ran.stdout)
        self.visits = outside.visits()


@pytest.fixture(scope="module")
def compared(played: Run, tmp_path_factory: pytest.TempPathFactory, _bubblewrap: None) -> Iterator[Compared]:
    outside = Outside(tmp_path_factory.mktemp("out") / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(outside.home))
        patch.setenv("AUTOMEM_TEST_CANARY", SECRET)
        try:
            yield Compared(make_bench(played.folder, tmp_path_factory.mktemp("contained")), outside)
        finally:
            outside.close()


@pytest.mark.parametrize("what", REACHING_OUT)
def test_what_lies_outside_is_out_of_reach(compared: Compared, what: str) -> None:
    # Its home folder is empty and its own: what it writes there is gone afterwards.
    if what != "write a file outside":
        assert not compared.inside[what].startswith("did "), compared.inside[what]
    if os.geteuid() == 0 or what != "be root":
        assert compared.outside[what].startswith("did "), compared.outside[what]


def test_nothing_outside_was_changed_or_visited(compared: Compared) -> None:
    assert compared.after == (0, False, True)
    assert compared.visits == 3


@pytest.mark.parametrize("what", RIGHTS)
def test_it_has_no_rights(compared: Compared, what: str) -> None:
    if what == "end the watcher":  # which is asked in vain, and goes on
        assert compared.review.description
        return
    assert not compared.inside[what].startswith("did "), compared.inside[what]
    assert not compared.inside[what].startswith(("NameError", "SyntaxError", "IndexError", "AttributeError"))


def gone(bench: Bench) -> bool:
    """Whether no process of the agent is left."""
    return not running(str(bench.script))


DAEMON = """
import subprocess
def leave_behind():
    # A child of nobody, in a session of its own, that ignores what can be ignored.
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            import signal, time
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            os.close(1), os.close(2)
            while True:
                time.sleep(60)
        os._exit(0)
    os.wait()
"""


def test_what_it_leaves_running_ends_with_it(bench: Bench) -> None:
    bench.review(f"{DAEMON}\nleave_behind()\nprint('left', len(os.listdir('/proc')) > 0)\nedit(), say()")
    assert "left True" in bench.log
    assert gone(bench)


def test_time_that_runs_out_ends_it_and_its_children(bench: Bench) -> None:
    with pytest.raises(ReviewFailed, match=r"the command 'python' was not done within \d seconds and was ended") as why:
        bench.review(
            f"{DAEMON}\nleave_behind()\nedit(), say()\nprint('waiting', flush=True)\nos.wait4\nwhile True: pass", 0.1
        )
    assert "waiting" in bench.log
    assert 5 < why.value.spent.seconds < 60
    assert gone(bench)


def test_a_review_that_is_cancelled_ends_it_too(bench: Bench) -> None:
    async def cancelled() -> None:
        reviewer = bench.reviewer(f"{DAEMON}\nleave_behind()\nprint('waiting', flush=True)\nwhile True: pass")
        review = asyncio.create_task(reviewer.revise(bench.evidence, bench.desk()))
        while "waiting" not in bench.said:
            assert not review.done()
            await asyncio.sleep(0.05)
        assert running(str(bench.script))
        review.cancel()
        with pytest.raises(asyncio.CancelledError):
            await review

    asyncio.run(cancelled())
    assert gone(bench)


def test_a_fork_bomb_is_held_back(bench: Bench) -> None:
    bomb = """
        import time
        print("bomb", flush=True)
        while True:
            try:
                if os.fork() == 0:
                    time.sleep(600)
            except OSError as error:
                sys.exit(f"held back: {error}")
    """
    with pytest.raises(ReviewFailed) as failed:
        bench.review(bomb, processes=100)
    if os.geteuid() == 0:  # whose processes Linux does not limit; they are counted instead
        assert "was ended: it had more than 100 processes and threads" in str(failed.value)
    else:
        assert "held back" in str(failed.value)
    assert gone(bench)


def test_one_process_gets_no_more_memory_than_there_is(bench: Bench) -> None:
    hog = "edit(), say()\ntry:\n    bytearray(400 * 2**20)\nexcept MemoryError:\n    print('no memory')"
    bench.review(hog, memory_mb=256)
    assert "no memory" in bench.log
    assert len(bytearray(400 * 2**20)) == 400 * 2**20  # which is not too much for the machine


def test_all_its_processes_together_get_no_more_memory_than_there_is(bench: Bench) -> None:
    hog = """
        import time
        for _ in range(4):
            if os.fork() == 0:
                held = bytearray(os.urandom(1 << 20)) * 100
                time.sleep(600)
        os.wait()
    """
    with pytest.raises(ReviewFailed, match="was ended: it took more than 256 MiB of memory"):
        bench.review(hog, memory_mb=256)
    assert gone(bench)


def test_the_disk_cannot_be_filled(bench: Bench) -> None:
    hog = """
        def fill(folder):
            written = 0
            try:
                for i in range(64):
                    with open(f"{folder}/{i}", "wb", buffering=0) as file:
                        for _ in range(8):
                            written += file.write(bytes(1 << 20))
            except OSError as error:
                return written >> 20, error.strerror
            return written >> 20, "everything"
        edit(), say()
        for folder in (".", "/tmp", os.path.expanduser("~"), "/dev/shm"):
            print(folder, fill(folder))
            for name in os.listdir(folder):
                if name.isdecimal():
                    os.remove(f"{folder}/{name}")
    """
    bench.review(hog, disk_mb=16)
    lines = [line for line in bench.log.splitlines() if "No space left on device" in line]
    assert len(lines) == 4, bench.log
    assert all(int(line.split("(")[1].split(",")[0]) <= 64 for line in lines)


def test_files_without_end_are_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contained, "FILES", 500)
    with pytest.raises(ReviewFailed, match="was ended: it made more than 500 files"):
        bench.review("import itertools\nfor i in itertools.count():\n    os.mkdir(f'/tmp/{i}')")


def test_one_file_is_no_larger_than_all(bench: Bench) -> None:
    (bench.home / "open").mkdir()
    big = f"""
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            with open("{bench.home}/open/big", "wb") as file:
                file.truncate(64 << 20)
        except OSError as error:
            print("refused", error.strerror)
        edit(), say()
    """
    bench.review(big, disk_mb=16, write=[bench.home / "open"])
    assert "refused File too large" in bench.log


def test_what_it_prints_is_bounded_and_holds_no_secret(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_PASS", SECRET)
    noisy = """
        secret = os.environ["AGENT_PASS"]
        print("\\x1b[2Jhidden", secret, flush=True)
        for part in (secret[:5], secret[5:] + "\\n"):
            os.write(1, part.encode())
        os.write(2, b"y" * 65_530 + secret.encode() + b"y" * 200_000 + b"\\n")
        for _ in range(100):
            os.write(1, b"x" * 100_000 + b"\\n")
        edit(), say(f"Show fewer lines\\n\\n{secret[:4]}")
    """
    bench.review(noisy, env=["AGENT_PASS"])
    log = bench.log
    assert "hidden ***" in log and SECRET not in log and "\x1b" not in log
    assert 1_000_000 < len(log) < 3_000_000
    assert log.endswith("the rest is not kept\n")
    assert not any(SECRET in text for text in bench.said)
