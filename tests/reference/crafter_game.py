"""A real game of Crafter with the hooks of the reference revision beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from crafter import objects

from automem.hooks import Again, Step
from games.crafter import Crafter
from tests.reference.playing import code

REF = "crafter/v1"


@dataclass
class Play:
    """A real game with the hooks beside it; `show` is what the prompts would show."""

    seed: int = 1000
    number: int = 0
    show: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.game = Crafter(max_steps=2000)
        self.hooks = code(REF).Hooks()
        self.hooks.reset("crafter", "Crafter")
        self.text = self.game.reset(self.seed).text
        self.last: str | None = None
        self.look()

    @property
    def env(self) -> Any:
        return self.game._env

    @property
    def player(self) -> Any:
        return self.env.player

    @property
    def step(self) -> Step:
        return Step(self.number, self.text, self.last, self.last)

    def look(self) -> None:
        self.show = self.hooks.observe(self.step)

    def play(self, *actions: str) -> Play:
        for action in actions:
            transition = self.game.step(action)
            self.text, self.last, self.number = transition.observation.text, action, self.number + 1
            self.look()
        return self

    def have(self, **items: int) -> Play:
        """Carry so much, or be in such a state, as from the start on."""
        self.player.inventory.update(items)
        self.text = self.game._observe(self.env.semantic()).text
        self.hooks.reset("crafter", "Crafter")
        self.look()
        return self

    def put(self, material: str, x: int, y: int) -> Play:
        """Change a cell, counted from the player, as from the start on."""
        px, py = self.player.pos
        self.env.world[px + x, py + y] = material
        return self.have()

    def bring(self, kind: str, x: int, y: int) -> Play:
        """Put a creature at a place, counted from the player, and remove all others."""
        world = self.env.world
        for other in list(world.objects):
            if other is not self.player:
                world.remove(other)
        place = self.player.pos + np.array((x, y))
        world[place] = "grass" if kind in ("cow", "zombie") else "path"
        world.add({"zombie": objects.Zombie, "skeleton": objects.Skeleton}[kind](world, place, self.player))
        return self.have()

    def check(self, action: str) -> str | Again | None:
        return self.hooks.check_action(self.step, action)

    def reason(self, action: str) -> str:
        said = self.check(action)
        assert isinstance(said, Again), f"{action} was let be"
        return said.reason
