"""What is worth going for, and what it is worth.

A goal is a kind of thing to walk up to and use. Its worth falls with the way to it, so
that near things are taken first unless a far one matters more.
"""

from __future__ import annotations

from dataclasses import dataclass

from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.rules import DAY, daylight

DISCOUNT = 0.955
"""Worth of a thing one step further away."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A kind of thing wanted: worth 1 is about one achievement."""

    kind: str
    worth: float


def dark(step: int) -> bool:
    """Whether zombies are many, or will be within some steps."""
    return 165 <= step % DAY <= 280


def wishes(belief: Belief) -> list[Wish]:
    """Things worth having now, by kind."""
    scene, done = belief.scene, belief.done
    vitals, items = scene.vitals, scene.items
    food, drink, health = (vitals.get(name, 9) for name in ("food", "drink", "health"))
    wood, stone, coal, iron = (items.get(name, 0) for name in ("wood", "stone", "coal", "iron"))
    pickaxe = _level(belief, "pickaxe")
    sword = _level(belief, "sword")
    found: list[Wish] = []

    def want(kind: str, worth: float) -> None:
        if worth > 0:
            found.append(Wish(kind, worth))

    def first(achievement: str, worth: float) -> float:
        """Worth of an achievement on top of what the thing is good for."""
        return 0.0 if achievement in done else worth

    # Before the night one stocks up.
    if 110 <= belief.step % DAY <= 165:
        food, drink = food - 2, drink - 2
    # Vital needs grow steeply as they run out.
    want("water", _need(drink) + first("collect_drink", 0.8))
    want("cow", _need(food) + first("eat_cow", 0.9))

    tools_left = 2 * (3 - min(pickaxe, sword)) - (1 if pickaxe != sword else 0)
    wood_goal = min(9, tools_left + (2 if "table" not in _in_reach(belief) else 0) + 1)
    if wood < wood_goal and tools_left:
        want("tree", 2.6 if pickaxe == 0 else 1.6 if wood < 2 else 0.6)
    if pickaxe >= 1:
        tools = (pickaxe < 2) + (sword < 2)
        furnace = 0 if "place_furnace" in done and "furnace" in _in_reach(belief) else 4
        if stone < 1 and (tools or "collect_stone" not in done):
            want("stone", 2.8)
        elif stone < tools + furnace and (tools or furnace):
            want("stone", 1.5)
        elif dark(belief.step) and stone < 9:
            # Among rock a room takes two stones, on grass eight.
            want("stone", 2.2)
        elif stone < 9:
            late = 90 <= belief.step % DAY <= 270
            want("stone", (1.2 if late else 0.7) if stone < 8 else 0.3)
        if coal < (pickaxe < 3) + (sword < 3) or "collect_coal" not in done:
            want("coal", 2.0 if coal == 0 else 0.9)
    if pickaxe >= 2 and (iron < (pickaxe < 3) + (sword < 3) or "collect_iron" not in done):
        want("iron", 3.0 if iron == 0 else 1.6)
    if pickaxe >= 3:
        want("diamond", 3.0 if "collect_diamond" not in done else 0.05)
    if health >= 6 and sword >= 1:
        want("zombie", first("defeat_zombie", 1.0))
    if health >= 7 and sword >= 2:
        want("skeleton", first("defeat_skeleton", 1.2))
    return found


def _need(level: int) -> float:
    return (9.0, 8.0, 6.0, 4.0, 2.2, 1.2, 0.5, 0.15, 0.05, 0.0)[max(0, min(9, level))]


def _level(belief: Belief, tool: str) -> int:
    """0 none, 1 wood, 2 stone, 3 iron."""
    return next((i for i, made in ((3, "iron"), (2, "stone"), (1, "wood")) if belief.scene.has(f"{made}_{tool}")), 0)


def _in_reach(belief: Belief) -> frozenset[str]:
    return frozenset(kind for kind in ("table", "furnace") if belief.near(kind))


def level(belief: Belief, tool: str) -> int:
    """How good a tool is carried: 0 none, 1 wood, 2 stone, 3 iron."""
    return _level(belief, tool)


def light(step: int) -> float:
    """Daylight now, in [0, 1]."""
    return daylight(step)
