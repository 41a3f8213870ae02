"""What the record of an episode says about a scaffold: its hooks, the two invariants, and what prompts cost."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from automem import ops
from automem.check.folder import HOOKS, PROMPTS
from automem.check.messages import TAG
from automem.check.report import Finding, error, warning
from automem.hooks.syntax import NotPython, parse
from automem.memory import Memory
from automem.memory.files import clean
from automem.metrics import WRITES
from automem.records import Executed, HookEvent, StepRecord, Turn, messages
from automem.scaffold import Scaffold
from automem.trace.folder import fresh
from automem.vocabulary import Op

PROMPT_CHARS = 32_000
"""Characters of all messages of one call, some 8,000 tokens, beyond which a long game becomes dear."""

MANY, MOST = 0.2, 0.5
"""Shares of the model's decisions beyond which hooks that replace them are told of, and are refused."""

_LINE = re.compile(r"hooks\.py:(\d+)")
_TEMPLATE = re.compile(r"(?:^|\s)([^:\s]+):(\d+): (.*)", re.DOTALL)
"""Where a warning about a template names it."""

_NOT_PLAYED_YET = "was not played yet"


@dataclass(frozen=True)
class Played:
    """An episode that was played.

    Attributes:
        records: its steps.
        memories: the memory folder after each of them, name -> text.
        actions: what the game can take.
    """

    records: tuple[StepRecord, ...]
    memories: tuple[Mapping[str, str], ...]
    actions: frozenset[str]


def summary(played: Played) -> dict[str, float]:
    """What happened, in numbers."""
    records = played.records
    events = [event for record in records for event in record.hooks]
    done = [op for record in records for op in _operations(record)]
    return {
        "steps": len(records),
        "turns": sum(len(record.log) + len(record.plan) for record in records),
        "operations": sum(not op.by for op in done),
        "refused": sum(not op.ok for op in done),
        "hook_operations": sum(bool(op.by) for op in done),
        "hook_failures": len(failures(played)),
        "repaired": sum(event.kind == "repaired" for event in events),
        "again": sum(event.kind == "again" for event in events),
        "fallbacks": sum(record.fallback for record in records),
        "largest_prompt": max((size for _, size in _prompt_sizes(records)), default=0),
        "memory_bytes": sum(len(text.encode()) for text in played.memories[-1].values()) if played.memories else 0,
    }


def findings_in(played: Played, loaded: Scaffold) -> Iterator[Finding]:
    """Everything that an episode shows to be wrong."""
    lines = _method_lines(loaded.hooks.text if loaded.hooks is not None else "")
    yield from _failures(played, lines)
    yield from _replaced_actions(played, loaded, lines)
    yield from _order(played, loaded)
    yield from _asked_in_plan(played)
    yield from _undone_writes(played, loaded, lines)
    yield from _refusals(played, lines)
    yield from _trouble(played, loaded)
    yield from _size(played)


def first_difference(first: Played, second: Played) -> str | None:
    """Where two episodes part, in a few words; None when they are the same."""
    for one, other in zip(first.records, second.records, strict=False):
        if one == other or _timeless(one) == _timeless(other):
            continue
        where = f"step {one.step}"
        for name, get in _PARTS:
            if get(one) != get(other):
                return f"{where}, {name}: {_parting(str(get(one)), str(get(other)))}"
        return where
    for step, (memory, again) in enumerate(zip(first.memories, second.memories, strict=False)):
        if memory != again:
            return f"step {step}, memory"
    return None if len(first.records) == len(second.records) else "one of them ended earlier"


_PARTS: tuple[tuple[str, Callable[[StepRecord], object]], ...] = (
    ("system message", lambda record: record.system),
    ("prompt of LOG", lambda record: [(turn.prompt.before, turn.prompt.after) for turn in record.log]),
    ("operations in LOG", lambda record: [(op.label, op.result) for turn in record.log for op in turn.ops]),
    ("operations of maintain", lambda record: [(op.label, op.result) for op in record.maintained]),
    ("prompt of PLAN", lambda record: [(turn.prompt.before, turn.prompt.after) for turn in record.plan]),
    ("operations in PLAN", lambda record: [(op.label, op.result) for turn in record.plan for op in turn.ops]),
    ("what hooks did", lambda record: [(event.method, event.kind, event.text) for event in record.hooks]),
    ("action", lambda record: record.action),
)


def _timeless(record: StepRecord) -> StepRecord:
    log, plan = (tuple(replace(turn, seconds=0.0) for turn in turns) for turns in (record.log, record.plan))
    return replace(record, log=log, plan=plan)


def _parting(one: str, other: str) -> str:
    """Two texts around the place where they part."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, at - 30)
    return f"{one[start : at + 30]!r}, then {other[start : at + 30]!r}"


def _operations(record: StepRecord) -> list[Executed]:
    return [*(op for turn in (*record.log, *record.plan) for op in turn.ops), *record.maintained]


def _method_lines(text: str) -> Mapping[str, int]:
    """Method of class ``Hooks`` -> its line."""
    try:
        tree = parse(text)
    except NotPython:
        return {}
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Hooks"]
    return {node.name: node.lineno for c in classes[-1:] for node in c.body if isinstance(node, ast.FunctionDef)}


def failures(played: Played) -> list[tuple[int, HookEvent]]:
    """Calls of hooks that gave nothing, with their steps."""
    events = [(record.step, event) for record in played.records for event in record.hooks]
    return [(step, event) for step, event in events if event.kind in ("error", "lost", "off")]


def _failures(played: Played, lines: Mapping[str, int]) -> Iterator[Finding]:
    """Calls of hooks that gave nothing, once each: at which steps, and why."""
    same: dict[tuple[str, str, str], list[int]] = {}
    first: dict[tuple[str, str, str], HookEvent] = {}
    for step, event in failures(played):
        key = (event.method, str(event.kind), re.sub(r"\d+", "0", event.text))
        same.setdefault(key, []).append(step)
        first.setdefault(key, event)
    for key, steps in same.items():
        event = first[key]
        place = _LINE.search(event.text)
        line = int(place[1]) if place else lines.get(event.method)
        often = f"step {steps[0]}" if len(steps) == 1 else f"step {steps[0]} and {len(steps) - 1} more times"
        message = f"{event.method}, {often}: {event.text}"
        do = "mend it; a call that fails counts as no answer"
        if event.kind == "lost":
            do = "mend it; with the process, the state of the object is lost"
        elif event.kind == "off":
            do = "mend what ended the process"
        yield error(HOOKS, line, f"hook-{event.kind}", message, do)


def _replaced_actions(played: Played, loaded: Scaffold, lines: Mapping[str, int]) -> Iterator[Finding]:
    """The model decides: its valid actions are played, as a rule."""
    enabled = frozenset(loaded.schema.ops.names)
    valid = replaced = doubted = 0
    for record in played.records:
        written = next((a for turn in record.plan if (a := ops.parse(turn.text, "plan", enabled).action)), None)
        if written not in played.actions:
            continue
        valid += 1
        if record.action != written:
            replaced += 1
        elif any(event.kind == "again" for event in record.hooks):
            doubted += 1
    line = lines.get("check_action")
    if valid and replaced > MOST * valid:
        message = f"{replaced} of {valid} valid actions of the model were replaced: it does not decide any more"
        do = "let check_action return None for an action that the game has, unless it is certain to fail"
        yield error(HOOKS, line, "actions-replaced", message, do)
    elif valid and replaced + doubted > MANY * valid:
        message = f"of {valid} valid actions of the model, {replaced} were replaced and {doubted} doubted"
        yield warning(HOOKS, line, "actions-replaced", message, "step in only where an action is certain to fail")


def _order(played: Played, loaded: Scaffold) -> Iterator[Finding]:
    """Outcome before record: what an action did is written only once the next observation has shown it.

    Memory is built again from what LOG and `maintain` wrote; whatever else stands there came at another time.
    """
    shadow = fresh(loaded)
    for record, memory in zip(played.records, played.memories, strict=True):
        if record.step == 0 and record.log:
            yield error("", None, "write-before-outcome", "there was a LOG at step 0", "an action comes first")
        for op in (*(op for turn in record.log for op in turn.ops), *record.maintained):
            _again(shadow, op)
        if shadow.snapshot() != memory:
            message = f"at step {record.step} memory was changed outside LOG and maintain"
            yield error("", None, "write-before-outcome", message, "write in LOG or in maintain")
            return


def _asked_in_plan(played: Played) -> Iterator[Finding]:
    """What hooks and pinned files say in PLAN; what templates say was read before (`automem.check.messages`)."""
    told = set()
    for record in played.records:
        for turn in record.plan:
            for name in TAG.findall(f"{turn.prompt.before}\n{turn.prompt.after}"):
                if name in told or name not in ops.OPERATIONS or ops.OPERATIONS[name].effect != "write":
                    continue
                told.add(name)
                message = f"at step {record.step} a message of PLAN tells of <|{name}|>; nothing is written there"
                do = f"look at texts of hooks and pinned files: say it in LOG, or speak of {name} without its bars"
                yield warning("", None, "write-in-plan", message, do)


def undone_writes(records: Iterable[StepRecord], loaded: Scaffold) -> tuple[int, int]:
    """Entries that the model wrote, and how many of them `maintain` removed in the same step.

    Args:
        records: of an episode, from its first step on.
        loaded: the scaffold that was played.
    """
    shadow = fresh(loaded)
    written = undone = 0
    for record in records:
        own = [op for turn in record.log for op in turn.ops]
        for op in own:
            _again(shadow, op)
        before = shadow.snapshot() if record.maintained else {}
        for op in record.maintained:
            _again(shadow, op)
        after = shadow.snapshot() if record.maintained else {}
        for op in own:
            if op.ok and not op.by and op.name in WRITES:
                written += 1
                undone += bool(record.maintained) and _holds(before, op) and not _holds(after, op)
    return written, undone


def _undone_writes(played: Played, loaded: Scaffold, lines: Mapping[str, int]) -> Iterator[Finding]:
    """The model decides: what it has just written stays, as a rule, when `maintain` has run."""
    written, undone = undone_writes(played.records, loaded)
    line = lines.get("maintain")
    message = f"maintain removed {undone} of the {written} entries that the model had written in the same step"
    do = "let it keep what is newest, or write to files of its own"
    if undone > MOST * written:
        yield error(HOOKS, line, "writes-undone", message, do)
    elif undone > MANY * written:
        yield warning(HOOKS, line, "writes-undone", message, do)


def _again(memory: Memory, op: Executed) -> None:
    if op.ok and op.name in ops.OPERATIONS:
        memory.run(Op(op.name, op.args))


def _holds(memory: Mapping[str, str], op: Executed) -> bool:
    """Whether what an operation wrote stands in memory: its lines in its file, or its value in some map."""
    value = clean(op.args[-1])
    if op.name in ("UPSERT", "UPSERT_MAP"):
        value = value.replace("\n", " ").strip()
        texts = memory.values() if op.name == "UPSERT_MAP" else [memory.get(op.args[0], "")]
        return any(line.endswith(f": {value}") for text in texts for line in text.split("\n"))
    held = set(memory.get(op.args[0], "").split("\n"))
    return all(line in held for line in value.split("\n") if line.strip())


def _refusals(played: Played, lines: Mapping[str, int]) -> Iterator[Finding]:
    """Operations that the memory folder refused: those of hooks, and those of the model."""
    refused: dict[str, list[tuple[int, Executed]]] = {}
    for record in played.records:
        for op in _operations(record):
            if not op.ok:
                refused.setdefault(op.by, []).append((record.step, op))
    for by, cases in refused.items():
        step, op = cases[0]
        told = f"step {step}, {op.label}: {op.result}"
        often = "" if len(cases) == 1 else f" ({len(cases)} times in all)"
        if by:
            message = f"{by} asked for an operation that was refused{often}: {told}"
            yield error(HOOKS, lines.get(by), "hook-refused", message, "ask for what the folder can do")
        else:
            message = f"an operation of the scripted player was refused{often}: {told}"
            do = "see whether kinds, keys and enabled operations fit each other"
            yield warning("", None, "refused", message, do)


def _trouble(played: Played, loaded: Scaffold) -> Iterator[Finding]:
    """What else went wrong: warnings, replies that were not understood, actions that never came."""
    warned = dict.fromkeys(text for record in played.records for text in record.warnings)
    for text in warned:
        failed = _TEMPLATE.search(text)
        if failed is not None and f"{PROMPTS}{failed[1]}" in loaded.sources:
            do = "mend it: a plain text is used where a template fails"
            yield error(f"{PROMPTS}{failed[1]}", int(failed[2]), "template-failed", failed[3], do)
            continue
        yield warning("", None, "step-warning", text, "see that it does not happen at every step")
    turns = [turn for record in played.records for turn in (*record.log, *record.plan)]
    told = [text for turn in turns for text in _told(turn)]
    if len(told) > MANY * len(turns):
        message = f"{len(told)} things that the scripted player wrote were not run, for instance: {told[0]}"
        yield warning("", None, "not-run", message, "see whether the prompt names operations that cannot be run")
    fallbacks = sum(record.fallback for record in played.records)
    if fallbacks:
        message = f"at {fallbacks} of {len(played.records)} steps no action was committed and the default was played"
        do = "see whether log.j2, plan.j2 and results.j2 say how a phase is finished, and show the observation"
        yield warning("", None, "fallback", message, do)


def _told(turn: Turn) -> Sequence[str]:
    return [text for text in turn.errors if _NOT_PLAYED_YET not in text]


def _size(played: Played) -> Iterator[Finding]:
    step, size = max(_prompt_sizes(played.records), key=lambda found: found[1], default=(0, 0))
    if size > PROMPT_CHARS:
        message = f"the messages of one call at step {step} have {size} characters, some {size // 4} tokens"
        yield warning("", None, "prompt-large", message, f"keep them below {PROMPT_CHARS}: show less, read less")


def _prompt_sizes(records: Sequence[StepRecord]) -> Iterator[tuple[int, int]]:
    """Step and characters of the longest conversation of each phase."""
    system = next((record.system for record in records if record.system is not None), "")
    last: str | None = None
    for record in records:
        for phase, turns in (("log", record.log), ("plan", record.plan)):
            if turns:
                sent = messages(record, system, phase, len(turns) - 1, last)  # type: ignore[arg-type]
                yield record.step, sum(len(message["content"]) for message in sent)
        last = record.action
