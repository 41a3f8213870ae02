"""What the player believes when it chooses an action: the sum of what it sees and what it read back."""

from __future__ import annotations

from dataclasses import dataclass, field

from automem.models.scripted.crafter.ground import Ground
from automem.models.scripted.crafter.rules import BIT, DIRECTIONS, WALKABLE
from automem.models.scripted.crafter.scene import Scene
from automem.models.scripted.crafter.tracking import Track
from automem.models.scripted.crafter.world import Cell, World, places_of


@dataclass(slots=True)
class Belief:
    """Place, world and past, as far as they are known.

    Attributes:
        step: number of the step, from 0.
        track: place, facing and the world.
        done: achievements that are reached, as far as is known.
        plants: where saplings were planted -> the step at which they were.
        cows: where cows were seen lately, none of them in view now.
        trail: places of the last steps, oldest first, this one last.
        ground: the ways over the ground around, once they are worked out.
    """

    step: int
    track: Track
    done: frozenset[str] = frozenset()
    plants: dict[Cell, int] = field(default_factory=dict)
    cows: tuple[Cell, ...] = ()
    trail: tuple[Cell, ...] = ()
    ground: Ground | None = None

    @property
    def scene(self) -> Scene:
        return self.track.scene or Scene()

    @property
    def world(self) -> World:
        return self.track.world

    @property
    def here(self) -> Cell:
        return self.track.x, self.track.y

    @property
    def facing(self) -> Cell | None:
        return DIRECTIONS[self.track.facing] if self.track.facing else None

    @property
    def ahead(self) -> Cell | None:
        """The cell in front."""
        if self.facing is None:
            return None
        return self.track.x + self.facing[0], self.track.y + self.facing[1]

    def creatures(self, kind: str) -> list[Cell]:
        """Where the nearest creature of a kind may be; one cell when that is certain."""
        sight = self.scene.nearest(kind)
        if sight is None:
            return []
        cells = [(self.track.x + dx, self.track.y + dy) for dx, dy in places_of(sight)]
        return [cell for cell in cells if self.world.at(*cell) & WALKABLE] or cells

    def distance(self, kind: str) -> int:
        """Steps to the nearest thing of a kind in view; 99 when there is none."""
        sight = self.scene.nearest(kind)
        return sight.distance if sight else 99

    def near(self, material: str) -> bool:
        """Whether a material certainly lies within reach of crafting."""
        bit = BIT[material]
        x, y = self.here
        return any(self.world.at(x + dx, y + dy) == bit for dx in (-1, 0, 1) for dy in (-1, 0, 1))
