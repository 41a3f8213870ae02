"""A run that was really played, a desk to work at, and a scripted reviewer behind HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from automem import check, scaffold
from automem.models.litellm_model import LiteLLM, Patience
from automem.models.protocol import Sampling
from automem.trace import RunTrace
from meta.candidate import sources
from meta.evidence import Attempt, Evidence
from meta.gate import Look
from meta.reviewer import Budget, Desk, Revision
from meta.reviewers.llm import LlmOptions, LlmReviewer
from tests.models.fake_openai import Answer, completion
from tests.traces import a_run

PARENT = "crafter/v0"
GOOD_ANALYSIS = (
    "The trail is appended at each step, and searches for places find nothing; a map by coordinate is found."
)
TRAIL = 'name = "map_notes.txt"'


def play(folder: Path) -> None:
    """Two short episodes of the parent, as run ``parent`` of the runs folder, and of an attempt on one seed more."""
    a_run("parent", seeds="3..4", steps=40)
    a_run("tried", seeds="3..5", steps=20)


def evidence(folder: Path, before: Attempt | None = None) -> Evidence:
    """What the review is given; an earlier attempt was rejected, another never played."""
    parent = scaffold.load(PARENT)
    tried = folder / "attempts" / "1.1.0"
    if not tried.exists():
        scaffold.write_files(tried / "candidate", sources(parent, parent, "loop-1.1.0"))
    attempts = (
        Attempt(
            "1.1.0", "rules", parent.identity, "1" * 64, tried, "A map instead of a log", "Logs grow.", "rejected",
            "it played worse", (), (Look(2, -0.1, -0.3, 0.01, "rejected", "the upper bound is too low"),),
            0.01, folder / "runs" / "tried", (3, 4),
        ),
        Attempt(
            "1.2.0", "rules", parent.identity, "", tried, "", "", "failed", "the budget was spent",
        ),
    )  # fmt: skip
    return Evidence("2.1.0", parent, RunTrace("parent"), attempts, before)


@dataclass
class Checked:
    """The checker without its smoke episode, which takes seconds; counts how often it was asked."""

    place: Path
    smoke: bool = False
    times: int = 0

    async def __call__(self) -> check.Report:
        self.times += 1
        return await asyncio.to_thread(check.check, str(self.place), smoke=self.smoke)


def desk(folder: Path, budget: Budget | None = None, smoke: bool = False, fresh: bool = True) -> Desk:
    """A desk whose candidate is a copy of the parent with a name of its own, as the loop makes it."""
    parent = scaffold.load(PARENT)
    place = folder / "review" / "candidate"
    if fresh:
        scaffold.write_files(place, sources(parent, parent, "candidate"))
    return Desk(folder / "review", place, Checked(place, smoke), budget or Budget())


Call = tuple[str, dict[str, Any]]


def calling(*calls: Call | tuple[str, str], text: str = "", prompt: int = 100, written: int = 20) -> dict[str, Any]:
    """The body of a completion that calls tools; arguments that are a text are sent as they are."""
    body = completion(text, prompt=prompt, written=written)
    body["choices"][0]["message"]["tool_calls"] = [
        {
            "id": f"c{i}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for i, (name, given) in enumerate(calls)
    ]
    body["choices"][0]["finish_reason"] = "tool_calls"
    return body


def in_text(*calls: Call) -> str:
    """The same calls, as a model without tool calls writes them."""
    blocks = [f"```tool\n{json.dumps({'name': name, 'arguments': given})}\n```" for name, given in calls]
    return "I will look.\n" + "\n".join(blocks)


def finish(description: str = "Places in a map by coordinate") -> Call:
    """The last call."""
    return ("finish", {"analysis": GOOD_ANALYSIS, "description": description})


def structural() -> Call:
    """An edit that changes structure and passes the checker."""
    return ("replace_in_file", {"path": "scaffold.toml", "old": "search_results = 100", "new": "search_results = 20"})


@dataclass
class Script:
    """A reviewer that plays a list of replies: what it answers depends on how far the conversation is, not on how
    often it is asked, so that a reply that is asked for twice shows."""

    replies: Sequence[dict[str, Any] | Answer]
    asked: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, request: dict[str, Any]) -> Answer:
        self.asked.append(request)
        said = sum(message["role"] == "assistant" for message in request["messages"])
        reply = self.replies[min(said, len(self.replies) - 1)]
        return reply if isinstance(reply, Answer) else Answer(body=reply)

    def told(self, request: int = -1) -> str:
        """What came back last, in one of the requests."""
        messages = self.asked[request]["messages"]
        last = max(i for i, message in enumerate(messages) if message["role"] == "assistant")
        return "\n".join(str(message["content"]) for message in messages[last + 1 :])


QUICK = Patience(attempts=3, first_wait=0.01, longest_wait=0.1, timeout=20.0)


def review(
    base: str,
    given: Evidence,
    at: Desk,
    options: LlmOptions | None = None,
    name: str = "hosted_vllm/toy",
    patience: Patience = QUICK,
    key: str | None = None,
) -> Revision:
    """The revision that comes of a review by the model at this address."""

    async def once() -> Revision:
        model = LiteLLM(name, Sampling(), api_base=base, patience=patience, api_key=key)
        reviewer = LlmReviewer(model, options)
        try:
            await reviewer.ready()
            return await reviewer.revise(given, at)
        finally:
            await reviewer.close()

    return asyncio.run(once())


def records(at: Desk) -> list[dict[str, Any]]:
    """The transcript."""
    return [json.loads(line) for line in (at.folder / "transcript.jsonl").read_text().splitlines()]


Reviewed = Callable[..., Revision]
