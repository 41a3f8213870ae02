"""The lines of one memory file, in chunks, so that no operation gets slower as a file grows.

Lines stand in the order in which they were written. Reading goes from the newest line
backward and stops when the reader has enough. Searching is helped by an index: for every
word, a bit mask of the full chunks that hold it, so that a word that was never written is
known to be absent without a look at the text. What a search or a count found out about
full chunks is remembered for the next one of the same query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

CHUNK_CHARS = 16_384
CHUNK_LINES = 512
REMEMBERED = 64
"""Queries of which a file remembers what was found out about its full chunks."""

_WORD = re.compile(r"(?P<letters>[^\W\d_]+)|\d+")
_LETTERS, _DIGITS = (
    bytes(code if chr(code) in kept else ord(" ") for code in range(128)) + b" " * 128
    for kept in ("abcdefghijklmnopqrstuvwxyz", "0123456789")
)


def _words(text: str) -> tuple[set[str], set[str]]:
    """Runs of letters and runs of digits in lower-case `text`."""
    if text.isascii():
        data = text.encode()
        letters, digits = (set(data.translate(table).decode().split()) for table in (_LETTERS, _DIGITS))
        return letters, digits
    words = [(found[0], found["letters"] is not None) for found in _WORD.finditer(text)]
    return {word for word, letters in words if letters}, {word for word, letters in words if not letters}


class Chunk:
    """Consecutive lines; a removed one is None until the file is compacted."""

    __slots__ = ("chars", "kept", "lines", "live", "lower", "lowered", "number", "seqs")

    def __init__(self, number: int) -> None:
        self.number = number
        self.lines: list[str | None] = []
        self.seqs: list[int] = []
        self.live = 0
        self.chars = 0
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
        self.lower = None

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
        """How many live lines contain `query` (lower case)."""
        text = self.text()
        return sum([query in line for line in text.split("\n")]) if query in text else 0


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
        self._oldest = 0
        self._slots = 0
        self._index: dict[str, int] = {}
        """Word -> a bit for every full chunk that holds it."""
        self._letters = self._digits = "\n"
        """The words of the index, each between newlines: a search in this finds parts of words."""
        self._absent: dict[str, int] = {}
        """Query -> a bit for every full chunk that is known not to hold it."""
        self._counted: dict[str, tuple[int, int]] = {}
        """Query -> how many of the first full chunks were counted, and what was found in them."""

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
        chunk.lower = None
        if chunk is not self._chunks[-1]:
            self._counted.clear()
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
            found = False
            for i in chunk.matches(query):
                found = True
                yield chunk, i
            if not found:
                self._note_absent(query, chunk)

    def count(self, query: str) -> int:
        """How many lines contain `query` (lower case, not empty)."""
        if not self._chunks:
            return 0
        first, total = self._counted.get(query, (0, 0))
        last = self._chunks[-1]
        newest = last.count(query) if last is not None else 0
        full = len(self._chunks) - 1
        if first < full:
            mask = self._mask(query) >> first << first
            for chunk in self._chunks_of(mask):
                found = chunk.count(query)
                total += found
                if not found:
                    self._note_absent(query, chunk)
            _forget_oldest(self._counted)
            self._counted[query] = full, total
        return newest + total

    def _candidates(self, query: str) -> Iterator[Chunk]:
        """Chunks that may hold `query`, newest first."""
        if not self._chunks:
            return
        if (last := self._chunks[-1]) is not None:
            yield last
        yield from self._chunks_of(self._mask(query))

    def _chunks_of(self, mask: int) -> Iterator[Chunk]:
        while mask:
            number = mask.bit_length() - 1
            mask ^= 1 << number
            chunk = self._chunks[number]
            if chunk is not None:
                yield chunk

    def _note_absent(self, query: str, chunk: Chunk) -> None:
        # Lines are added to the last chunk only, so what a full one does not hold it never will.
        if chunk is not self._chunks[-1]:
            if query not in self._absent:
                _forget_oldest(self._absent)
            self._absent[query] = self._absent.get(query, 0) | 1 << chunk.number

    def _mask(self, query: str) -> int:
        """A bit for every full chunk that may hold `query`: those that hold all its words."""
        mask = (1 << (len(self._chunks) - 1)) - 1
        mask &= ~self._absent.get(query, 0)
        for found in _WORD.finditer(query):
            # At its ends a query may begin or stop in the middle of a word.
            before = "\n" if found.start() > 0 else ""
            after = "\n" if found.end() < len(query) else ""
            if before and after:
                mask &= self._index.get(found[0], 0)
            else:
                mask &= self._holding(f"{before}{found[0]}{after}", found["letters"] is not None, mask)
            if not mask:
                break
        return mask

    def _holding(self, part: str, letters: bool, wanted: int) -> int:
        """Chunks with a word that contains `part`; may stop early once it has all that are `wanted`."""
        words = self._letters if letters else self._digits
        holding = 0
        at = words.find(part)
        while at >= 0 and (holding & wanted) != wanted:
            start = words.rindex("\n", 0, at + 1) + 1
            end = words.index("\n", start)
            holding |= self._index[words[start:end]]
            at = words.find(part, end)
        return holding

    def _seal(self, chunk: Chunk) -> None:
        """Index a chunk that is full."""
        index, bit = self._index, 1 << chunk.number
        letters, digits = _words(chunk.text())
        self._letters += "".join([f"{word}\n" for word in letters if word not in index])
        self._digits += "".join([f"{word}\n" for word in digits if word not in index])
        for words in (letters, digits):
            for word in words:
                index[word] = index.get(word, 0) | bit
        chunk.lowered = []


def _forget_oldest(remembered: dict) -> None:
    while len(remembered) >= REMEMBERED:
        del remembered[next(iter(remembered))]
