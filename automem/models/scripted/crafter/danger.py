"""What to do about creatures that hurt: strike, wall off, or get away."""

from __future__ import annotations

from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.ground import solid
from automem.models.scripted.crafter.rules import DIRECTIONS, MOVE_OF, WALKABLE
from automem.models.scripted.crafter.scene import Sight
from automem.models.scripted.crafter.steps import open_ahead, turn_or_do

_SHOOTS = {"skeleton": 5, "arrow": 4}
"""Who hits from afar, and from how far in a straight line."""


def face_danger(belief: Belief) -> str | None:
    """The action against a danger at hand; None when there is none worth one."""
    return _strike(belief) or _wall_off(belief) or _get_away(belief)


def _strike(belief: Belief) -> str | None:
    """Strike what stands beside."""
    for kind in ("zombie", "skeleton"):
        sight = belief.scene.nearest(kind)
        if sight and sight.distance == 1:
            return turn_or_do(belief, (sight.dx, sight.dy))
    return None


def _wall_off(belief: Belief) -> str | None:
    """A stone between oneself and what is in line ahead, when it can do harm."""
    if not belief.scene.has("stone") or not open_ahead(belief):
        return None
    health = belief.scene.vitals.get("health", 9)
    for kind, most, weak in (("skeleton", 5, 6), ("arrow", 4, 6), ("zombie", 3, 4)):
        sight = belief.scene.nearest(kind)
        in_line = sight and 2 <= sight.distance <= most and belief.facing == _straight(sight)
        if sight and in_line and health <= weak and _clear(belief, sight):
            return "Place Stone"
    return None


def _straight(sight: Sight) -> tuple[int, int] | None:
    return (sight.dx, sight.dy) if not (sight.dx and sight.dy) else None


def _clear(belief: Belief, sight: Sight) -> bool:
    """Whether nothing solid lies between."""
    x, y = belief.here
    return not any(solid(belief.world.at(x + sight.dx * i, y + sight.dy * i)) for i in range(1, sight.distance))


def _get_away(belief: Belief) -> str | None:
    """Step out of a line of fire, or away from a zombie when one more blow could be the last."""
    health = belief.scene.vitals.get("health", 9)
    x, y = belief.here
    for kind, most in _SHOOTS.items():
        sight = belief.scene.nearest(kind)
        if sight and sight.distance <= most and _straight(sight) and _clear(belief, sight):
            if kind == "skeleton" or sight.distance > 2:
                continue
            aside = [(sight.dy, sight.dx), (-sight.dy, -sight.dx)]
            for step in aside:
                if _free(belief, x + step[0], y + step[1]):
                    return MOVE_OF[step]
    zombie = belief.scene.nearest("zombie")
    if zombie and zombie.distance <= 3 and health <= 3:
        cells = belief.creatures("zombie")

        def gap(cx: int, cy: int) -> int:
            return min(abs(cx - zx) + abs(cy - zy) for zx, zy in cells)

        options = [
            (gap(x + dx, y + dy), belief.facing == (dx, dy), (dx, dy))
            for dx, dy in DIRECTIONS.values()
            if _free(belief, x + dx, y + dy)
        ]
        if options and max(options)[0] > gap(x, y):
            return MOVE_OF[max(options)[2]]
    return None


def _free(belief: Belief, x: int, y: int) -> bool:
    bits = belief.world.at(x, y)
    return bool(bits & WALKABLE) and not bits & ~WALKABLE
