"""What runs measured of a version of a scaffold, and how that compares with its parent.

Figures come from the runs' summaries. Every run stands for itself: runs are never pooled, so that an
episode is never counted twice, and a run that played seeds which another one played in the same way says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

import games
from automem import runs
from automem.errors import UserError
from automem.lineage import Version
from automem.runs import Run
from automem.sandbox.limits import SandboxConfig
from automem.statistics import combined, estimate
from automem.tables import percent

Episode = tuple[str, int]
"""Task and seed."""


@dataclass(frozen=True)
class Score:
    """What one run measured of a version, in the tasks of its game.

    Attributes:
        run: its name.
        model: its name, with the sampling where that is not greedy.
        scripted: the player is the `scripted` program and not an LLM.
        target: the suite or task that was asked for.
        setting: what makes episodes of two runs comparable, apart from the limits of scaffold code.
        steps: step limits of its tasks, without repetition.
        progression: mean in [0, 1]; None when nothing was measured yet.
        interval: its 95 % interval; None for fewer than two episodes.
        episodes: how many are in the mean.
        planned: how many the run will have.
        by_seed: episode -> progression.
        limits: those of scaffold code.
        may_have_code: the version has code, or nobody can tell, so that the limits count.
        repeats: another run, shown before this one, that played some of these episodes in the same way.
        problem: why there is no figure; empty when there is one.
    """

    run: str
    model: str
    scripted: bool
    target: str
    setting: tuple[Any, ...]
    steps: tuple[int, ...]
    progression: float | None
    interval: tuple[float, float] | None
    episodes: int
    planned: int
    by_seed: Mapping[Episode, float]
    limits: SandboxConfig
    may_have_code: bool
    repeats: str = ""
    problem: str = ""

    def comparable(self, other: Score) -> bool:
        """Whether the same episode of both runs differs in nothing but the version."""
        if self.setting != other.setting:
            return False
        return self.limits == other.limits or not (self.may_have_code or other.may_have_code)

    @property
    def player(self) -> str:
        """The model, and that it is none where it is none."""
        return f"{self.model} (a program, not an LLM)" if self.scripted else self.model

    @property
    def played(self) -> str:
        """What was played: ``crafter, 1000 steps``."""
        return f"{self.target}, {'/'.join(map(str, self.steps))} steps"

    @property
    def figures(self) -> str:
        """``47.27 % [43.1, 51.4], 20 episodes``, or why there is no figure."""
        if self.problem:
            return self.problem
        of = f"{self.episodes} of {self.planned}" if self.episodes < self.planned else str(self.episodes)
        episodes = "1 episode" if of == "1" else f"{of} episodes"
        return f"{percent(self.progression)} %{_reach(self.interval)}, {episodes}"

    @property
    def remark(self) -> str:
        """That another run has shown the same, if it has."""
        return f"the same seeds as run {self.repeats}, not further evidence" if self.repeats else ""


@dataclass(frozen=True)
class Paired:
    """A difference in progression between two versions over the episodes that both played.

    Attributes:
        difference: mean, in [-1, 1]; the mean of the tasks' means.
        interval: 95 %; None when a task has fewer than two episodes in common.
        episodes: how many both played.
        run: the other version's run.
    """

    difference: float
    interval: tuple[float, float] | None
    episodes: int
    run: str

    @property
    def clear(self) -> bool:
        """The interval is there and does not hold 0."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]

    @property
    def figures(self) -> str:
        """``+3.20 [+0.4, +6.0] points on the same 20 episodes``."""
        reach = "" if self.interval is None else f" [{', '.join(_points(end, 1) for end in self.interval)}]"
        same = "the same episode" if self.episodes == 1 else f"the same {self.episodes} episodes"
        return f"{_points(self.difference, 2)}{reach} points on {same}"


def _points(difference: float, digits: int) -> str:
    """A difference in percentage points with its sign; what rounds to nothing is ``+0.00``, from either side."""
    return f"{round(100 * difference, digits) + 0.0:+.{digits}f}"


def _reach(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" [{percent(interval[0], 1)}, {percent(interval[1], 1)}]"


def scores(version: Version) -> list[Score]:
    """What runs measured of exactly these files: by model and target, the latest run of each first."""
    found = [_score(run, version) for run in version.runs]
    ordered = sorted(found, key=lambda score: (score.scripted, score.model, score.target))
    marked: list[Score] = []
    for score in ordered:
        earlier = next(
            (s.run for s in marked if s.comparable(score) and not s.by_seed.keys().isdisjoint(score.by_seed)), ""
        )
        marked.append(replace(score, repeats=earlier))
    return marked


class _Measured(BaseModel):
    """What ``summary.json`` says of one game, or of a task where `by_seed` is read."""

    progression: float | None = None
    interval: tuple[float, float] | None = None
    episodes: int = 0
    by_seed: dict[int, float] = {}


def _score(run: Run, version: Version) -> Score:
    config, model = run.config, run.config.model
    tasks = [t for t in config.tasks if games.game_of(t.task) == version.game]
    measured, by_seed, problem = _measured(run, version.game)
    return Score(
        run=config.name,
        model=config.players if model.temperature == 0 else f"{config.players} at temperature {model.temperature:g}",
        scripted=model.name == "scripted",
        target=config.target,
        setting=(
            config.players,
            model.temperature,
            model.max_tokens,
            tuple(sorted((t.task, t.steps, tuple(sorted(t.facts.items()))) for t in tasks)),
            tuple((package, config.versions[package]) for package in runs.deciding(config)),
            str(config.specialist and config.specialist.decisive),
        ),
        steps=tuple(dict.fromkeys(t.steps for t in tasks)),
        progression=measured.progression,
        interval=measured.interval,
        episodes=measured.episodes,
        planned=sum(len(t.seeds) for t in tasks),
        by_seed=by_seed,
        problem=problem,
        limits=config.sandbox.model_copy(update={"unsafe": False}),  # contained or not, code computes the same
        may_have_code=version.may_have_code,
    )


def _measured(run: Run, game: str) -> tuple[_Measured, dict[Episode, float], str]:
    """A run's figures of one game, its episodes, and why there are none."""
    try:
        data = run.summary()
        if data is None:
            finished = sum(1 for _ in run.folder.glob("episodes/*/seed-*/episode.json"))
            return _Measured(), {}, f"no summary yet, {finished} episodes finished"
        measured = _Measured.model_validate(data["per_game"].get(game, {}))
        tasks = {t: _Measured.model_validate(row) for t, row in data["per_task"].items() if games.game_of(t) == game}
    except (UserError, games.UnknownTask, OSError, KeyError, TypeError, AttributeError, ValidationError):
        return _Measured(), {}, "its summary is damaged; resume the run to write it again"
    by_seed = {(task, seed): value for task, row in tasks.items() for seed, value in row.by_seed.items()}
    return measured, by_seed, "" if measured.progression is not None else "no episode was finished"


def paired(score: Score, others: Iterable[Score]) -> Paired | None:
    """How much better a version played than another on the very same episodes; None without a comparable run.

    Args:
        score: of the version.
        others: of the other version; the run with the most episodes in common is taken.
    """
    comparable = [other for other in others if other.comparable(score)]
    common = [(sorted(score.by_seed.keys() & other.by_seed.keys()), other) for other in comparable]
    shared, other = max(common, key=lambda pair: len(pair[0]), default=((), None))
    if not shared or other is None:
        return None
    tasks: dict[str, list[float]] = {task: [] for task, _ in shared}
    for episode in shared:
        tasks[episode[0]].append(score.by_seed[episode] - other.by_seed[episode])
    found = combined([estimate(differences) for differences in tasks.values()])
    return Paired(found.mean, found.interval, len(shared), other.run)
