"""Placeholder until the processes land: the interface only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from automem.errors import UserError
from automem.sandbox.limits import Mode, SandboxConfig

__all__ = ["CallFailed", "Mode", "Process", "Sandbox", "SandboxConfig", "SandboxUnavailable", "choose_mode"]


class SandboxUnavailable(UserError):
    pass


class CallFailed(Exception):
    def __init__(self, message: str, lost: bool) -> None:
        super().__init__(message)
        self.message, self.lost = message, lost


def choose_mode(config: SandboxConfig) -> Mode:
    raise SandboxUnavailable("scaffold code cannot be run yet")


class Process:
    async def call(
        self,
        method: str,
        args: Sequence[Any],
        serve: Callable[[str, list[Any]], Any] | None = None,
        seconds: float | None = None,
    ) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


class Sandbox:
    def __init__(self, config: SandboxConfig, mode: Mode | None = None) -> None:
        self.config = config

    async def open(self, source: str) -> Process:
        raise CallFailed("scaffold code cannot be run yet", lost=True)

    async def close(self) -> None:
        pass
