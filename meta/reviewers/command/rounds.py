"""Rounds that are over, on disk: each is there whole or not at all, so that none is run, and paid for, twice.

::

    rounds/0/files/         the candidate as it was before the first round
    rounds/1/files/         what the first round left, as far as a scaffold may have it
    rounds/1/round.json     the rest of `Round`
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from automem.check import folder
from automem.errors import UserError
from automem.scaffold import write_files

ROUND, FILES = "round.json", "files"


@dataclass(frozen=True)
class Round:
    """What came of running the command once.

    Attributes:
        seconds: how long it ran.
        failed: why no other round makes sense; empty when one does, or none is needed.
        problems: why what it left cannot be used.
        description, analysis: what it says about its revision.
    """

    seconds: float
    failed: str = ""
    problems: tuple[str, ...] = ()
    description: str = ""
    analysis: str = ""


class Rounds:
    """The rounds of one review."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, candidate: Path) -> dict[str, bytes]:
        """The candidate's files as they were before the first round, path -> bytes; kept at the first call."""
        if not (self._folder / "0").is_dir():
            files = folder.contents(candidate).sources
            self._keep(0, lambda scratch: write_files(scratch / FILES, files))
        return self.files(0)

    def files(self, number: int) -> dict[str, bytes]:
        """What a round left, path -> bytes."""
        return folder.contents(self._folder / str(number) / FILES).sources

    def read(self, number: int) -> Round | None:
        """A round that is over; None when it is not. Raises `UserError` when its record is damaged."""
        path = self._folder / str(number) / ROUND
        try:
            data = orjson.loads(path.read_bytes())
            return Round(**{**data, "problems": tuple(data["problems"])})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}: cannot be read ({error}); remove its folder to run this round again") from error

    def keep(self, number: int, done: Round, files: Mapping[str, bytes]) -> None:
        """Write down that a round is over."""

        def fill(scratch: Path) -> None:
            (scratch / FILES).mkdir()
            write_files(scratch / FILES, files)
            (scratch / ROUND).write_bytes(orjson.dumps(asdict(done), option=orjson.OPT_INDENT_2))

        self._keep(number, fill)

    def _keep(self, number: int, fill: Callable[[Path], None]) -> None:
        scratch = self._folder / f".{number}.part"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        fill(scratch)
        for path in (*scratch.rglob("*"), scratch):
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        scratch.rename(self._folder / str(number))
