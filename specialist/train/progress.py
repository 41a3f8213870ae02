"""What happens beside the steps of a training run: its curve, its checkpoints, and the end of one that diverges."""

from __future__ import annotations

import time
from collections import deque
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from specialist.train import curve
from specialist.train.curve import Row
from specialist.train.guard import Guard
from specialist.train.spec import CHECKPOINTS
from specialist.train.work import Work

SMOOTHED = 10
"""Steps over which speed is told."""

COMPLETE = "complete"
"""A file in a checkpoint that was written whole."""


class Progress(TrainerCallback):
    """Follows a run.

    Attributes:
        stopped: why it was stopped; empty when it was not.
    """

    def __init__(self, folder: Path, work: Work) -> None:
        """Args: folder: of the run."""
        self.stopped = ""
        self._folder = folder
        self._work = work
        self._tokens = (0, *accumulate(work.schedule.tokens))
        self._computed = (0, *accumulate(work.schedule.computed))
        self._guard = Guard()
        self._before = 0.0
        self._began = 0.0
        self._measuring = 0.0
        self._measuring_once = 0.0
        self._marks: deque[tuple[float, int]] = deque(maxlen=SMOOTHED + 1)
        self._writes = False

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Go on with the curve of the tries before."""
        self._writes = state.is_world_process_zero
        kept = curve.rows(self._folder)
        if self._writes:
            kept = curve.cut_back(self._folder, state.global_step or None)
        for row in kept:
            if row.loss is not None and row.step <= state.global_step:
                self._guard.see(row.step, row.loss)
                self._before = row.seconds
        self._began = time.monotonic()
        self._marks.append((0.0, state.global_step))

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Ask for what is due after this step."""
        control.should_evaluate = state.global_step in self._work.measure_after
        control.should_save = state.global_step in self._work.save_after

    def on_log(
        self, args: Any, state: TrainerState, control: TrainerControl, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Note a step's loss; stop when it is out of bounds. Every process comes to the same end."""
        if not logs or "loss" not in logs:
            return
        self._marks.append((time.monotonic() - self._began - self._measuring, state.global_step))
        loss, rate = float(logs["loss"]), float(logs["learning_rate"])
        self._write(state, Row(**self._so_far(state), loss=loss, learning_rate=rate, **self._speed(state)))
        why = self._guard.see(state.global_step, loss, logs.get("grad_norm"))
        if why:
            self.stopped = why
            control.should_training_stop = True
            control.should_save = control.should_evaluate = False

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Mark a checkpoint as written, once every process has written its part."""
        if torch.distributed.is_initialized():
            torch.distributed.barrier()
        if self._writes:
            (self._folder / CHECKPOINTS / f"checkpoint-{state.global_step}" / COMPLETE).touch()

    def measured(self, state: TrainerState, loss: float, each: tuple[float, ...], seconds: float) -> None:
        """Note a held-out loss, that of each example, and how long measuring it took."""
        self._measuring += seconds
        self._measuring_once = seconds
        self._write(state, Row(**self._so_far(state), held_out=loss, each=each, **self._speed(state)))

    def _so_far(self, state: TrainerState) -> dict[str, Any]:
        return {
            "step": state.global_step,
            "steps": len(self._work.schedule.steps),
            "seconds": self._before + time.monotonic() - self._began,
            "tokens": self._tokens[state.global_step],
        }

    def _speed(self, state: TrainerState) -> dict[str, Any]:
        """Tokens a second and seconds left; empty before the second step of this try."""
        (start, first), (end, last) = self._marks[0], self._marks[-1]
        if last == first or end <= start:
            return {}
        pace = (end - start) / (self._computed[last] - self._computed[first])
        due = sum(step > state.global_step for step in self._work.measure_after)
        left = pace * (self._computed[-1] - self._computed[state.global_step]) + due * self._measuring_once
        return {"tokens_per_second": (self._tokens[last] - self._tokens[first]) / (end - start), "left": left}

    def _write(self, state: TrainerState, row: Row) -> None:
        if self._writes:
            curve.append(self._folder, row)


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint of a run that was written whole; None when there is none."""
    found = [path.parent for path in (folder / CHECKPOINTS).glob(f"checkpoint-*/{COMPLETE}")]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
