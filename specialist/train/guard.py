"""When training is to be stopped because it leads nowhere."""

from __future__ import annotations

import math

WORSE = 2.0
"""A smoothed loss this many times the first one, and `MARGIN` above it, is out of bounds."""

MARGIN = 0.5
"""Nats: a first loss near zero may well double."""

PATIENCE = 5
"""Steps in a row that it must be out of bounds."""

WEIGHT = 0.3
"""Of the latest loss in the smoothed one."""


class Guard:
    """Watches the losses of a run, step by step."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._smoothed = 0.0
        self._beyond = 0

    def see(self, step: int, loss: float, gradient: float | None = None) -> str | None:
        """Take in a step's loss (nats) and the length of its gradient; why to stop, or None to go on."""
        if not math.isfinite(loss):
            return f"the loss is {loss} at step {step}"
        if gradient is not None and not math.isfinite(gradient):
            return f"the gradient is {gradient} at step {step}"
        if self._first is None:
            self._first = self._smoothed = loss
        self._smoothed += WEIGHT * (loss - self._smoothed)
        bound = max(WORSE * self._first, self._first + MARGIN)
        self._beyond = self._beyond + 1 if self._smoothed > bound else 0
        if self._beyond < PATIENCE:
            return None
        return f"the loss rose from {self._first:.2f} to {self._smoothed:.2f} nats by step {step}"
