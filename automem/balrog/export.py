"""A run, or a bench, as a folder of BALROG's results: what its summariser and its submission tools read.

```
<out>/                       of a bench: <out>/<label>/ for each of its agents
  README.md                  what this is, how fields were filled, what is missing
  automem.json               the same for programs; marks the folder as ours
  summary.json
  <env>/<env>_summary.json
  <env>/<task>/<task>_run_NN.json, .csv
```

NN is the number of the seed in the run's plan, from 00: an episode that is missing leaves its number free.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import games
from automem import runs
from automem.balrog import episode_log, scoring, summary
from automem.balrog.note import note
from automem.bench import storage
from automem.episode import STEPS, EpisodeJob, EpisodeResult
from automem.errors import UserError
from automem.runs import PlayedModel, Run
from automem.trace import EpisodeTrace

MARK = "automem.json"
"""Stands in every folder that was written here, so that nothing else is ever replaced."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An episode that is not among the results.

    Attributes:
        task, seed: which.
        why: for people.
    """

    task: str
    seed: int
    why: str


@dataclass(frozen=True)
class Submission:
    """What was written of one run.

    Attributes:
        folder: where.
        run: its name.
        episodes: how many are there.
        left_out: those that are not.
    """

    folder: Path
    run: str
    episodes: int
    left_out: tuple[LeftOut, ...]


@dataclass
class _Gathered:
    """Logs of what has been written, by environment, in the order of the plan."""

    logs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def episodes(self) -> int:
        return sum(len(found) for found in self.logs.values())


def export(name: str, out: Path | None = None, force: bool = False) -> list[Submission]:
    """Write a run's results, or those of every agent of a bench, whole or not at all.

    Args:
        name: of the run or bench, or its folder.
        out: the folder to write; by default ``balrog-<name>`` in the working folder.
        force: replace `out` where it is an earlier export.

    Raises `UserError` when there is no such run, `out` is taken, nothing can be exported, or the disk refuses.
    """
    found = _of_bench(name)
    chosen = found or [("", runs.load(name))]
    out = Path(f"balrog-{Path(name).absolute().name}"[:100]) if out is None else out
    aside = _writable(out, force)
    written = []
    try:
        with runs.born_whole(out, "export") as scratch:
            for label, run in chosen:
                done = _write(scratch / label if label else scratch, run)
                written.append(Submission(out / label, run.config.name, done.episodes, tuple(done.left_out)))
            if not any(one.episodes for one in written):
                raise UserError(f"{name}: {_nothing(written)}")
            if found:
                _json(scratch / MARK, {"format": 1, "bench": Path(name).name})
            if aside is not None:
                shutil.rmtree(aside, ignore_errors=True)
                out.rename(aside)
    except UserError:
        if aside is not None and not out.exists():
            aside.rename(out)
        raise
    if aside is not None:
        shutil.rmtree(aside, ignore_errors=True)
    return written


def _of_bench(name: str) -> list[tuple[str, Run]]:
    """Label and run of each agent of a bench that has begun; empty when it is no bench."""
    if not storage.is_bench(name):
        return []
    bench = storage.load(name)
    begun = ((agent.label, bench.run(agent.label)) for agent in bench.config.agents)
    return [(label, run) for label, run in begun if run is not None]


def agent_settings(run: Run) -> dict[str, Any]:
    """Who played, as BALROG's ``agent`` settings: the kind, and what it played by."""
    config = run.config
    by = {game: {"version": played.ref, "identity": played.identity} for game, played in config.scaffolds.items()}
    return {
        "type": config.agent,
        "framework": f"automem {config.versions.get('automem', '')}".strip(),
        **({"scaffolds": by} if by else {}),
        **({} if config.specialist is None else {"specialist": client_settings(config.specialist.model)}),
    }


def client_settings(model: PlayedModel) -> dict[str, Any]:
    """The model, as BALROG's ``client`` settings. Not the server's address: results get published."""
    provider, slash, model_id = model.name.partition("/")
    return {
        "client_name": provider if slash else "automem",
        "model_id": model_id if slash else provider,
        "generate_kwargs": {"temperature": model.temperature, "max_tokens": model.max_tokens or None},
    }


def _writable(out: Path, force: bool) -> Path | None:
    """Where what is there is put aside; None when nothing is. Raises `UserError` when it must stay."""
    if not out.exists() and not out.is_symlink():
        return None
    if not (out / MARK).is_file() or out.is_symlink():
        raise UserError(f"{out}: is there already and is no export of AutoMem; choose another --out")
    if not force:
        raise UserError(f"{out}: is there already; choose another --out, or add --force to replace this export")
    return out.with_name(f".{out.name}.replaced")


def _write(folder: Path, run: Run) -> _Gathered:
    """Everything of one run. The folder is made."""
    folder.mkdir(exist_ok=True)
    gathered = _Gathered()
    agent, client = agent_settings(run), client_settings(run.config.model)
    for number, job in _numbered(run):
        name = scoring.environment(job.task)
        try:
            if name is None:
                raise UserError(f"BALROG does not play {games.game_of(job.task)}")
            result, trace, value = _finished(run, job)
            place = folder / name / scoring.task_name(job.task)
            place.mkdir(parents=True, exist_ok=True)
            file = place / f"{scoring.task_name(job.task)}_run_{number:02d}"
            log = _episode(file, result, trace, value, agent, client)
        except UserError as error:
            gathered.left_out.append(LeftOut(job.task, job.seed, str(error)))
            continue
        gathered.logs.setdefault(name, []).append(log)
    for name, logs in gathered.logs.items():
        _json(folder / name / f"{name}_summary.json", summary.of_environment(logs))
    if gathered.logs:
        _json(folder / "summary.json", summary.of_folder(gathered.logs))
    left = [{"task": one.task, "seed": one.seed, "why": one.why} for one in gathered.left_out]
    _json(folder / MARK, {"format": 1, "run": run.config.name, "complete": not left, "left_out": left})
    (folder / "README.md").write_text(note(run, gathered.logs, left), encoding="utf-8")
    return gathered


def _numbered(run: Run) -> Iterator[tuple[int, EpisodeJob]]:
    """Every planned episode with its number among those of its task, task by task."""
    jobs = {(job.task, job.seed): job for job in run.jobs()}
    for planned in run.config.tasks:
        for number, seed in enumerate(planned.seeds):
            yield number, jobs[planned.task, seed]


def _finished(run: Run, job: EpisodeJob) -> tuple[EpisodeResult, EpisodeTrace, float]:
    """A finished episode, its whole trace, and BALROG's score. Raises `UserError` that says what is missing."""
    result = run.result(job)
    if result is None:
        raise UserError("not finished" if (job.folder / STEPS).exists() else "not begun")
    trace = EpisodeTrace(job.folder)
    if len(trace) != result.steps:
        raise UserError(f"its trace holds {len(trace)} of {result.steps} steps")
    value = scoring.progression(result, job.folder)
    if value is None:
        raise UserError("its last reward is not known, and BALROG's score depends on it")
    return result, trace, value


def _episode(
    file: Path,
    result: EpisodeResult,
    trace: EpisodeTrace,
    value: float,
    agent: dict[str, Any],
    client: dict[str, Any],
) -> dict[str, Any]:
    """Write an episode's two files. Returns its log. Where its trace cannot be read after all, neither is there."""
    table = file.with_name(f"{file.name}.csv")
    try:
        with table.open("w", newline="", encoding="utf-8") as rows:
            seen = episode_log.write_trajectory(rows, result, trace.steps())
    except UserError:
        table.unlink()
        raise
    log = episode_log.log(result, value, seen, agent, client)
    _json(file.with_name(f"{file.name}.json"), log)
    return log


def _nothing(written: Sequence[Submission]) -> str:
    """Why there is nothing to export."""
    left = [one for part in written for one in part.left_out]
    if not left:
        return "nothing to export"
    whys = {f"{one.task}, seed {one.seed}: {one.why}" for one in left}
    more = f", and {len(whys) - 3} more" if len(whys) > 3 else ""
    return f"nothing to export, no episode is finished ({'; '.join(sorted(whys)[:3])}{more})"


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=4), encoding="utf-8")
