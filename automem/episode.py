"""One episode from reset to end, written down step by step, resumable at any of them."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

import orjson

from automem import trace
from automem.agent import Decision, Listener, Specialist
from automem.agents import registry as agents
from automem.agents.protocol import Player
from automem.errors import UserError
from automem.game_pool import GamePool, RemoteGame
from automem.memory import Memory
from automem.metrics import Counts, counts_from
from automem.models.protocol import Model
from automem.records import Executed, StepRecord
from automem.sandbox import Sandbox
from automem.scaffold import Scaffold
from automem.trace.tally import Tally
from games.protocol import Observation, Progress, Transition

STEPS = "steps.jsonl.zst"
RESULT = "episode.json"
MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class EpisodeJob:
    """Everything that an executor needs to play one episode, wherever it plays it.

    Attributes:
        folder: where the episode is written.
        task: canonical name.
        seed: the game's seed.
        steps: step limit.
        scaffold: folder of the scaffold, a copy that belongs to the run; None for agents that play without one.
        agent: who plays, one of `automem.agents.registry.names`.
    """

    folder: Path
    task: str
    seed: int
    steps: int
    scaffold: Path | None
    agent: str = agents.MEMORY


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """A finished episode (``episode.json``).

    Attributes:
        task, seed, steps_limit: what was asked for.
        steps: actions played.
        progression: BALROG's score, in [0, 1].
        achievements: what was reached, with counts.
        reached_at: achievement -> step whose action reached it.
        episode_return: sum of the simulator's rewards.
        terminated, truncated: how it ended: the game's own end, or a limit.
        facts: labels that results must carry (``levels``: official or generated).
        scaffold: SHA-256 identity of the scaffold that was loaded and played; empty for agents without one.
        model: the task model.
        counts: behaviour.
        specialist: the memory specialist that did the memory work, if one did.
        final_observation: the text after the last action.
        final_long_term: how many characters of it are its long-term part; None in older results.
        last_reward: of the last action; None in older results, and where none was played.
        agent: who played.
    """

    task: str
    seed: int
    steps_limit: int
    steps: int
    progression: float
    achievements: Mapping[str, int]
    reached_at: Mapping[str, int]
    episode_return: float
    terminated: bool
    truncated: bool
    facts: Mapping[str, str]
    scaffold: str
    model: str
    counts: Counts
    final_observation: str
    specialist: str = ""
    final_long_term: int | None = None
    last_reward: float | None = None
    agent: str = agents.MEMORY


class EpisodeError(UserError):
    """One episode's stored files cannot be gone on with; others can."""


class EpisodeListener(Listener, Protocol):
    """Somebody who watches episodes being played."""

    async def stepped(self, job: EpisodeJob, game: RemoteGame, memory: Memory, record: StepRecord) -> None:
        """A step is over and written down."""
        ...


def load_result(folder: Path) -> EpisodeResult | None:
    """The result of a finished episode, or None. Raises `EpisodeError` when the file is damaged."""
    path = folder / RESULT
    try:
        data = orjson.loads(path.read_bytes())
        result = EpisodeResult(**{**data, "counts": counts_from(data["counts"])})
        _check(result)
        return result
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise EpisodeError(f"{path}: not a finished episode ({error}); remove the file and resume the run") from error


def _check(result: EpisodeResult) -> None:
    """Raise ValueError where a field is not what everybody who counts with it takes it for."""
    counts = vars(result.counts)
    whole = {name: getattr(result, name) for name in ("seed", "steps_limit", "steps")}
    numbers = {"progression": result.progression, "episode_return": result.episode_return}
    numbers |= {name: value for name, value in counts.items() if name != "operations"}
    if result.last_reward is not None:
        numbers["last_reward"] = result.last_reward
    tables = {name: getattr(result, name) for name in ("achievements", "reached_at", "facts")}
    tables["operations"] = counts["operations"]
    wrong = [name for name, value in whole.items() if not isinstance(value, int)]
    wrong += [name for name, value in numbers.items() if not isinstance(value, int | float) or not math.isfinite(value)]
    wrong += [name for name, value in tables.items() if not isinstance(value, dict)]
    if not wrong:
        wrong += [f"operations, {name}" for name, times in tables["operations"].items() if not isinstance(times, int)]
    if wrong:
        raise ValueError(f"a value of another kind in {', '.join(wrong)}")
    if not 0.0 <= result.progression <= 1.0:
        raise ValueError(f"progression {result.progression} is not between 0 and 1")


async def play(
    job: EpisodeJob,
    scaffold: Scaffold | None,
    model: Model,
    pool: GamePool,
    listener: EpisodeListener | None = None,
    sandbox: Sandbox | None = None,
    specialist: Specialist | None = None,
) -> EpisodeResult:
    """Play an episode to its end, going on from what its folder already holds.

    Raises `automem.models.protocol.ModelError`, `automem.game_pool.GameFailed`,
    `automem.agents.protocol.AgentFailed`, `EpisodeError` or another `UserError`; what was played until then stays, and
    calling this again goes on from there.
    """
    finished = load_result(job.folder)
    if finished is not None:
        check_belongs(
            job, finished, _identity(scaffold), model.name, "" if specialist is None else specialist.model.name
        )
        return finished
    try:
        job.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{job.folder}: cannot be made: {error.strerror}") from error
    records = _recorded(job.folder / STEPS)
    async with pool.game(job.task, job.seed, max_steps=job.steps) as game:
        observation, progress = await game.open()
        state = _Now(observation, progress)
        tally = Tally()
        player = agents.seated(job.agent, game, job.seed, model, scaffold, sandbox, listener, specialist)
        writer = None
        try:
            for record in records:
                await _replay(job, player, game, state, record)
                tally.add(record, state.observation.text)
            # Only now, when all that is stored has proved right, is the folder on disk made anew.
            player.memory.lay_down(job.folder / MEMORY, replace=True)
            writer = trace.TraceWriter(job.folder / STEPS, player.memory, _identity(scaffold), tally)
            while not state.over and player.step < job.steps:
                record = await _step(player, game, state)
                writer.append(record)
                tally.add(record, state.observation.text)
                if listener is not None:
                    await listener.stepped(job, game, player.memory, record)
        finally:
            if writer is not None:
                writer.close()
            await player.close()
    result = _result(job, scaffold, model, specialist, state, tally)
    write_json(job.folder / RESULT, {**asdict(result), "counts": result.counts.as_dict()})
    return result


def _identity(scaffold: Scaffold | None) -> str:
    return "" if scaffold is None else scaffold.identity


async def _step(player: Player, game: RemoteGame, state: _Now) -> StepRecord:
    """Decide, play, and say what happened."""
    step, seen = player.step, state.observation
    decision = await player.decide(seen)
    transition = await game.step(decision.action)
    state.move(transition)
    return _record(step, seen, decision, transition, player.system if step == 0 else None)


def _result(
    job: EpisodeJob,
    scaffold: Scaffold | None,
    model: Model,
    specialist: Specialist | None,
    state: _Now,
    tally: Tally,
) -> EpisodeResult:
    return EpisodeResult(
        task=job.task,
        seed=job.seed,
        steps_limit=job.steps,
        steps=tally.behaviour.counts.steps,
        progression=state.progress.progression,
        achievements=dict(state.progress.achievements),
        reached_at=tally.reached_at,
        episode_return=tally.reward,
        terminated=state.terminated,
        truncated=not state.terminated,
        facts=dict(state.progress.facts),
        scaffold=_identity(scaffold),
        model=model.name,
        counts=tally.behaviour.counts,
        final_observation=state.observation.text,
        specialist="" if specialist is None else specialist.model.name,
        final_long_term=state.observation.long_term_length,
        last_reward=state.reward,
        agent=job.agent,
    )


def check_belongs(job: EpisodeJob, result: EpisodeResult, scaffold: str, model: str, specialist: str) -> None:
    """A result that was copied here from another run must not be counted as this episode's. Raises `EpisodeError`.

    Args:
        job: the episode.
        result: what its folder holds.
        scaffold: identity of what it plays by; empty for none.
        model, specialist: names of who plays; empty for none.
    """
    found = (result.task, result.seed, result.steps_limit, result.scaffold, result.model, result.specialist)
    expected = (job.task, job.seed, job.steps, scaffold, model, specialist)
    if (*found, result.agent) != (*expected, job.agent):
        raise EpisodeError(
            f"{job.folder / RESULT}: is the result of another episode ({found[0]}, seed {found[1]}, at most {found[2]} "
            f"steps, agent {result.agent}, scaffold {found[3][:12] or 'none'}, "
            f"model {' with '.join(filter(None, found[4:]))}); remove it and resume the run"
        )


@dataclass
class _Now:
    """Where the game stands."""

    observation: Observation
    progress: Progress
    terminated: bool = False
    truncated: bool = False
    reward: float | None = None

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated

    def move(self, transition: Transition) -> None:
        self.observation = transition.observation
        self.progress = transition.progress
        self.terminated, self.truncated = transition.terminated, transition.truncated
        self.reward = float(transition.reward)


def _recorded(path: Path) -> list[StepRecord]:
    """The steps that were played before. What is torn off at the end is dropped; what is damaged is kept aside."""
    if not path.exists():
        return []
    records, damage = trace.read(path)
    if damage is not None:
        try:
            if not damage.torn:
                number = sum(1 for _ in path.parent.glob(f"{path.name}.damaged-*"))
                shutil.copyfile(path, path.with_name(f"{path.name}.damaged-{number}"))
            trace.truncate(path, damage)
        except OSError as error:
            raise UserError(f"{path}: cannot be mended: {error.strerror}") from error
    return records


async def _replay(job: EpisodeJob, player: Player, game: RemoteGame, state: _Now, record: StepRecord) -> None:
    """Let a recorded step happen again. Raises `EpisodeError` if game or memory go elsewhere than then."""
    where = f"{job.folder / STEPS}: step {record.step}"
    if record.step != player.step or record.observation != state.observation.text:
        raise EpisodeError(
            f"{where} does not match the game that is installed here. The run was made with other versions of the "
            "games; start a new run"
        )
    again = await player.decide(state.observation, record)
    for then, now in zip_longest(_operations(record), _operations(again)):
        if then is None or now is None or then.result != now.result:
            raise EpisodeError(
                f"{where}: {(then or now).label} answers differently now. The run was made with another version of "
                "AutoMem; start a new run"
            )
    if again.action != record.action:
        raise EpisodeError(
            f"{where}: {record.action} was played then, and would be {again.action} now. The run was made with another "
            "version of AutoMem; start a new run"
        )
    state.move(await game.step(record.action))


def _operations(step: StepRecord | Decision) -> list[Executed]:
    return [*(op for turn in (*step.log, *step.plan) for op in turn.ops), *step.maintained]


def _record(step: int, seen: Observation, decision: Decision, transition: Transition, system: str | None) -> StepRecord:
    return StepRecord(
        step=step,
        observation=seen.text,
        log=decision.log,
        plan=decision.plan,
        raw_action=decision.raw_action,
        action=decision.action,
        invalid=decision.invalid,
        fallback=decision.fallback,
        reward=float(transition.reward),
        progression=transition.progress.progression,
        achievements=dict(transition.progress.achievements),
        terminated=transition.terminated,
        truncated=transition.truncated,
        warnings=decision.warnings,
        system=system,
        maintained=decision.maintained,
        hooks=decision.hooks,
        long_term=seen.long_term_length,
    )


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file so that it is either there and whole, or not there. Raises `UserError`."""
    scratch = path.with_name(f".{path.name}.part")
    try:
        with scratch.open("wb") as file:
            file.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY))
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        raise UserError(f"{path}: {error.strerror}; free some space and resume the run") from error
