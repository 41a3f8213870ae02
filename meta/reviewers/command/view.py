"""What a command sees: the system's programs, our own Python and packages, its workspace, and what the user opens.

Seen read-only, each at its own place: ``/usr`` and what ``/bin``, ``/sbin`` and ``/lib*`` are; of ``/etc`` the
files in `ETC`; the programs and libraries of the Python that runs us and of its virtual environment; the packages
`automem` and `games`, without the repository around them; files that the command line names. Home folder,
``/tmp`` and ``/dev/shm`` are empty, bounded, and gone afterwards.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import automem
import games
from meta.reviewers.command.options import CommandOptions

WORKSPACE = Path("/workspace")
GIVEN = Path("/given")
"""Where bubblewrap shows the workspace, and the files that it is made from."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "nsswitch.conf", "mime.types"),
    *("ssl/certs", "ssl/openssl.cnf", "ca-certificates", "pki/tls/certs", "pki/ca-trust", "crypto-policies"),
)
ETC_NETWORK = ("resolv.conf", "hosts", "host.conf", "gai.conf", "services", "protocols")
"""What is needed to look names up; only with the network."""

OF_PYTHON = ("bin", "lib", "lib64", "libexec", "ssl", "pyvenv.cfg")
"""What is shown of a folder that Python is installed in. Such a folder may be a project's, with all that is in it."""

USER = 1000
"""The user inside: not root, which some agents refuse to be."""

SHARED_MEMORY = 64 * 2**20
"""Bytes of ``/dev/shm``."""


def home() -> Path:
    """The home folder inside: at the place of the user's own, so that what is opened of that is found."""
    own = Path.home()
    taken = [*map(Path, SYSTEM), Path("/proc"), Path("/dev"), Path("/etc"), WORKSPACE, GIVEN]
    usable = own.is_absolute() and len(own.parts) > 1 and not any(own.is_relative_to(place) for place in taken)
    return own if usable else Path("/home/agent")


def words(options: CommandOptions) -> list[str]:
    """The command, with the files that it names (`named_files`) by their absolute paths."""
    named = {i: str(path) for i, path in _named(options)}
    return [named.get(i, word) for i, word in enumerate(options.words)]


def named_files(options: CommandOptions) -> list[Path]:
    """The files that the command line names and that are shown for that: its program where it is none of those in
    view, and words with a ``/`` that are files here."""
    return [path for _, path in _named(options)]


def _named(options: CommandOptions) -> Iterator[tuple[int, Path]]:
    """The number of each word of the command that is a file to be shown, and the file."""
    program = options.words[0]
    inside = "/" in program or shutil.which(program, path=os.pathsep.join(map(str, _search(options))))
    if not inside and (found := shutil.which(program)):
        yield 0, Path(found).absolute()
    for i, word in enumerate(options.words):
        if "/" in word and Path(word).expanduser().is_file():
            yield i, Path(word).expanduser().absolute()


def shown(options: CommandOptions) -> list[Path]:
    """What is shown read-only beside the system: Python, our packages, ``read``, and files that the command names."""
    paths = {*_python(), *_packages(), *options.read, *named_files(options)}
    found: list[Path] = []
    for path in sorted(paths):  # a folder before what is in it
        if not any(path.is_relative_to(place) for place in (*map(Path, SYSTEM), *found)):
            found.append(path)
    return found


def _search(options: CommandOptions) -> list[Path]:
    """Where programs are looked for inside: our Python's, those folders of our own search path that are in view."""
    own = [Path(path) for path in os.environ.get("PATH", "").split(os.pathsep) if path.startswith("/")]
    visible = [*map(Path, SYSTEM), *_python(), *options.read, *options.write]
    path = [Path(sys.executable).parent, *(p for p in own if any(p.is_relative_to(place) for place in visible))]
    return [*path, Path("/usr/local/bin"), Path("/usr/bin"), Path("/bin")]


def _python() -> Iterator[Path]:
    for prefix in dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)):
        for folder in dict.fromkeys((Path(prefix), Path(prefix).resolve())):
            yield from (folder / part for part in OF_PYTHON if (folder / part).exists())
    executable = Path(sys.executable).resolve()
    if not any(executable.is_relative_to(Path(prefix).resolve()) for prefix in (sys.prefix, sys.base_prefix)):
        yield executable
    yield from (Path(path) for path in sys.path if Path(path).name in ("site-packages", "dist-packages"))


def _packages() -> list[Path]:
    return [Path(package.__path__[0]).resolve() for package in (automem, games)]


def launcher() -> str:
    """A program ``automem`` that starts ours, however it is installed here."""
    places = os.pathsep.join(dict.fromkeys(str(path.parent) for path in _packages()))
    start = "import sys; sys.argv[0] = 'automem'; from automem.cli import main; main()"
    return (
        "#!/bin/sh\n"
        f'PYTHONPATH={shlex.quote(places)}"${{PYTHONPATH:+:$PYTHONPATH}}" '
        f'exec {shlex.quote(sys.executable)} -P -c {shlex.quote(start)} "$@"\n'
    )


def environment(options: CommandOptions, given: Path, inside: bool) -> dict[str, str]:
    """All that is in the environment of the command.

    Args:
        options: names what is taken from ours.
        given: where the program ``automem`` is, in ``bin``.
        inside: in the containment; else home folder and search path are the user's own.
    """
    passed = {name: os.environ[name] for name in options.env if name in os.environ}
    path = [str(given / "bin"), *map(str, _search(options))]
    if not inside:
        path += os.environ.get("PATH", "").split(os.pathsep)
    return {
        "PATH": os.pathsep.join(dict.fromkeys(path)),
        "HOME": str(home() if inside else Path.home()),
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/sh",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    } | passed


def bubblewrap(
    options: CommandOptions, given: Path, evidence: Mapping[str, Path], program: str = "bwrap", filter_at: int = -1
) -> list[str]:
    """The command line up to the program that runs inside, `WORKSPACE` its folder.

    Args:
        options: what else is seen.
        given: folder that is shown at `GIVEN`; its folder ``workspace`` makes the read-only part of the workspace.
        evidence: path in the workspace -> file or folder that is shown there, read-only.
        program: of bubblewrap.
        filter_at: descriptor to read the filter of system calls from.
    """
    disk = ["--size", str(options.disk_mb * 2**20)]
    command = [program, "--unshare-all", *(["--share-net"] if options.network else [])]
    command += ["--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--seccomp", str(filter_at)]
    command += ["--uid", str(USER), "--gid", str(USER), "--hostname", "sandbox", "--clearenv"]
    command += [*_system(options.network), "--proc", "/proc", "--dev", "/dev"]
    command += ["--perms", "1777", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    command += ["--perms", "1777", *disk, "--tmpfs", "/tmp", "--perms", "0700", *disk, "--tmpfs", str(home())]
    for path in shown(options):
        command += ["--ro-bind", str(path), str(path)]
    for path in options.write:
        command += ["--bind", str(path), str(path)]
    command += ["--ro-bind", str(given), str(GIVEN)]
    command += ["--perms", "0755", *disk, "--tmpfs", str(WORKSPACE)]
    for entry in sorted((given / "workspace").iterdir()):
        command += ["--ro-bind", str(entry), str(WORKSPACE / entry.name)]
    for name, path in evidence.items():
        command += ["--ro-bind", str(path), str(WORKSPACE / name)]
    for name in ("passwd", "group", *([] if options.network else ["hosts"])):
        command += ["--ro-bind", str(given / "etc" / name), f"/etc/{name}"]
    return [*command, "--remount-ro", "/", "--chdir", str(WORKSPACE), "--"]


def _system(network: bool) -> Iterable[str]:
    for folder in map(Path, SYSTEM):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    for name in (*ETC, *(ETC_NETWORK if network else ())):
        if (path := Path("/etc") / name).exists():
            yield from ("--ro-bind", str(path.resolve()), str(path))


def etc() -> dict[str, str]:
    """Files of ``/etc`` that are made for the inside, which name its user and itself."""
    return {
        "passwd": f"agent:x:{USER}:{USER}:agent:{home()}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        "group": f"agent:x:{USER}:\nnogroup:x:65534:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    }
