"""One episode of an NLE environment as a text game: what NetHack and MiniHack have in common.

BALROG's AutoMore is followed: pages that end in "--More--" are read on at once and their
messages joined, so that one action is one decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from games.nethack.actions import Key
from games.nethack.screen import coloured
from games.nethack.text import describe, screen_message
from games.protocol import InvalidAction, Observation, Progress, Screen, Transition

OBSERVED = ("glyphs", "blstats", "tty_chars", "tty_colors", "tty_cursor", "inv_strs", "inv_letters")
"""The arrays that NLE is asked for, first of all others."""

NEVER = 10**9
"""A limit that NLE cannot reach: limits are kept here, because NLE's end the game by quitting it."""

_MORE = ord("\r")
_TURN = 20  # index into blstats
_PAGES = 200


class NleGame(ABC):
    """The life of one episode; what a task is made of comes from its subclass.

    Attributes:
        task, actions, instructions, default_action: see `games.protocol.Game`.
    """

    default_action: str

    def __init__(
        self,
        task: str,
        keys: Mapping[str, Key],
        instructions: str,
        max_steps: int,
        no_progress_limit: int | None,
    ) -> None:
        if max_steps < 1:
            raise ValueError(f"{task}: the step limit must be at least 1, not {max_steps}")
        if no_progress_limit is not None and no_progress_limit < 1:
            raise ValueError(f"{task}: the no-progress limit must be at least 1, not {no_progress_limit}")
        self.task = task
        self.actions: Mapping[str, str] = {name: key.meaning for name, key in keys.items()}
        self.instructions = instructions
        self.max_steps = max_steps
        self.no_progress_limit = no_progress_limit
        self._keys = keys
        self._env: Any = None
        self._raw: Mapping[str, np.ndarray] = {}
        self._status: Any = None
        self._done = True

    @abstractmethod
    def _make(self, seed: int) -> Any:
        """A fresh environment, seeded, not yet reset."""

    @abstractmethod
    def _note(self, blstats: np.ndarray, status: Any, reward: float) -> None:
        """Take down what an action led to: once per action, after the last of its pages, as BALROG does.

        Args:
            blstats: of a living game, or all zero.
            status: NLE's word on whether and how the episode ended.
            reward: of the action, all its pages together.
        """

    @abstractmethod
    def progress(self) -> Progress:
        """Progress of the episode so far."""

    def reset(self, seed: int) -> Observation:
        """Start the episode of this seed, in a fresh environment (a used one shows its past in the top-ten list)."""
        if not 0 <= seed < 2**63:
            raise ValueError(f"{self.task}: a seed is a whole number from 0 to 2**63 - 1, not {seed}")
        self.close()
        self._env = self._make(seed)
        # At success or at a limit NLE would quit the game, and the last thing seen would be its farewell.
        self._env._quit_game = lambda observation, done: None
        self._index = {int(code): i for i, code in enumerate(self._env.actions)}
        self._raw, _ = self._env.reset()
        self._steps = self._idle = 0
        self._turn = int(self._raw["blstats"][_TURN])
        self._done = False
        return self._observation(self._message())

    def step(self, action: str) -> Transition:
        """Play one action. Raises `InvalidAction` for a name that is not in `actions`."""
        key = self._keys.get(action)
        if key is None:
            raise InvalidAction(f"{self.task} has no action {action!r}")
        if self._done:
            raise RuntimeError(f"{self.task}: no episode is running; call reset(seed) first")
        reward, terminated, message = self._press(key.code)
        self._note(self._raw["blstats"], self._status, reward)
        self._steps += 1
        self._count_idle()
        truncated = not terminated and (self._steps >= self.max_steps or self._is_stuck())
        self._done = terminated or truncated
        return Transition(self._observation(message), reward, terminated, truncated, self.progress())

    def screen(self) -> Screen:
        """The terminal, coloured; the cursor's cell is reversed."""
        if not self._raw:
            return ()
        return coloured(self._raw["tty_chars"], self._raw["tty_colors"], self._raw["tty_cursor"])

    def close(self) -> None:
        """Free the simulator. Safe to call twice."""
        if self._env is not None:
            self._raw = {name: array.copy() for name, array in self._raw.items()}
            self._env.close()
            self._env = None
        self._done = True

    def _press(self, code: int) -> tuple[float, bool, str]:
        """Send a key, then read on while a page waits: reward, whether the game ended, joined message."""
        reward, terminated = self._send(code)
        message = self._message()
        pages = 0
        while "--More--" in message and not terminated and _MORE in self._index and pages < _PAGES:
            more, terminated = self._send(_MORE)
            reward += more
            message = message.replace("--More--", "\n") + self._message()
            pages += 1
        return reward, terminated, message

    def _send(self, code: int) -> tuple[float, bool]:
        self._raw, reward, terminated, _, info = self._env.step(self._index[code])
        self._status = info["end_status"]
        return float(reward), bool(terminated)

    def _count_idle(self) -> None:
        turn = int(self._raw["blstats"][_TURN])
        self._idle = self._idle + 1 if turn == self._turn else 0
        self._turn = turn

    def _is_stuck(self) -> bool:
        return self.no_progress_limit is not None and self._idle >= self.no_progress_limit

    def _message(self) -> str:
        tty = self._raw["tty_chars"]
        return screen_message(tty.tobytes(), tty.shape[1])

    def _observation(self, message: str) -> Observation:
        return describe(self._raw, message)
