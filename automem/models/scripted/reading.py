"""What the scripted player can know in one call: exactly what the messages say.

It finds the fixed blocks of `automem.blocks` in the prompt, whatever words a scaffold
puts around them, and pairs the operations it wrote in earlier turns of this phase with
their results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from automem.blocks import CONSULTED, NO_ACTION, OBSERVATION_END

_START = re.compile(r"=== STEP (\d+) \| last action: (.*) ===\n")
_FILE = re.compile(r"^- (\S+) \[(note|log|map)((?:, [^\]]*)?)\] ?(.*)(?:\n  entry: (.*))?$", re.M)
_OPERATION = re.compile(r"<\|([A-Z][A-Z_]*)\|>")
_LISTED = re.compile(r"^- (\S+): (\d+) lines, (\d+) bytes$", re.M)
_PINNED = re.compile(r"^--- contents of (\S+) ---\n(.*?)\n?--- end of \1 ---$", re.M | re.S)
_RESULT = r"^--- {}\. (.*) ---\n"
_RESULTS_END = "--- end of results ---"
_ACTIONS = re.compile(r"^- ([^\n:]+): ", re.M)


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A memory file as the system prompt describes it (`automem.blocks.file_reference`)."""

    name: str
    kind: str
    describe: str
    entry: str = ""
    key: str = ""
    block: int = 0
    pinned: bool = False
    changes: bool = False


@dataclass(frozen=True, slots=True)
class Briefing:
    """What the system message says; the same in every call of an episode."""

    text: str
    files: tuple[PlannedFile, ...]
    operations: frozenset[str]

    def file(self, name: str) -> PlannedFile | None:
        """The planned file of this name, or None."""
        return next((f for f in self.files if f.name == name), None)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the model.

    Attributes:
        phase: "log" or "plan".
        step: the agent's step number, from 0.
        last_action: the action whose outcome the observation shows; None at step 0.
        observation: the game's text.
        listing: file name -> (lines, bytes) of the memory folder when the phase began.
        pinned: file name -> contents, for files that the prompt shows.
        turns: earlier turns of this phase: the text written, and the results in order.
        replies_left: replies that the phase still allows, this one included; None where nothing says.
        consulted: what somebody else read, (name, *arguments) -> text, where memory was consulted for this player
            and it is to act; None where it reads itself.
    """

    phase: str
    step: int
    last_action: str | None
    observation: str
    briefing: Briefing
    listing: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    pinned: Mapping[str, str] = field(default_factory=dict)
    turns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    replies_left: int | None = None
    consulted: Mapping[tuple[str, ...], str] | None = None


@lru_cache(maxsize=64)
def read_briefing(system: str) -> Briefing:
    """Parse the system message. Cached: a pure function of a text that seldom changes."""
    files = []
    for name, kind, facts, describe, entry in _FILE.findall(system):
        key = re.search(r", key (.+?)(?=, (?:block \d+|changes only|pinned)|$)", facts)
        block = re.search(r", block (\d+)", facts)
        files.append(
            PlannedFile(
                name,
                kind,
                describe,
                entry,
                key=key[1] if key else "",
                block=int(block[1]) if block else 0,
                pinned=facts.endswith(", pinned"),
                changes=", changes only" in facts,
            )
        )
    return Briefing(system, tuple(files), frozenset(_OPERATION.findall(system)) - {"END"})


def read_call(messages: Sequence[Mapping[str, str]]) -> Call:
    """Parse the messages of one call. Raises ValueError when no observation block is there."""
    briefing = read_briefing(messages[0]["content"])
    prompt = messages[1]["content"]
    start = _START.search(prompt)
    if start is None:
        raise ValueError("the prompt shows no observation block: place {{ observation }} in the template")
    end = prompt.rindex(OBSERVATION_END)
    before, after = prompt[: start.start()], prompt[end + len(OBSERVATION_END) :]
    around = before + after
    turns = tuple(
        (messages[i]["content"], _read_results(messages[i + 1]["content"])) for i in range(2, len(messages) - 1, 2)
    )
    phase = "log" if "<|DONE|>" in after else "plan"
    handed = next((i for i in range(3, len(messages), 2) if _is_handover(messages[i]["content"])), None)
    return Call(
        phase=phase,
        step=int(start[1]),
        last_action=None if start[2] == NO_ACTION else start[2],
        observation=prompt[start.end() : end].rstrip("\n"),
        briefing=briefing,
        listing={name: (int(lines), int(size)) for name, lines, size in _LISTED.findall(around)},
        pinned=dict(_PINNED.findall(around)),
        turns=turns,
        replies_left=_replies_left(phase, messages, after) if handed is None else 1,
        consulted=None if handed is None else _consulted(messages[3 : handed + 1 : 2]),
    )


def _is_handover(text: str) -> bool:
    """Whether a message hands over; the words may be quoted in results, so what follows those counts."""
    return f"\n{CONSULTED}\n" in f"\n{text.rpartition(_RESULTS_END)[2]}"


def _consulted(told: Sequence[Mapping[str, str]]) -> dict[tuple[str, ...], str]:
    """What the results messages of somebody else's reading answer, by the labels of the operations."""
    found: dict[tuple[str, ...], str] = {}
    for message in told:
        for label, text in _labelled_results(message["content"]):
            name, _, arguments = label.partition(" ")
            found[(name, *arguments.split(" | "))] = text
    return found


def _replies_left(phase: str, messages: Sequence[Mapping[str, str]], after: str) -> int | None:
    """From the newest message; else from the rules in the system message, less what was used up."""
    newest = after if len(messages) < 4 else messages[-1]["content"].rpartition(_RESULTS_END)[2]
    said = _REPLIES.findall(newest)
    if said:
        return int(said[-1])
    rule = re.search(rf"{phase.upper()}\b[^\n]*?(\d{{1,3}}) repl", messages[0]["content"])
    return int(rule[1]) - (len(messages) - 2) // 2 if rule else None


def _read_results(text: str) -> tuple[str, ...]:
    """The answers in a results message, in order."""
    return tuple(answer for _, answer in _labelled_results(text))


def _labelled_results(text: str) -> list[tuple[str, str]]:
    """(label, answer) in order; numbering tells real markers from quoted ones."""
    answers: list[tuple[str, str]] = []
    label, position = "", None
    while (
        found := re.compile(_RESULT.format(len(answers) + (position is not None) + 1), re.M).search(text, position or 0)
    ) is not None:
        if position is not None:
            answers.append((label, text[position : found.start()].rstrip("\n")))
        label, position = found[1], found.end()
    if position is not None:
        end = text.find(f"\n{_RESULTS_END}", position)
        answers.append((label, text[position : end if end >= 0 else len(text)].rstrip("\n")))
    return answers


_WRITTEN = re.compile(r"<\|([A-Z][A-Z_]*)\|>(.*?)<\|END\|>", re.S)
_REPLIES = re.compile(r"(\d{1,3}) repl(?:y|ies)\b")
_BARS = {"READ": 0, "CREATE": 0, "UPSERT": 2}
"""Bars between the arguments of an operation, where it is not one; further bars belong to the last argument."""
_READ_LIMIT = re.compile(r"at most (\d+) characters")


def answers(call: Call) -> dict[tuple[str, ...], str]:
    """What the operations of earlier turns of this phase answered: (name, *arguments) -> text.

    Holds for replies that were written by `write_ops`, one result for each operation, and for what somebody else
    consulted.
    """
    if call.consulted is not None:
        return dict(call.consulted)
    found: dict[tuple[str, ...], str] = {}
    for text, results in call.turns:
        operations = [(name, *body.split("|", _BARS.get(name, 1))) for name, body in _WRITTEN.findall(text)]
        found.update(zip(operations, results, strict=False))
    return found


def consulted_answers(consulted: Mapping[tuple[str, ...], str], operations: Sequence[str]) -> tuple[str, ...]:
    """What somebody else's reading answers to operations, written as blocks; empty where it was not asked."""
    return tuple(
        consulted.get((name, *body.split("|", _BARS.get(name, 1))), "")
        for operation in operations
        for name, body in _WRITTEN.findall(operation)
    )


def write_ops(operations: Sequence[tuple[str, ...]]) -> str:
    """A reply: one block an operation, given as (name, *arguments)."""
    return "\n".join(f"<|{name}|>{'|'.join(arguments)}<|END|>" for name, *arguments in operations)


def read_limit(briefing: Briefing, default: int = 2000) -> int:
    """Characters that one read shows at most, where the prompt says so."""
    found = _READ_LIMIT.search(briefing.text)
    return int(found[1]) if found else default
