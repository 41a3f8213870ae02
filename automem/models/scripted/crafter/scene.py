"""One observation of Crafter, understood; and its compact form for memory files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from automem.models.scripted.crafter.rules import VITALS

_SEEN = re.compile(r"- (\w+) (\d+) steps? to your (north|south)?-?(west|east)?")
_AHEAD = re.compile(r"You face (\w+) at your front")
_VITAL = re.compile(r"- (health|food|drink|energy): (\d+)/9")
_ITEM = re.compile(r"- (\w+): (\d+)(?![/\d])")
_SHORT_SIGHT = re.compile(r"(\w+) ([NS]?)([WE]?)(\d+)$")
_SHORT_STATUS = re.compile(r"h(\d+) f(\d+) d(\d+) e(\d+)( asleep)?$")

_Y = {"north": -1, "south": 1, "N": -1, "S": 1}
_X = {"west": -1, "east": 1, "W": -1, "E": 1}


@dataclass(frozen=True, slots=True)
class Sight:
    """The nearest thing of a kind: its distance in steps and the signs of its offset."""

    kind: str
    distance: int
    dx: int
    dy: int


@dataclass(frozen=True, slots=True)
class Scene:
    """What one observation says. `ahead` is empty where it does not say."""

    sights: tuple[Sight, ...] = ()
    ahead: str = ""
    vitals: Mapping[str, int] = field(default_factory=dict)
    items: Mapping[str, int] = field(default_factory=dict)
    sleeping: bool = False

    def has(self, item: str, count: int = 1) -> bool:
        """Whether at least `count` of an item are carried."""
        return self.items.get(item, 0) >= count

    def nearest(self, kind: str) -> Sight | None:
        """Where the nearest thing of a kind is in view."""
        return next((sight for sight in self.sights if sight.kind == kind), None)


@lru_cache(maxsize=4096)
def read_scene(text: str) -> Scene:
    """Parse an observation, on several lines or joined to one. What is not there stays empty."""
    around, _, rest = text.partition("Your status:")
    status, _, inventory = rest.partition("Your inventory:")
    ahead = _AHEAD.search(around)
    return Scene(
        sights=tuple(Sight(k, int(d), _X.get(x, 0), _Y.get(y, 0)) for k, d, y, x in _SEEN.findall(around)),
        ahead=ahead[1] if ahead else "",
        vitals={name: int(value) for name, value in _VITAL.findall(status)},
        items={name: int(count) for name, count in _ITEM.findall(inventory)},
        sleeping="You are sleeping" in around,
    )


def short_seen(scene: Scene) -> str:
    """``grass W1, tree NE5, ahead tree``: everything in view, briefly."""
    parts = [
        f"{s.kind} {'NS'[s.dy > 0] if s.dy else ''}{'WE'[s.dx > 0] if s.dx else ''}{s.distance}" for s in scene.sights
    ]
    return ", ".join([*parts, f"ahead {scene.ahead or 'nothing'}"])


def short_status(scene: Scene) -> str:
    """``h9 f8 d7 e9`` for health, food, drink, energy; `` asleep`` behind it while sleeping."""
    vitals = " ".join(f"{name[0]}{scene.vitals.get(name, 0)}" for name in VITALS)
    return f"{vitals} asleep" if scene.sleeping else vitals


def short_inventory(scene: Scene) -> str:
    """``wood 2, sapling 1``, or ``nothing``."""
    return ", ".join(f"{item} {count}" for item, count in scene.items.items()) or "nothing"


@lru_cache(maxsize=4096)
def scene_of(seen: str, status: str = "", inventory: str = "") -> Scene:
    """The scene that compact fields were written from; fields that were not written may be empty."""
    sights, ahead = [], ""
    for part in filter(None, seen.split(", ")):
        if part.startswith("ahead "):
            ahead = part[len("ahead ") :]
        elif found := _SHORT_SIGHT.match(part):
            sights.append(Sight(found[1], int(found[4]), _X.get(found[3], 0), _Y.get(found[2], 0)))
    vital = _SHORT_STATUS.match(status)
    items = {}
    for part in inventory.split(", "):
        name, _, count = part.partition(" ")
        if count.isdigit():
            items[name] = int(count)
    return Scene(
        tuple(sights),
        ahead,
        {name: int(vital[i + 1]) for i, name in enumerate(VITALS)} if vital else {},
        items,
        bool(vital and vital[5]),
    )
