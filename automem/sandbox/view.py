"""What can be seen from inside: a Python interpreter with its standard library, and nothing else.

Our own code for the inside (`INSIDE`) is sent over the connection, so that no file of this
project is in view.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
"""Where shared libraries and their loader are."""

PACKAGES = ("site-packages", "dist-packages")
"""Folders of installed packages, which stay out of view."""

FLAGS = ("-s", "-S", "-P", "-B", "-X", "utf8")
"""No user's site, no packages, no folder of the caller on the path, nothing written beside sources."""

ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONCOERCECLOCALE": "0"}
"""All that is in the environment. The hash seed makes sets iterate alike whenever a run is repeated."""

ROOM = Path("/python")
"""Where bubblewrap shows the interpreter."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs scaffold code: the one below the virtual environment, if there is one.

    Attributes:
        executable: its program, no symbolic link.
        prefix: the folder that it is installed in.
        stdlib: its standard library, in `prefix`.
    """

    executable: Path
    prefix: Path
    stdlib: Path

    @property
    def libraries(self) -> Path | None:
        """Its own folder of libraries, which holds `stdlib`; None when that is one of the system's."""
        folder = self.prefix / self.stdlib.relative_to(self.prefix).parts[0]
        return None if str(folder) in LIBRARIES else folder


def interpreter() -> Interpreter:
    """The interpreter that runs us, without its virtual environment."""
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix, "installed_base": sys.base_prefix}
    stdlib = Path(sysconfig.get_path("stdlib", vars=base))
    executable = Path(getattr(sys, "_base_executable", "") or sys.executable)
    return Interpreter(executable.resolve(), Path(sys.base_prefix), stdlib)


def bubblewrap(program: str) -> list[str]:
    """The command up to the interpreter's own arguments: everything unshared, nothing writable, no ``/proc``."""
    python = interpreter()
    command = [program, "--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
    command += ["--uid", "65534", "--gid", "65534", "--hostname", "sandbox", "--clearenv"]
    for name, value in ENVIRONMENT.items():
        command += ["--setenv", name, value]
    shown: list[tuple[Path, Path]] = []
    for folder in map(Path, LIBRARIES):
        if folder.is_symlink():
            command += ["--symlink", str(folder.readlink()), str(folder)]
        else:
            shown += [(part, part) for part in _libraries(folder)]
    if python.libraries is None:
        shown.append((python.stdlib, ROOM / python.stdlib.relative_to(python.prefix)))
    else:
        shown.append((python.libraries, ROOM / python.libraries.name))
        command += ["--setenv", "LD_LIBRARY_PATH", str(ROOM / python.libraries.name)]
    for source, place in shown:
        command += ["--ro-bind", str(source), str(place)]
        for hidden in _packages(source):
            masked = str(place / hidden.relative_to(source))
            command += ["--tmpfs", masked, "--remount-ro", masked]
    executable = ROOM / "bin" / python.executable.name
    command += ["--ro-bind", str(python.executable), str(executable), "--remount-ro", "/", "--chdir", "/"]
    return [*command, "--", str(executable)]


def readable() -> dict[str, list[str]]:
    """The same for Landlock, which allows files, and folders with all that is in them.

    Returns:
        ``read``: what can be read. ``libraries``: folders of which the shared libraries can be read;
        there may be too many of them to name here. ``list``: folders of which the names can be seen.
    """
    python = interpreter()
    folders = [part for folder in map(Path, LIBRARIES) for part in _libraries(folder)]
    if python.libraries is not None:
        folders.append(python.libraries)
    files = [python.executable, *(entry for entry in python.stdlib.iterdir() if entry.name not in PACKAGES)]
    return {
        "read": sorted({str(path.resolve()) for path in files if path.exists()}),
        "libraries": sorted({str(folder.resolve()) for folder in folders}),
        "list": [str(python.stdlib)],
    }


def plain_environment() -> dict[str, str]:
    """The environment where there is no bubblewrap to set it."""
    libraries = interpreter().libraries
    return ENVIRONMENT | ({"LD_LIBRARY_PATH": str(libraries)} if libraries else {})


def _libraries(folder: Path) -> list[Path]:
    """What is needed of a folder of libraries: where Debian keeps those of each architecture apart, only they."""
    own = sorted({libc.parent for libc in folder.glob("*-linux-*/libc.so.*")})
    return own or ([folder] if folder.is_dir() else [])


def _packages(folder: Path) -> Iterator[Path]:
    """Folders of packages in a folder of libraries, or in a standard library."""
    for name in PACKAGES:
        for found in (folder / name, *folder.glob(f"python*/{name}")):
            if found.is_dir() and not found.is_symlink():
                yield found
