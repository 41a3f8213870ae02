"""Everything that decides a search: ``loop2.toml``. A search is resumed with the same settings or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from automem.runs import PlannedTask, PlayedModel, PlayedScaffold
from automem.sandbox.limits import SandboxConfig
from meta.settings import GateSettings
from specialist.recipe import Recipe

FORMAT: Literal[1] = 1
"""Version of the folder's layout."""

COLLECT_SEEDS, GATE_SEEDS, HELD_OUT_SEEDS = 30_000, 40_000, 50_000
"""First seeds of the three lists when nobody names any: far from each other, from the suites' and from loop 1's."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BaseSettings(_Strict):
    """The model whose specialist is trained."""

    name: str
    """``smollm2``, the folder of a model, or its name on Hugging Face: what is trained from."""
    server: str = ""
    """``hosted_vllm/NAME``, where it is served by a server of the user's own; else we serve it."""
    api_base: str = ""
    """That server's address."""
    merged: bool = False
    """Specialists play as merged copies."""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Of one reply of memory work, with and without an adapter; 0 leaves it to what suits the model. Gameplay and the
    teacher have their own."""


class CollectSettings(_Strict):
    """What is learnt from."""

    teacher: PlayedModel
    """Does the memory work that is learnt."""
    tasks: tuple[PlannedTask, ...] = ()
    """Tasks with training seeds; a search that regenerates its data goes on behind them."""
    traces: tuple[str, ...] = ()
    """Runs that are there already, to learn from instead."""
    consult_turns: Annotated[int, Field(ge=1)] = 1
    """Replies of a PLAN phase in which the teacher may read. A specialist reads for as many as its data has, and the
    untrained base model beside it for as many as the specialist."""


class EngineSettings(_Strict):
    """Who says which decisions are good (`specialist.select.engine`)."""

    kind: str = "rules"
    model: str = ""
    """The meta-LLM of ``llm``."""
    api_base: str = ""
    options: Mapping[str, Any] = {}
    """What else the engine takes; each checks its own."""


class DeciderSettings(_Strict):
    """Who proposes recipes (`specialist.search.decider`)."""

    kind: str = "halving"
    model: str = ""
    """The meta-LLM of ``llm``."""
    api_base: str = ""
    rounds: Annotated[int, Field(ge=1, le=100)] = 1
    """Proposals, one after another."""
    width: Annotated[int, Field(ge=1, le=64)] = 1
    """Recipes of one round."""
    keep: Annotated[int, Field(ge=2, le=8)] = 3
    """Successive halving goes on with one in so many, each time with so many times the training."""
    seed: int = 0
    options: Mapping[str, Any] = {}
    """What else the decider takes; each checks its own."""


class TrainSettings(_Strict):
    """Where training runs."""

    device: Literal["auto", "cpu", "gpu"] = "auto"
    processes: Annotated[int, Field(ge=0)] = 0
    """0 takes all GPUs, or one process on a CPU."""


class SearchConfig(_Strict):
    """All of ``loop2.toml``."""

    format: Literal[1] = FORMAT
    name: str
    game: str
    created: str
    """When the search was created, UTC, ISO 8601."""
    base: BaseSettings
    gameplay: PlayedModel
    """Commits every action."""
    scaffold: PlayedScaffold
    """Under which everything is played, copied into the search's folder."""
    collect: CollectSettings
    recipe: Recipe
    """The one to begin with."""
    tasks: tuple[PlannedTask, ...]
    """Tasks with the gate seeds, in the order in which they are played."""
    held_out: tuple[int, ...]
    """Seeds that are played once, at the end, by the untrained base model and the best specialist."""
    engine: EngineSettings = EngineSettings()
    decider: DeciderSettings = DeciderSettings()
    training: TrainSettings = TrainSettings()
    gate: GateSettings | None = GateSettings()
    """How a specialist is judged (`meta.gate`); None plays nothing but held-out seeds."""
    versions: Mapping[str, str] = {}
    """Versions of what decides the outcome."""
    sandbox: SandboxConfig = SandboxConfig()

    @property
    def gate_seeds(self) -> tuple[int, ...]:
        """Seeds by which specialists are judged while the search goes on."""
        return self.tasks[0].seeds

    @property
    def evaluation_seeds(self) -> frozenset[int]:
        """Seeds from which nothing may be learnt."""
        return frozenset((*self.gate_seeds, *self.held_out))

    def serves(self, model: PlayedModel) -> bool:
        """Whether a model is the base model on a server of ours: LiteLLM need not know its name."""
        return model.name == self.base.name and not self.base.server

    @model_validator(mode="after")
    def _fits(self) -> SearchConfig:
        if any(task.seeds != self.gate_seeds for task in self.tasks):
            raise ValueError("all tasks play the same gate seeds")
        if self.gate is not None and len(self.gate_seeds) < self.gate.most:
            raise ValueError(f"the gate plays up to {self.gate.most} seeds, and there are {len(self.gate_seeds)}")
        shared = sorted(set(self.gate_seeds) & set(self.held_out))
        if shared:
            raise ValueError(f"seed {shared[0]} is a gate seed and a held-out seed; what was chosen by proves nothing")
        learnt = sorted(self.evaluation_seeds.intersection(*[{s for t in self.collect.tasks for s in t.seeds}]))
        if learnt:
            raise ValueError(
                f"seed {learnt[0]} is a training seed and one of an evaluation; what was learnt is no test"
            )
        if self.base.merged and self.base.server:
            raise ValueError("a merged copy is served by a server of ours; with one of your own, leave merged out")
        if bool(self.collect.tasks) == bool(self.collect.traces):
            raise ValueError("learn either from seeds that are played, or from runs that are named")
        return self

    def differences(self, other: SearchConfig) -> list[str]:
        """In words, what makes the other another search than this one."""
        found = []
        mine, theirs = (_decisive(config) for config in (self, other))
        for name in mine:
            if mine[name] != theirs[name]:
                found.append(f"{name}: {_short(mine[name])} then, {_short(theirs[name])} now")
        for package in sorted({*self.versions, *other.versions} - {"automem", "python"}):
            if self.versions.get(package) != other.versions.get(package):
                found.append(f"{package}: {self.versions.get(package)} then, {other.versions.get(package)} now")
        return found


def _decisive(config: SearchConfig) -> dict[str, Any]:
    """Without names, times and addresses: a server may have moved; what it serves is what counts."""
    data = config.model_dump(mode="json", exclude={"name", "created", "versions", "format", "training"})
    data["scaffold"] = data["scaffold"]["identity"]
    data["sandbox"].pop("unsafe")
    for part in (data["base"], data["gameplay"], data["collect"]["teacher"], data["engine"], data["decider"]):
        part.pop("api_base")
    return data


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 120 else f"{text[:117]}..."
