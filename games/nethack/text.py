"""NetHack's screen as text, character for character as BALROG lays it out.

BALROG (arXiv 2411.13543) shows the message, what is in view in words, the cursor and the
screen; what is in view comes from nle-language-wrapper, whose rules are followed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter

import numpy as np

from games.nethack.glyphs import GlyphNames, glyph_names
from games.protocol import Observation

HEIGHT, WIDTH = 21, 79
"""Rows and columns of NetHack's map (NLE's `glyphs`)."""

RAY = 9
"""How many cells walls and doorways are named along the eight directions."""

_DISTANCES = ("very far", "far", "near", "very near", "adjacent")
_DIRECTIONS = (
    *("north", "northnortheast", "northeast", "eastnortheast"),
    *("east", "eastsoutheast", "southeast", "southsoutheast"),
    *("south", "southsouthwest", "southwest", "westsouthwest"),
    *("west", "westnorthwest", "northwest", "northnorthwest"),
)
_RAYS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
_NOWHERE = len(_DISTANCES) * len(_DIRECTIONS)


def describe(raw: Mapping[str, np.ndarray], message: str | None = None) -> Observation:
    """Text of one NLE observation.

    Args:
        raw: NLE's arrays `glyphs` (21, 79), `blstats` (27,), `tty_chars` (24, 80),
            `tty_cursor` (2,), `inv_strs` (55, 80) and `inv_letters` (55,), with NLE's types.
        message: the message to show, where it was gathered over several screens; None to read
            it from the top of `tty_chars`.

    Returns:
        long-term: message, what is in view, cursor, screen; short-term: inventory.
    """
    if message is None:
        message = screen_message(raw["tty_chars"].tobytes(), raw["tty_chars"].shape[1])
    glyphs = np.ascontiguousarray(raw["glyphs"], dtype=np.int16).reshape(-1).view(np.uint16)
    x, y = _player(raw["blstats"])
    row, column = (int(v) for v in raw["tty_cursor"])
    names = glyph_names()
    long_term = (
        f"message:\n{message}\n\n"
        f"language observation:\n{_view(glyphs, x, y, names)}\n\n"
        f"cursor:\n{_cursor(glyphs, x, y, column, row - 1, names)}\n(x={column}, y={row})\n\n"
        f"map:\n{_screen(raw['tty_chars'])}\n"
    )
    items = _inventory(raw["inv_strs"].tobytes(), raw["inv_letters"].tobytes(), raw["inv_strs"].shape[1])
    return Observation(long_term, f"inventory:\n{items}\n")


def screen_message(tty: bytes, columns: int = 80) -> str:
    """The message at the top of a screen (rows * columns bytes, Latin-1).

    One line; or, where the screen shows a page that waits to be read ("--More--", "(end)",
    "(1 of 2)"), every line that is not empty down to that mark, without the columns left of the
    page; or the farewell of a finished game (a list of points).
    """
    first, second = _trim(tty[:columns]), _trim(tty[columns : 2 * columns])
    if not first and not second:
        return ""
    farewell = b"Points" in second or b"list!" in second
    if not farewell and b"--More--" not in tty and b"(end)" not in tty and b" of " not in tty:
        return first.decode("latin-1")
    # Under an empty first line the original reads every line from one cell too early.
    indent = columns - len(tty[:columns].lstrip(b" ")) if tty[:columns].strip(b" ") else -1
    text = b""
    empty = 0
    for start in range(0, len(tty), columns):
        line = _trim(tty[max(start + indent, 0) : start + columns])
        empty = 0 if line else empty + 1
        text += line
        if b"--More--" in line or b"(end)" in line or _is_page_number(line):
            return text.decode("latin-1")
        if line:
            text += b"\n"
        if farewell and empty > 1:
            return text.decode("latin-1")
    return first.decode("latin-1")


def _trim(line: bytes) -> bytes:
    """Without blanks around it. A line whose only character is its very last one counts as empty."""
    left = line.lstrip(b" \x1a")
    return left.rstrip(b" \x1a") if len(left) != 1 else b""


def _is_page_number(line: bytes) -> bool:
    """Whether the first " of " in a line is that of "(1 of 2)"."""
    at = line.find(b" of ")
    return at >= 2 and line[at - 2 : at - 1] == b"(" and line[at + 5 : at + 6] == b")"


def _screen(tty_chars: np.ndarray) -> str:
    """The rows of the screen below the first one, each ended by a newline."""
    rows, columns = tty_chars.shape
    lines = np.full((rows, columns + 1), ord("\n"), dtype=np.uint8)
    lines[:, :columns] = tty_chars
    return lines.tobytes().decode("latin-1").partition("\n")[2]


@lru_cache(maxsize=256)
def _inventory(strings: bytes, letters: bytes, width: int) -> str:
    """One line an item, ``a: an uncursed dagger``, up to the first empty slot. Cached: it seldom changes."""
    count = letters.find(b"\0")
    lines = []
    for i in range(count if count >= 0 else len(letters)):
        end = strings.find(b"\0", i * width)
        lines.append(b"%c: %b" % (letters[i], strings[i * width : end if end >= 0 else len(strings)]))
    return b"\n".join(lines).decode("latin-1")


def _player(blstats: np.ndarray) -> tuple[int, int]:
    """Column and row of the player, kept on the map (a finished game may show anything)."""
    return min(max(int(blstats[0]), 0), WIDTH - 1), min(max(int(blstats[1]), 0), HEIGHT - 1)


# --- what is in view -------------------------------------------------------------------


def _offset(dx: int, dy: int) -> int:
    """Rank of a cell `dx` columns east and `dy` rows north: farthest first, then clockwise from north."""
    far = max(abs(dx), abs(dy))
    if far == 0:
        return _NOWHERE
    distance = 4 if far == 1 else 3 if far == 2 else 2 if far < 6 else 1 if far < 20 else 0
    vertical = "north" if dy > 0 else "south"
    horizontal = "east" if dx > 0 else "west"
    if not dx or not dy:
        direction = vertical if dy else horizontal
    else:
        longer = "" if abs(dx) == abs(dy) else vertical if abs(dy) > abs(dx) else horizontal
        direction = f"{longer}{vertical}{horizontal}"
    return distance * len(_DIRECTIONS) + _DIRECTIONS.index(direction)


_RANKS = np.array(
    [[_offset(dx, -dy) for dx in range(-WIDTH, WIDTH)] for dy in range(-HEIGHT, HEIGHT + 1)], dtype=np.uint8
)
"""Rank of every offset: row `HEIGHT + dy` (dy rows south), column `WIDTH + dx`."""


@lru_cache(maxsize=HEIGHT * WIDTH)
def _rays(x: int, y: int) -> tuple[np.ndarray, tuple[int, ...], tuple[int, ...]]:
    """The cells that the rays from (x, y) visit, ray after ray: flat indices, ranks, where each ray ends."""
    cells, ranks, ends = [], [], []
    for dx, dy in _RAYS:
        for steps in range(1, RAY + 1):
            column, row = x + dx * steps, y + dy * steps
            if not (0 <= column < WIDTH and 0 <= row < HEIGHT):
                break
            cells.append(row * WIDTH + column)
            ranks.append(_offset(dx * steps, -dy * steps))
        ends.append(len(cells))
    return np.array(cells, dtype=np.intp), tuple(ranks), tuple(ends)


def _along_rays(glyphs: np.ndarray, x: int, y: int, names: GlyphNames) -> list[tuple[int, int]]:
    """Walls, doorways and the like in the eight directions: (rank, name)."""
    cells, ranks, ends = _rays(x, y)
    seen = names.on_ray.take(glyphs.take(cells), mode="clip").tolist()
    walls = names.walls
    found = []
    start = 0
    for end in ends:
        for i in range(start, end):
            name = seen[i]
            if name:
                found.append((ranks[i], name))
                if name in walls:
                    break
        start = end
    return found


def _view(glyphs: np.ndarray, x: int, y: int, names: GlyphNames) -> str:
    """One line a kind of thing and distance: ``fountains near west and southeast``; farthest first."""
    on_map = names.on_map.take(glyphs, mode="clip")
    on_map[y * WIDTH + x] = 0
    cells = on_map.nonzero()[0]
    window = _RANKS[HEIGHT - y : 2 * HEIGHT - y, WIDTH - x : 2 * WIDTH - x].ravel()
    things = list(zip(window.take(cells).tolist(), on_map.take(cells).tolist(), strict=True))
    things += _along_rays(glyphs, x, y, names)
    things.sort(key=itemgetter(0))  # stable: within a rank, the order in which they were found
    return "\n".join(_lines(things, names))


def _lines(things: list[tuple[int, int]], names: GlyphNames) -> list[str]:
    """Things of one name and distance on one line, those that are alone in their direction first."""
    groups: dict[tuple[int, int], list[int]] = {}
    for rank, name in things:
        groups.setdefault((name, rank // len(_DIRECTIONS)), []).append(rank)

    crowded = False
    lines: list[tuple[str, tuple[int, ...]]] = []
    for (name, _), ranks in groups.items():
        if len(ranks) == len(set(ranks)):
            lines.append((names.names[name], tuple(ranks)))
            continue
        crowded = True
        alone, several = _by_number(ranks)
        if alone:
            lines.append((names.names[name], alone))
        lines.append((names.plurals[name], several))
    if crowded:
        # A plural that equals its singular ("iron shoes") takes over the singular's line: the
        # original shows it twice.
        last = {(noun, ranks[0] // len(_DIRECTIONS)): ranks for noun, ranks in lines}
        lines = [(noun, last[noun, ranks[0] // len(_DIRECTIONS)]) for noun, ranks in lines]
    return [f"{noun} {_places(ranks)}" for noun, ranks in lines]


def _by_number(ranks: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ranks that occur once, and those that occur more often, in order."""
    counts = dict.fromkeys(ranks, 0)
    for rank in ranks:
        counts[rank] += 1
    return tuple(r for r, n in counts.items() if n == 1), tuple(r for r, n in counts.items() if n > 1)


@lru_cache(maxsize=4096)
def _places(ranks: tuple[int, ...]) -> str:
    """``near north``, ``near north and east``, ``near north, east, and south``: ranks of one distance."""
    distance = _DISTANCES[ranks[0] // len(_DIRECTIONS)]
    words = [_DIRECTIONS[rank % len(_DIRECTIONS)] for rank in ranks]
    if len(words) <= 2:
        return f"{distance} {' and '.join(words)}"
    return f"{distance} {', '.join(words[:-1])}, and {words[-1]}"


def _cursor(glyphs: np.ndarray, x: int, y: int, column: int, row: int, names: GlyphNames) -> str:
    """What the cursor is on; "" where it is off the map or too far away to say."""
    dx, dy = column - x, y - row
    cell = column + row * WIDTH
    if not (-WIDTH <= dx < WIDTH and -HEIGHT <= dy < HEIGHT and 0 < cell < HEIGHT * WIDTH):
        return ""
    name = names.names[names.on_map.take(glyphs[cell], mode="clip")]
    if dx == dy == 0:
        return f"Yourself a {name}"
    return f"{_places((_offset(dx, dy),))} {name}"
