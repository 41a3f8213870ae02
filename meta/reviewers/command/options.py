"""What a command may use and see. The user sets it; nothing that the command reads or writes can."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class CommandOptions(BaseModel):
    """How a command is run. By default it has no network, an empty home folder and none of your environment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str
    """The command line, split as a shell splits it, but run without one. It gets its task on standard input, too."""
    network: bool = False
    """Let it use the network: all of it, servers on this machine included. It then gets no Unix sockets but pairs: they
    would lead to the machine's own services."""
    env: tuple[str, ...] = ()
    """Names of environment variables that it gets, such as OPENAI_API_KEY."""
    read: tuple[Path, ...] = ()
    """Files and folders that it may read beside the system's programs, at their own places."""
    write: tuple[Path, ...] = ()
    """Files and folders that it may change, at their own places. What is written there stays, and is not limited."""
    memory_mb: Annotated[int, Field(ge=64, le=1_048_576)] = 4096
    """MiB of memory, of all its processes together, and of the data of each."""
    disk_mb: Annotated[int, Field(ge=1, le=1_048_576)] = 512
    """MiB that it may store in its workspace, its home folder and /tmp, which lie in memory; and in a file anywhere."""
    processes: Annotated[int, Field(ge=8, le=32_768)] = 1024
    """Processes and threads at a time."""
    rounds: Annotated[int, Field(ge=1, le=10)] = 2
    """How often it is run at most: again, with what was found wrong, when its files cannot be used."""
    unsafe: bool = False
    """Run it without containment where bubblewrap cannot run; it then has all the rights that you have."""

    @field_validator("command")
    @classmethod
    def _words(cls, command: str) -> str:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"{command!r} cannot be read as a command line: {error}") from error
        if not words or not words[0]:
            raise ValueError("it is empty; write for instance --reviewer-option command='codex exec -'")
        return command

    @field_validator("env", "read", "write", mode="before")
    @classmethod
    def _several(cls, given: Any) -> Any:
        """On the command line, one is no list."""
        return (given,) if isinstance(given, str) else given

    @field_validator("env")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name.partition('=')[0]!r}: give the name of a variable, not its value")
        return names

    @field_validator("read", "write")
    @classmethod
    def _absolute(cls, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(path.expanduser().absolute() for path in paths)

    @property
    def words(self) -> list[str]:
        """The program and its arguments."""
        return shlex.split(self.command)
