"""One dialogue: the meta-LLM calls tools until it is finished, and every reply is recorded before it is acted on."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from automem.models.protocol import ChatModel, ContextTooLong, ModelError, ToolCall, ToolsRefused
from automem.storable import storable
from automem.vocabulary import one_line
from meta.dialogue import text_calls
from meta.dialogue.calling import Answered, answer
from meta.dialogue.conversation import Conversation, Exchange
from meta.dialogue.errors import DialogueFailed, DialogueUnavailable
from meta.dialogue.meter import LAST, NEAR, Meter
from meta.dialogue.options import LlmOptions
from meta.dialogue.tool import Tool
from meta.dialogue.transcript import Transcript
from meta.reviewer import Budget, Spent


class Room(Protocol):
    """What the tools work on.

    Attributes:
        finished: what came of it; None until the model has finished.
    """

    @property
    def finished(self) -> object | None: ...


class Words(Protocol):
    """What the model is told, beside the answers of tools."""

    def system(self, in_text: bool) -> str:
        """The system message; `in_text`: the tools have to be described, and called, in text."""
        ...

    def opening(self, left: list[str]) -> str:
        """The first user message; `left`: what is left of each limit of the budget, in words."""
        ...

    def notice(self, left: list[str], last: bool) -> str:
        """How much of the budget is left; `last`: so little that the model has to come to an end."""
        ...

    def no_call(self, in_text: bool) -> str:
        """What a reply without a call is told."""
        ...


class Dialogue:
    """A dialogue under way, or taken up again."""

    def __init__(
        self,
        model: ChatModel,
        options: LlmOptions,
        tools: Mapping[str, Tool],
        words: Words,
        budget: Budget,
        transcript: Path,
        whose: Mapping[str, Any],
        said: Callable[[str], None] = lambda text: None,
    ) -> None:
        """
        Args:
            model: whom to ask.
            options: how.
            tools: by name, in the order in which they are offered.
            words: what the model is told.
            budget: of the whole dialogue, all resumptions together.
            transcript: the file in which everything is recorded.
            whose: what the dialogue is about: one that is recorded is only taken up where this is the same.
            said: tells whoever watches what is being done, in a few words.

        Raises `DialogueUnavailable` when the transcript is damaged.
        """
        self._model = model
        self._options = options
        self._tools = tools
        self._words = words
        self._whose = {**whose, "tools": options.tools}
        self._said = said
        self._transcript = Transcript(transcript)
        self._meter = Meter(budget, self._transcript.spent)
        self._known: bool | None = True
        self._in_text = options.tools == "text"
        self._conversation = Conversation("", "")

    async def run(self, room: Room) -> Spent:
        """Until the room is finished. Returns what it took.

        Raises `DialogueFailed` or `DialogueUnavailable`; the transcript says so, too.
        """
        try:
            if self._options.tools == "auto":
                self._known = await asyncio.to_thread(self._model.knows_tools)
                self._in_text = self._known is False
            await asyncio.to_thread(self._begin)
            await self._converse(room)
        except DialogueFailed as failed:
            failed.spent = self._meter.total()
            self._transcript.add("ended", how="failed", why=str(failed))
            raise
        except DialogueUnavailable as gone:
            self._transcript.add("ended", how="unavailable", why=str(gone))
            raise
        self._transcript.add("ended", how="finished")
        return self._meter.total()

    def _begin(self) -> None:
        began = self._transcript.next("began")
        if began is not None and {name: began.get(name) for name in self._whose} == self._whose:
            self._in_text = began["in_text"]
        else:
            if began is not None:
                self._transcript.back()
            began = self._transcript.add("began", **self._whose, **self._first_messages())
        self._conversation = Conversation(began["system"], began["opening"])

    def _first_messages(self) -> dict[str, Any]:
        return {
            "model": self._model.name,
            "in_text": self._in_text,
            "system": storable(self._words.system(self._in_text)),
            "opening": storable(self._words.opening(self._meter.left())),
        }

    async def _converse(self, room: Room) -> None:
        useless = 0
        while room.finished is None:
            exchange, cut = await self._reply()
            if not exchange.calls and self._may_know_no_tools():
                self._go_on_in_text("it called none of the tools that it was offered")
                continue
            fine = await self._answer(room, exchange, cut)
            useless = 0 if fine else useless + 1
            if useless >= self._options.malformed:
                raise DialogueFailed(f"{self._model.name} wrote {useless} replies in a row without a call of a tool")

    def _may_know_no_tools(self) -> bool:
        """The first reply tells whether a model that nothing is known of was shown the tools."""
        return self._known is None and not self._in_text and not self._conversation.exchanges

    def _go_on_in_text(self, why: str) -> None:
        """Begin the conversation anew, with the tools described in it."""
        text = self._transcript.next("text")
        if text is None:
            text = self._transcript.add("text", why=why, system=storable(self._words.system(in_text=True)))
        self._in_text = True
        self._conversation.system = text["system"]

    async def _reply(self) -> tuple[Exchange, bool]:
        """The next reply: a recorded one, if there is one to just this conversation."""
        for _ in range(self._options.shortenings + 1):
            if self._transcript.peek() == "text":
                self._go_on_in_text("")
            while self._transcript.next("shortened") is not None:
                self._conversation.shorten()
            messages = self._conversation.messages()
            sent = _digest(messages, self._in_text)
            recorded = self._transcript.next("reply")
            if recorded is not None and recorded["sent"] != sent:
                self._transcript.back()
                recorded = None
            try:
                record = recorded or await self._ask(messages, sent)
            except ContextTooLong as error:
                if not self._conversation.shorten():
                    raise DialogueFailed(f"{error} Nothing is left to remove") from None
                self._transcript.add("shortened", why=str(error))
                continue
            except ToolsRefused as error:
                if self._in_text or self._options.tools == "native" or self._conversation.exchanges:
                    raise DialogueUnavailable(str(error)) from None
                self._go_on_in_text(str(error))
                continue
            return self._exchange(record), record["cut"]
        raise DialogueFailed(f"{self._model.name}: the conversation does not fit, though most of it was removed")

    async def _ask(self, messages: list[dict[str, Any]], sent: str) -> Mapping[str, Any]:
        """Ask the model, and record what it says. Raises as `ChatModel.chat`, but `DialogueUnavailable`."""
        over = self._meter.over()
        if over:
            raise DialogueFailed(f"{over}; it was not finished")
        offered = [] if self._in_text else [tool.offered for tool in self._tools.values()]
        self._said(f"reply {self._meter.spent.turns + 1}")
        try:
            async with asyncio.timeout(self._meter.seconds_left()):
                said = await self._model.chat(messages, offered)
        except TimeoutError:
            raise DialogueFailed("its budget of time is spent while it waited for a reply") from None
        except (ContextTooLong, ToolsRefused):
            raise
        except ModelError as error:
            raise DialogueUnavailable(str(error)) from None
        record = self._transcript.add(
            "reply",
            sent=sent,
            text=said.reply.text,
            calls=[[call.id, call.name, call.arguments] for call in said.calls],
            cut=said.cut,
            prompt_tokens=said.reply.prompt_tokens,
            completion_tokens=said.reply.completion_tokens,
            cached_tokens=said.reply.cached_tokens,
            usd=said.reply.cost,
            seconds=self._meter.seconds,
        )
        self._meter.spent = self._transcript.spent
        return record

    def _exchange(self, record: Mapping[str, Any]) -> Exchange:
        text = storable(record["text"])
        if record["calls"]:
            calls = [ToolCall(*map(storable, call)) for call in record["calls"]]
            return Exchange(text, _distinct(calls, f"call-{len(self._conversation.exchanges)}"))
        # Calls in text are also read where others were offered: servers without the right parser leave them there.
        return Exchange(text, text_calls.read(text), native=False)

    async def _answer(self, room: Room, exchange: Exchange, cut: bool) -> bool:
        """Carry out the calls; of recorded ones only those that change something. Whether any was understood."""
        recorded = self._transcript.next("answers")
        known = [Answered(*one) for one in recorded["answers"]] if recorded else []
        answered: list[Answered] = []
        for i, call in enumerate(exchange.calls):
            tool = self._tools.get(call.name.strip())
            if i < len(known) and (tool is None or not tool.again):
                answered.append(known[i])
            elif i >= self._options.calls:
                answered.append(Answered(f"not run: of one reply, {self._options.calls} calls are", True))
            elif room.finished is not None:
                answered.append(Answered("not run: it is finished", True))
            else:
                self._said(_in_few_words(call))
                answered.append(await answer(self._tools, room, call, cut))
        if recorded is None:
            notice = self._notice()
            self._transcript.add("answers", answers=[[one.text, one.understood] for one in answered], notice=notice)
        else:
            notice = recorded["notice"]
        exchange.answers = [one.text for one in answered] or [self._words.no_call(self._in_text)]
        exchange.notice = notice
        self._conversation.exchanges.append(exchange)
        return any(one.understood for one in answered)

    def _notice(self) -> str:
        """Towards the end of the budget, how much of it is left."""
        share = self._meter.share_left()
        return "" if share > NEAR else storable(self._words.notice(self._meter.left(), share <= LAST))


def _digest(messages: list[dict[str, Any]], in_text: bool) -> str:
    return hashlib.sha256(json.dumps([messages, in_text], sort_keys=True).encode()).hexdigest()


def _distinct(calls: list[ToolCall], prefix: str) -> tuple[ToolCall, ...]:
    """The calls with an id each, whatever the server sent."""
    found: list[ToolCall] = []
    for i, call in enumerate(calls):
        known = {other.id for other in found}
        fitting = call.id if call.id and len(call.id) <= 10_000 and call.id not in known else f"{prefix}-{i}"
        found.append(ToolCall(fitting, call.name, call.arguments))
    return tuple(found)


def _in_few_words(call: ToolCall) -> str:
    return one_line(f"{call.name} {call.arguments}", 80)
