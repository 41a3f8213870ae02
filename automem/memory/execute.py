"""What each memory operation does to the files, and what it answers."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from automem.memory.changes import news, same
from automem.memory.excerpt import newest_within
from automem.memory.files import MapFile, clean, map_entry, map_line, utf8_size
from automem.memory.store import FileSpec, Refused, Store
from automem.vocabulary import EVERY_FILE, Op, file_name_problem, one_line, problem

MOST_LINES = 20_000
"""Lines that one operation may write: more keep everybody waiting."""


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


def execute(store: Store, op: Op) -> Result:
    """Run one operation. Never raises for any `op`; one that is refused changes nothing."""
    wrong = problem(op.name, op.args)
    run = _RUN.get(op.name)
    if wrong is not None or run is None:
        return _result(store, wrong or f"{op.name} is no operation on memory", ok=False)
    store.clock += 1
    try:
        return run(store, *op.args)
    except Refused as refused:
        return _result(store, f"{op.name}: {refused}", ok=False)


def read(store: Store, name: str) -> Result:
    """The newest part of a file."""
    lines = store.existing(name).lines
    return _show(store, name, lines.newest_first(), lines.live)


def write(store: Store, name: str, text: str) -> Result:
    """Replace a file."""
    text = _content(text)
    held = store.files[name].size if name in store.files else 0
    if store.is_map(name):
        entries = _map_entries(text)
        size = sum(utf8_size(map_line(key, value)) for key, value in entries.items())
        map_file = store.map_file(name, size - held)
        change, lines = map_file.replace(entries, store.clock), map_file.lines
    else:
        text_file = store.text_file(name, (utf8_size(text) if text else 0) - held)
        spec = store.spec(name)
        if held and spec is not None and spec.changes and same(text_file.lines.text(), text, spec.entry):
            return _result(store, f"not written: {name} says this already, but for step numbers", duplicate=True)
        change, lines = text_file.replace(text, store.clock), text_file.lines
    store.grew(change.growth)
    answer = f"wrote {name}, {_count_lines(lines.live)} now"
    return _result(store, answer, bytes_added=change.growth, duplicate=change.duplicate)


def _content(text: str) -> str:
    text = clean(text).removesuffix("\n")
    if text.count("\n") >= MOST_LINES:
        raise Refused(f"more than {MOST_LINES} lines at once; nothing was changed")
    return text


def _tail(store: Store, name: str, n: str) -> Result:
    lines = store.existing(name).lines
    most = min(int(n), lines.live)
    return _show(store, name, islice(lines.newest_first(), most), most)


def _show(store: Store, name: str, newest_first: Iterator[str], total: int) -> Result:
    if not total:
        return _result(store, f"({name} is empty)")
    limit = store.limits.result_chars

    def note(shown: int) -> str:
        return f"[the newest {shown} of {total} lines; {limit} characters are shown at most]"

    text, _, truncated = newest_within(newest_first, limit, None, note, "[the end of the newest line]")
    return Result(text, truncated=truncated)


def _search(store: Store, name: str, query: str) -> Result:
    query = _query(query)
    wanted = query.lower()
    if name == EVERY_FILE:
        found = _everywhere(store, wanted)
    else:
        found = (chunk.lines[i] or "" for chunk, i in store.existing(name).lines.matches(wanted))
    text, shown, truncated = newest_within(
        found,
        store.limits.result_chars,
        store.limits.search_results,
        lambda shown: f"[the newest {shown} matches; older ones are not shown]",
        "[part of the newest match]",
        wanted,
    )
    if shown:
        return Result(text, found=shown, truncated=truncated)
    where = "any file" if name == EVERY_FILE else name
    return _result(store, f'(no line in {where} contains "{one_line(query, 60)}")', found=0)


def _everywhere(store: Store, query: str) -> Iterator[str]:
    """Matches in all files, those that were written last first."""

    def matches(name: str) -> Iterator[tuple[int, str]]:
        for chunk, i in store.files[name].lines.matches(query):
            yield -chunk.seqs[i], f"{name}: {chunk.lines[i]}"

    merged = heapq.merge(*(matches(name) for name in store.names), key=lambda match: match[0])
    return (line for _, line in merged)


def _count(store: Store, name: str, query: str) -> Result:
    query = _query(query)
    names = store.names if name == EVERY_FILE else [name]
    found = sum(store.existing(name).lines.count(query.lower()) for name in names)
    lines = "1 line contains" if found == 1 else f"{found} lines contain"
    return _result(store, f'{lines} "{one_line(query, 60)}"', found=found)


def _append(store: Store, name: str, text: str) -> Result:
    text = _content(text)
    file = store.text_file(name, utf8_size(text))
    left_out = 0
    spec = store.spec(name)
    if spec is not None and spec.changes:
        lines = text.split("\n")
        kept = news(lines, next(file.lines.newest_first(), None), spec.entry)
        if not kept:
            answer = f"not added: the newest line of {name} says this already, but for its step number"
            return _result(store, answer, duplicate=True)
        left_out = len(lines) - len(kept)
        text = "\n".join(kept)
    change = file.append(text, store.clock)
    store.grew(change.growth)
    answer = f"added to {name}, {_count_lines(file.lines.live)} now"
    if left_out:
        answer += f"; {_count_lines(left_out)} left out, each says what the line before it says"
    if change.dropped:
        answer += f"; the oldest {_count_lines(change.dropped)} dropped, {file.max_lines} are kept"
    return _result(store, answer, bytes_added=change.growth, duplicate=change.duplicate)


def _create(store: Store, name: str) -> Result:
    if name in store.files:
        raise Refused(f"{name} is there already; nothing was changed")
    store.writable(name, 0)
    return _result(store, f"created {name}")


def _upsert(store: Store, name: str, key: str, value: str) -> Result:
    store.require_map(name)
    key, value = _fold(key), _fold(value)
    if not key or ": " in key:
        raise Refused(f'"{one_line(key, 40)}" cannot be a key: ": " stands between key and value')
    held = store.files.get(name)
    old = held.line(key) if isinstance(held, MapFile) else None
    file = store.map_file(name, utf8_size(map_line(key, value)) - (utf8_size(old) if old is not None else 0))
    change = file.upsert(key, value, store.clock)
    store.grew(change.growth)
    shown = one_line(key, 60)
    answer = f"{shown} has this value in {name} already" if change.duplicate else f"set {shown} in {name}"
    return _result(store, answer, bytes_added=change.growth, duplicate=change.duplicate)


def _upsert_map(store: Store, xy: str, text: str) -> Result:
    spec = store.coordinates
    if spec is None:
        raise Refused("there is no coordinate map here")
    x, y = (int(number) for number in xy.split(","))
    name = map_file(spec, xy)
    wrong = file_name_problem(name)
    if wrong:
        raise Refused(wrong)
    return _upsert(store, name, spec.key.replace("{x}", str(x)).replace("{y}", str(y)), text)


def map_file(spec: FileSpec, xy: str) -> str:
    """The file of a coordinate map that holds ``x,y``."""
    if not spec.block:
        return spec.name
    x, y = (int(number) for number in xy.split(","))
    return spec.name.replace("{block}", f"{x // spec.block}_{y // spec.block}")


def _delete(store: Store, name: str, entry: str | None = None) -> Result:
    file = store.existing(name)
    if entry is None:
        if name not in store.files:
            raise Refused(f"{name} is not there")
        return _result(store, f"removed {name}", bytes_added=-store.remove(name))
    entry = clean(entry).strip()
    if not entry or "\n" in entry:
        raise Refused("name one line or key at a time")
    before = file.size
    removed = file.remove(entry)
    if not removed:
        raise Refused(f'{name} has no {"key" if isinstance(file, MapFile) else "line"} "{one_line(entry, 60)}"')
    store.grew(file.size - before)
    return _result(store, f"removed {_count_lines(removed)} from {name}", bytes_added=file.size - before)


_RUN: Mapping[str, Callable[..., Result]] = {
    "READ": read,
    "SEARCH": _search,
    "TAIL": _tail,
    "COUNT": _count,
    "APPEND": _append,
    "WRITE": write,
    "CREATE": _create,
    "UPSERT": _upsert,
    "UPSERT_MAP": _upsert_map,
    "DELETE": _delete,
}


def _result(
    store: Store,
    text: str,
    *,
    ok: bool = True,
    found: int | None = None,
    bytes_added: int = 0,
    duplicate: bool = False,
) -> Result:
    return Result(text[: store.limits.result_chars], ok, found, bytes_added, duplicate)


def _map_entries(text: str) -> dict[str, str]:
    entries = {}
    for line in filter(str.strip, text.split("\n")):
        entry = map_entry(line)
        if entry is None:
            raise Refused(f'a map holds lines like "key: value", not "{one_line(line, 40)}"; nothing was changed')
        entries[entry[0]] = entry[1]
    return entries


def _fold(text: str) -> str:
    """On one line, as keys and values stand in a map and queries in a search."""
    return clean(text).replace("\n", " ").strip()


def _query(query: str) -> str:
    folded = _fold(query)
    if not folded:
        raise Refused("the query is empty")
    return folded


def _count_lines(n: int) -> str:
    return "1 line" if n == 1 else f"{n} lines"
