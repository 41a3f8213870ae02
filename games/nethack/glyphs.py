"""What each of NetHack's glyphs is called, in the words of nle-language-wrapper.

The names of monsters and objects come from the installed NLE, the rest from `cmap.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np


@dataclass(frozen=True, slots=True)
class GlyphNames:
    """Names of all glyphs, as indices into `names`; index 0 is "not named".

    Attributes:
        names: every name that occurs, `names[0]` being "".
        plurals: the plural of each, in the same order.
        on_map: shape (MAX_GLYPH + 1,), the name of a glyph that is named wherever it is.
        on_ray: the same shape, the name of a glyph that is named only in the eight directions.
        walls: indices of names that hide what is behind them.

    The last entry of both tables stands for numbers that are no glyph.
    """

    names: tuple[str, ...]
    plurals: tuple[str, ...]
    on_map: np.ndarray
    on_ray: np.ndarray
    walls: frozenset[int]


@cache
def glyph_names() -> GlyphNames:
    """The tables, built once per process (imports NLE, about 10 ms)."""
    from nle import nethack

    symbols = tomllib.loads(resources.files(__package__).joinpath("cmap.toml").read_text("utf-8"))
    on_map = _map_names(nethack, symbols)
    on_ray = [""] * len(on_map)
    for i, symbol in enumerate(symbols["symbols"]):
        if symbol["seen"] in ("ray", "wall"):
            on_ray[nethack.GLYPH_CMAP_OFF + i] = symbol["name"]

    index: dict[str, int] = {"": 0}
    for name in (*on_map, *on_ray):
        index.setdefault(name, len(index))
    return GlyphNames(
        names=tuple(index),
        plurals=tuple(map(plural, index)),
        on_map=np.array([index[name] for name in on_map], dtype=np.int32),
        on_ray=np.array([index[name] for name in on_ray], dtype=np.int32),
        walls=frozenset(index[s["name"]] for s in symbols["symbols"] if s["seen"] == "wall"),
    )


def _map_names(nethack, symbols: dict) -> list[str]:
    """Name of every glyph that is named wherever it is on the map; "" for the others."""
    names = [""] * (nethack.MAX_GLYPH + 1)
    monsters = [nethack.permonst(i).mname for i in range(nethack.NUMMONS)]

    def place(offset: int, group: list[str]) -> None:
        names[offset : offset + len(group)] = group

    def cycle(offset: int, end: int, group: list[str]) -> None:
        names[offset:end] = [group[i % len(group)] for i in range(end - offset)]

    place(nethack.GLYPH_MON_OFF, monsters)
    place(nethack.GLYPH_PET_OFF, [f"tame {name}" for name in monsters])
    place(nethack.GLYPH_INVIS_OFF, ["invisible creature"])
    place(nethack.GLYPH_DETECT_OFF, [f"detected {name}" for name in monsters])
    place(nethack.GLYPH_BODY_OFF, [f"{name} corpse" for name in monsters])
    place(nethack.GLYPH_RIDDEN_OFF, [f"ridden {name}" for name in monsters])
    place(nethack.GLYPH_OBJ_OFF, [_object_name(nethack, i) for i in range(nethack.NUM_OBJECTS)])
    place(nethack.GLYPH_CMAP_OFF, [s["name"] if s["seen"] == "map" else "" for s in symbols["symbols"]])
    cycle(nethack.GLYPH_EXPLODE_OFF, nethack.GLYPH_ZAP_OFF, symbols["explosion"])
    cycle(nethack.GLYPH_ZAP_OFF, nethack.GLYPH_SWALLOW_OFF, symbols["zap"])
    cycle(nethack.GLYPH_SWALLOW_OFF, nethack.GLYPH_WARNING_OFF, symbols["swallow"])
    place(nethack.GLYPH_WARNING_OFF, [f"unknown creature causing you {word}" for word in symbols["warning"]])
    place(nethack.GLYPH_STATUE_OFF, [f"{name} statue" for name in monsters])
    return names


def _object_name(nethack, index: int) -> str:
    """An object as one sees it before it is identified; weapons by their true name."""
    kind = nethack.objclass(index)
    name = nethack.OBJ_NAME(kind) or ""
    looks = nethack.OBJ_DESCR(kind) or ""
    match ord(kind.oc_class):
        case (
            nethack.ILLOBJ_CLASS
            | nethack.WEAPON_CLASS
            | nethack.COIN_CLASS
            | nethack.ROCK_CLASS
            | nethack.BALL_CLASS
            | nethack.CHAIN_CLASS
        ):
            return name
        case nethack.ARMOR_CLASS | nethack.TOOL_CLASS:
            return looks or name
        case nethack.RING_CLASS:
            return f"{looks} ring"
        case nethack.AMULET_CLASS:
            return looks if "Amulet" in looks else f"{looks} amulet"
        case nethack.FOOD_CLASS:
            return name + looks
        case nethack.POTION_CLASS:
            return f"{looks} potion"
        case nethack.SCROLL_CLASS:
            return f"scroll labeled {looks}"
        case nethack.SPBOOK_CLASS:
            return f"{looks} spellbook"
        case nethack.WAND_CLASS:
            return f"{looks} wand"
        case nethack.GEM_CLASS:
            return name if looks in name else f"{looks} {name}"
        case nethack.VENOM_CLASS:
            return f"splash of {name}"
    return ""


_UNCHANGED = ("boots", "shoes", "scales", "lenses", "bars")
_WHOLE = {
    "can of grease": "cans of grease",
    "Master of Thieves": "Masters of Thieves",
    "ice": "area of ice",
    "lava": "area of lava",
}
_FIRST = ("boom ", "shield ", "swallow ", "scroll ", "worthless piece ", "unknown creature ")


def plural(noun: str) -> str:
    """The plural as nle-language-wrapper forms it, right ("dwarves") or wrong ("lichs")."""
    if not noun or noun.endswith(_UNCHANGED):
        return noun
    if noun in _WHOLE:
        return _WHOLE[noun]
    for start in _FIRST:
        if noun.startswith(start):
            return f"{start[:-1]}s {noun[len(start) :]}"
    if noun[-1] == "y" and noun[-2:-1] not in tuple("aeiou"):
        return f"{noun[:-1]}ies"
    if noun.endswith("ff"):
        return f"{noun[:-2]}ves"
    if noun.endswith("f"):
        return f"{noun[:-1]}ves"
    if noun.endswith(("s", "x", "z", "sh")):
        return f"{noun}es"
    return f"{noun}s"
