"""Finished episodes of other loops and runs: what was paid for once is not paid for again.

An episode is the same when scaffold, task, seed, replicate, step limit, model with its sampling, level set,
versions of the games and limits of scaffold code are the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import games
from automem import runs
from automem.episode import EpisodeJob, load_result
from automem.errors import UserError
from automem.runs import Run
from meta.storage import COPIED


class EpisodeCache:
    """Looks for finished episodes under the runs folder.

    Sampled episodes (temperature above 0) are one draw each: only the same replicate counts as the same.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], list[Run]] | None = None

    def fetch(self, job: EpisodeJob) -> bool:
        """Bring an equal finished episode into the job's folder; False when there is none.

        An episode that was begun there already stays.
        """
        if job.folder.exists():
            return False
        here = _run_of(job)
        if here is None:
            return False
        if self._known is None:
            self._known = _all()
        game = games.game_of(job.task)
        facts = next(t.facts for t in here.config.tasks if t.task == job.task)
        for run in self._known.get(_key(here, game), ()):
            there = run.folder / job.folder.relative_to(here.folder)
            same = any((t.task, t.steps, t.facts) == (job.task, job.steps, facts) for t in run.config.tasks)
            if same and there != job.folder and _finished(there, job, here.config.scaffolds[game].identity):
                with contextlib.suppress(OSError):
                    _copy(there, job.folder)
                    return True
        return False


def _all() -> dict[tuple[str, ...], list[Run]]:
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in _runs():
        for game in run.config.scaffolds:
            found.setdefault(_key(run, game), []).append(run)
    return found


def _runs() -> Iterator[Run]:
    root = runs.runs_folder()
    for pattern in (f"*/{runs.RUN}", f"*/evaluations/*/*/{runs.RUN}"):
        for path in sorted(root.glob(pattern)):
            with contextlib.suppress(UserError):
                yield runs.load(str(path.parent))


def _key(run: Run, game: str) -> tuple[str, ...]:
    """What must be equal beside task, seed, step limit and level set."""
    config, folder = run.config, run.folder
    number = folder.name.rpartition("-")[2]
    replicate = number if number.isdecimal() and folder.parent.parent.name == "evaluations" else "1"
    model = config.model.model_copy(update={"api_base": ""})
    deciding = sorted((name, version) for name, version in config.versions.items() if name != "python")
    sandbox = config.sandbox.model_copy(update={"unsafe": False})
    specialist = config.specialist and config.specialist.decisive
    return (config.scaffolds[game].identity, str(model), str(specialist), str(deciding), str(sandbox), replicate)


def _finished(there: Path, job: EpisodeJob, scaffold: str) -> bool:
    """Whether a folder holds the result of such an episode; one that is damaged is played anew, not brought along."""
    try:
        result = load_result(there)
    except UserError:
        return False
    wanted = (job.task, job.seed, job.steps, scaffold)
    return result is not None and (result.task, result.seed, result.steps_limit, result.scaffold) == wanted


def _run_of(job: EpisodeJob) -> Run | None:
    for folder in job.folder.parents:
        if (folder / runs.RUN).is_file():
            return runs.load(str(folder))
    return None


def _copy(there: Path, here: Path) -> None:
    """A copy that is there whole or not at all. Nothing in a finished episode is written to again."""
    scratch = here.with_name(f".{here.name}.part-{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(there, scratch)
    (scratch / COPIED).write_text(f"{there}\n", encoding="utf-8")
    scratch.rename(here)
