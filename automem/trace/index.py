"""The index of a trace: where its records begin, and what the memory folder held every so many steps.

It stands beside the trace (``steps.jsonl.zst.index``) and is a cache: it can be removed at any time, and
one that does not fit its trace is not used. `TraceWriter` adds to it as an episode is played, and
`automem.trace.episode` makes it anew where it is missing.

The file is a chain of blocks, each about some thousand records. A block says where each of them lies, carries
a checksum of their bytes, and so belongs to this trace and no other. It holds the records in brief
(`automem.trace.brief`), what all records before its last one come to (`automem.trace.tally`), and it may hold
a checkpoint of the memory folder as it stood at its last record. A checkpoint stores only what was added to a
file since the checkpoint before, if the file merely grew, and a tally only what was not in those before; so
their size does not grow with the episode.

At the end there may be a seal: what the system said of the trace file (size, times, inode) when all of it was
found to fit. As long as it says the same, the trace need not be read again to know that it fits.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import time
import zlib
from array import array
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

import orjson
import zstandard

EVERY = 1000
"""Records of a block."""

SPARSEST = 3
"""Blocks after which a checkpoint is taken however large it is."""

SHARE = 4
"""A checkpoint that is larger than a `SHARE`-th of the records since the last one waits for further blocks."""

OLD_ENOUGH = 2_000_000_000
"""Nanoseconds for which a trace must have been left alone before it is sealed: clocks of file systems are coarse."""

READ_AT_ONCE = 1 << 18
"""Bytes of a trace that are read at once to see whether its index fits: what a processor keeps at hand."""

THREADS = min(4, os.cpu_count() or 1)

_MAGIC = b"AMX2"
"""Another one for every format, so that a block of an older format is not used, and made again."""
_HEAD = struct.Struct(">4sII16s")
_SEAL_MAGIC = b"AMXS"
_SEAL = struct.Struct(">4sqqqqq16s")
_LARGEST_HEADER = 1 << 26


Said = tuple[int, int, int, int, int]
"""Size of a file, time of its last change in contents, and in anything (which no program can set), inode, device."""


@dataclass(frozen=True, slots=True)
class Held:
    """A file in a checkpoint.

    Attributes:
        base: the block that holds the first `keep` bytes of it; -1 when `keep` is 0.
        keep: bytes taken from there.
        size: bytes of the whole file.
        packed: bytes of the zstd frame with the rest, 0 when there is no rest.
        digest: of the whole file.
    """

    base: int
    keep: int
    size: int
    packed: int
    digest: str


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive records.

    Attributes:
        first: number of the first one.
        ends: byte of the trace at which each of them ends.
        start: byte at which the first one begins.
        checksum: of their bytes.
        scaffold: identity of the scaffold that was played.
        files: the checkpoint at the last of them, or None.
        content: where in the index its contents begin: first the records in brief and the tally, each a zstd
            frame, then those of the checkpoint.
        brief, tally: bytes of those frames; `tally` is 0 when there is none.
        after: where in the index the block ends.
        digest: of the chain up to this block.
    """

    first: int
    ends: Sequence[int]
    start: int
    checksum: int
    scaffold: str
    files: Mapping[str, Held] | None
    content: int
    brief: int
    tally: int
    after: int
    digest: bytes

    @property
    def last(self) -> int:
        """Number of the last record."""
        return self.first + len(self.ends) - 1


@dataclass
class Index:
    """The blocks that are known to be right, and the bytes that they were read from.

    Attributes:
        data: the bytes.
        blocks: the blocks.
        fits: what the system said of the trace (`_said_of`) just before it was found to fit; None if it was not read.
    """

    data: bytes = b""
    blocks: list[Block] = field(default_factory=list)
    fits: Said | None = None

    @property
    def records(self) -> int:
        """Records that it knows."""
        return self.blocks[-1].last + 1 if self.blocks else 0

    @property
    def end(self) -> int:
        """Byte of the trace at which they end."""
        return self.blocks[-1].ends[-1] if self.blocks else 0

    @property
    def size(self) -> int:
        """Bytes of the index."""
        return self.blocks[-1].after if self.blocks else 0

    @property
    def digest(self) -> bytes:
        """Of the chain."""
        return self.blocks[-1].digest if self.blocks else b""

    def checkpoint(self, step: int) -> int | None:
        """The last block that holds a checkpoint at or before this step; None if there is none."""
        found = None
        for number, block in enumerate(self.blocks):
            if block.last > step:
                break
            if block.files is not None:
                found = number
        return found

    @property
    def tallied(self) -> int:
        """Records up to the last of a block with a tally."""
        return next((block.last + 1 for block in reversed(self.blocks) if block.tally), 0)

    def tallies(self) -> list[bytes]:
        """The tallies of the blocks that have one, packed, for `automem.trace.tally.unpacked`."""
        starts = [(block.content + block.brief, block.tally) for block in self.blocks if block.tally]
        return [self.data[start : start + size] for start, size in starts]

    def widest(self) -> int:
        """Most records that stand between two checkpoints, or before the first or after the last."""
        marks = [-1, *(block.last for block in self.blocks if block.files is not None), self.records - 1]
        return max(after - before for before, after in pairwise(marks))

    def text(self, block: int, name: str, more: str = "") -> str:
        """A file as it is in the checkpoint of a block, and `more` after it."""
        taken: list[tuple[int, int, int]] = []
        size = wanted = self._held(block, name).size
        while wanted:
            held = self._held(block, name)
            if wanted > held.keep:
                taken.append((block, held.keep, wanted))
                wanted = held.keep
            block = held.base
        added = more.encode()
        data = bytearray(size + len(added))
        data[size:] = added
        whole = memoryview(data)
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(lambda one: self._unpack(one[0], name, whole[one[1] : one[2]]), taken))
        return data.decode()

    def _held(self, block: int, name: str) -> Held:
        files = self.blocks[block].files
        assert files is not None
        return files[name]

    def _unpack(self, number: int, name: str, into: memoryview) -> None:
        """Fill `into` with the beginning of what a block added to a file."""
        block = self.blocks[number]
        assert block.files is not None
        start = block.content + block.brief + block.tally
        for other, held in block.files.items():
            if other == name:
                packed = memoryview(self.data)[start : start + held.packed]
                reader, at = zstandard.ZstdDecompressor().stream_reader(packed), 0
                while at < len(into) and (count := reader.readinto(into[at:])):
                    at += count
                return
            start += held.packed
        raise KeyError(name)

    def briefs(self) -> list[bytes]:
        """The records in brief, a zstd frame of lines of JSON for each block."""
        return [self.data[block.content : block.content + block.brief] for block in self.blocks]

    def add(self, block: bytes) -> None:
        """Take in a block that was just made."""
        self.data += block
        read = _block(self.data, self.size, self)
        assert read is not None
        self.blocks.append(read)


def path_of(trace: Path) -> Path:
    """Where the index of a trace is."""
    return trace.with_name(f"{trace.name}.index")


def load(trace: Path, scaffold: str = "") -> Index:
    """What of a trace's index is whole and fits the trace; nothing when there is none.

    Args:
        scaffold: identity of the scaffold that was played, if it is known.
    """
    index = Index()
    try:
        index.data = path_of(trace).read_bytes()
        index.blocks = _blocks(index, scaffold)
        with trace.open("rb") as file:
            said = _said_of(file.fileno())
            if not _sealed(index, said):
                index.blocks = _fitting(index.blocks, file.fileno())
                index.fits = said
    except OSError:
        return Index()
    return index


def seal(trace: Path, index: Index) -> None:
    """Remember that an index fits its trace, so that the next one to ask need not read the trace to know.

    For a trace that nobody writes to any more. Nothing is done where that cannot be known for sure, or when the
    index cannot be written.
    """
    said = index.fits
    if said is None or index.end != said[0] or time.time_ns() - max(said[1], said[2]) < OLD_ENOUGH:
        return
    with contextlib.suppress(OSError):
        path = path_of(trace)
        os.truncate(path, index.size)
        with path.open("ab") as written:
            written.write(_SEAL.pack(_SEAL_MAGIC, *said, _digest(index.digest, repr(said).encode())))


def _said_of(file: int) -> Said:
    said = os.fstat(file)
    return said.st_size, said.st_mtime_ns, said.st_ctime_ns, said.st_ino, said.st_dev


def _sealed(index: Index, said: Said) -> bool:
    try:
        magic, *then, digest = _SEAL.unpack_from(index.data, index.size)
    except struct.error:
        return False
    return (
        bool(index.blocks)
        and magic == _SEAL_MAGIC
        and tuple(then) == said
        and digest == _digest(index.digest, repr(said).encode())
    )


def _blocks(index: Index, scaffold: str) -> list[Block]:
    """The chain up to its first block that is not right."""
    chain = Index(index.data)
    while (block := _block(chain.data, chain.size, chain)) is not None:
        if scaffold and block.scaffold != scaffold:
            break
        chain.blocks.append(block)
    return chain.blocks


def _fitting(blocks: list[Block], trace: int) -> list[Block]:
    """The blocks whose records stand in the trace, up to the first that do not."""

    def fits(block: Block) -> bool:
        buffer = memoryview(bytearray(READ_AT_ONCE))
        checksum, at, end = 0, block.start, block.ends[-1]
        while at < end and (count := os.preadv(trace, [buffer[: end - at]], at)):
            checksum = zlib.crc32(buffer[:count], checksum)
            at += count
        return at == end and checksum == block.checksum

    with ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(fits, blocks))
    return blocks[: (*found, False).index(False)]


def _block(data: bytes, at: int, before: Index) -> Block | None:
    """The block at this place, if it is whole and continues the chain."""
    try:
        magic, header_size, content_size, digest = _HEAD.unpack_from(data, at)
        header = data[at + _HEAD.size : at + _HEAD.size + header_size]
        content = at + _HEAD.size + header_size
        after = content + content_size
        if magic != _MAGIC or after > len(data) or _digest(before.digest, data[at + _HEAD.size : after]) != digest:
            return None
        if zstandard.frame_content_size(header) > _LARGEST_HEADER:
            return None
        said, _, packed = zstandard.ZstdDecompressor().decompress(header).partition(b"\n")
        said = orjson.loads(said)
        if said["first"] != before.records or said["start"] != before.end:
            return None
        ends = array("Q", accumulate(array("I", packed), initial=before.end))[1:]
        files = said["files"]
        held = None if files is None else {name: Held(*values) for name, values in files.items()}
        return Block(
            said["first"],
            ends,
            said["start"],
            said["checksum"],
            said["scaffold"],
            held,
            content,
            said["brief"],
            said["tally"],
            after,
            digest,
        )
    except (struct.error, zstandard.ZstdError, ValueError, KeyError, TypeError):
        return None


def packed_block(before: bytes, header: bytes, content: bytes) -> tuple[bytes, bytes]:
    """The digest of the chain with a block of this header and content, and the block."""
    digest = _digest(before, header + content)
    return digest, _HEAD.pack(_MAGIC, len(header), len(content), digest) + header + content


def _digest(before: bytes, data: bytes) -> bytes:
    digest = hashlib.sha256(before)
    digest.update(data)
    return digest.digest()[:16]
