"""What a trace remembers of a step, and how the exact prompts are rebuilt from it.

A record holds every text once. The observation stands in both phases' prompts and the answers
of operations stand in the next prompt, so a stored prompt keeps only what is around such a
block and names it; `messages` puts them together again, to the character.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal

from automem import blocks

Phase = Literal["log", "plan"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A user message: ``before + block + after``, where `block` is "observation", "results" or ""."""

    before: str
    block: str = ""
    after: str = ""

    @classmethod
    def around(cls, text: str, block: str, content: str) -> Prompt:
        """Split `text` around the first occurrence of `content`, the block of that name."""
        before, found, after = text.partition(content) if content else (text, "", "")
        return cls(before, block, after) if found else cls(text)

    def text(self, content: str) -> str:
        """The whole message, given the block's content."""
        return f"{self.before}{content}{self.after}" if self.block else self.before


@dataclass(frozen=True, slots=True)
class Executed:
    """An operation that was run.

    Attributes:
        name, args: the operation.
        span: where the model wrote it in the turn's text, [start, end).
        label: how the results block calls it.
        result: what the model was told.
        ok: False when it was refused.
        found: lines found by a search or count; None for other operations.
        added: bytes that the memory folder grew by; negative when it shrank.
        duplicate: it wrote what the same file already held.
        truncated: the result was cut to the scaffold's limit.
        file: the memory file that it was about, when it was carried out; ``*`` for all.
        by: the hook that asked for it (``maintain``, ``op_NEAR``); empty when the model wrote it.
    """

    name: str
    args: tuple[str, ...]
    span: tuple[int, int]
    label: str
    result: str
    ok: bool = True
    found: int | None = None
    added: int = 0
    duplicate: bool = False
    truncated: bool = False
    file: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """Something that a hook did beyond answering, or that went wrong in it.

    Attributes:
        call: which call of a hook in this step, from 0, in the order in which they were made.
        method: the hook.
        kind: "error": it raised, or its answer had the wrong shape; "lost": its process is gone, with
            its state; "off": it was lost too often, the episode goes on without hooks; "repaired":
            it changed an action; "again": it asked the model to think again.
        text: what went wrong; the action to play instead; the reason.
    """

    call: int
    method: str
    kind: Literal["error", "lost", "off", "repaired", "again"]
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of a model and what came of it.

    Attributes:
        model: its name.
        prompt: the user message that this turn added to the conversation.
        text: the reply, verbatim.
        ops: operations that were run, in order; what an own operation of the scaffold asked for follows it.
        errors: one line for each thing that was not run.
        prompt_tokens, completion_tokens, cached_tokens: as the server counts them.
        cost: USD, None where the price is not known.
        seconds: latency of the call.
        specialist: it was the memory specialist that answered.
        handed: how many characters of `text` the base model was handed, where the specialist went on to an action;
            None where the conversation goes on with all of it.
        context: what stood between the episode's system message and the prompt, where the call was a conversation
            of its own (agents without a memory folder); it begins with a system message where that is another, an
            empty one where there was none. None where the call went on with its phase's conversation.
    """

    model: str
    prompt: Prompt
    text: str
    ops: tuple[Executed, ...]
    errors: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float | None
    seconds: float
    specialist: bool = False
    handed: int | None = None
    context: tuple[dict[str, str], ...] | None = None

    @property
    def passed_on(self) -> str:
        """The reply as the conversation goes on with it: several servers refuse an empty message."""
        text = self.text if self.handed is None else self.text[: self.handed].rstrip()
        return text or "(no reply)"


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step: the observation, what LOG and PLAN did, the action and its outcome.

    Attributes:
        step: from 0.
        observation: the game's text before the action.
        log, plan: the turns of each phase; `log` is empty at step 0.
        raw_action: the action as the model wrote it; None when it committed none.
        action: what was played.
        invalid: actions the model wrote that the game does not have.
        fallback: the model committed no action and the game's default was played.
        reward: the simulator's reward for the action.
        progression: BALROG's score after the action, in [0, 1].
        achievements: what was reached so far, with counts.
        terminated, truncated: how the episode ended, if it did.
        warnings: what was noticed from outside (a memory folder changed by someone else).
        system: the system message, in the first record only.
        maintained: memory operations that the scaffold's `maintain` asked for, as they were run.
        hooks: what hooks did beyond answering, and what went wrong in them.
        long_term: how many characters of `observation`, from its beginning, are its long-term part
            (`games.Observation`); None in traces that do not say.
    """

    step: int
    observation: str
    log: tuple[Turn, ...]
    plan: tuple[Turn, ...]
    raw_action: str | None
    action: str
    invalid: int
    fallback: bool
    reward: float
    progression: float
    achievements: Mapping[str, int]
    terminated: bool
    truncated: bool
    warnings: tuple[str, ...] = ()
    system: str | None = None
    maintained: tuple[Executed, ...] = ()
    hooks: tuple[HookEvent, ...] = ()
    long_term: int | None = None


_FIELDS = frozenset(f.name for f in fields(StepRecord))


def from_json(data: Mapping[str, Any]) -> StepRecord:
    """The record that a line of a trace holds. Raises KeyError or TypeError when it is not one."""
    values = {name: value for name, value in data.items() if name in _FIELDS}
    values["log"] = tuple(_turn(turn) for turn in data["log"])
    values["plan"] = tuple(_turn(turn) for turn in data["plan"])
    values["warnings"] = tuple(data.get("warnings", ()))
    values["maintained"] = _executed(data.get("maintained", ()))
    values["hooks"] = tuple(HookEvent(**event) for event in data.get("hooks", ()))
    return StepRecord(**values)


def _turn(data: Mapping[str, Any]) -> Turn:
    ops, context = _executed(data["ops"]), data.get("context")
    said = None if context is None else tuple(context)
    prompt, errors = Prompt(**data["prompt"]), tuple(data["errors"])
    return Turn(**{**data, "prompt": prompt, "ops": ops, "errors": errors, "context": said})


def _executed(ops: Iterable[Mapping[str, Any]]) -> tuple[Executed, ...]:
    return tuple(Executed(**{**op, "args": tuple(op["args"]), "span": (op["span"][0], op["span"][1])}) for op in ops)


def messages(record: StepRecord, system: str, phase: Phase, turn: int, last_action: str | None) -> list[dict[str, str]]:
    """The messages that the model was sent in this turn of this phase, to the character.

    Args:
        record: the step.
        system: the episode's system message (`StepRecord.system` of its first record).
        phase: "log" or "plan".
        turn: which turn of the phase, from 0.
        last_action: the action of the step before; None at step 0.
    """
    turns = record.log if phase == "log" else record.plan
    content = blocks.observation(record.step, last_action, record.observation)
    own = turns[turn].context
    if own is not None:
        first = [] if own and own[0]["role"] == "system" else [{"role": "system", "content": system}]
        built = [*first, *own, {"role": "user", "content": turns[turn].prompt.text(content)}]
        return [message for message in built if message["content"] or message["role"] != "system"]
    built = [{"role": "system", "content": system}, {"role": "user", "content": turns[0].prompt.text(content)}]
    for before, after in pairwise(turns[: turn + 1]):
        built.append({"role": "assistant", "content": before.passed_on})
        results = shown_results(before.ops)
        built.append({"role": "user", "content": after.prompt.text(results)})
    return built


def shown_results(ops: Iterable[Executed]) -> str:
    """The results block that the model is shown for what it asked for itself."""
    return blocks.results([(op.label, op.result) for op in ops if not op.by])
