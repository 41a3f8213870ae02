"""Where two plays of an episode part: the first thing that differs, in the order in which a step happens.

    observation -> system message -> hooks.observe -> LOG: prompt, reply, operations, prompt, ...
                -> hooks.maintain -> PLAN: prompt, reply, operations, prompt, ...
                -> hooks.check_action -> action -> the game's answer

What differs first is the cause: all that it led to differs, too, and is not told. Tokens, latency and cost do not
decide anything, and neither do warnings and the words of an error inside a hook, which no model is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from automem import blocks
from automem.records import Executed, HookEvent, Phase, StepRecord, Turn, shown_results
from automem.vocabulary import OPERATIONS

Cause = Literal[
    "observation", "prompt", "reply", "hook", "parsing", "operation", "turns", "action", "outcome", "length"
]
"""What a play did otherwise than the other:

    observation   the game showed something else for the same actions
    prompt        the scaffold, its hooks or the agent made another message of the same observation and memory
    reply         the model answered the same messages otherwise
    hook          code of the scaffold answered otherwise
    parsing       other operations were read from the same reply, or something else was wrong with it
    operation     memory answered the same operation otherwise
    turns         a phase went on, or somebody else was asked, after the same replies
    action        another action was taken from the same replies
    outcome       the game answered the same action otherwise: reward, progress, end
    length        nothing differs, but one episode went on where the other had ended
"""

SEEN = ("repaired", "again")
"""Kinds of a `HookEvent` whose text is played or told to the model."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing that differs between two plays.

    Attributes:
        step: from 0.
        cause: see `Cause`.
        what: the thing, as people call it ("reply", "reward", "READ goals.txt").
        then, now: it, in the first play and in the second; whole texts.
        phase, turn: where in the step, if it was there; turns count from 0.
        specialist: it was the memory specialist's turn.
    """

    step: int
    cause: Cause
    what: str
    then: str
    now: str
    phase: Phase | None = None
    turn: int | None = None
    specialist: bool = False

    @property
    def at(self) -> int:
        """The first character that differs, from 0."""
        pairs = enumerate(zip(self.then, self.now, strict=False))
        return next((i for i, (a, b) in pairs if a != b), min(len(self.then), len(self.now)))


@dataclass(frozen=True, slots=True)
class Compared:
    """How far two traces were compared.

    Attributes:
        steps: how many steps are the same from the first on.
        difference: what differs in the step after them; None where nothing does.
        then_over, now_over: the trace has no step after them.
    """

    steps: int
    difference: Difference | None = None
    then_over: bool = True
    now_over: bool = True


def compare(then: Iterable[StepRecord], now: Iterable[StepRecord]) -> Compared:
    """Compare two traces step by step, as far as both go, up to the first difference. Reads no further than that."""
    steps, action = 0, None
    for a, b in zip_longest(then, now):
        if a is None or b is None:
            return Compared(steps, None, a is None, b is None)
        difference = of_step(a, b, action)
        if difference is not None:
            return Compared(steps, difference, False, False)
        steps, action = steps + 1, a.action
    return Compared(steps)


def of_step(then: StepRecord, now: StepRecord, last_action: str | None) -> Difference | None:
    """What differs first between two records of a step that everything before was the same for.

    Args:
        then, now: the records.
        last_action: of the step before; None at step 0.
    """
    return next(_differences(then, now, last_action), None)


def _differences(a: StepRecord, b: StepRecord, last_action: str | None) -> Iterator[Difference]:
    """All that differs, in the order in which it happened."""
    step = a.step
    if a.step != b.step:
        yield Difference(step, "length", "number of the step", str(a.step), str(b.step))
    if a.observation != b.observation:
        yield Difference(step, "observation", "observation", a.observation, b.observation)
    if a.system != b.system:
        yield Difference(step, "prompt", "system message", a.system or "", b.system or "")
    yield from _events(a, b, _is_observe)
    yield from _phase(a, b, "log", last_action)
    yield from _events(a, b, lambda event: event.method == "maintain")
    yield from _operations(step, a.maintained, b.maintained, None)
    yield from _phase(a, b, "plan", last_action)
    yield from _events(a, b, lambda event: True)
    yield from _outcome(a, b)


def _phase(a: StepRecord, b: StepRecord, phase: Phase, last_action: str | None) -> Iterator[Difference]:
    then, now = (a.log, b.log) if phase == "log" else (a.plan, b.plan)
    shown = blocks.observation(a.step, last_action, a.observation)
    for number, (x, y) in enumerate(zip(then, now, strict=False)):
        yield from _turn(a, b, x, y, shown, phase, number)
        shown = shown_results(x.ops)
    if len(then) != len(now):
        if phase == "plan":
            yield from _events(a, b, _is_check)
        said = (_ended(a, phase, len(then)), _ended(b, phase, len(now)))
        yield Difference(a.step, "turns", f"end of {phase.upper()}", *said, phase, min(len(then), len(now)))


def _turn(
    a: StepRecord, b: StepRecord, x: Turn, y: Turn, shown: str, phase: Phase, number: int
) -> Iterator[Difference]:
    where = (phase, number, x.specialist)
    if x.specialist != y.specialist:
        yield Difference(a.step, "turns", "who is asked", _answering(x), _answering(y), *where)
    # Agents without a memory folder send a conversation of their own with every call.
    for place, (p, q) in enumerate(zip_longest(x.context or (), y.context or ()), 1):
        if p != q:
            yield Difference(a.step, "prompt", f"message {place} before the last", _message(p), _message(q), *where)
    if x.prompt != y.prompt:
        then, now = x.prompt.text(shown), y.prompt.text(shown)
        if then != now:
            what = f"user message {number + 1}" if x.context is None else "last message"
            yield Difference(a.step, "prompt", what, then, now, *where)
    if x.text != y.text:
        yield Difference(a.step, "reply", "reply", x.text, y.text, *where)
    yield from _operations(a.step, x.ops, y.ops, where)
    if (x.errors, x.handed) != (y.errors, y.handed):
        if phase == "plan":
            yield from _events(a, b, _is_check)
        yield Difference(a.step, "parsing", "what was wrong with the reply", _told(x), _told(y), *where)


def _operations(
    step: int, then: Iterable[Executed], now: Iterable[Executed], where: tuple[Phase, int, bool] | None
) -> Iterator[Difference]:
    """Operations of a turn, or of `maintain` where there is no turn."""
    place = where or (None, None, False)
    for p, q in zip_longest(then, now):
        one = p or q
        assert one is not None
        asked = [_asked(op) for op in (p, q)]
        if asked[0] != asked[1]:
            by_hook = any(op is not None and op.by for op in (p, q))
            what = f"operation that {one.by} asked for" if by_hook else "operation"
            yield Difference(step, "hook" if by_hook else "parsing", what, _written(p), _written(q), *place)
        elif p is not None and q is not None:
            # What an operation that the scaffold adds answers is its hook's doing.
            own = not p.by and p.name not in OPERATIONS
            for name, x, y in zip(_ANSWER, _answer(p), _answer(q), strict=True):
                if x != y:
                    what = f"{p.label}: {name}"
                    yield Difference(step, "hook" if own else "operation", what, str(x), str(y), *place)


_ANSWER = ("result", "carried out", "lines found", "bytes added", "duplicate", "cut to the limit", "file", "label")


def _answer(op: Executed) -> tuple[Any, ...]:
    return (op.result, op.ok, op.found, op.added, op.duplicate, op.truncated, op.file, op.label)


def _asked(op: Executed | None) -> tuple[Any, ...]:
    return () if op is None else (op.name, op.args, op.span, op.by)


def _written(op: Executed | None) -> str:
    if op is None:
        return "none"
    return f"{op.name} {' | '.join(op.args)}" + ("" if op.by else f" (characters {op.span[0]} to {op.span[1]})")


def _answering(turn: Turn) -> str:
    return "the specialist" if turn.specialist else "the model"


def _message(message: Mapping[str, str] | None) -> str:
    return "none" if message is None else f"{message['role']}: {message['content']}"


def _told(turn: Turn) -> str:
    handed = [] if turn.handed is None else [f"{turn.handed} characters were handed to the model"]
    return "\n".join([*turn.errors, *handed]) or "nothing"


def _ended(record: StepRecord, phase: Phase, turns: int) -> str:
    """How many turns a phase had, and what is known of why they were no more."""
    why = [warning for warning in record.warnings if warning.startswith(f"{phase.upper()} ended")]
    return "; ".join([f"{turns} {'reply' if turns == 1 else 'replies'}", *why])


def _events(a: StepRecord, b: StepRecord, of: Callable[[HookEvent], bool]) -> Iterator[Difference]:
    """What hooks did beyond answering."""
    for x, y in zip_longest(filter(of, a.hooks), filter(of, b.hooks)):
        if _seen(x) != _seen(y):
            one = x or y
            assert one is not None
            yield Difference(a.step, "hook", one.method, _event(x), _event(y))


def _is_observe(event: HookEvent) -> bool:
    return event.method not in ("maintain", "check_action") and not event.method.startswith("op_")


def _is_check(event: HookEvent) -> bool:
    return event.method == "check_action"


def _seen(event: HookEvent | None) -> tuple[str, ...]:
    if event is None:
        return ()
    # The words of an error may hold an address or a time; that there was one decides.
    return (event.method, event.kind, event.text if event.kind in SEEN else "")


def _event(event: HookEvent | None) -> str:
    return "nothing noted" if event is None else f"{event.kind}: {event.text}"


def _outcome(a: StepRecord, b: StepRecord) -> Iterator[Difference]:
    """The action, and what the game made of it."""
    then, now = _committed(a), _committed(b)
    if then != now:
        yield Difference(a.step, "action", "action", then, now)
    for name in ("reward", "progression", "achievements", "terminated", "truncated"):
        x, y = getattr(a, name), getattr(b, name)
        if x != y:
            if name == "achievements":
                x, y = only_differing(x, y)
            yield Difference(a.step, "outcome", name, str(x), str(y))


def _committed(record: StepRecord) -> str:
    notes = [f"written: {record.raw_action}"] if record.raw_action is not None else []
    notes += [f"{record.invalid} of other names"] if record.invalid else []
    notes += ["the default, as none was committed"] if record.fallback else []
    return f"{record.action} ({', '.join(notes)})" if notes else record.action


def only_differing(then: Any, now: Any) -> tuple[dict, dict]:
    """Of two mappings, the entries that differ."""
    names = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    a, b = ({name: found[name] for name in names if name in found} for found in (then, now))
    return a, b
