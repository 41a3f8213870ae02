"""The hooks of one episode, seen from the agent: calls that always answer.

Whatever happens in a hook, the agent goes on: an exception, an answer of the wrong shape, a lost
process are noted as events of the step and count as no answer. Nothing that comes back is trusted:
the process that answers runs code that a model wrote.

When a recorded step is played again, the same calls are made so that the hooks come to the same
state, and the recorded answers are given, so that memory comes to where it was whatever the code
says this time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from automem.hooks.api import Step
from automem.hooks.reading import Reader
from automem.hooks.source import HookSource
from automem.memory import Memory
from automem.memory.files import clean
from automem.ops import OPERATIONS
from automem.records import HookEvent, StepRecord
from automem.sandbox import CallFailed, Process, Sandbox
from automem.schema import HooksSection, OwnOperation
from automem.storable import storable
from automem.vocabulary import Op, one_line

NO_CALL = -1
"""`HookEvent.call` of what did not happen in a call of this step."""

EVENT_CHARS = 400
"""Characters of an event's text."""

MOST_OPERATIONS = 200
"""Memory operations that hooks may ask for in one step."""

MOST_CHARS = 1_000_000
"""Characters of their arguments. A step has to stay a record that can be stored and read."""

LINE_COST = 60
"""What a line counts for beside its characters: about what it takes to hold one."""

SLACK = 10
"""How much longer a call may take when a recorded step is played again: it was fast enough once."""


Meant = Callable[[str], str | None]


class Hooks(Protocol):
    """What the agent asks of a scaffold's code."""

    events: list[HookEvent]
    """What happened in the current step."""

    async def begin(self, past: StepRecord | None) -> None:
        """A step begins; with `past`, one that was recorded and is played again."""
        ...

    async def observe(self, step: Step) -> dict[str, str]:
        """The texts for templates; every declared name is there."""
        ...

    async def maintain(self, step: Step, memory: Memory) -> list[Op]:
        """Write operations to run after LOG."""
        ...

    async def check_action(self, step: Step, action: str, meant: Meant, last: bool) -> HookEvent | None:
        """What is said about an action: an event of kind "repaired" or "again", or None to let it be.

        Args:
            step: the step.
            action: an action of the game, or what was written that is none.
            meant: the game's action that a text means, None where there is none.
            last: the model has no further reply: an action of the game is not sent back any more.
        """
        ...

    async def operation(self, op: Op, memory: Memory, phase: str) -> tuple[str, bool, list[Op]]:
        """Carry out an own operation: what the model is told, whether it was carried out, write operations to run."""
        ...

    async def close(self) -> None:
        """The episode is over."""
        ...


class NoHooks:
    """A scaffold without code."""

    def __init__(self) -> None:
        self.events: list[HookEvent] = []

    async def begin(self, past: StepRecord | None) -> None:
        """Nothing to prepare."""

    async def observe(self, step: Step) -> dict[str, str]:
        """No texts."""
        return {}

    async def maintain(self, step: Step, memory: Memory) -> list[Op]:
        """No operations."""
        return []

    async def check_action(self, step: Step, action: str, meant: Meant, last: bool) -> HookEvent | None:
        """Every action is let be."""
        return None

    async def operation(self, op: Op, memory: Memory, phase: str) -> tuple[str, bool, list[Op]]:
        """There are no own operations without hooks."""
        return f"{op.name} cannot be carried out: this scaffold has no hooks", False, []

    async def close(self) -> None:
        """Nothing to end."""


class HookSession:
    """The ``hooks.py`` of a scaffold, running in a process of its own for one episode."""

    def __init__(
        self,
        sandbox: Sandbox,
        source: HookSource,
        section: HooksSection,
        own: Iterable[OwnOperation],
        game: str,
        task: str,
    ) -> None:
        """
        Args:
            sandbox: where processes come from.
            source: the code; its problems are empty.
            section: which texts it shows.
            own: the operations that the scaffold adds.
            game, task: what `reset` is told.
        """
        self.events: list[HookEvent] = []
        self._sandbox = sandbox
        self._source = source
        self._section = section
        self._own = {operation.name: operation.phase for operation in own}
        self._episode = (game, task)
        self._lives = sandbox.config.losses + 1
        self._lives_in_replay = self._lives
        self._astray = False
        self._asked = self._asked_chars = 0
        self._process: Process | None = None
        self._call = 0
        self._past: StepRecord | None = None
        self._recorded: dict[int, HookEvent] = {}
        self._answers: deque[tuple[str, bool, list[Op]]] = deque()

    async def begin(self, past: StepRecord | None) -> None:
        """See `Hooks.begin`."""
        self.events = []
        self._call = self._asked = self._asked_chars = 0
        self._past = past
        self._recorded = {} if past is None else {e.call: e for e in past.hooks if e.kind != "error"}
        self._answers = deque() if past is None else deque(_own_answers(past, self._own))
        if past is None and self._astray:
            self._astray = False
            await self._drop()
            self.events.append(HookEvent(NO_CALL, "reset", "lost", "the state could not be rebuilt from the trace"))
        elif NO_CALL in self._recorded:
            await self._drop()

    async def observe(self, step: Step) -> dict[str, str]:
        """See `Hooks.observe`."""
        texts = dict.fromkeys(self._section.shows, "")
        answer = await self._ask("observe", [_wire(step)], None)
        if answer is None:
            return texts
        if not isinstance(answer, dict) or not all(isinstance(text, str) for text in answer.values()):
            self._error("observe", "answered something else than named texts")
            return texts
        unknown = [name for name in answer if name not in texts]
        if unknown:
            self._error("observe", f"{one_line(unknown[0], 40)!r} is not named under [hooks] shows; it was left out")
        return texts | {name: self._cut(text) for name, text in answer.items() if name in texts}

    async def maintain(self, step: Step, memory: Memory) -> list[Op]:
        """See `Hooks.maintain`."""
        answer = await self._ask("maintain", [_wire(step)], memory)
        if self._past is not None:
            return [Op(op.name, op.args) for op in self._past.maintained]
        return self._operations("maintain", answer or [])

    async def check_action(self, step: Step, action: str, meant: Meant, last: bool) -> HookEvent | None:
        """See `Hooks.check_action`."""
        call = self._call
        answer = await self._ask("check_action", [_wire(step), action], None)
        if self._past is not None:
            event = self._recorded.get(call)
            return event if event is not None and event.kind in ("repaired", "again") else None
        said = self._said(call, action, answer, meant, last)
        if said is not None:
            self.events.append(said)
        return said

    async def operation(self, op: Op, memory: Memory, phase: str) -> tuple[str, bool, list[Op]]:
        """See `Hooks.operation`."""
        method = f"op_{op.name}"
        answer = await self._ask(method, [list(op.args)], memory)
        if self._past is not None:
            return self._answers.popleft() if self._answers else ("", False, [])
        if answer is None:
            return f"{op.name} failed; nothing was changed", False, []
        if not isinstance(answer, dict) or not isinstance(answer.get("text"), str):
            self._error(method, "answered something else than a text")
            return f"{op.name} failed; nothing was changed", False, []
        wanted = self._operations(method, answer.get("ops") or [])
        if wanted and phase == "plan":
            self._error(method, f"{len(wanted)} write operations were not run: memory cannot be changed in PLAN")
            wanted = []
        return self._cut(answer["text"]), True, wanted

    async def close(self) -> None:
        """See `Hooks.close`."""
        await self._drop()

    async def _ask(self, method: str, args: list[Any], memory: Memory | None) -> Any:
        """Call a method if the code has it; None when it has not, or when the call failed."""
        if method not in self._source.methods:
            return None
        call, self._call = self._call, self._call + 1
        recorded = self._recorded.get(call)
        if recorded is not None and recorded.kind in ("lost", "off"):
            await self._drop()
            self._lives -= 1
            return None
        if self._lives <= 0 or (self._past is not None and self._lives_in_replay <= 0):
            return None
        try:
            process = await self._ready()
            return await self._timed(process, method, args, memory)
        except CallFailed as failed:
            if self._past is None:
                await self._failed(call, method, failed)
            elif failed.lost:
                # It went well then: the state is another one from here on, which the next new step will say.
                await self._drop()
                self._astray = True
                self._lives_in_replay -= 1
            return None

    async def _ready(self) -> Process:
        """The episode's process, started and reset when there is none."""
        if self._process is None:
            process = await self._sandbox.open(self._source.text)
            self._process = process
            if "reset" in self._source.methods:
                try:
                    await self._timed(process, "reset", list(self._episode), None)
                except CallFailed as failed:
                    # An object that is not ready is not asked anything.
                    raise CallFailed(f"reset: {failed.message}", lost=True) from failed
        return self._process

    async def _timed(self, process: Process, method: str, args: Sequence[Any], memory: Memory | None) -> Any:
        seconds = None if self._past is None else self._sandbox.config.call_seconds * SLACK
        serve = None if memory is None else Reader(memory).answer
        return await process.call(method, args, serve, seconds)

    async def _failed(self, call: int, method: str, failed: CallFailed) -> None:
        if failed.lost:
            await self._drop()
            self._lives -= 1
        kind: Any = "error" if not failed.lost else "lost" if self._lives else "off"
        text = failed.message if kind != "off" else f"{failed.message}; the episode goes on without hooks"
        self.events.append(HookEvent(call, method, kind, one_line(text, EVENT_CHARS)))

    async def _drop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    def _error(self, method: str, text: str) -> None:
        """Note what is wrong with the answer of the call that was just made."""
        if self._past is None:
            self.events.append(HookEvent(self._call - 1, method, "error", one_line(text, EVENT_CHARS)))

    def _said(self, call: int, action: str, answer: Any, meant: Meant, last: bool) -> HookEvent | None:
        if answer is None:
            return None
        kind, text = next(iter(answer.items()), ("", "")) if isinstance(answer, dict) and len(answer) == 1 else ("", "")
        if kind == "again" and isinstance(text, str):
            if last and meant(action) is not None:
                return None
            return HookEvent(call, "check_action", "again", one_line(text, EVENT_CHARS))
        if kind == "play" and isinstance(text, str):
            if text == action:
                return None
            played = meant(text)
            if played is not None:
                return HookEvent(call, "check_action", "repaired", played) if played != meant(action) else None
            self._error("check_action", f"{one_line(text, 100)!r} is not an action of this game")
            return None
        self._error("check_action", "answered neither an action nor a reason to think again")
        return None

    def _operations(self, method: str, asked: Any) -> list[Op]:
        """The write operations that an answer asks for; what is none, or too much, is noted and left out."""
        if not isinstance(asked, list):
            self._error(method, "answered something else than a list of operations")
            return []
        wanted: list[Op] = []
        problems: list[str] = []
        for one in asked:
            if not isinstance(one, list) or not one or not all(isinstance(part, str) for part in one):
                problems.append("an operation is a name and arguments, all of them texts")
                continue
            name = one[0].upper()
            if name not in OPERATIONS or OPERATIONS[name].effect != "write":
                problems.append(f"{one_line(one[0], 40)!r} is not a write operation")
                continue
            self._asked += 1
            self._asked_chars += sum(len(part) + LINE_COST * part.count("\n") for part in one)
            if self._asked > MOST_OPERATIONS or self._asked_chars > MOST_CHARS:
                problems.append(
                    f"hooks ask for {MOST_OPERATIONS} operations and {MOST_CHARS} characters a step at most"
                )
                continue
            wanted.append(Op(name, tuple(part.strip() for part in one[1:])))
        if problems:
            self._error(method, f"{len(problems)} of {len(asked)} operations were not run: {problems[0]}")
        return wanted

    def _cut(self, text: str) -> str:
        """The text, storable and not longer than the scaffold allows."""
        most = self._section.text_chars
        text = clean(storable(text))
        return text if len(text) <= most else f"{text[:most]}\n[{len(text) - most} more characters are not shown]"


def _wire(step: Step) -> list[Any]:
    return [step.number, step.observation, step.action, step.raw_action, list(step.history)]


def _own_answers(past: StepRecord, own: Mapping[str, str]) -> Iterator[tuple[str, bool, list[Op]]]:
    """What own operations answered in a recorded step, in order; those that the phase forbids were not asked."""
    for phase, turns in (("log", past.log), ("plan", past.plan)):
        for turn in turns:
            answer: tuple[str, bool, list[Op]] | None = None
            for op in turn.ops:
                if op.by:
                    if answer is not None:
                        answer[2].append(Op(op.name, op.args))
                    continue
                if answer is not None:
                    yield answer
                asked = own.get(op.name) in ("both", phase)
                answer = (op.result, op.ok, []) if asked else None
            if answer is not None:
                yield answer
