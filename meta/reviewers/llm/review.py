"""One review: the meta-LLM asks, edits, checks and finishes, and every reply is recorded before it is acted on."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from automem.check.folder import contents
from automem.models.protocol import ChatModel, ContextTooLong, ModelError, ToolCall, ToolsRefused
from automem.storable import storable
from automem.vocabulary import one_line
from meta import storage
from meta.evidence import Evidence
from meta.reviewer import Desk, ReviewerUnavailable, ReviewFailed, Revision
from meta.reviewers.llm import prompting, text_calls
from meta.reviewers.llm.calling import Answered, answer
from meta.reviewers.llm.conversation import Conversation, Exchange
from meta.reviewers.llm.meter import LAST, NEAR, Meter
from meta.reviewers.llm.options import LlmOptions
from meta.reviewers.llm.room import Room
from meta.reviewers.llm.tools import TOOLS
from meta.reviewers.llm.transcript import Transcript

TRANSCRIPT = "transcript.jsonl"
START = "start"
"""In the attempt's folder: what was said (`meta.reviewers.llm.transcript`), and the candidate's files as they were when
the review began, from which a resumption makes all edits again."""


class Review:
    """A review under way, or taken up again."""

    def __init__(self, model: ChatModel, options: LlmOptions, evidence: Evidence, desk: Desk) -> None:
        self._model = model
        self._options = options
        self._evidence = evidence
        self._desk = desk
        self._room = Room(evidence, desk)
        self._transcript = Transcript(desk.folder / TRANSCRIPT)
        self._meter = Meter(desk.budget, self._transcript.spent)
        self._known: bool | None = True
        self._in_text = options.tools == "text"
        self._conversation = Conversation("", "")

    async def run(self) -> Revision:
        """The revision. Raises `ReviewFailed` or `ReviewerUnavailable`; the transcript says so, too."""
        try:
            if self._options.tools == "auto":
                self._known = await asyncio.to_thread(self._model.knows_tools)
                self._in_text = self._known is False
            await asyncio.to_thread(self._restore)
            await asyncio.to_thread(self._begin)
            description, analysis = await self._converse()
        except ReviewFailed as failed:
            failed.spent = self._meter.total()
            self._transcript.add("ended", how="failed", why=str(failed))
            raise
        except ReviewerUnavailable as gone:
            self._transcript.add("ended", how="unavailable", why=str(gone))
            raise
        self._transcript.add("ended", how="finished")
        return Revision(description, analysis, self._meter.total())

    def _restore(self) -> None:
        """Put the candidate's files back to what they were when the review began: edits are made again."""
        start, candidate = self._desk.folder / START, self._desk.candidate
        if start.is_dir():
            storage.write_scaffold(candidate, contents(start).sources)
        else:
            storage.write_scaffold(start, contents(candidate).sources)

    def _begin(self) -> None:
        whose = {
            "attempt": self._evidence.number,
            "parent": self._evidence.parent.identity,
            "tools": self._options.tools,
        }
        began = self._transcript.next("began")
        if began is not None and {name: began.get(name) for name in whose} == whose:
            self._in_text = began["in_text"]
        else:
            if began is not None:
                self._transcript.back()
            began = self._transcript.add("began", **whose, **self._first_messages())
        self._conversation = Conversation(began["system"], began["opening"])

    def _first_messages(self) -> dict[str, Any]:
        return {
            "model": self._model.name,
            "in_text": self._in_text,
            "system": storable(prompting.system(self._evidence.game, tuple(TOOLS.values()), self._in_text)),
            "opening": storable(prompting.opening(self._evidence, self._meter.left())),
        }

    async def _converse(self) -> tuple[str, str]:
        useless = 0
        while self._room.finished is None:
            exchange, cut = await self._reply()
            if not exchange.calls and self._may_know_no_tools():
                self._go_on_in_text("it called none of the tools that it was offered")
                continue
            fine = await self._answer(exchange, cut)
            useless = 0 if fine else useless + 1
            if useless >= self._options.malformed:
                raise ReviewFailed(f"{self._model.name} wrote {useless} replies in a row without a call of a tool")
        return self._room.finished

    def _may_know_no_tools(self) -> bool:
        """The first reply tells whether a model that nothing is known of was shown the tools."""
        return self._known is None and not self._in_text and not self._conversation.exchanges

    def _go_on_in_text(self, why: str) -> None:
        """Begin the conversation anew, with the tools described in it."""
        text = self._transcript.next("text")
        if text is None:
            system = storable(prompting.system(self._evidence.game, tuple(TOOLS.values()), in_text=True))
            text = self._transcript.add("text", why=why, system=system)
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
                    raise ReviewFailed(f"{error} Nothing is left to remove") from None
                self._transcript.add("shortened", why=str(error))
                continue
            except ToolsRefused as error:
                if self._in_text or self._options.tools == "native" or self._conversation.exchanges:
                    raise ReviewerUnavailable(str(error)) from None
                self._go_on_in_text(str(error))
                continue
            return self._exchange(record), record["cut"]
        raise ReviewFailed(f"{self._model.name}: the conversation does not fit, though most of it was removed")

    async def _ask(self, messages: list[dict[str, Any]], sent: str) -> Mapping[str, Any]:
        """Ask the model, and record what it says. Raises as `ChatModel.chat`, but `ReviewerUnavailable`."""
        over = self._meter.over()
        if over:
            raise ReviewFailed(f"{over}; no revision was finished")
        offered = [] if self._in_text else [tool.offered for tool in TOOLS.values()]
        self._desk.said(f"reply {self._meter.spent.turns + 1}")
        try:
            async with asyncio.timeout(self._meter.seconds_left()):
                said = await self._model.chat(messages, offered)
        except TimeoutError:
            raise ReviewFailed("its budget of time is spent while it waited for a reply") from None
        except (ContextTooLong, ToolsRefused):
            raise
        except ModelError as error:
            raise ReviewerUnavailable(str(error)) from None
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

    async def _answer(self, exchange: Exchange, cut: bool) -> bool:
        """Carry out the calls; of recorded ones only those that change something. Whether any was understood."""
        recorded = self._transcript.next("answers")
        known = [Answered(*one) for one in recorded["answers"]] if recorded else []
        answered: list[Answered] = []
        for i, call in enumerate(exchange.calls):
            tool = TOOLS.get(call.name.strip())
            if i < len(known) and (tool is None or not tool.again):
                answered.append(known[i])
            elif i >= self._options.calls:
                answered.append(Answered(f"not run: of one reply, {self._options.calls} calls are", True))
            elif self._room.finished is not None:
                answered.append(Answered("not run: the review is finished", True))
            else:
                self._desk.said(_in_few_words(call))
                answered.append(await answer(TOOLS, self._room, call, cut))
        if recorded is None:
            notice = self._notice()
            self._transcript.add("answers", answers=[[one.text, one.understood] for one in answered], notice=notice)
        else:
            notice = recorded["notice"]
        exchange.answers = [one.text for one in answered] or [prompting.no_call(self._in_text)]
        exchange.notice = notice
        self._conversation.exchanges.append(exchange)
        return any(one.understood for one in answered)

    def _notice(self) -> str:
        """Towards the end of the budget, how much of it is left."""
        share = self._meter.share_left()
        return "" if share > NEAR else storable(prompting.notice(self._meter.left(), share <= LAST))


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
