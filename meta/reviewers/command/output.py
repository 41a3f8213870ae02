"""What a command prints, kept in a file: bounded, without secrets, and safe to show in a terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from automem.models.litellm_model import scrub
from automem.visible import visible_lines
from automem.vocabulary import one_line

MOST_BYTES = 2_000_000
"""Bytes of one round's output that are kept."""

LONGEST = 65_536
"""Characters of a line that are waited for."""

SAID_CHARS = 160
"""Characters of a line that whoever watches is told."""

INTERVAL = 0.5
"""Seconds between two lines that whoever watches is told."""


class Output:
    """Takes what one round prints.

    Attributes:
        last: the last line that was not empty, in a few words.
    """

    def __init__(self, path: Path, heading: str, secrets: Sequence[str], said: Callable[[str], None]) -> None:
        """
        Args:
            path: a file to add to.
            heading: a line to begin with.
            secrets: texts that must not be in it.
            said: is told the last line now and then.
        """
        self.last = ""
        self._secrets = secrets
        self._overlap = max((len(secret) for secret in secrets), default=0)
        self._said = said
        self._waiting = ""
        self._left = MOST_BYTES
        self._told = float("-inf")
        self._file = path.open("a", encoding="utf-8", errors="replace")
        self._file.write(f"--- {visible_lines(heading)}\n")
        self._file.flush()

    async def take(self, stream: asyncio.StreamReader) -> None:
        """Take everything until its end; never stops reading, so that nothing waits for it."""
        while data := await stream.read(65_536):
            self._add(data.decode("utf-8", "replace"))

    def close(self) -> None:
        """Write what waits, and close the file."""
        if not self._file.closed:
            self._write(self._waiting)
            self._file.close()

    def _add(self, text: str) -> None:
        self._waiting += text
        if self._left <= 0:
            # Nothing but the last line will be asked for, and reading on has to be cheap.
            if len(self._waiting) > LONGEST:
                self._waiting = self._waiting[-LONGEST:].partition("\n")[2]
            if self._due():
                self._tell(self._clean(self._waiting))
            return
        whole, newline, rest = self._waiting.rpartition("\n")
        if newline:
            self._waiting = rest
            self._write(f"{whole}\n")
        if len(self._waiting) > LONGEST:
            # A secret may have come in part: its beginning stays until the rest is there.
            text = scrub(self._waiting, *self._secrets)
            cut = len(text) - self._overlap
            self._waiting = text[cut:]
            self._write(text[:cut])

    def _write(self, text: str) -> None:
        """Write a text that no secret begins or ends outside of."""
        text = self._clean(text)
        self._tell(text)
        if self._left <= 0:
            return
        data = text.encode("utf-8", "replace")
        self._file.write(data[: self._left].decode("utf-8", "ignore"))
        self._left -= len(data)
        if self._left <= 0:
            self._file.write(f"\n… more than {MOST_BYTES} bytes were printed; the rest is not kept\n")
        self._file.flush()

    def _clean(self, text: str) -> str:
        return visible_lines(scrub(text, *self._secrets).replace("\r\n", "\n").replace("\t", "    "))

    def _tell(self, text: str) -> None:
        line = text.rstrip().rpartition("\n")[2].strip()
        if not line:
            return
        self.last = one_line(line, SAID_CHARS)
        if self._due():
            self._told = time.monotonic()
            self._said(self.last)

    def _due(self) -> bool:
        return time.monotonic() - self._told >= INTERVAL
