"""Crafter as a text game: 22 achievements, one life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from games.crafter.tables import ACTIONS, VIEW
from games.crafter.text import describe
from games.protocol import InvalidAction, Observation, Progress, Screen, Transition

if TYPE_CHECKING:
    import numpy as np

    from games.crafter.world import Env

TASKS = ("Crafter",)
STEP_LIMIT = 2_000
"""BALROG's limit for an episode."""


class Crafter:
    """Crafter (arXiv 2109.06780) on its own simulator. See `games.protocol.Game`."""

    default_action = "Noop"

    def __init__(self, task: str = "Crafter", max_steps: int | None = STEP_LIMIT) -> None:
        """`max_steps` ends the episode as truncated; None stands for BALROG's 2,000."""
        if task not in TASKS:
            raise ValueError(f"Crafter has no task {task!r}; it has: {', '.join(TASKS)}")
        if max_steps is not None and max_steps < 1:
            raise ValueError(f"max_steps is {max_steps}; an episode takes at least 1 step")
        from games.crafter.rules import instructions

        self.task = task
        self.actions: Mapping[str, str] = ACTIONS
        self.instructions = instructions()
        self.max_steps = STEP_LIMIT if max_steps is None else max_steps
        self._numbers = {name: number for number, name in enumerate(ACTIONS)}
        self._env: Env | None = None
        self._steps = 0
        self._done = False

    def reset(self, seed: int) -> Observation:
        """Start the episode of this seed."""
        from games.crafter.world import Env

        self._env = Env(seed)
        self._env.reset()
        self._steps = 0
        self._done = False
        return self._observe(self._env.semantic())

    def step(self, action: str) -> Transition:
        """Play one action. The reward is the simulator's: +1 for a new achievement, +-0.1 a health point."""
        env = self._playing()
        if self._done:
            raise RuntimeError("this episode of Crafter is over: start another with a fresh game")
        number = self._numbers.get(action)
        if number is None:
            raise InvalidAction(f"Crafter has no action {action!r}; it has: {', '.join(ACTIONS)}")
        _, reward, _, info = env.step(number)
        self._steps += 1
        terminated = env.player.health <= 0
        truncated = not terminated and self._steps >= self.max_steps
        self._done = terminated or truncated
        return Transition(self._observe(info["semantic"]), float(reward), terminated, truncated, self.progress())

    def progress(self) -> Progress:
        """Achievements unlocked, each with how often; progression is their number out of 22."""
        counts = self._playing().player.achievements
        reached = {name: count for name, count in counts.items() if count > 0}
        return Progress(len(reached) / len(counts), reached)

    def screen(self) -> Screen:
        """The 9x7 cells in view, coloured, above a line of status."""
        from games.crafter.view import cells

        return cells(self._playing(), self._steps)

    def image(self, size: tuple[int, int] = (576, 576)) -> np.ndarray:
        """The simulator's picture, uint8 of shape (height, width, 3), for `size` (width, height) in pixels."""
        from games.crafter.view import picture

        return picture(self._playing(), size)

    def close(self) -> None:
        """Forget the world. Safe to call twice."""
        self._env = None

    def _observe(self, semantic: np.ndarray) -> Observation:
        env = self._playing()
        player = env.player
        return describe(
            {
                "semantic": semantic,
                "player_pos": player.pos,
                "player_facing": player.facing,
                "view": VIEW,
                "inventory": player.inventory,
                "achievements": player.achievements,
                "sleeping": player.sleeping,
                "dead": player.health <= 0,
            }
        )

    def _playing(self) -> Env:
        if self._env is None:
            raise RuntimeError("Crafter has no episode under way: call reset(seed) first")
        return self._env
