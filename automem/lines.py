"""The lines of one memory file, in chunks, so that no operation gets slower as a file grows.

Lines stand in the order in which they were written. Reading goes from the newest line
backward and stops when the reader has enough. Searching is helped by an index: for every
word, a bit mask of the chunks that hold it, so that a word that was never written is
known to be absent without a look at the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

CHUNK_CHARS = 16_384
CHUNK_LINES = 512
CACHED_COUNTS = 16
"""Queries whose count a full chunk remembers."""

_WORD = re.compile(r"[^\W\d_]+|\d+")


class Chunk:
    """Consecutive lines; a removed one is None until the file is compacted."""

    __slots__ = ("chars", "counts", "kept", "lines", "live", "lower", "lowered", "number", "seqs")

    def __init__(self, number: int) -> None:
        self.number = number
        self.lines: list[str | None] = []
        self.seqs: list[int] = []
        self.live = 0
        self.chars = 0
        self.counts: dict[str, int] = {}
        self.lowered: list[str] = []
        """Lower-cased lines of the chunk that is being filled; a full one has only `lower`."""
        self.lower: str | None = None
        """All live lines in lower case, joined; None when it has to be made anew."""
        self.kept: list[int] | None = None
        """Positions of the live lines, in the order of `lower`; None when that is all of them."""

    def add(self, line: str, seq: int) -> None:
        self.lines.append(line)
        self.seqs.append(seq)
        self.lowered.append(line.lower())
        self.live += 1
        self.chars += len(line) + 1
        self.forget()

    def forget(self) -> None:
        """Drop what was derived from the lines."""
        self.lower = None
        if self.counts:
            self.counts = {}

    @property
    def full(self) -> bool:
        return self.chars >= CHUNK_CHARS or len(self.lines) >= CHUNK_LINES

    def text(self) -> str:
        """All live lines in lower case, joined by newlines."""
        if self.lower is None:
            if self.live == len(self.lines):
                self.kept = None
                lowered = self.lowered or [line.lower() for line in self.lines if line is not None]
            else:
                self.kept = [i for i, line in enumerate(self.lines) if line is not None]
                source = self.lowered or [line.lower() if line is not None else "" for line in self.lines]
                lowered = [source[i] for i in self.kept]
            self.lower = "\n".join(lowered)
        return self.lower

    def matches(self, query: str) -> Iterator[int]:
        """Positions of the live lines that contain `query` (lower case), newest first."""
        text = self.text()
        last = self.live - 1
        end = len(text)
        while (found := text.rfind(query, 0, end)) >= 0:
            last -= text.count("\n", found, end)
            yield last if self.kept is None else self.kept[last]
            start = text.rfind("\n", 0, found)
            if start < 0:
                return
            # The next match ends before the newline in front of this line.
            end, last = start, last - 1

    def count(self, query: str) -> int:
        known = self.counts.get(query)
        if known is not None:
            return known
        text = self.text()
        found = 0
        if query in text:
            found = sum([query in line for line in text.split("\n")])
        if len(self.counts) >= CACHED_COUNTS:
            self.counts = {}
        self.counts[query] = found
        return found


Slot = tuple[Chunk, int]
"""Where a line stands, until the next compaction."""


class Lines:
    """Lines in the order of writing. None of them holds a newline.

    Attributes:
        live: how many there are.
        size: their UTF-8 bytes on disk, one newline a line included.
    """

    def __init__(self) -> None:
        self.live = 0
        self.size = 0
        self._chunks: list[Chunk | None] = []
        self._index: dict[str, int] = {}
        self._oldest = 0
        self._slots = 0
        self._vocabulary: str | None = None

    def add(self, line: str, size: int, seq: int) -> Slot:
        """Add a line of `size` bytes at the end. `seq` orders lines across files."""
        chunk = self._chunks[-1] if self._chunks else None
        if chunk is None or chunk.full:
            if chunk is not None:
                self._seal(chunk)
            chunk = Chunk(len(self._chunks))
            self._chunks.append(chunk)
        chunk.add(line, seq)
        self.live += 1
        self._slots += 1
        self.size += size
        return chunk, len(chunk.lines) - 1

    def remove(self, slot: Slot, size: int) -> None:
        """Remove the line at `slot`, of `size` bytes."""
        chunk, i = slot
        chunk.lines[i] = None
        chunk.live -= 1
        chunk.forget()
        self.live -= 1
        self.size -= size
        if chunk.live == 0 and chunk is not self._chunks[-1]:
            self._chunks[chunk.number] = None

    def oldest(self) -> Slot:
        """Where the oldest line stands. There must be one."""
        while (chunk := self._chunks[self._oldest]) is None or chunk.live == 0:
            self._oldest += 1
        return chunk, next(i for i, line in enumerate(chunk.lines) if line is not None)

    @property
    def sparse(self) -> bool:
        """Removed lines take more room than live ones: time to copy the live ones."""
        return self._slots > 2 * self.live + CHUNK_LINES

    def forward(self) -> Iterator[tuple[Slot, str, int]]:
        """Slot, line and seq, oldest first."""
        for chunk in self._chunks:
            if chunk is not None:
                for i, line in enumerate(chunk.lines):
                    if line is not None:
                        yield (chunk, i), line, chunk.seqs[i]

    def newest_first(self) -> Iterator[str]:
        for chunk in reversed(self._chunks):
            if chunk is not None:
                yield from (line for line in reversed(chunk.lines) if line is not None)

    def text(self) -> str:
        """The file as it is on disk."""
        lines = [line for chunk in self._chunks if chunk is not None for line in chunk.lines if line is not None]
        return "\n".join([*lines, ""]) if lines else ""

    def matches(self, query: str) -> Iterator[Slot]:
        """Where the lines that contain `query` (lower case, not empty) stand, newest first."""
        for chunk in self._candidates(query):
            for i in chunk.matches(query):
                yield chunk, i

    def count(self, query: str) -> int:
        """How many lines contain `query` (lower case, not empty)."""
        return sum(chunk.count(query) for chunk in self._candidates(query))

    def _candidates(self, query: str) -> Iterator[Chunk]:
        """Chunks that may hold `query`, newest first."""
        if not self._chunks:
            return
        if (last := self._chunks[-1]) is not None:
            yield last
        mask = self._mask(query)
        while mask:
            number = mask.bit_length() - 1
            mask ^= 1 << number
            chunk = self._chunks[number]
            if chunk is not None:
                yield chunk

    def _mask(self, query: str) -> int:
        """A bit for every full chunk that may hold `query`: those that hold all its words."""
        mask = (1 << (len(self._chunks) - 1)) - 1
        if self._vocabulary is None:
            self._vocabulary = "\n".join(["", *self._index, ""])
        vocabulary = self._vocabulary
        for word in _WORD.findall(query):
            # The first word of a query may be the end of a longer one, the last one the beginning.
            holding = 0
            at = vocabulary.find(word)
            while at >= 0 and holding & mask != mask:
                end = vocabulary.index("\n", at)
                holding |= self._index[vocabulary[vocabulary.rindex("\n", 0, at) + 1 : end]]
                at = vocabulary.find(word, end)
            mask &= holding
            if not mask:
                break
        return mask

    def _seal(self, chunk: Chunk) -> None:
        """Index a chunk that is full."""
        index, bit = self._index, 1 << chunk.number
        before = len(index)
        for word in set(_WORD.findall(chunk.text())):
            index[word] = index.get(word, 0) | bit
        chunk.lowered = []
        if len(index) != before:
            self._vocabulary = None
