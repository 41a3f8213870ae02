"""Crafter's rules in our own words, with the figures of the installed simulator.

What things cost differs between releases and between the paper and the package, so
costs and requirements are read from the package's own tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

_RULES = """\
You are alone in a wilderness of 64 by 64 cells and see 9 columns by 7 rows of it, yourself in the middle. For each \
kind of thing in view you are told where the nearest one is: "4 steps to your north-east" counts steps north and east \
together. You face the cell in the direction of your last move.

Goal: unlock as many of these {number} achievements as you can, each counts once: {achievements}.

Moving: only {walkable} can be walked on. A move towards anything else only turns you to face it. Walking into lava \
kills at once.

Gathering ("Do", facing it):
{gather}

Building (facing the cell; it must hold nothing else):
{build}

Crafting (the table, and the furnace where named, among the 8 cells around you):
{craft}
The achievements "collect", "place" and "make" come with the first success. You carry at most {most} of a kind.

Staying alive: health, food, drink and energy go from 0 to {full}. Food falls by 1 about every 26 steps, drink every \
21, energy every 31 awake. While none of the three is 0, health grows by 1 about every 26 steps; while one is 0, it \
falls by 1 about every 16. At health 0 you die and the game ends.
- Eat: a cow takes several hits and gives 6 food; a ripe plant gives 4. Drink: face water and "Do", 1 drink each.
- Sleep when energy is below {full}: 1 energy comes back about every 11 steps, and at full energy you wake; only this \
unlocks wake_up, being hurt wakes you without it. Asleep, every action is ignored and a zombie hits for 7 instead of \
2, so wall yourself in with stones first, above all at night, when it is dark and zombies gather on grass.
- Zombies (health 5) hunt you on grass; skeletons (health 3) live on dark paths in caves and shoot arrows for 2. Hit \
them with "Do": a hit takes 1, with a wood sword 2, a stone sword 3, an iron sword 5. A cow has health 3.
- A sapling comes from grass by chance, about 1 try in {sapling_tries}. Planted, it ripens in about 300 steps, if no \
creature next to it eats it first; hitting it before it is ripe gains nothing."""


@cache
def instructions() -> str:
    """Rules and goal, without the list of actions; about 3,000 characters."""
    from crafter import constants

    items = constants.items
    return _RULES.format(
        number=len(constants.achievements),
        achievements=", ".join(constants.achievements),
        walkable=_and(constants.walkable),
        gather="\n".join(_gather(source, rule) for source, rule in constants.collect.items()),
        build="\n".join(_build(name, rule) for name, rule in constants.place.items()),
        craft="\n".join(_craft(name, rule) for name, rule in constants.make.items()),
        most=items["wood"]["max"],
        full=items["health"]["max"],
        sapling_tries=round(1 / constants.collect["grass"]["probability"]),
    )


def _gather(source: str, rule: Mapping[str, Any]) -> str:
    """``- stone (needs wood pickaxe): 1 stone, the cell becomes path``."""
    needs = f" (needs {_and(_words(item) for item in rule['require'])})" if rule["require"] else ""
    chance = f", by chance ({rule['probability']:.0%})" if "probability" in rule else ""
    leaves = f", the cell becomes {rule['leaves']}" if rule["leaves"] != source else ""
    return f"- {source}{needs}: {_amounts(rule['receive'])}{chance}{leaves}"


def _build(name: str, rule: Mapping[str, Any]) -> str:
    """``- table: 2 wood, on grass, sand or path``."""
    return f"- {name}: {_amounts(rule['uses'])}, on {_and(rule['where'], 'or')}"


def _craft(name: str, rule: Mapping[str, Any]) -> str:
    """``- iron pickaxe: 1 wood, 1 coal and 1 iron, near table and furnace``."""
    return f"- {_words(name)}: {_amounts(rule['uses'])}, near {_and(rule['nearby'])}"


def _amounts(items: Mapping[str, int]) -> str:
    return _and(f"{count} {_words(item)}" for item, count in items.items())


def _words(name: str) -> str:
    return name.replace("_", " ")


def _and(words: Any, last: str = "and") -> str:
    *first, final = words
    return f"{', '.join(first)} {last} {final}" if first else str(final)
