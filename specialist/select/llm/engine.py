"""The engine `llm`: a meta-LLM judges the best candidates of each episode, batch by batch, and says why.

What it decided is kept on disk, with the whole dialogue, so that nothing is judged, or paid for, twice::

    <search>/judged/<key>/verdicts.json, transcript.jsonl
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from automem.episode import write_json
from automem.errors import UserError
from automem.models.protocol import ChatModel
from automem.trace import EpisodeTrace
from meta.dialogue import Dialogue, DialogueFailed
from meta.dialogue.model import make as make_model
from meta.dialogue.model import options_of
from meta.reviewer import Budget
from meta.storage import read_json
from specialist.candidate import Candidate
from specialist.select.engine import Reason, Verdict
from specialist.select.llm import prompting, tools
from specialist.select.llm.criteria import Criteria, Version
from specialist.select.llm.options import LlmEngineOptions
from specialist.select.llm.prompting import id_of
from specialist.select.llm.room import Given, Room
from specialist.select.rules import Rules

if TYPE_CHECKING:
    from specialist.search.settings import EngineSettings

VERDICTS, TRANSCRIPT = "verdicts.json", "transcript.jsonl"

NOT_SHOWN, LEFT_OUT, NO_VERDICT, OTHER = "not shown", "left out", "no verdict", "other"
"""Codes of reasons, beside the criteria's names: `rules` found others better; the judge was asked for it twice and
left it out; its dialogue ended before; none of the criteria was named."""

WORST = -10.0
"""Score of a candidate on which there is no verdict; rejected ones are from there to 0."""


class _Kept(BaseModel):
    """``verdicts.json``: what a dialogue came to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    criteria: int
    verdicts: dict[str, Given]
    failed: str = ""
    """Why the dialogue ended before every candidate had a verdict."""
    usd: float = 0.0


class LlmEngine:
    """See the module, and `specialist.select.engine.Engine`."""

    name = "llm"
    local = False

    def __init__(
        self, model: ChatModel, options: LlmEngineOptions, folder: Path, version: Version | None = None
    ) -> None:
        """Nothing is reached yet.

        Args:
            model: whom to ask.
            options: how, and how much.
            folder: of the search; criteria, judgements and transcripts are kept there.
            version: of the criteria; None for those in force.
        """
        self._model = model
        self._options = options
        self._folder = folder
        self._criteria = Criteria(folder)
        self._version = version
        self._rules = Rules()
        self._ready = False

    def in_force(self) -> str:
        """See `specialist.select.engine.Written`."""
        return str((self._version or self._criteria.in_force()).number)

    def by(self, criteria: str) -> LlmEngine:
        """See `specialist.select.engine.Written`."""
        return LlmEngine(self._model, self._options, self._folder, self._criteria.version(criteria))

    def adopt(self, criteria: str) -> None:
        """See `specialist.select.engine.Written`."""
        self._criteria.adopt(self._criteria.version(criteria))

    @property
    def version(self) -> str:
        """Of everything that decides: the criteria, who judges by them, and what it is shown."""
        return self._identity(self._version or self._criteria.in_force())

    async def judge(self, episode: EpisodeTrace, candidates: Sequence[Candidate]) -> Sequence[Verdict]:
        """See `Engine.judge`. Raises `UserError` when the model cannot be reached; what was judged is kept."""
        if not candidates:
            return []
        version = self._version or self._criteria.in_force()
        hints = await asyncio.to_thread(lambda: asyncio.run(self._rules.judge(episode, candidates)))
        chosen = most_promising(candidates, hints, self._options.most)
        verdicts = [_without(NOT_SHOWN, f"not shown to the judge; rules: {hint.text}") for hint in hints]
        for start in range(0, len(chosen), self._options.batch):
            batch = chosen[start : start + self._options.batch]
            kept = await self._batch(episode, candidates, hints, batch, version)
            for i in batch:
                verdicts[i] = _verdict(kept, id_of(candidates[i]))
        return verdicts

    async def _batch(
        self,
        episode: EpisodeTrace,
        candidates: Sequence[Candidate],
        hints: Sequence[Verdict],
        batch: Sequence[int],
        version: Version,
    ) -> _Kept:
        """The verdicts on some candidates: those that are kept, or those that a dialogue comes to."""
        ids = tuple(id_of(candidates[i]) for i in batch)
        key = _digest([self._identity(version), candidates[batch[0]].place.episode, ids])[:20]
        folder = self._folder / "judged" / key
        kept = _read(folder / VERDICTS)
        if kept is not None:
            return kept
        if self._options.usd is not None and await asyncio.to_thread(self._spent) >= self._options.usd:
            return _Kept(criteria=version.number, verdicts={}, failed="the engine's budget of money is spent")
        await self._reach()
        records = {candidate.place.step: candidate.record for candidate in candidates}
        shown = [prompting.shown(candidates[i], hints[i] if self._options.hints else None, records) for i in batch]
        offered = tools.tools(self._options.revise)
        author = f"the judge of {episode.task}, seed {episode.seed}, {key[:8]}"
        room = Room(episode, ids, self._criteria, version, author)
        words = prompting.Words(episode, version, shown, tuple(offered.values()), self._options.revise)
        budget = Budget(self._options.turns, self._options.tokens, None, self._options.minutes)
        dialogue = Dialogue(self._model, self._options, offered, words, budget, folder / TRANSCRIPT, {"judged": key})
        failed = ""
        try:
            spent = await dialogue.run(room)
        except DialogueFailed as ended:
            failed, spent = str(ended), ended.spent
        kept = _Kept(criteria=version.number, verdicts=room.verdicts, failed=failed, usd=spent.usd)
        write_json(folder / VERDICTS, kept.model_dump(mode="json"))
        return kept

    async def close(self) -> None:
        """Let go of connections. Safe to call twice."""
        await self._model.close()

    async def _reach(self) -> None:
        if not self._ready:
            await self._model.ready()
            self._ready = True

    def _identity(self, version: Version) -> str:
        decides = self._options.model_dump(mode="json", exclude={"timeout", "retries", "usd"})
        return _digest([version.text, self._model.name, decides, self._rules.version])[:12]

    def _spent(self) -> float:
        """Dollars of all dialogues that are over."""
        found = (_read(path) for path in (self._folder / "judged").glob(f"*/{VERDICTS}"))
        return sum(kept.usd for kept in found if kept is not None)


def most_promising(candidates: Sequence[Candidate], hints: Sequence[Verdict], most: int) -> list[int]:
    """Which candidates are shown: the best by `rules`, of LOG and of PLAN half each where there are as many.

    Candidates of the same score come in an order that is as good as random and always the same. Returns positions,
    in the order of the trace.
    """

    def order(i: int) -> tuple[float, str]:
        return -hints[i].score, _digest(str(candidates[i].place))

    everything = range(len(candidates))
    of = {p: sorted((i for i in everything if candidates[i].place.phase == p), key=order) for p in ("log", "plan")}
    taken = [i for phase in of.values() for i in phase[: most // 2]]
    left = sorted((i for phase in of.values() for i in phase[most // 2 :]), key=order)
    return sorted([*taken, *left[: most - len(taken)]])


def _verdict(kept: _Kept, name: str) -> Verdict:
    given = kept.verdicts.get(name)
    if given is None:
        if kept.failed:
            return _without(NO_VERDICT, f"no verdict: {kept.failed}")
        return _without(LEFT_OUT, "the judge was asked for it twice, and left it out")
    score = given.score if given.accept else given.score + WORST
    code = given.criterion or OTHER
    return Verdict(score, given.accept, (Reason(code, 1, score),), f"{code}, {given.score:g} of 10: {given.reason}")


def _without(code: str, text: str) -> Verdict:
    return Verdict(WORST, False, (Reason(code, 1, WORST),), text)


def _read(path: Path) -> _Kept | None:
    data = read_json(path)
    if data is None:
        return None
    try:
        return _Kept.model_validate(data)
    except ValidationError as error:
        raise UserError(
            f"{path}: cannot be read ({error}); remove its folder, and these candidates are judged again"
        ) from error


def _digest(decides: Any) -> str:
    return hashlib.sha256(orjson.dumps(decides, option=orjson.OPT_SORT_KEYS)).hexdigest()


def make(settings: EngineSettings, folder: Path) -> LlmEngine:
    """The engine of these settings; reaches nothing. Raises `UserError`."""
    whose = "engine llm"
    options = options_of(LlmEngineOptions, settings.options, whose)
    return LlmEngine(make_model(settings.model, settings.api_base, options, whose), options, folder)
