"""NetHack: the NetHack Challenge of NLE, seeded, with BALROG's score."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from games.nethack.actions import nethack_keys
from games.nethack.simulator import NEVER, OBSERVED, NleGame
from games.protocol import Progress

TASKS = ("NetHackChallenge-v0",)

DEFAULT_STEPS = 100_000
"""BALROG's limit."""

_SCORE, _DEPTH, _GOLD, _LEVEL, _TURN = 9, 12, 13, 18, 20  # indices into blstats


class NetHack(NleGame):
    """NetHack with a random role, from the first level down.

    Args:
        task: one of `TASKS`.
        max_steps: actions until the episode is cut off; None for BALROG's 100,000.
        no_progress_limit: actions in a row without a turn passing (menus, walls) until the
            episode is cut off; None for no such limit.
    """

    default_action = "esc"

    def __init__(self, task: str = TASKS[0], max_steps: int | None = None, no_progress_limit: int | None = 150) -> None:
        if task not in TASKS:
            raise ValueError(f"no NetHack task {task!r}; there is {', '.join(TASKS)}")
        text = resources.files(__package__).joinpath("instructions.txt").read_text("utf-8").strip()
        super().__init__(
            task, nethack_keys(), text, DEFAULT_STEPS if max_steps is None else max_steps, no_progress_limit
        )
        self._reset_progress()

    def progress(self) -> Progress:
        """BALROG's progression: the best entry of its achievement table that was reached."""
        return Progress(
            self._progression,
            {"dungeon_level": self._depth, "experience_level": self._level, "score": self._score, "turns": self._turns},
        )

    def _make(self, seed: int) -> Any:
        from nle.env.base import NLE
        from nle.env.tasks import NetHackChallenge

        self._reset_progress()
        env = NetHackChallenge(
            observation_keys=OBSERVED,
            character="@",
            max_episode_steps=NEVER,
            no_progress_timeout=NEVER,
            fix_moon_phase=True,
        )
        # The challenge forbids seeds by shadowing these three on the instance.
        for name in ("set_initial_seeds", "set_current_seeds", "get_current_seeds"):
            delattr(env.nethack, name)
        NLE.seed(env, core=seed, disp=seed, reseed=False)
        return env

    def _reset_progress(self) -> None:
        self._progression = 0.0
        self._depth = self._level = 1
        self._score = self._turns = 0

    def _note(self, blstats: np.ndarray, status: Any, reward: float) -> None:
        depth, level = int(blstats[_DEPTH]), int(blstats[_LEVEL])
        if depth == 0 and level == 0:  # the game is over and its numbers are gone: the last ones stand
            return
        table = achievements()
        self._progression = max(self._progression, table.get(f"Dlvl:{depth}", 0.0), table.get(f"Xp:{level}", 0.0))
        self._depth, self._level = max(self._depth, depth), max(self._level, level)
        self._score, self._turns = int(blstats[_SCORE]), int(blstats[_TURN])


@cache
def achievements() -> dict[str, float]:
    """How likely a human who came this far was to go on and win, per "Dlvl:n" and "Xp:n", in [0, 1].

    BALROG's figures (MIT licence, arXiv 2411.13543), made from human games.
    """
    return json.loads(resources.files(__package__).joinpath("progression.json").read_text("utf-8"))
