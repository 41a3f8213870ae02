"""Where the player is and which way it faces, reckoned from actions and what was seen after each."""

from __future__ import annotations

from automem.models.scripted.crafter.rules import BIT, DIRECTIONS, FACING, MOVES, WALKABLE
from automem.models.scripted.crafter.scene import Scene
from automem.models.scripted.crafter.world import World

START_FACING = "south"


class Track:
    """A place, a facing and the world around, advanced by one action and observation at a time."""

    def __init__(self, world: World | None = None, x: int = 0, y: int = 0, facing: str | None = None) -> None:
        self.world = world or World()
        self.x = x
        self.y = y
        self.facing = facing
        self.scene: Scene | None = None

    def look(self, scene: Scene) -> None:
        """Take in an observation from where the player is."""
        self.facing = self.world.see(self.x, self.y, scene, self.facing)
        self.scene = scene

    def place(self, x: int, y: int, facing: str | None, scene: Scene) -> None:
        """Take in an observation from a place that was written down."""
        self.x, self.y, self.facing = x, y, facing
        self.look(scene)

    def advance(self, action: str | None, scene: Scene) -> None:
        """Take in the observation that followed an action."""
        before = self.scene
        step = MOVES.get(action or "")
        if step and not self._slept(before, scene):
            self.facing = FACING[step]
            if self._moved(step, before, scene):
                self.x += step[0]
                self.y += step[1]
        self.look(scene)

    @staticmethod
    def _slept(before: Scene | None, after: Scene) -> bool:
        """Asleep before and tired still: the action was not carried out."""
        return bool(before and before.sleeping and (after.sleeping or before.vitals.get("energy", 0) < 9))

    def _moved(self, step: tuple[int, int], before: Scene | None, after: Scene) -> bool:
        """Whether a move went through: which of the two explains better what is seen now."""
        x, y = self.x + step[0], self.y + step[1]
        if not self.world.at(x, y) & WALKABLE:
            return False
        if before and any(s.distance == 1 and (s.dx, s.dy) == step and s.kind not in BIT for s in before.sights):
            return False
        stayed = self.world.contradictions(self.x, self.y, after, self.facing)
        moved = self.world.contradictions(x, y, after, self.facing)
        free_ahead = BIT.get(after.ahead, 0) & WALKABLE
        if free_ahead:
            stayed += 2  # what blocks a move can only be a creature that has left since
        if stayed != moved:
            return moved < stayed
        return before is None or before.sights != after.sights


def ahead(track: Track) -> tuple[int, int] | None:
    """The cell in front, or None while the facing is unknown."""
    if track.facing is None:
        return None
    dx, dy = DIRECTIONS[track.facing]
    return track.x + dx, track.y + dy
