"""The text of NetHack and MiniHack equals BALROG's, and is made of any screen."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nle import nethack

from games.nethack import describe
from games.nethack.glyphs import plural
from games.nethack.text import screen_message

GOLDEN = Path(__file__).parents[1] / "golden"
ARRAYS = ("glyphs", "blstats", "tty_chars", "tty_cursor", "inv_strs", "inv_letters")
RECORDS = json.loads((GOLDEN / "nethack.json").read_text("utf-8"))
FLOOR, DARK = 19, 0  # numbers of cmap glyphs


@cache
def _arrays():
    return np.load(GOLDEN / "nethack.npz")


def _raw(record: dict) -> dict[str, np.ndarray]:
    return {name: _arrays()[f"{record['id']}.{name}"] for name in ARRAYS}


@pytest.mark.parametrize("record", RECORDS, ids=[r["id"] for r in RECORDS])
def test_text_is_balrogs(record: dict) -> None:
    seen = describe(_raw(record), message=record["message"])
    assert seen.long_term == record["long_term_context"]
    assert seen.short_term == record["short_term_context"]


@pytest.mark.parametrize("record", RECORDS, ids=[r["id"] for r in RECORDS])
def test_message_is_read_from_the_screen(record: dict) -> None:
    joined_from_pages = record["id"] == "0050"
    shown = describe(_raw(record)).long_term.removeprefix("message:\n").partition("\n\nlanguage observation:")[0]
    if joined_from_pages:
        assert record["message"].endswith(shown)
    else:
        assert shown == record["message"].removeprefix("\0\n")


def _level(things: dict[tuple[int, int], int], player: tuple[int, int], ground: int = FLOOR) -> dict[str, np.ndarray]:
    """A screen of one kind of ground with some glyphs at (column, row)."""
    glyphs = np.full((21, 79), nethack.GLYPH_CMAP_OFF + ground, dtype=np.int16)
    for (x, y), glyph in things.items():
        glyphs[y, x] = glyph
    glyphs[player[1], player[0]] = nethack.GLYPH_MON_OFF + 327  # an archeologist
    blstats = np.zeros(27, dtype=np.int64)
    blstats[:2] = player
    return {
        "glyphs": glyphs,
        "blstats": blstats,
        "tty_chars": np.full((24, 80), ord(" "), dtype=np.uint8),
        "tty_cursor": np.array([player[1] + 1, player[0]], dtype=np.uint8),
        "inv_strs": np.zeros((55, 80), dtype=np.uint8),
        "inv_letters": np.zeros(55, dtype=np.uint8),
    }


def _view(raw: dict[str, np.ndarray]) -> list[str]:
    text = describe(raw).long_term.partition("language observation:\n")[2].partition("\n\ncursor:")[0]
    return text.splitlines()


def _cmap(number: int) -> int:
    return nethack.GLYPH_CMAP_OFF + number


FOUNTAIN, WALL, DOORWAY, STAIRS_DOWN, CLOSED_DOOR = map(_cmap, (31, 1, 12, 24, 15))


def test_things_alone_in_their_direction_come_before_several() -> None:
    raw = _level({(43, 10): FOUNTAIN, (44, 10): FOUNTAIN, (37, 10): FOUNTAIN}, (40, 10))
    assert _view(raw) == ["fountain near west", "fountains near east"]


def test_directions_are_listed_clockwise_and_distances_from_afar() -> None:
    raw = _level({(40, 9): FOUNTAIN, (41, 10): FOUNTAIN, (39, 11): FOUNTAIN, (60, 12): STAIRS_DOWN}, (40, 10))
    assert _view(raw) == [
        "stairs down very far eastsoutheast",
        "fountain adjacent north, east, and southwest",
    ]


def test_plural_that_equals_its_singular_shows_its_line_twice() -> None:
    bars = _cmap(17)
    raw = _level({(43, 10): bars, (44, 10): bars, (37, 10): bars}, (40, 10))
    assert _view(raw) == ["bars near east", "bars near east"]


def test_nothing_is_seen_behind_a_wall_but_a_doorway_hides_nothing() -> None:
    behind_doorway = _level({(42, 10): DOORWAY, (44, 10): WALL, (46, 10): WALL}, (40, 10))
    assert _view(behind_doorway) == ["vertical wall near east", "doorway very near east"]


def test_walls_are_named_along_the_eight_directions_only_and_nine_cells_far() -> None:
    raw = _level({(49, 10): WALL, (43, 11): WALL, (30, 10): WALL}, (40, 10))
    assert _view(raw) == ["vertical wall far east"]


def test_view_is_clipped_at_the_corners_of_the_map() -> None:
    for player in ((0, 0), (78, 0), (0, 20), (78, 20)):
        assert len(_view(_level({}, player, ground=DARK))) == 1
    assert _view(_level({}, (0, 0), ground=DARK)) == ["dark area adjacent east, southeast, and south"]


def test_monsters_pets_objects_and_traces_have_their_names() -> None:
    names = [nethack.permonst(i).mname for i in range(nethack.NUMMONS)]
    lichen, kitten = names.index("lichen"), names.index("kitten")
    raw = _level(
        {
            (41, 10): nethack.GLYPH_MON_OFF + lichen,
            (42, 10): nethack.GLYPH_PET_OFF + kitten,
            (43, 10): nethack.GLYPH_BODY_OFF + lichen,
            (46, 10): nethack.GLYPH_STATUE_OFF + lichen,
            (60, 10): nethack.GLYPH_WARNING_OFF + 2,
            (40, 11): nethack.GLYPH_INVIS_OFF,
            (40, 12): nethack.GLYPH_SWALLOW_OFF + 8 + 2,
            (40, 13): nethack.GLYPH_EXPLODE_OFF + 9 + 4,
            (40, 20): nethack.GLYPH_ZAP_OFF + 4 + 1,
        },
        (40, 10),
    )
    assert _view(raw) == [
        "unknown creature causing you anxiety very far east",
        "lichen statue far east",
        "vertical zap beam far south",
        "lichen corpse near east",
        "explosion middle center near south",
        "tame kitten very near east",
        "swallow top right very near south",
        "lichen adjacent east",
        "invisible creature adjacent south",
    ]


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("dwarf", "dwarves"),
        ("lich", "lichs"),
        ("pony", "ponies"),
        ("key", "keys"),
        ("giant mummy wrapping", "giant mummy wrappings"),
        ("potion of cutlass", "potion of cutlasses"),
        ("fox", "foxes"),
        ("jelly fish", "jelly fishes"),
        ("scroll labeled FOO", "scrolls labeled FOO"),
        ("worthless piece of red glass", "worthless pieces of red glass"),
        ("gray dragon scales", "gray dragon scales"),
        ("ice", "area of ice"),
        ("can of grease", "cans of grease"),
    ],
)
def test_plurals(one: str, many: str) -> None:
    assert plural(one) == many


def test_cursor_away_from_the_player_says_what_is_under_it() -> None:
    raw = _level({(43, 10): STAIRS_DOWN}, (40, 10))
    raw["tty_cursor"][:] = (11, 43)
    assert "cursor:\nnear east stairs down\n(x=43, y=11)\n" in describe(raw).long_term
    raw["tty_cursor"][:] = (0, 12)  # on the message line
    assert "cursor:\n\n(x=12, y=0)\n" in describe(raw).long_term


def _tty(*lines: str) -> bytes:
    return b"".join(line.encode("latin-1").ljust(80) for line in (*lines, *[""] * (24 - len(lines))))


def test_menu_is_read_down_to_its_end_without_what_is_left_of_it() -> None:
    menu = _tty("          Pick up what?", "   |@.|", "   |..|   a - a dagger", "   |..|   (end)", "  status")
    assert screen_message(menu) == "Pick up what?\na - a dagger\n(end)"


def test_ordinary_message_is_the_first_line() -> None:
    assert screen_message(_tty("  You see here a pile of gold.  ", "----")) == "You see here a pile of gold."
    assert screen_message(_tty("", "----")) == ""


raw_arrays = (
    st.integers(0, 2**32 - 1)
    .map(np.random.default_rng)
    .map(
        lambda source: {
            "glyphs": source.integers(-(2**15), 2**15, (21, 79)).astype(np.int16),
            "blstats": source.integers(-(2**63), 2**63, 27, dtype=np.int64),
            "tty_chars": source.integers(0, 256, (24, 80)).astype(np.uint8),
            "tty_cursor": source.integers(0, 256, 2).astype(np.uint8),
            "inv_strs": source.integers(0, 256, (55, 80)).astype(np.uint8),
            "inv_letters": source.integers(0, 256, 55).astype(np.uint8),
        }
    )
)


@given(raw=raw_arrays, on_map=st.booleans(), real_glyphs=st.booleans(), x=st.integers(0, 78), y=st.integers(0, 20))
@settings(max_examples=150, deadline=None)
def test_any_arrays_of_the_right_shape_are_described(raw, on_map: bool, real_glyphs: bool, x: int, y: int) -> None:
    if on_map:
        raw["blstats"][:2] = x, y
    if real_glyphs:
        raw["glyphs"] %= nethack.MAX_GLYPH
    seen = describe(raw)
    assert seen.long_term.startswith("message:\n")
    assert seen.short_term.startswith("inventory:\n")
    assert describe(raw) == seen
