"""Finding words in traces."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
import regex as regular  # type: ignore[import-untyped]

from automem.errors import UserError
from automem.records import Executed, StepRecord, Turn, from_json

if TYPE_CHECKING:
    from automem.trace.episode import EpisodeTrace

EVERYWHERE = ("observation", "prompt", "reply", "operation", "result", "error", "action", "hook")
"""Where can be searched:

- observation: what the game showed;
- prompt: what else stood in the prompt: instructions, memory listing, pinned files, texts of hooks, and at
  step 0 the system message. The observation and the results of operations stand in prompts, too, and are
  found only once, where they come from;
- reply: what the model wrote;
- operation, result: operations that were run, and what they answered;
- error: lines that told the model what was not run;
- action: the action as it was written and as it was played;
- hook: what hooks did beyond answering, and what a person was warned of.
"""

EXCERPT = 160
"""Characters of an excerpt, about."""

LONGEST = 1000
"""Characters of a pattern."""

SECONDS = 60.0
"""How long a search may take."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A text that matches.

    Attributes:
        task, seed: the episode.
        step: from 0.
        phase: "log" or "plan"; "maintain" for operations of that hook; empty for what belongs to the whole step.
        turn: turn of the phase, from 0; None outside of turns.
        where: what kind of text it is, one of `EVERYWHERE`.
        excerpt: what is around its first match, line breaks as they are.
        start, end: where in the excerpt the match is.
    """

    task: str
    seed: int
    step: int
    phase: str
    turn: int | None
    where: str
    excerpt: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        hits: in the order of episodes and steps, one for each text that matches.
        more: it stopped at the limit, and there may be more.
        damage: traces that could not be searched to their end, in words.
    """

    hits: tuple[Hit, ...]
    more: bool
    damage: tuple[str, ...]


Match = Callable[[str], tuple[int, int] | None]


def search(
    episodes: Iterable[EpisodeTrace],
    pattern: str,
    *,
    regex: bool = False,
    where: Sequence[str] = EVERYWHERE,
    limit: int = 50,
    seconds: float = SECONDS,
) -> Found:
    """Texts of episodes that contain a pattern.

    Args:
        episodes: where to look.
        pattern: a text, upper or lower case alike; with `regex` a regular expression as Python's `re` takes it.
        where: kinds of text, of `EVERYWHERE`.
        limit: hits at most.
        seconds: how long to look at most.

    Raises `UserError` for a pattern or a kind that is none, and when the time is over.
    """
    unknown = [kind for kind in where if kind not in EVERYWHERE]
    if unknown:
        raise UserError(f"{unknown[0]!r} cannot be searched; choose from {', '.join(EVERYWHERE)}")
    if not pattern or len(pattern) > LONGEST:
        raise UserError(f"the pattern has {len(pattern)} characters; it needs 1 to {LONGEST}")
    if limit < 1:
        raise UserError(f"a limit of {limit}: ask for at least one hit")
    until = time.monotonic() + seconds
    match = _expression(pattern, until, seconds) if regex else _text(pattern)
    needles = () if regex else _needles(pattern)
    kinds = frozenset(where)
    hits: list[Hit] = []
    damage: list[str] = []
    for episode in episodes:
        for line in episode.lines():
            if time.monotonic() > until:
                raise _over(seconds)
            if not all(map(line.decode("utf-8", "replace").lower().__contains__, needles)):
                continue
            for hit in _hits(episode, from_json(orjson.loads(line)), kinds, match):
                if len(hits) == limit:
                    return Found(tuple(hits), True, tuple(damage))
                hits.append(hit)
        if episode.damage is not None:
            damage.append(str(episode.damage))
    return Found(tuple(hits), False, tuple(damage))


def _over(seconds: float) -> UserError:
    return UserError(f"the search was stopped after {seconds:g} s; look in fewer episodes, or for something simpler")


def _needles(pattern: str) -> tuple[str, ...]:
    """What a line of JSON must contain so that one of its texts can contain the pattern."""
    return tuple(orjson.dumps(word).decode()[1:-1] for word in pattern.lower().replace("|", " ").split())


def _text(pattern: str) -> Match:
    wanted = pattern.lower()

    def match(text: str) -> tuple[int, int] | None:
        at = text.lower().find(wanted)
        return None if at < 0 else (at, at + len(pattern))

    return match


def _expression(pattern: str, until: float, seconds: float) -> Match:
    try:
        compiled = regular.compile(pattern)
    except (regular.error, RecursionError, OverflowError) as error:
        raise UserError(f"not a regular expression: {error}") from error

    def match(text: str) -> tuple[int, int] | None:
        try:
            # A pattern that takes forever on one text must not hold up the caller.
            found = compiled.search(text, timeout=max(0.001, until - time.monotonic()))
        except TimeoutError as error:
            raise _over(seconds) from error
        return None if found is None else found.span()

    return match


def _hits(episode: EpisodeTrace, record: StepRecord, kinds: frozenset[str], match: Match) -> Iterator[Hit]:
    for phase, turn, where, text in _texts(record):
        if where in kinds and (span := match(text)) is not None:
            start = max(0, span[0] - EXCERPT // 3)
            excerpt = text[start : max(start + EXCERPT, min(span[1], start + 2 * EXCERPT))]
            yield Hit(
                episode.task, episode.seed, record.step, phase, turn, where, excerpt,
                span[0] - start, min(span[1] - start, len(excerpt)),
            )  # fmt: skip


def _texts(record: StepRecord) -> Iterator[tuple[str, int | None, str, str]]:
    """Phase, turn, kind and text of everything that can be searched in a step, in the order in which it happened."""
    if record.system is not None:
        yield "", None, "prompt", record.system
    yield "", None, "observation", record.observation
    for number, turn in enumerate(record.log):
        yield from _turn("log", number, turn)
    yield from _operations("maintain", None, record.maintained)
    for number, turn in enumerate(record.plan):
        yield from _turn("plan", number, turn)
    if record.raw_action is not None and record.raw_action != record.action:
        yield "plan", None, "action", record.raw_action
    yield "", None, "action", record.action
    for event in record.hooks:
        yield "", None, "hook", f"{event.method} {event.kind} {event.text}"
    for warning in record.warnings:
        yield "", None, "hook", warning


def _turn(phase: str, number: int, turn: Turn) -> Iterator[tuple[str, int | None, str, str]]:
    for text in (turn.prompt.before, turn.prompt.after):
        if text:
            yield phase, number, "prompt", text
    yield phase, number, "reply", turn.text
    yield from _operations(phase, number, turn.ops)
    for error in turn.errors:
        yield phase, number, "error", error


def _operations(phase: str, turn: int | None, ops: Iterable[Executed]) -> Iterator[tuple[str, int | None, str, str]]:
    for op in ops:
        yield phase, turn, "operation", f"{op.name} {' | '.join(op.args)}"
        yield phase, turn, "result", op.result
