"""MiniHack: BALROG's eight tasks, with their text, their actions and their score."""

from __future__ import annotations

import importlib
import sys
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from types import ModuleType
from typing import Any

import numpy as np

from games import boxoban
from games.nethack.actions import nethack_keys
from games.nethack.simulator import NEVER, OBSERVED, NleGame
from games.protocol import Progress


@cache
def _data(name: str) -> dict:
    return tomllib.loads(resources.files(__package__).joinpath(name).read_text("utf-8"))


TASKS: tuple[str, ...] = tuple(_data("tasks.toml")["tasks"])
"""BALROG's tasks, in its order."""

DEFAULT_STEPS = 100
"""BALROG's limit."""


def facts(task: str) -> dict[str, str]:
    """Labels that an episode of this task would carry here and now: ``levels`` for Boxoban, nothing for others.

    Raises `games.boxoban.BoxobanError` when the folder that the user names holds no levels.
    """
    level_set = _data("tasks.toml")["tasks"][task].get("boxoban")
    return {"levels": boxoban.find_source(level_set).kind} if level_set else {}


class MiniHack(NleGame):
    """One MiniHack task.

    Args:
        task: one of `TASKS`.
        max_steps: actions until the episode is cut off; None for BALROG's 100.
        no_progress_limit: actions in a row without a turn passing until the episode is cut
            off; None for no such limit.

    Boxoban tasks choose their levels when the episode starts (`games.boxoban.find_source`);
    `reset` raises `games.boxoban.BoxobanError` when the files there are broken.
    """

    # BALROG's choice too: MiniHack's tasks have no key in common that does nothing.
    default_action = "north"

    def __init__(self, task: str, max_steps: int | None = None, no_progress_limit: int | None = 150) -> None:
        if task not in TASKS:
            raise ValueError(f"no MiniHack task {task!r}; there are {', '.join(TASKS)}")
        data, text, keys = _data("tasks.toml"), _data("instructions.toml"), nethack_keys()
        self._spec = data["tasks"][task]
        super().__init__(
            task,
            {name: keys[name] for name in data["actions"][self._spec["actions"]]},
            text["common"].replace("{goal}", text["goals"][self._spec["goal"]].strip()).strip(),
            DEFAULT_STEPS if max_steps is None else max_steps,
            no_progress_limit,
        )
        self.level: boxoban.Level | None = None
        """The Boxoban level that is played; None for other tasks and before `reset`."""
        self._facts: dict[str, str] = {}
        self._solved = self._solved_for_balrog = False

    def progress(self) -> Progress:
        """1.0 once the task was solved.

        `balrog_success` is BALROG's own judgement, which asks for a last reward of at least
        1.0: a winning move that took no game time costs 0.01, and counts there as a failure.
        """
        return Progress(
            float(self._solved),
            {"success": int(self._solved), "balrog_success": int(self._solved_for_balrog)},
            self._facts,
        )

    def _make(self, seed: int) -> Any:
        self._solved = self._solved_for_balrog = False
        options: dict[str, Any] = {}
        if level_set := self._spec.get("boxoban"):
            source = boxoban.find_source(level_set)
            self.level = options["level"] = source.level(seed)
            self._facts = {"levels": source.kind}
        env = _simulator(self._spec)(
            observation_keys=OBSERVED,
            character="@",
            max_episode_steps=NEVER,
            penalty_mode="constant",
            penalty_step=-0.01,
            penalty_time=0.0,
            autopickup=False,
            fix_moon_phase=True,
            **options,
        )
        env.seed(seed, seed, reseed=False)
        return env

    def _note(self, blstats: np.ndarray, status: Any, reward: float) -> None:
        self._solved = self._solved or status.name == "TASK_SUCCESSFUL"
        self._solved_for_balrog = reward >= 1.0


def _simulator(spec: dict[str, str]) -> type:
    """The environment class of a task."""
    with _without_inflect(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # minihack imports pkg_resources, which says it is deprecated
        import minihack  # noqa: F401
    module, _, name = spec.get("class", "games.minihack.boxoban_env:BoxobanEnv").partition(":")
    return getattr(importlib.import_module(module), name)


@contextmanager
def _without_inflect() -> Iterator[None]:
    """Import minihack without inflect: seconds in every process, for a wiki look-up that no game uses."""
    if "inflect" in sys.modules:
        yield
        return
    sys.modules["inflect"] = ModuleType("inflect")
    try:
        yield
    finally:
        del sys.modules["inflect"]
