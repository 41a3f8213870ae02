"""Folders of benches: ``runs/<bench>/`` with a run for each agent, and what they come to.

::

    runs/<bench>/
      bench.toml             suite, agents, what was asked for
      <label>/               the run of an agent, like any other (`automem.runs`)
      results.json           `automem.bench.results`
      results.md             the same as tables
      scoreboard.html        the same as a page, beside published figures
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
import tomli_w
from pydantic import BaseModel, ConfigDict, field_validator

import games
from automem import runs
from automem.errors import UserError
from automem.runs import BENCH, Run
from automem.shelf import Shelf, read_toml

RESULTS = "results.json"
TABLES = "results.md"
SCOREBOARD = "scoreboard.html"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlannedAgent(_Strict):
    """An agent of the bench."""

    label: str
    agent: str
    scaffolds: tuple[str, ...] = ()
    specialist: bool = False

    @field_validator("label")
    @classmethod
    def _names_a_run(cls, label: str) -> str:
        """It becomes a folder's name, and ``bench.toml`` may be somebody else's."""
        try:
            return runs.valid_name(label)
        except UserError as error:
            raise ValueError(str(error)) from error


class BenchConfig(_Strict):
    """All of ``bench.toml``: what was asked for. What exactly an agent plays is in its ``run.toml``."""

    format: Literal[1] = 1
    name: str
    suite: str
    created: str
    """UTC, ISO 8601."""
    agents: tuple[PlannedAgent, ...]
    suite_seeds: bool
    """The seeds are the suite's own."""
    suite_steps: bool
    """The step limits are the suite's own."""
    command: str
    """What plays it again, with an adapter's own name in the place of its folder."""

    def differences(self, other: BenchConfig, whole: bool = True) -> list[str]:
        """In words, what makes the other another bench than this one.

        Args:
            other: what is asked for now.
            whole: every agent has begun. What an agent that has not would play is known by the command alone.
        """
        named = [("suite", self.suite, other.suite), ("agents", _listed(self), _listed(other))]
        if not whole:
            named.append(("command", self.command, other.command))
        return [f"{what}: {then} then, {now} now" for what, then, now in named if then != now]


def _listed(config: BenchConfig) -> str:
    return ", ".join(agent.label for agent in config.agents)


@dataclass(frozen=True)
class Bench:
    """A bench on disk."""

    folder: Path
    config: BenchConfig

    def run(self, label: str) -> Run | None:
        """The run of an agent; None while it has not begun."""
        folder = self.folder / label
        return runs.load(str(folder.absolute())) if (folder / runs.RUN).is_file() else None

    def runs(self) -> list[Run]:
        """The runs that have begun, in the order of the agents."""
        return [run for agent in self.config.agents if (run := self.run(agent.label)) is not None]

    def results(self) -> dict[str, Any] | None:
        """``results.json``, or None while there is none. Raises `UserError` when it is damaged."""
        try:
            return orjson.loads((self.folder / RESULTS).read_bytes())
        except FileNotFoundError:
            return None
        except orjson.JSONDecodeError as error:
            raise UserError(
                f"{self.folder / RESULTS}: not JSON ({error}); resume the bench to write it again"
            ) from error

    def line(self) -> tuple[str, ...]:
        """For a list of benches: name, created, suite, agents, how many episodes are finished, whether that is all."""
        try:
            planned = [run.jobs() for run in self.runs()]
        except (UserError, games.UnknownTask):  # one run that cannot be read must not hide all others
            return (*self._told(), "?", "has a run that cannot be read")
        finished = sum((job.folder / "episode.json").is_file() for jobs in planned for job in jobs)
        whole = len(planned) == len(self.config.agents) and finished == sum(map(len, planned))
        return (*self._told(), str(finished), "complete" if whole else "incomplete")

    def _told(self) -> tuple[str, ...]:
        config = self.config
        return config.name, config.created.replace("+00:00", "Z"), config.suite, _listed(config)

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the bench against other processes. Raises `automem.runs.BeingPlayed` when one is playing it."""
        return runs.exclusive(self.folder)


def create(config: BenchConfig) -> Bench:
    """Write a new bench folder. Raises `UserError` when the name is taken or the disk refuses."""
    folder = runs.free_folder(config.name)
    with runs.born_whole(folder, "bench") as scratch:
        (scratch / BENCH).write_text(tomli_w.dumps(config.model_dump(mode="json")), encoding="utf-8")
    return Bench(folder, config)


BENCHES = Shelf(
    BENCH, "bench", "benches", lambda folder: Bench(folder, read_toml(folder / BENCH, BenchConfig, "bench"))
)
"""All benches."""
exists, is_bench, load, all_benches = BENCHES.exists, BENCHES.is_one, BENCHES.load, BENCHES.all
