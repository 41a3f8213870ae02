"""The written criteria of a search, and their versions: nothing is ever overwritten, so a change can be undone.

::

    <search>/criteria/
      <n>.md        what version n says, from 1; the first one comes with AutoMem
      <n>.json      who wrote it, and why
      in_force      the number of the version by which is judged where nothing else is asked for
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from automem.episode import write_json
from automem.errors import UserError
from automem.storable import storable
from automem.vocabulary import one_line
from meta.storage import read_json

FIRST = Path(__file__).resolve().parents[2] / "prompts" / "criteria.md"

SHORTEST, LONGEST = 100, 20_000
"""Characters of a version."""

MOST = 500
"""Versions of one search."""

NAMES = 24
"""Criteria of a version at most."""

_NUMBER = re.compile(r"[1-9][0-9]{0,3}")
_NAME = re.compile(r"^## +(\S.{0,58})$", re.MULTILINE)


@dataclass(frozen=True)
class Version:
    """One version of the criteria.

    Attributes:
        number: from 1.
        text: Markdown; each criterion is a heading of the second level.
        by: who wrote it.
        why: what the change is for, in a line.
    """

    number: int
    text: str
    by: str
    why: str

    @property
    def hash(self) -> str:
        """Of the text: the same criteria judge alike, whatever number they have."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @property
    def names(self) -> tuple[str, ...]:
        """Its criteria."""
        return names_in(self.text)


def names_in(text: str) -> tuple[str, ...]:
    """The criteria that a text names."""
    return tuple(dict.fromkeys(name.strip().lower() for name in _NAME.findall(text)))


class Criteria:
    """The versions of a search, on disk."""

    def __init__(self, folder: Path) -> None:
        """Nothing is read or written yet. Args: folder: of the search."""
        self._folder = folder / "criteria"
        self._lock = threading.Lock()

    def in_force(self) -> Version:
        """The version by which is judged where nothing else is asked for."""
        try:
            return self.version((self._folder / "in_force").read_text(encoding="utf-8").strip())
        except FileNotFoundError:
            return self.version("1")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{self._folder / 'in_force'}: cannot be read: {error}") from error

    def versions(self) -> list[Version]:
        """All versions, in order."""
        found: list[Version] = []
        while len(found) < MOST and (not found or self._text(len(found) + 1).is_file()):
            found.append(self.version(str(len(found) + 1)))
        return found

    def version(self, number: str) -> Version:
        """The version of this number. Raises `UserError` that says which there are."""
        if not _NUMBER.fullmatch(number):
            raise UserError(
                f"there is no version {one_line(number, 40)!r} of the criteria: versions are numbered from 1"
            )
        self._begin()
        path = self._text(int(number))
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            last = len(self.versions())
            raise UserError(f"there is no version {number} of the criteria; there are 1 to {last}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read: {error}") from error
        about = read_json(path.with_suffix(".json")) or {}
        return Version(int(number), text, str(about.get("by", "")), str(about.get("why", "")))

    def add(self, text: str, by: str, why: str, adopt: bool = True) -> Version:
        """Write the next version, and put it in force if it is to be adopted.

        The same text by the same author is the same version, so that a resumption adds nothing.
        Raises `UserError`, which tells the author what is wrong with it.
        """
        text = _checked(text)
        with self._lock:
            known = self.versions()
            made = next((version for version in known if (version.text, version.by) == (text, by)), None)
            if made is None:
                now = self.in_force()
                if text == now.text:
                    raise UserError(f"not written: it says what version {now.number} says, which is in force")
                made = self._next(len(known) + 1, text, by, why)
            elif made != known[-1]:
                return made
            if adopt:
                self.adopt(made)
            return made

    def _next(self, number: int, text: str, by: str, why: str) -> Version:
        if number > MOST:
            raise UserError(f"not written: there are {MOST} versions of the criteria already")
        write_json(self._text(number).with_suffix(".json"), {"by": by, "why": one_line(storable(why), 1000)})
        self._write(self._text(number), text)
        return self.version(str(number))

    def adopt(self, version: Version) -> None:
        """Put a version in force, a later or an earlier one."""
        self._write(self._folder / "in_force", f"{version.number}\n")

    def _text(self, number: int) -> Path:
        return self._folder / f"{number}.md"

    def _begin(self) -> None:
        """The first version comes with AutoMem, and is kept as it was when the search began."""
        if not self._text(1).is_file():
            self._folder.mkdir(parents=True, exist_ok=True)
            write_json(self._text(1).with_suffix(".json"), {"by": "AutoMem", "why": "to begin with"})
            self._write(self._text(1), FIRST.read_text(encoding="utf-8"))

    def _write(self, path: Path, text: str) -> None:
        scratch = path.with_name(f".{path.name}.part-{os.getpid()}")
        try:
            scratch.write_text(text, encoding="utf-8")
            scratch.replace(path)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}; free some space and resume") from error


def _checked(text: str) -> str:
    """The text as it is kept. Raises `UserError`."""
    text = storable(text).replace("\r\n", "\n").replace("\r", "\n").strip() + "\n"
    if not SHORTEST <= len(text) <= LONGEST:
        raise UserError(f"not written: criteria have {SHORTEST} to {LONGEST} characters, and these have {len(text)}")
    if not all(char.isprintable() or char == "\n" or char == "\t" for char in text):
        raise UserError("not written: criteria are plain text, and these hold control characters")
    found = names_in(text)
    if not 1 <= len(found) <= NAMES:
        raise UserError(
            f"not written: each criterion is a heading `## its name`, 1 to {NAMES} of them; these have {len(found)}"
        )
    return text
