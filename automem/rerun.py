"""A stored run, to be played again from its ``run.toml`` and the scaffold copies beside it alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import games
from automem import runs, scaffold, suspects
from automem.agents import registry as agents
from automem.episode import STEPS, load_result
from automem.errors import UserError
from automem.evaluate import Plan
from automem.models import registry
from automem.reproduced import Episode
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold, PlayedSpecialist, Run
from automem.sandbox import choose_mode
from automem.scaffold import Scaffold, ScaffoldError
from games import suites

LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Part:
    """Which episodes of a run.

    Attributes:
        task: only this one.
        seeds: only these, as `games.suites.parse_seeds` takes them.
        episodes: only the first so many seeds of each task, after `seeds`.
    """

    task: str | None = None
    seeds: str | None = None
    episodes: int | None = None

    def of(self, tasks: Sequence[PlannedTask]) -> tuple[PlannedTask, ...]:
        """What is left of the tasks of a run. Raises errors for people when that is nothing, or less than was named."""
        wanted = None if self.task is None else games.canonical(self.task)
        seeds = None if self.seeds is None else suites.parse_seeds(self.seeds)
        if self.episodes is not None and self.episodes < 1:
            raise UserError(f"--episodes {self.episodes}: play at least one")
        chosen = [task for task in tasks if wanted in (None, task.task)]
        if not chosen:
            raise UserError(f"the run has no task {wanted}; it has {', '.join(task.task for task in tasks)}")
        missing = set(seeds or ()) - {seed for task in chosen for seed in task.seeds}
        if missing:
            listed = ", ".join(map(str, sorted(missing)[:20]))
            raise UserError(f"--seeds {self.seeds}: the run has no episode of seed {listed}")
        cut = [
            task.model_copy(
                update={"seeds": tuple(s for s in task.seeds if seeds is None or s in seeds)[: self.episodes]}
            )
            for task in chosen
        ]
        return tuple(task for task in cut if task.seeds)


def episodes(tasks: Sequence[PlannedTask]) -> list[Episode]:
    """Task and seed of every episode."""
    return [(task.task, seed) for task in tasks for seed in task.seeds]


@dataclass(frozen=True)
class Again:
    """A run that is to be played again, checked.

    Attributes:
        plan: the new run, as `automem.evaluate.run` takes it.
        warnings: why it may not come out the same, and what else is to be known before it starts.
    """

    plan: Plan
    warnings: tuple[str, ...]


def again(
    run: Run,
    part: Part,
    *,
    name: str,
    resume: bool = False,
    api_base: str = "",
    specialist: PlayedSpecialist | None = None,
    unsafe_hooks: bool = False,
) -> Again:
    """Plan to play a run again; of its episodes those that were begun. Raises errors for people, and starts nothing.

    Args:
        run: the run; nobody needs to have finished it, but one of its episodes must be finished.
        part: which episodes.
        name: of the new run.
        resume: there is one of this name already, and it goes on.
        api_base: where the model is reached now, when that is elsewhere.
        specialist: the run's, as it is reached now.
        unsafe_hooks: run scaffold code even where nothing contains it. What the run's own file says does not count.
    """
    agents.kind(run.config.agent)
    tasks, warnings = _begun(run, part.of(run.config.tasks))
    sandbox = run.config.sandbox.model_copy(update={"unsafe": unsafe_hooks})
    model = run.config.model
    scaffolds = _scaffolds(run, {games.game_of(task.task) for task in tasks})
    config = run.config.model_copy(
        update={
            "name": runs.valid_name(name),
            "created": runs.now(),
            "tasks": tasks,
            "versions": runs.versions(task.task for task in run.config.tasks) | agents.versions(run.config.agent),
            "sandbox": sandbox,
            # Where the copies go is ours to say: a run.toml that somebody else wrote could name any folder.
            "scaffolds": {
                game: PlayedScaffold(ref=one.ref, identity=one.identity, folder=f"scaffolds/{one.ref}")
                for game, one in scaffolds.items()
            },
            "specialist": specialist,
            "model": model.model_copy(update={"api_base": address(run, model, api_base, "--api-base")}),
        }
    )
    if any(one.hooks is not None for one in scaffolds.values()) and choose_mode(sandbox) == "unsafe":
        warnings.append("nothing on this machine contains scaffold code: it runs with all the rights that you have")
    warnings += _other_versions(scaffolds)
    if resume and runs.exists(name):
        runs.check_same("run", name, runs.load(name).config.differences(config))
    else:
        runs.free_folder(name)
    differing = suspects.versions(run.config, config)
    if differing:
        warnings.insert(0, f"other versions are installed, so it may come out otherwise: {'; '.join(differing)}")
    return Again(Plan(config, scaffolds), tuple(warnings))


def again_name(run: Run) -> str:
    """What a run is called that plays this one again: in a folder of runs, after both."""
    folder, root = run.folder.resolve(), runs.runs_folder().resolve()
    words = folder.relative_to(root).parts if folder.is_relative_to(root) else (folder.name,)
    return f"{'-'.join(words)[:90]}-rerun"


def address(run: Run, model: PlayedModel, given: str, option: str) -> str:
    """Where a model of a stored run is reached. Raises `UserError` where a person must say so first.

    A run folder that somebody else made names a server of theirs, and a key in the environment would be sent to it.

    Args:
        run: where it is stored.
        model: the model, as it is stored there.
        given: an address that was given for it now.
        option: how that is done.
    """
    if model.name in registry.OURS:
        return ""
    environment = os.environ.get("AUTOMEM_API_BASE", "")
    if given or not model.api_base:
        return given or environment
    inside = run.folder.resolve().is_relative_to(runs.runs_folder().resolve())
    if inside or model.api_base == environment or urlsplit(model.api_base).hostname in LOCAL:
        return model.api_base
    raise UserError(
        f"{run.folder / runs.RUN} asks {model.name} at {model.api_base}, and does not lie in {runs.runs_folder()}/. "
        f"Prompts, and a key in your environment, would go there; say {option} {model.api_base} if that is meant, or "
        "name your own server"
    )


def _begun(run: Run, tasks: Sequence[PlannedTask]) -> tuple[tuple[PlannedTask, ...], list[str]]:
    """The episodes that were begun, with a word on the others. Raises `UserError` when none of them was finished."""
    chosen = set(episodes(tasks))
    jobs = [job for job in run.jobs() if (job.task, job.seed) in chosen]
    finished = [job for job in jobs if load_result(job.folder) is not None]
    if not finished:
        raise UserError(
            f"run {run.config.name} has no finished episode there, so there is nothing to hold a rerun against; finish "
            "it first: give the command that began it again, with --resume"
        )
    begun = {(job.task, job.seed) for job in jobs if (job.folder / STEPS).is_file()}
    left = [
        task.model_copy(update={"seeds": tuple(seed for seed in task.seeds if (task.task, seed) in begun)})
        for task in tasks
    ]
    warnings = []
    if len(begun) < len(jobs):
        warnings.append(f"{len(jobs) - len(begun)} episodes were never begun in {run.config.name}; they are left out")
    if len(finished) < len(begun):
        warnings.append(
            f"{len(begun) - len(finished)} episodes are not finished in {run.config.name}; "
            "they are compared as far as they go"
        )
    kept = tuple(task for task in left if task.seeds)
    for task in kept:
        _same_levels(task)
    return kept, warnings


def _same_levels(task: PlannedTask) -> None:
    """Raise `UserError` when the task would be played on other levels than then."""
    here = games.facts(task.task)
    if here != task.facts:
        then, now = (", ".join(f"{k} {v}" for k, v in facts.items()) or "none" for facts in (task.facts, here))
        raise UserError(
            f"{task.task}: the run was played on other levels ({then}) than there are here ({now}), so it cannot come "
            "out the same; automem games fetch gets the official ones, AUTOMEM_BOXOBAN_LEVELS names a folder of others"
        )


def _scaffolds(run: Run, needed: Collection[str]) -> dict[str, Scaffold]:
    """The run's own copies, by game. Raises `UserError` when one is gone or was changed."""
    found = {}
    for game, played in run.config.scaffolds.items():
        if game not in needed:
            continue
        folder = run.folder / played.folder
        if not folder.is_dir():
            raise UserError(
                f"{folder}: the run's copy of its scaffold is gone, so the run cannot be played again; put back "
                f"{played.ref} with identity {played.identity[:12]}"
            )
        found[game] = scaffold.load(str(folder))
        if found[game].identity != played.identity:
            raise UserError(
                f"{folder} was changed since it was played (identity {found[game].identity[:12]}, expected "
                f"{played.identity[:12]}); restore it"
            )
    return found


def _other_versions(scaffolds: Mapping[str, Scaffold]) -> Iterator[str]:
    """A word on each scaffold of which a version of the same name, with other files, is here."""
    for played in scaffolds.values():
        with contextlib.suppress(ScaffoldError):
            here = scaffold.load(played.ref)
            if here.identity != played.identity:
                yield (
                    f"{played.ref} is another version here ({here.identity[:12]}) than in the run "
                    f"({played.identity[:12]}); the run's own copy is played"
                )
