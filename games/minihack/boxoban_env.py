"""MiniHack's Boxoban, given its level.

`minihack.envs.boxohack` (1.0.2) chooses levels with the global random state over an unsorted
listing, takes no seed, and keeps the goals of the episode before; only the game itself is the
same here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from minihack import LevelGenerator, MiniHackNavigation
from nle import nethack

from games.boxoban import Level

_SHAPING = 0.1
_PER_TURN = -0.001


class BoxobanEnv(MiniHackNavigation):
    """One level: boxes are boulders, goals are fountains, walls are iron bars."""

    ACTIONS = tuple(nethack.CompassCardinalDirection)

    def __init__(self, *, level: Level, **options: Any) -> None:
        self._goals: frozenset[tuple[int, int]] = frozenset()
        super().__init__(des_file=_description(level), actions=self.ACTIONS, **options)

    def reset(self, *args: Any, **options: Any):
        self._goals = frozenset()
        first = super().reset(*args, **options)
        self._goals = self._cells(self.last_observation, "{")
        return first

    def _is_episode_end(self, observation):
        solved = bool(self._goals) and self._goals == self._cells(observation, "`")
        return self.StepStatus.TASK_SUCCESSFUL if solved else self.StepStatus.RUNNING

    def _reward_fn(self, last_observation, action, observation, end_status):
        if end_status == self.StepStatus.TASK_SUCCESSFUL:
            return 1.0
        if end_status != self.StepStatus.RUNNING:
            return 0.0
        gained = len(self._goals & self._cells(observation, "`")) - len(
            self._goals & self._cells(last_observation, "`")
        )
        return _PER_TURN + _SHAPING * gained

    def _cells(self, observation, symbol: str) -> frozenset[tuple[int, int]]:
        chars = observation[self._observation_keys.index("chars")]
        rows, columns = np.where(chars == ord(symbol))
        return frozenset(zip(rows.tolist(), columns.tolist(), strict=True))


def _description(level: Level) -> str:
    """The level in NetHack's language for special levels."""
    floor = "\n".join(level.rows).translate(str.maketrans("# $@", "F..."))
    writer = LevelGenerator(map=floor, lit=True, flags=("noteleport", "premapped"), solidfill=" ")
    for cell in level.find("$"):
        writer.add_boulder(cell)
    for cell in level.find("."):
        writer.add_fountain(cell)
    writer.set_start_pos(level.find("@")[0])
    return writer.get_des()
