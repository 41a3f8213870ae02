"""One pass over the traces of a run, from which all figures come."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from automem.duplicates import Duplicates
from automem.errors import UserError
from automem.metrics import SEARCHES, WRITES, Behaviour, Counts
from automem.records import Executed, StepRecord
from automem.scaffold import Scaffold
from automem.schema import MemoryFile
from automem.trace import EpisodeTrace, RunTrace
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.lines import Lines
from meta.reviewers.rules.thresholds import pattern, thresholds

_EVERY = 10
"""Observations that are read for what they speak of: one in so many."""

MOSTLY = 0.8
"""Share of these observations that must show what a field is about."""

_UNKNOWN = re.compile(r"ACTION (['\"])(.*)\1 is not an action of this game")
"""How the model is told of an action that the game does not have (`automem.agent`)."""


def measure(run: RunTrace, scaffold: Scaffold) -> Measured:
    """Figures of the episodes of this scaffold's game, at most as many as ``thresholds.toml`` says.

    Raises `UserError` when the run has no step that can be read.
    """
    limits = thresholds()["evidence"]
    pass_ = _Pass(scaffold, limits["steps"])
    for episode in _spread(run.episodes, limits["episodes"]):
        with contextlib.suppress(UserError):  # a damaged trace counts as far as it was read
            pass_.read(episode)
    if not pass_.counts.steps:
        raise UserError(f"run {run.run.config.name} has no step that can be read; play some episodes first")
    return pass_.figures()


def _spread(episodes: Sequence[EpisodeTrace], most: int) -> list[EpisodeTrace]:
    """So many of the episodes, some of each task."""
    by_task: dict[str, list[EpisodeTrace]] = {}
    for episode in episodes:
        by_task.setdefault(episode.task, []).append(episode)
    turns = max((len(found) for found in by_task.values()), default=0)
    return [found[i] for i in range(turns) for found in by_task.values() if i < len(found)][:most]


@dataclass
class _File:
    """Sums of one file, or of a family."""

    planned: MemoryFile | None
    lines: Lines
    writes: int = 0
    duplicates: int = 0
    added: int = 0
    reads: int = 0
    truncated: int = 0
    searches: int = 0
    empty: int = 0
    nothing: int = 0
    misses: Counter[str] = field(default_factory=Counter)
    read_steps: int = 0
    steps: int = 0
    asked: bool = False
    end_bytes: int = 0
    end_lines: int = 0


class _Pass:
    def __init__(self, scaffold: Scaffold, most_steps: int) -> None:
        self._scaffold = scaffold
        self._most = most_steps
        self._families = [(f, f.name.partition("{block}")) for f in scaffold.schema.files if f.block]
        self._planned = {f.name: f for f in scaffold.schema.files}
        self._files: dict[str, _File] = {name: self._new(file) for name, file in self._planned.items()}
        self._invalid: Counter[str] = Counter()
        self._meant: dict[str, Counter[str]] = {}
        self._shown: Counter[str] = Counter()
        self._actions: Counter[str] = Counter()
        self._looked = 0
        self._episodes = 0
        self._phases = {"log": [0, 0], "plan": [0, 0]}
        self._system = 0
        self._prompts = 0
        self._progression = 0.0
        self.counts = Counts()

    def read(self, episode: EpisodeTrace) -> None:
        """Add an episode."""
        behaviour, duplicates = Behaviour(), Duplicates()
        for file in self._files.values():
            file.lines.begin()
        before: StepRecord | None = None
        try:
            for record in episode.steps(0, self._most) if len(episode) else ():
                if before is not None:
                    behaviour.add(before, record.observation)
                before = record
                self._step(record, duplicates)
        finally:
            if before is not None:
                behaviour.add(before, "")
                for file in self._files.values():
                    file.steps += behaviour.counts.steps if file.asked else 0
                    file.asked = False
                self.counts = self.counts.merged(behaviour.counts)
                self._progression += before.progression
                self._episodes += 1
        with contextlib.suppress(UserError):
            for name, text in episode.memory(min(len(episode), self._most) - 1).items():
                file = self._file(name)
                file.end_bytes += len(text.encode())
                file.end_lines += text.count("\n")

    def _step(self, record: StepRecord, duplicates: Duplicates) -> None:
        self._system += len(record.system or "")
        if record.plan:
            first = record.plan[0].prompt
            self._prompts += len(first.before) + len(record.observation) + len(first.after)
        for phase, turns in (("log", record.log), ("plan", record.plan)):
            if turns:
                most = self._scaffold.schema.limits.log_turns if phase == "log" else self._limit_plan
                self._phases[phase][0] += 1
                self._phases[phase][1] += len(turns) >= most
        asked: set[str] = set()
        for turn in (*record.log, *record.plan):
            asked |= self._operations(turn.ops, record.step, duplicates)
        self._operations(record.maintained, record.step, duplicates)
        for name in asked:
            self._file(name).read_steps += 1
            self._file(name).asked = True
        if record.invalid:
            self._unknown_actions(record)
        self._actions[record.action] += 1
        if record.step % _EVERY == 0:
            self._look(record)

    def _unknown_actions(self, record: StepRecord) -> None:
        """Actions that the game does not have, and what was played once the model had been told."""
        for turn in record.plan:
            for found in filter(None, map(_UNKNOWN.match, turn.errors)):
                written = " ".join(found[2].lower().split())
                self._invalid[written] += 1
                if not record.fallback:
                    self._meant.setdefault(written, Counter())[record.action] += 1

    @property
    def _limit_plan(self) -> int:
        return self._scaffold.schema.limits.plan_turns

    def _look(self, record: StepRecord) -> None:
        """What the observation has that an entry could name."""
        self._looked += 1
        for name, told in thresholds()["fields"].items():
            shown = "observation" in told and pattern(told["observation"]).search(record.observation)
            reached = told.get("achievements") and record.achievements
            self._shown[name] += bool(shown or reached)

    def _operations(self, ops: Iterable[Executed], step: int, duplicates: Duplicates) -> set[str]:
        """Count them; the names of files that the model read or searched."""
        asked = set()
        for op in ops:
            if not op.ok or not op.file:
                continue
            file = self._file(op.file)
            file.added += op.added
            if op.by:
                if op.name in ("DELETE", "WRITE"):
                    duplicates.forget(op, step)
                continue
            file.truncated += op.truncated
            if op.name in WRITES:
                file.writes += 1
                file.duplicates += duplicates.seen(op, step)
                file.lines.add(op.args[-1], step, op.args[-2] if op.name.startswith("UPSERT") else "")
            elif op.name == "DELETE":
                duplicates.forget(op, step)
            elif op.name in ("READ", "TAIL"):
                file.reads += 1
                asked.add(op.file)
            elif op.name in SEARCHES or op.name == "COUNT":
                file.searches += 1
                asked.add(op.file)
                if op.found == 0 and op.name in SEARCHES:
                    file.empty += 1
                if op.found == 0:
                    file.nothing += 1
                    file.misses[op.args[-1][:60]] += 1
        return asked

    def _new(self, planned: MemoryFile | None) -> _File:
        return _File(planned, Lines(planned.entry if planned else ""))

    def _file(self, name: str) -> _File:
        """The sums of a file, or of its family."""
        for planned, (head, _, tail) in self._families:
            if name.startswith(head) and name.endswith(tail) and len(name) > len(head) + len(tail):
                name = planned.name
        if name not in self._files:
            self._files[name] = self._new(None)
        return self._files[name]

    def figures(self) -> Measured:
        """What it came to."""
        shows = {name: self._shows(name, told) for name, told in thresholds()["fields"].items()}
        logs, plans = self._phases["log"], self._phases["plan"]
        return Measured(
            game=self._scaffold.game,
            episodes=self._episodes,
            steps=self.counts.steps,
            counts=self.counts,
            progression=self._progression / self._episodes,
            files={name: self._figures(name, file) for name, file in self._files.items() if name != "*"},
            invalid=dict(self._invalid.most_common(50)),
            meant={raw: found.most_common(1)[0][0] for raw, found in self._meant.items()},
            full_log=logs[1] / max(1, logs[0]),
            full_plan=plans[1] / max(1, plans[0]),
            first_prompt=self._system / self._episodes + self._prompts / self.counts.steps,
            shows=shows,
        )

    def _shows(self, name: str, told: Mapping[str, Any]) -> bool:
        """Whether the game has what a field is about: in most observations, or once among actions or achievements."""
        if "action" in told:
            return any(pattern(told["action"]).search(action) for action in self._actions)
        return self._shown[name] >= (1 if "achievements" in told else MOSTLY * max(1, self._looked))

    def _figures(self, name: str, file: _File) -> FileFigures:
        lines = file.lines
        return FileFigures(
            name=name,
            planned=file.planned,
            writes=file.writes,
            duplicates=file.duplicates,
            added_bytes=file.added,
            lines=lines.lines,
            chars=lines.chars,
            repeated=lines.repeated_chars / max(1, lines.chars),
            placed=lines.share(lines.placed),
            with_key=lines.share(lines.with_key),
            by_place=lines.by_place / max(1, lines.with_key),
            same_key=lines.share(lines.same_key),
            topics={topic: lines.share(count) for topic, count in lines.topics.items()},
            reads=file.reads,
            truncated=file.truncated,
            searches=file.searches,
            empty=file.empty,
            nothing=file.nothing,
            misses=dict(file.misses.most_common(20)),
            read_steps=file.read_steps / max(1, file.steps),
            fields=lines.field_figures(),
            follows=lines.share(lines.followed),
            short_again=lines.short_again / lines.short if lines.short else None,
            end_bytes=file.end_bytes / self._episodes,
            end_lines=file.end_lines / self._episodes,
        )
