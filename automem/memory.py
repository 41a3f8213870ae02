"""The memory folder: a directory of text files that outlives every step of an episode.

The files live here, in memory, and `Memory.flush` brings the directory level once a phase,
so that a person can read along. What an operation answers depends on the operations before
it and on nothing else: running the recorded operations again rebuilds the folder of any step.
"""

from __future__ import annotations

import heapq
import re
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from automem.memory_disk import Folder, MemoryWriteFailed
from automem.memory_files import MapFile, TextFile, clean, map_entry, map_line, utf8_size
from automem.ops import EVERY_FILE, Op, file_name_problem, one_line, problem

__all__ = ["FileSpec", "Limits", "Memory", "MemoryWriteFailed", "Result"]

Kind = Literal["note", "log", "map"]

_FILES_NAMED = 20
"""File names listed in one message to the model."""


@dataclass(frozen=True, slots=True)
class FileSpec:
    """A file, or a family of files, that the scaffold plans for.

    Attributes:
        name: file name; with ``{block}`` it stands for every file whose name fits.
        kind: note (free text), log (lines are added) or map (one ``key: value`` line a key).
        describe: what belongs in it.
        entry: how an entry looks.
        key: maps: how a key looks. ``{x},{y}`` makes it the map that UPSERT_MAP writes to.
        block: side of a block in cells, for a name with ``{block}``.
        pin: its contents are shown in the prompt.
        max_lines: logs: how many lines are kept, the oldest are dropped; None for all.
    """

    name: str
    kind: Kind = "note"
    describe: str = ""
    entry: str = ""
    key: str = ""
    block: int = 0
    pin: bool = False
    max_lines: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a memory folder may hold and show. Each is at least 1."""

    search_results: int = 100
    """Lines that one search shows at most."""
    result_chars: int = 2000
    """Characters that one result shows at most, the line that says what was left out included."""
    max_files: int = 256
    """Files in the folder."""
    file_bytes: int = 64 * 2**20
    """Bytes of one file: verbatim notes of 470 characters at each of 100,000 steps fit."""
    total_bytes: int = 128 * 2**20
    """Bytes of all files together."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an operation answered.

    Attributes:
        text: for the model; at most `Limits.result_chars` characters.
        ok: False when it was refused; then nothing changed.
        found: SEARCH: lines shown, COUNT: lines counted; None for other operations.
        bytes_added: how much the folder grew by; negative when it shrank.
        duplicate: a write whose every line (or whose key's value) stood in that file already.
        truncated: there was more than `text` shows.
    """

    text: str
    ok: bool = True
    found: int | None = None
    bytes_added: int = 0
    duplicate: bool = False
    truncated: bool = False


class _Refused(Exception):
    """An operation cannot be run; the text is for the model."""


class Memory:
    """The memory folder of one episode.

    Args:
        folder: the directory, made if it is not there; None keeps the files in memory only,
            to rebuild a past step without a disk.
        files: what the scaffold plans for; of specs that fit a name, the first counts.
        limits: see `Limits`.
        initial: file name -> contents at the start.
        replace: empty the directory first; otherwise it must be empty.

    Raises:
        MemoryWriteFailed: the folder cannot be made or written, or holds something already.
        ValueError: `initial` has a name or a map line that no operation could have made, or
            does not fit the limits.
    """

    def __init__(
        self,
        folder: Path | None,
        files: Sequence[FileSpec] = (),
        limits: Limits = Limits(),
        *,
        initial: Mapping[str, str] | None = None,
        replace: bool = False,
    ) -> None:
        self.specs = tuple(files)
        self.limits = limits
        self._families = tuple((spec, _name_pattern(spec.name)) for spec in self.specs)
        self._files: dict[str, TextFile | MapFile] = {}
        self._names: list[str] = []
        self._total = 0
        self._seq = 0
        self._removed: set[str] = set()
        self._warnings: list[str] = []
        self._pins = any(spec.pin for spec in self.specs)
        self._coordinates = next(
            (spec for spec in self.specs if spec.kind == "map" and _coordinate_key(spec.key)), None
        )
        for name, text in (initial or {}).items():
            self._begin(name, text)
        self._folder = None if folder is None else Folder(Path(folder), replace)
        self.flush()

    # What the model's operations do.

    def run(self, op: Op) -> Result:
        """Run a memory operation. Never raises for any `op`; one that is refused changes nothing."""
        wrong = problem(op.name, op.args)
        run = _RUN.get(op.name)
        if wrong is not None or run is None:
            return self._refusal(wrong or f"{op.name} is no operation on memory")
        self._seq += 1
        try:
            return run(self, *op.args)
        except _Refused as refused:
            return self._refusal(f"{op.name}: {refused}")

    def _refusal(self, line: str) -> Result:
        return Result(line[: self.limits.result_chars], ok=False)

    def _read(self, name: str) -> Result:
        lines = self._existing(name).lines
        return self._show(name, lines.newest_first(), lines.live)

    def _tail(self, name: str, n: str) -> Result:
        lines = self._existing(name).lines
        most = min(int(n), lines.live)
        return self._show(name, islice(lines.newest_first(), most), most)

    def _show(self, name: str, newest_first: Iterator[str], total: int) -> Result:
        if not total:
            return Result(f"({name} is empty)"[: self.limits.result_chars])
        limit = self.limits.result_chars

        def note(shown: int) -> str:
            return f"[the newest {shown} of {total} lines; {limit} characters are shown at most]"

        text, _, truncated = _newest_within(newest_first, limit, None, note, "[the end of the newest line]")
        return Result(text, truncated=truncated)

    def _search(self, name: str, query: str) -> Result:
        query = _query(query)
        if name == EVERY_FILE:
            found: Iterator[str] = self._everywhere(query)
        else:
            found = (chunk.lines[i] or "" for chunk, i in self._existing(name).lines.matches(query.lower()))
        text, shown, truncated = _newest_within(
            found,
            self.limits.result_chars,
            self.limits.search_results,
            lambda shown: f"[the newest {shown} matches; older ones are not shown]",
            "[part of the newest match]",
            query.lower(),
        )
        if not shown:
            where = "any file" if name == EVERY_FILE else name
            text = f'(no line in {where} contains "{one_line(query, 60)}")'[: self.limits.result_chars]
        return Result(text, found=shown, truncated=truncated)

    def _everywhere(self, query: str) -> Iterator[str]:
        """Matches in all files, those that were written last first."""

        def matches(name: str) -> Iterator[tuple[int, str]]:
            for chunk, i in self._files[name].lines.matches(query.lower()):
                yield -chunk.seqs[i], f"{name}: {chunk.lines[i]}"

        merged = heapq.merge(*(matches(name) for name in self._names), key=lambda match: match[0])
        return (line for _, line in merged)

    def _count(self, name: str, query: str) -> Result:
        query = _query(query)
        names = self._names if name == EVERY_FILE else [name]
        found = sum(self._existing(name).lines.count(query.lower()) for name in names)
        lines = "1 line contains" if found == 1 else f"{found} lines contain"
        return Result(f'{lines} "{one_line(query, 60)}"'[: self.limits.result_chars], found=found)

    def _append(self, name: str, text: str) -> Result:
        text = clean(text)
        self._require_text(name, f"<|UPSERT|>{name}|key|value<|END|>")
        self._room(name, utf8_size(text))
        file = self._file(name)
        assert isinstance(file, TextFile)
        change = file.append(text, self._seq)
        self._total += change.growth
        answer = f"added to {name}, {_lines(file.lines.live)} now"
        if change.dropped:
            answer += f"; the oldest {_lines(change.dropped)} dropped, it keeps {file.max_lines}"
        return self._changed(answer, change.growth, change.duplicate)

    def _write(self, name: str, text: str) -> Result:
        text = clean(text)
        spec = self._spec(name)
        entries: list[tuple[str, str]] = []
        if spec is not None and spec.kind == "map":
            entries = _map_entries(text)
            size = sum(utf8_size(map_line(key, value)) for key, value in dict(entries).items())
        else:
            size = utf8_size(text) if text else 0
        self._room(name, size - (self._files[name].size if name in self._files else 0))
        file = self._file(name)
        change = file.replace(entries, self._seq) if isinstance(file, MapFile) else file.replace(text, self._seq)
        self._total += change.growth
        return self._changed(f"wrote {name}, {_lines(file.lines.live)} now", change.growth, change.duplicate)

    def _create(self, name: str) -> Result:
        if name in self._files:
            raise _Refused(f"{name} is there already, nothing was changed")
        self._room(name, 0)
        self._file(name)
        return self._changed(f"created {name}", 0)

    def _upsert(self, name: str, key: str, value: str) -> Result:
        spec = self._spec(name)
        if spec is None or spec.kind != "map":
            maps = ", ".join(s.name for s in self.specs if s.kind == "map") or "none here"
            raise _Refused(f"{name} is not a map. Maps: {maps}")
        key, value = _fold(key), _fold(value)
        if ": " in key or not key:
            raise _Refused(f'"{one_line(key, 40)}" cannot be a key: ": " divides key and value')
        line = map_line(key, value)
        known = self._files.get(name)
        old = known.line(key) if isinstance(known, MapFile) else None
        self._room(name, utf8_size(line) - (utf8_size(old) if old is not None else 0))
        file = self._file(name)
        assert isinstance(file, MapFile)
        change = file.upsert(key, value, self._seq)
        self._total += change.growth
        answer = (
            f"{name} already has this for {one_line(key, 60)}"
            if change.duplicate
            else f"set {one_line(key, 60)} in {name}"
        )
        return self._changed(answer, change.growth, change.duplicate)

    def _upsert_map(self, xy: str, text: str) -> Result:
        spec = self._coordinates
        if spec is None:
            raise _Refused("there is no coordinate map here")
        x, y = (int(number) for number in xy.split(","))
        name = spec.name
        if spec.block:
            name = name.replace("{block}", f"{x // spec.block}_{y // spec.block}")
        wrong = file_name_problem(name)
        if wrong:
            raise _Refused(wrong)
        return self._upsert(name, spec.key.replace("{x}", str(x)).replace("{y}", str(y)), text)

    def _delete(self, name: str, entry: str | None = None) -> Result:
        file = self._existing(name)
        before = file.size
        if entry is None:
            if name not in self._files:
                raise _Refused(f"{name} is not there")
            del self._files[name]
            self._names.remove(name)
            self._removed.add(name)
            self._total -= before
            return self._changed(f"removed {name}", -before)
        entry = clean(entry).strip()
        if "\n" in entry:
            raise _Refused("name one line at a time")
        removed = file.remove(entry)
        if not removed:
            what = "key" if isinstance(file, MapFile) else "line"
            raise _Refused(f'{name} has no {what} "{one_line(entry, 60)}"')
        self._total += file.size - before
        return self._changed(f"removed {_lines(removed)} from {name}", file.size - before)

    def _changed(self, answer: str, growth: int, duplicate: bool = False) -> Result:
        return Result(answer[: self.limits.result_chars], bytes_added=growth, duplicate=duplicate)

    # Which files there are and may be.

    def _spec(self, name: str) -> FileSpec | None:
        return next((spec for spec, pattern in self._families if pattern.fullmatch(name)), None)

    def _existing(self, name: str) -> TextFile | MapFile:
        """The file to read; an empty one where the scaffold plans for a file that is not there yet."""
        file = self._files.get(name)
        if file is not None:
            return file
        if self._spec(name) is not None:
            return TextFile()
        named = ", ".join(self._names[:_FILES_NAMED]) or "none"
        more = len(self._names) - _FILES_NAMED
        raise _Refused(f"there is no file {name}. Files: {named}{f' and {more} more' if more > 0 else ''}")

    def _file(self, name: str) -> TextFile | MapFile:
        """The file to write, made if it is not there."""
        file = self._files.get(name)
        if file is None:
            spec = self._spec(name)
            if spec is not None and spec.kind == "map":
                file = MapFile()
            else:
                file = TextFile(spec.max_lines if spec is not None and spec.kind == "log" else None)
            self._files[name] = file
            insort(self._names, name)
            self._removed.discard(name)
        return file

    def _require_text(self, name: str, instead: str) -> None:
        spec = self._spec(name)
        if spec is not None and spec.kind == "map":
            raise _Refused(f"{name} is a map. Write {instead}")

    def _room(self, name: str, growth: int) -> None:
        """Refuse what would exceed a quota. What does not grow is never refused."""
        limits = self.limits
        file = self._files.get(name)
        if file is None and len(self._files) >= limits.max_files:
            raise _Refused(f"there are {len(self._files)} files already, no more are allowed; nothing was changed")
        if growth <= 0:
            return
        size = file.size if file is not None else 0
        if size + growth > limits.file_bytes:
            raise _Refused(
                f"{name} may hold {limits.file_bytes} bytes and has {size}; nothing was changed, make room first"
            )
        if self._total + growth > limits.total_bytes:
            raise _Refused(
                f"memory may hold {limits.total_bytes} bytes and has {self._total}; nothing was changed, make room first"
            )

    def _begin(self, name: str, text: str) -> None:
        wrong = file_name_problem(name)
        if wrong:
            raise ValueError(f"initial memory file: {wrong}")
        try:
            # As WRITE does it, except that surrounding empty lines at the start are kept.
            self._write(name, text.removesuffix("\n"))
        except _Refused as refused:
            raise ValueError(f"initial memory file {name}: {refused}") from refused

    # What the agent and people see of it.

    def listing(self) -> list[tuple[str, int, int]]:
        """Name, lines and bytes of every file, sorted by name."""
        return [(name, (file := self._files[name]).lines.live, file.size) for name in self._names]

    def read(self, name: str) -> str:
        """The whole text of a file. Raises KeyError if it is not there."""
        return self._files[name].lines.text()

    def tail(self, name: str, n: int) -> list[str]:
        """The last `n` lines of a file, oldest first. Raises KeyError if it is not there."""
        return list(islice(self._files[name].lines.newest_first(), n))[::-1]

    def snapshot(self) -> dict[str, str]:
        """The whole text of every file by name, sorted."""
        return {name: self.read(name) for name in self._names}

    def pinned(self) -> list[tuple[str, str]]:
        """Name and text of every pinned file, each as READ shows it, sorted by name."""
        if not self._pins:
            return []
        specs = ((name, self._spec(name)) for name in self._names)
        return [(name, self._read(name).text) for name, spec in specs if spec is not None and spec.pin]

    # The directory.

    def flush(self) -> list[str]:
        """Bring the directory level; called once a phase.

        Returns:
            One line for each thing that somebody else did to the folder since the last time.
            Such a change is never read: the file is written again as it stands here.

        Raises:
            MemoryWriteFailed: full disk, or a folder that cannot be written. What was on disk
                stays, what was not written yet is kept here and is written next time.
        """
        if self._folder is None:
            return []
        warnings, changed = self._folder.foreign()
        self._warnings += warnings
        for name, file in self._files.items():
            if changed is None or name in changed:
                file.stale = True
        for name in sorted(self._removed):
            self._folder.remove(name)
            self._removed.discard(name)
        for name, file in self._files.items():
            if file.appended and not file.stale and not self._folder.append(name, file.appended):
                self._warnings.append(f"{name} was changed by someone else; written again as the agent knows it")
                file.stale = True
            if file.stale:
                self._folder.replace(name, file.lines.text().encode())
            file.level()
        warnings, self._warnings = self._warnings, []
        return warnings

    def close(self) -> None:
        """Bring the directory level and let go of it."""
        if self._folder is not None:
            try:
                self.flush()
            finally:
                self._folder.close()
                self._folder = None


_RUN: Mapping[str, Callable[..., Result]] = {
    "READ": Memory._read,
    "SEARCH": Memory._search,
    "TAIL": Memory._tail,
    "COUNT": Memory._count,
    "APPEND": Memory._append,
    "WRITE": Memory._write,
    "CREATE": Memory._create,
    "UPSERT": Memory._upsert,
    "UPSERT_MAP": Memory._upsert_map,
    "DELETE": Memory._delete,
}


def _name_pattern(name: str) -> re.Pattern[str]:
    return re.compile(".+".join(re.escape(part) for part in name.split("{block}")))


def _coordinate_key(key: str) -> bool:
    """True for a key that a coordinate alone fills in."""
    return "{x}" in key and "{y}" in key and "{" not in key.replace("{x}", "").replace("{y}", "")


def _map_entries(text: str) -> list[tuple[str, str]]:
    entries = []
    for line in filter(str.strip, text.split("\n")):
        entry = map_entry(line)
        if entry is None:
            raise _Refused(f'a map holds lines like "key: value", not "{one_line(line, 40)}"; nothing was changed')
        entries.append(entry)
    return entries


def _fold(text: str) -> str:
    """On one line, as keys and values stand in a map."""
    return clean(text).replace("\n", " ").strip()


def _query(query: str) -> str:
    folded = _fold(query)
    if not folded:
        raise _Refused("the query is empty")
    return folded


def _lines(n: int) -> str:
    return "1 line" if n == 1 else f"{n} lines"


def _newest_within(
    newest_first: Iterable[str],
    limit: int,
    most: int | None,
    note: Callable[[int], str],
    part_note: str,
    focus: str = "",
) -> tuple[str, int, bool]:
    """The newest lines that fit, oldest first, below a note if some did not.

    Args:
        newest_first: the lines; no more of them are drawn than needed.
        limit: characters of the whole answer.
        most: lines of the answer; None for any number.
        note: what to say when only so many lines are shown.
        part_note: what to say when not even one line fits; then its end is shown, or
            what is around `focus` (lower case).

    Returns:
        The answer, the lines in it, and whether something was left out.
    """
    kept: list[str] = []
    used = -1
    left_out = None
    for line in newest_first:
        if len(kept) == most or used + 1 + len(line) > limit:
            left_out = line
            break
        kept.append(line)
        used += 1 + len(line)
    if left_out is None:
        return "\n".join(reversed(kept)), len(kept), False
    newest = kept[0] if kept else left_out
    while kept and used + 1 + len(note(len(kept))) > limit:
        used -= 1 + len(kept.pop())
    if kept:
        return "\n".join([note(len(kept)), *reversed(kept)]), len(kept), True
    head = f"{part_note}\n" if len(part_note) < limit // 2 else ""
    return head + _part(newest, limit - len(head), focus), 1, True


def _part(line: str, limit: int, focus: str) -> str:
    """At most `limit` characters of `line`: its end, or what is around `focus`."""
    if limit < 3 or len(line) <= limit:
        return line[-limit:]
    start = len(line) - limit
    if focus:
        start = min(start, max(0, line.lower().find(focus) - limit // 3))
    return ("…" if start else "") + line[start + (start > 0) :][: limit - (start > 0)]
