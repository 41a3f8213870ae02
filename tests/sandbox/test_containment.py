"""What code inside cannot do, tried by code inside.

Each attempt is one Python expression. It is made in the containment, where it has to fail without a
trace, and then once more without containment, where the very same expression has to succeed: so it
was a real attempt, and what stopped it was the containment.
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.conftest import CANARY, Place

ROOT = Path(__file__).resolve().parents[2]

ATTEMPTS = """
import re, json
sys = re.enum.sys
os, ctypes, socket, signal, resource, gc = (sys.modules[n] for n in "os ctypes socket signal resource gc".split())
builtins = sys.modules["builtins"]
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_ssize_t

def call(name, *args):
    ctypes.set_errno(0)
    result = getattr(libc, name)(*args)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def found(path):
    sys.path.append(path)
    sys.path_importer_cache.clear()
    return lambda name: builtins.__import__(name).__name__

def open_descriptors():
    found = []
    for number in range(256):
        try:
            os.write(number, b"")
            found.append(number)
        except OSError:
            pass
    return found

def outcome(expression):
    try:
        return f"did {eval(expression, globals())!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

class Hooks:
    def op_TRY(self, args, memory):
        return outcome(*args)
"""

REFUSED = "PermissionError: [Errno 1]"
"""EPERM, which is what the filter of system calls answers; files that rights protect say EACCES, 13."""

FILES = {
    "read a file": "open('{at}/canary').read()",
    "read the password file": "open('/etc/passwd').read()",
    "read a file below Python": "os.open('{at}/canary', os.O_RDONLY)",
    "read by handing over a path": "os.open('canary', os.O_RDONLY, dir_fd=os.open('{at}', os.O_PATH))",
    "list a folder": "os.listdir('{at}')",
    "list the root": "os.listdir('/')",
    "list open files": "os.listdir('/proc/self/fd')",
    "see that a file is there": "os.stat('{at}/canary').st_size",
    "follow a link": "os.readlink('/proc/self/exe')",
    "read its environment": "open('/proc/self/environ').read()",
    "read its memory map": "open('/proc/self/maps').read()",
    "read of process 1": "open('/proc/1/status').read()",
    "read the standard library": "open(re.__file__).read()[:9]",
    "open the standard library for writing": "open(re.__file__, 'r+').closed",
    "make a file": "open('{at}/new', 'w').write('x')",
    "make a file in /tmp": "os.remove(open('/tmp/{name}', 'w').name)",
    "make a nameless file": "os.open('/tmp', os.O_TMPFILE | os.O_RDWR)",
    "make a file in memory": "os.memfd_create('x')",
    "append to a file": "open('{at}/canary', 'a').write('x')",
    "empty a file": "os.truncate('{at}/canary', 0)",
    "change a file's mode": "os.chmod('{at}/canary', 0o600)",
    "change a file's times": "os.utime('{at}/canary', (1, 1))",
    "change the mode of what it has open": "os.fchmod(1, 0o666)",
    "rename a file": "os.rename('{at}/canary', '{at}/other')",
    "remove a file": "os.unlink('{at}/other')",
    "make a folder": "os.mkdir('{at}/folder')",
    "remove a folder": "os.rmdir('{at}/folder')",
    "make a symbolic link": "os.symlink('/etc/passwd', '{at}/link')",
    "make a hard link": "os.link('{at}/link', '{at}/hard', follow_symlinks=False)",
    "make a named pipe": "os.mkfifo('{at}/pipe')",
    "change the folder": "os.chdir('/')",
    "ask for the folder": "os.getcwd()",
    "watch a folder": "call('inotify_init')",
}

OF_ROOT = ("open the standard library for writing", "change the mode of what it has open")
"""What others may not do anyway."""

PROCESSES = {
    "see the time that another process has used": "sys.modules['time'].clock_gettime(~{victim} << 3 | 2)",
    "fork": "os.fork() or os._exit(0)",
    "start a program": "os.posix_spawn('/bin/true', ['true'], {{}})",
    "start a thread": "sys.modules['_thread'].start_new_thread(lambda: None, ())",
    "signal the host": "os.kill({host}, 0)",
    "signal another process": "os.kill({victim}, 0)",
    "signal a process group": "os.killpg(0, 0)",
    "signal by number of a thread": "call('tgkill', {victim}, {victim}, 0)",
    "queue a signal": "call('sigqueue', {victim}, 0, None)",
    "hold on to another process": "os.pidfd_open({victim})",
    "read another's memory": "call('process_vm_readv', {victim}, None, 0, None, 0, 0)",
    "write another's memory": "call('process_vm_writev', {victim}, None, 0, None, 0, 0)",
    "lift another's limits": "resource.prlimit({victim}, resource.RLIMIT_NOFILE)",
    "lift its own limits": "call('setrlimit', resource.RLIMIT_CORE, ctypes.create_string_buffer(16))",
    "outlive its parent": "call('prctl', 1, 0, 0, 0, 0)",
    "ask for a priority": "os.nice(0)",
    "choose processors": "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "set an alarm": "call('setitimer', 0, ctypes.create_string_buffer(32), None)",
    "have signals sent by a descriptor": "call('fcntl', 1, 8, 0)",
    "get memory that can be executed": "call('mmap', None, 4096, 7, 0x22, -1, 0) > 0",
    "make memory executable": "call('mprotect', ctypes.c_void_p(call('mmap', None, 4096, 3, 0x22, -1, 0)), 4096, 5)",
    "share memory by number": "call('shmget', 0, 4096, 0o600) >= 0 and None",
    "learn the machine's name": "os.uname().nodename",
    "learn the machine's state": "call('sysinfo', ctypes.create_string_buffer(4096))",
    "learn whose it is": "call('getresuid', *[ctypes.byref(ctypes.c_uint()) for _ in range(3)])",
}

NETWORK = {
    "connect over IPv4": "socket.create_connection(('127.0.0.1', {port4})).close()",
    "connect over IPv6": "socket.create_connection(('::1', {port6})).close()",
    "connect over a Unix socket": "socket.socket(socket.AF_UNIX).connect('{at}/server')",
    "connect over an abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0{name}')",
    "send a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port4}))",
    "listen": "socket.create_server(('127.0.0.1', 0)).close()",
    "open a pair of sockets": "socket.socketpair()[0].close()",
    "speak to the kernel": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()",
    "resolve a name": "socket.getaddrinfo('localhost', 80)[0][1]",
}


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process outside that does nothing."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


class Servers:
    """What listens outside, and whether anybody came."""

    def __init__(self, folder: Path) -> None:
        self.sockets = [
            socket.create_server(("127.0.0.1", 0)),
            socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX),
        ]
        self.sockets[1].bind(str(folder / "server"))
        self.sockets[2].bind(f"\0{folder.name}{os.getpid()}")
        self.ports = {"port4": self.sockets[0].getsockname()[1], "port6": 0}
        with contextlib.suppress(OSError):
            self.sockets.append(socket.create_server(("::1", 0), family=socket.AF_INET6))
            self.ports["port6"] = self.sockets[3].getsockname()[1]
        for listening in self.sockets:
            listening.listen()
            listening.setblocking(False)

    def visited(self) -> bool:
        """Whether somebody has connected since it was last asked."""
        visits = 0
        for listening in self.sockets:
            with contextlib.suppress(BlockingIOError):
                listening.accept()[0].close()
                visits += 1
        return visits > 0


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    served = Servers(tmp_path)
    yield served
    for listening in served.sockets:
        listening.close()


def snapshot(folder: Path) -> dict[str, tuple[int, float, bytes]]:
    """Everything in a folder."""
    return {
        path.name: (path.lstat().st_mode, path.lstat().st_mtime, path.read_bytes() if path.is_file() else b"")
        for path in folder.iterdir()
    }


def attempt(place: Place, expression: str) -> str:
    return place.asked(ATTEMPTS, "op_TRY", [expression])["text"]


@pytest.mark.parametrize("what", FILES)
def test_files(place: Place, uncontained: Place, tmp_path: Path, what: str) -> None:
    (tmp_path / "canary").write_text("secret")
    if what == "remove a file":
        (tmp_path / "other").touch()
    elif what == "remove a folder":
        (tmp_path / "folder").mkdir()
    elif what == "make a hard link":
        (tmp_path / "link").symlink_to("canary")
    expression = FILES[what].format(at=tmp_path, name=tmp_path.name)
    before = snapshot(tmp_path)
    told = attempt(place, expression)
    assert told.startswith(REFUSED), told
    assert snapshot(tmp_path) == before
    if os.geteuid() == 0 or what not in OF_ROOT:
        assert attempt(uncontained, expression).startswith("did ")


@pytest.mark.parametrize("what", PROCESSES)
def test_processes(place: Place, uncontained: Place, victim: subprocess.Popen[bytes], what: str) -> None:
    expression = PROCESSES[what].format(host=os.getpid(), victim=victim.pid)
    told = attempt(place, expression)
    thread = "RuntimeError: can't start new thread"  # what Python makes of any error there
    assert told.startswith(thread if what == "start a thread" else REFUSED), told
    assert victim.poll() is None
    assert attempt(uncontained, expression).startswith("did ")


@pytest.mark.parametrize("what", NETWORK)
def test_network(place: Place, uncontained: Place, servers: Servers, tmp_path: Path, what: str) -> None:
    if what == "connect over IPv6" and not servers.ports["port6"]:
        pytest.skip("this machine has no IPv6")
    expression = NETWORK[what].format(at=tmp_path, name=f"{tmp_path.name}{os.getpid()}", **servers.ports)
    told = attempt(place, expression)
    # Looking a name up needs files first, and says no more than that it failed.
    assert told.startswith("gaierror" if what == "resolve a name" else REFUSED), told
    assert not servers.visited()
    assert attempt(uncontained, expression).startswith("did ")
    assert servers.visited() == what.startswith("connect")


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("io_uring_setup", 425), ("clone3", 435), ("openat2", 437), ("landlock_create_ruleset", 444)),
        *(("pidfd_getfd", 438), ("mount_setattr", 442), ("memfd_secret", 447), ("open_tree", 428), ("fsopen", 430)),
        *(("futex_waitv", 449), ("process_madvise", 440), ("pidfd_send_signal", 424)),
    ],
)
def test_system_calls_that_are_newer_than_most_lists(place: Place, name: str, number: int) -> None:
    told = attempt(place, f"call('syscall', {number}, 0, 0, 0, 0, 0, 0)")
    assert told.startswith(REFUSED), f"{name}: {told}"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("ptrace", 101), ("keyctl", 250), ("bpf", 321), ("userfaultfd", 323), ("perf_event_open", 298)),
        *(("mount", 165), ("unshare", 272), ("setns", 308), ("chroot", 161), ("pivot_root", 155), ("kexec_load", 246)),
        *(("seccomp", 317), ("personality", 135), ("mknod", 133), ("setuid", 105), ("capset", 126), ("reboot", 169)),
        *(("clone", 56), ("vfork", 58), ("execve", 59), ("execveat", 322), ("sendto", 44), ("sendmsg", 46)),
        *(("recvmsg", 47), ("sendmmsg", 307), ("io_setup", 206), ("timer_create", 222), ("ioctl", 16), ("dup", 32)),
        *(
            ("modify_ldt", 154),
            ("iopl", 172),
            ("open", 2),
            ("creat", 85),
            ("name_to_handle_at", 303),
            ("quotactl", 179),
        ),
        *(("mq_open", 240), ("semget", 64), ("msgget", 68), ("pkey_mprotect", 329), ("remap_file_pages", 216)),
        *(("setpgid", 109), ("setsid", 112), ("kill", 62), ("rt_sigqueueinfo", 129), ("sched_setscheduler", 144)),
        *(("open in the x32 numbering", 0x40000002),),
    ],
)
def test_system_calls_that_reach_out(place: Place, name: str, number: int) -> None:
    expression = f"call('syscall', {number}, 0, 0, 0, 0, 0, 0)"
    if number >= 0x40000000:  # another architecture's numbers: nothing legitimate makes them
        with pytest.raises(Exception, match="ended by signal 31"):
            attempt(place, expression)
        return
    told = attempt(place, expression)
    assert told.startswith(REFUSED), f"{name}: {told}"


def test_no_environment(place: Place, uncontained: Place) -> None:
    assert os.environ[CANARY]
    assert attempt(place, f"(dict(os.environ), libc.getenv(b'{CANARY}'))") == "did ({}, 0)"
    # Not in the process's first memory, either: where the kernel put arguments and environment.
    words = "[w for w in (os.environ, sys.argv, sys.path, sys.flags.no_user_site) if w]"
    assert attempt(place, words) == "did [['-c'], 1]"


def test_no_descriptor_but_its_own(place: Place) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # somebody was careless
    try:
        assert attempt(place, "open_descriptors()") == "did [0, 1, 2, 3]"
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize(
    "name", ["tests", "games", "automem.runs", "automem.trace", "nle", "numpy", "pydantic", "ensurepip"]
)
def test_nothing_of_the_project_can_be_imported(place: Place, uncontained: Place, name: str) -> None:
    expression = f"found({str(ROOT)!r})({name!r})"
    told = attempt(place, expression)
    assert told.startswith(("ModuleNotFoundError", "PermissionError")), told
    if name == "tests":
        assert attempt(uncontained, expression) == "did 'tests'"


def test_a_walk_over_all_classes_leads_nowhere(place: Place, uncontained: Place, tmp_path: Path) -> None:
    walk = "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0].__init__.__globals__"
    made = tmp_path / "made"
    attempt(place, f"{walk}['system']('touch {made}')")
    assert not made.exists()
    attempt(uncontained, f"{walk}['system']('touch {made}')")
    assert made.exists()


def test_nothing_of_the_host_is_in_its_memory(place: Place) -> None:
    """No text that the process can reach names this project's folder, or the task and seed of anybody."""
    half = len(str(ROOT)) // 2
    word = f"''.join([{str(ROOT)[:half]!r}, {str(ROOT)[half:]!r}])"  # asking must not put it there
    walk = "[t for o in gc.get_objects() for t in gc.get_referents(o) if type(t) is str and {} in t]"
    assert attempt(place, walk.format(word)) == "did []"
    assert "'automem.hooks.inside'" in attempt(place, walk.format("'hooks.inside'"))


def test_only_its_own_python_is_in_view(place: Place) -> None:
    """The warm parent's own view: what is left to see for a process that got past its filter of system calls."""
    if place.mode != "bubblewrap":
        pytest.skip("Landlock hides what files hold, not that they are there")
    from automem.sandbox import view

    program = "import os; print(sorted(os.listdir('/')), [os.access(p, os.W_OK) for p in ('/', '/python', '/usr/lib')])"
    walk = "[os.path.join(p, n) for p, _, names in os.walk('/') if p.endswith('-packages') for n in names]"
    command = [*view.bubblewrap("bwrap"), *view.FLAGS, "-c", f"{program}; print({walk})"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    root, _, found = shown.partition("\n")
    assert root.replace("'lib64', ", "") == "['lib', 'python', 'usr'] [False, False, False]"
    assert found.strip() == "[]"


def test_landlock_leaves_only_python_to_read(place: Place, tmp_path: Path) -> None:
    """The same for Landlock, whose rights are tried as the launcher leaves them."""
    if place.mode != "landlock":
        pytest.skip("of Landlock")
    from automem.sandbox import parent

    (tmp_path / "canary").write_text("secret")
    server = socket.create_server(("127.0.0.1", 0))
    program = f"""
import os, socket
def tried(f, *args):
    try: return f(*args) and 'done'
    except OSError as error: return error.errno
def connect(): socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))
print([tried(open, p) for p in ('{tmp_path}/canary', '/etc/passwd', '/proc/self/environ', {__file__!r})],
      [tried(os.listdir, p) for p in ('{tmp_path}', '/', {str(ROOT)!r})], tried(open, os.__file__),
      [tried(open, p, 'w') for p in ('{tmp_path}/new', '/tmp/automem-new', os.__file__)],
      tried(os.system, 'true'), tried(os.kill, os.getppid(), 0), tried(connect))
"""
    command, environment = parent.command("landlock")
    command[command.index(parent.BOOTSTRAP)] = program
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    server.close()
    denied = "13, 13"
    files = f"[{denied}, {denied}] [{denied}, 13] done [{denied}, 13]"
    assert ran.stdout.startswith(files), ran.stdout + ran.stderr
    assert not (tmp_path / "new").exists()
    from landlock import landlock_abi_version

    if landlock_abi_version() >= 6:
        assert ran.stdout.endswith(" 1 13\n"), ran.stdout
    assert sys.executable
