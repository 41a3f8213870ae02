"""A meta-LLM behind HTTP that judges and decides as a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from automem.trace import EpisodeTrace
from specialist.candidate import Candidate
from specialist.search.settings import EngineSettings
from specialist.select import engines
from specialist.select.engine import Verdict
from specialist.select.llm import LlmEngine
from tests.meta.reviewers.llm.setting import Call, calling
from tests.models.fake_openai import Answer


def ids(request: dict[str, Any]) -> list[str]:
    """The candidates that a judge is asked about."""
    return request["messages"][1]["content"].rsplit("Judge ", 1)[1].strip().rstrip(".").split(", ")


def said(request: dict[str, Any]) -> int:
    """How many replies the model wrote before, in this conversation."""
    return sum(message["role"] == "assistant" for message in request["messages"])


def told(request: dict[str, Any]) -> str:
    """What came back last."""
    messages = request["messages"]
    last = max(i for i, message in enumerate(messages) if message["role"] == "assistant")
    return "\n".join(str(message["content"]) for message in messages[last + 1 :])


def judging(names: Sequence[str], accept: bool = True, score: float = 7, **more: Any) -> Call:
    """Verdicts on these candidates."""
    given = {"accept": accept, "score": score, "reason": "it wrote what happened", "criterion": "short"} | more
    return ("judge", {"verdicts": [{"id": name, **given} for name in names]})


@dataclass
class Model:
    """Answers by how far the conversation is: `reply(candidates, number of replies before)` makes a body."""

    reply: Callable[[list[str], int], dict[str, Any] | Answer]
    asked: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, request: dict[str, Any]) -> Answer:
        self.asked.append(request)
        made = self.reply(ids(request), said(request))
        return made if isinstance(made, Answer) else Answer(body=made)


def accepting() -> Model:
    """Accepts everything at once."""
    return Model(lambda names, said: calling(judging(names)))


def engine(base: str, folder: Path, **options: Any) -> LlmEngine:
    """The engine as a search makes it."""
    given = {"most": 8, "batch": 4, "retries": 0} | options
    settings = EngineSettings(kind="llm", model="hosted_vllm/toy", api_base=base, options=given)
    made = engines.make(settings, folder)
    assert isinstance(made, LlmEngine)
    return made


def judged(made: LlmEngine, episode: EpisodeTrace, found: Sequence[Candidate]) -> list[Verdict]:
    """What the engine says of them."""

    async def once() -> list[Verdict]:
        try:
            return list(await made.judge(episode, found))
        finally:
            await made.close()

    return asyncio.run(once())
