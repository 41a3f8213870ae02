"""Everything that decides a loop: ``loop.toml``. A loop is resumed with the same settings or not at all."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from automem.runs import PlannedTask, PlayedModel, PlayedScaffold
from automem.sandbox.limits import SandboxConfig

FORMAT: Literal[1] = 1
"""Version of the loop folder's layout."""

GATE_SEEDS = 10_000
HELD_OUT_SEEDS = 20_000
"""First seeds of the two lists when nobody names any: far from each other, and from those of the suites."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GateSettings(_Strict):
    """How a revision is judged (`meta.gate`)."""

    kind: Literal["sequential", "paper"] = "sequential"
    batch: Annotated[int, Field(ge=1)] = 8
    """Seeds that are played between two looks."""
    most: Annotated[int, Field(ge=2)] = 160
    """Seeds that are played at most for one candidate."""
    smallest_gain: Annotated[float, Field(ge=0, lt=1)] = 0.02
    """The smallest gain in progression worth having; 0.02 is two points of a hundred."""
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """How much worse a candidate may play whose memory is leaner (`meta.lean`); 0 accepts better play only."""
    error: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """The chance that a loop without any real effect accepts anything."""

    @model_validator(mode="after")
    def _batch_fits(self) -> GateSettings:
        if self.batch > self.most:
            raise ValueError(f"a batch of {self.batch} seeds is more than the {self.most} that are played at most")
        if self.margin and self.kind != "sequential":
            raise ValueError(f"a margin belongs to the gate sequential; the gate {self.kind} has none")
        return self


class SearchSettings(_Strict):
    """What is tried (`meta.search`)."""

    iterations: Annotated[int, Field(ge=1, le=1000)] = 6
    """Revisions, one after another."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 2
    """Fresh attempts at a revision, until one is accepted."""
    continuations: Annotated[int, Field(ge=0, le=100)] = 1
    """How often an attempt that failed goes on, shown the failure."""
    parents: Literal["best", "archive"] = "best"
    """What a revision is made from: the best accepted version, or one drawn by score and novelty."""
    side_by_side: Annotated[int, Field(ge=1, le=100)] = 1
    """Attempts of a revision that are worked on at once."""
    shown: Annotated[int, Field(ge=1)] = 8
    """Gate seeds whose episodes a reviewer may read; it never sees the others, nor held-out ones."""
    seed: int = 0
    """Of the choice of parents."""

    @property
    def candidates(self) -> int:
        """Candidates that the loop can bring before the gate."""
        return self.iterations * self.attempts * (1 + self.continuations)


class ReviewerSettings(_Strict):
    """Who writes revisions (`meta.reviewers.make`)."""

    kind: str = "rules"
    model: str = ""
    """The meta-LLM of ``llm``."""
    api_base: str = ""
    options: dict[str, Any] = {}
    """What else the reviewer takes; each checks its own."""
    turns: Annotated[int, Field(ge=1)] | None = 60
    tokens: Annotated[int, Field(ge=1)] | None = 2_000_000
    usd: Annotated[float, Field(gt=0)] | None = None
    minutes: Annotated[float, Field(gt=0)] | None = 30.0
    """Budget of one review (`meta.reviewer.Budget`)."""


class LoopBudget(_Strict):
    """What the whole loop may spend before it begins another revision; None is no limit."""

    usd: Annotated[float, Field(gt=0)] | None = None
    """Reviews and episodes, as far as prices are known."""
    minutes: Annotated[float, Field(gt=0)] | None = None
    """From the moment at which it is started or resumed."""
    episodes: Annotated[int, Field(ge=1)] | None = None


class LoopConfig(_Strict):
    """All of ``loop.toml``."""

    format: Literal[1] = FORMAT
    name: str
    game: str
    created: str
    """When the loop was created, UTC, ISO 8601."""
    model: PlayedModel
    root: PlayedScaffold
    """The version that the loop begins with, copied into its folder."""
    tasks: tuple[PlannedTask, ...]
    """Tasks with the gate seeds, in the order in which they are played."""
    held_out: tuple[int, ...]
    """Seeds that are played once, at the end, by the first version and the best."""
    replicates: Annotated[int, Field(ge=1, le=100)] = 1
    """Episodes of each task and seed; more than one is for models that do not answer the same twice."""
    gate: GateSettings = GateSettings()
    search: SearchSettings = SearchSettings()
    reviewer: ReviewerSettings = ReviewerSettings()
    budget: LoopBudget = LoopBudget()
    versions: dict[str, str] = {}
    """Versions of what decides the outcome."""
    sandbox: SandboxConfig = SandboxConfig()

    @property
    def gate_seeds(self) -> tuple[int, ...]:
        """Seeds that versions are played on before they are accepted; the first ones are shown to reviewers."""
        return self.tasks[0].seeds

    @property
    def shown_seeds(self) -> tuple[int, ...]:
        """Gate seeds whose episodes reviewers may read."""
        return self.gate_seeds[: self.search.shown]

    @property
    def judged_seeds(self) -> tuple[int, ...]:
        """Gate seeds in the order in which the gate judges by them.

        Those that reviewers were shown come last: a revision may fit them without being better.
        """
        return (*self.gate_seeds[self.search.shown :], *self.shown_seeds)

    @property
    def steps(self) -> int:
        """The longest step limit of its tasks."""
        return max(task.steps for task in self.tasks)

    @model_validator(mode="after")
    def _seeds_differ(self) -> LoopConfig:
        if any(task.seeds != self.gate_seeds for task in self.tasks):
            raise ValueError("all tasks play the same gate seeds")
        if len(self.gate_seeds) < self.gate.most:
            raise ValueError(f"the gate plays up to {self.gate.most} seeds, and there are {len(self.gate_seeds)}")
        shared = sorted(set(self.gate_seeds) & set(self.held_out))
        if shared:
            raise ValueError(f"seed {shared[0]} is a gate seed and a held-out seed; what was tuned on proves nothing")
        return self

    def differences(self, other: LoopConfig) -> list[str]:
        """In words, what makes the other another loop than this one."""
        found = []
        for name in ("game", "tasks", "held_out", "replicates", "gate", "search", "sandbox"):
            then, now = getattr(self, name), getattr(other, name)
            if name == "sandbox":
                then, now = (value.model_copy(update={"unsafe": False}) for value in (then, now))
            if then != now:
                found.append(f"{name}: {_short(then)} then, {_short(now)} now")
        if self.root.identity != other.root.identity:
            found.append(f"scaffold: {_short(self.root)} then, {_short(other.root)} now")
        mine, theirs = (c.model.model_copy(update={"api_base": ""}) for c in (self, other))
        if mine != theirs:
            found.append(f"model: {_short(mine)} then, {_short(theirs)} now")
        # Where a reviewer is reached and what it may spend can change; who it is, and how it works, cannot.
        if (self.reviewer.kind, self.reviewer.model) != (other.reviewer.kind, other.reviewer.model):
            found.append(f"reviewer: {_short(self.reviewer)} then, {_short(other.reviewer)} now")
        for name in sorted({*self.reviewer.options, *other.reviewer.options}):
            then, now = (c.reviewer.options.get(name) for c in (self, other))
            if then != now:
                found.append(f"reviewer option {name}: {_short(then)} then, {_short(now)} now")
        for package in sorted({*self.versions, *other.versions} - {"automem", "python"}):
            if self.versions.get(package) != other.versions.get(package):
                found.append(f"{package}: {self.versions.get(package)} then, {other.versions.get(package)} now")
        return found


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 120 else f"{text[:117]}..."


def first_problem(error: ValueError) -> str:
    """What pydantic says was wrong, without its frame."""
    errors = getattr(error, "errors", None)
    if not errors:
        return str(error)
    found = errors()[0]
    where = ".".join(map(str, found["loc"]))
    return f"{where}: {found['msg']}" if where else str(found["msg"]).removeprefix("Value error, ")
