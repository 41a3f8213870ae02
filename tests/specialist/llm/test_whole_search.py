"""A search whose engine and decider are both a meta-LLM: what they hand to each other, and that it resumes for free.

Training and play are stood in for (`tests.specialist.search.test_search`); dialogues go over HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from automem.errors import UserError
from automem.runs import PlayedModel
from meta.settings import GateSettings
from specialist import recipe as recipes
from specialist.search import deciders, ledger, storage
from specialist.search import search as module
from specialist.search.ledger import Row
from specialist.search.run import SearchRequest, plan
from specialist.search.search import Search
from specialist.search.settings import BaseSettings, DeciderSettings, EngineSettings
from specialist.select import engines
from specialist.select.engine import Written
from specialist.select.llm import Criteria
from tests.meta.reviewers.llm.setting import calling
from tests.models.fake_openai import Answer, fake_openai, refusal
from tests.specialist.llm.meta_llm import ids, judging, said
from tests.specialist.search.test_search import Players, Stopped, Watcher, World

REVISED = "## short\nFewer words are better.\n\n## new ground\n" + "Places nobody saw before. " * 8
OPTIONS = {"retries": 0}


class MetaLlm:
    """Judges and decides: the judge of seed 7 revises the criteria, and the decider's third round undoes that."""

    def __init__(self) -> None:
        self.paid = 0
        self.fail_at: int | None = None

    def __call__(self, request: dict[str, Any]) -> Answer:
        if self.fail_at == self.paid:
            return refusal(503, "gone")
        self.paid += 1
        system, opening = (message["content"] for message in request["messages"][:2])
        if "You judge how" in system:
            return Answer(body=self._judge(system, opening, request))
        return Answer(body=self._decide(opening, said(request)))

    def _judge(self, system: str, opening: str, request: dict[str, Any]) -> dict:
        if "seed 7" in opening and "criteria, version 1" in system and said(request) == 0:
            return calling(("revise_criteria", {"text": REVISED, "why": "nobody looks for new places"}))
        names = ids(request)
        if "## new ground" in system:
            return calling(judging(names[:2], criterion="new ground"), judging(names[2:], accept=False))
        return calling(judging(names))

    def _decide(self, opening: str, replies: int) -> dict:
        if replies == 0:
            return calling(("ledger", {}), ("criteria_versions", {}))
        number = int(opening.split("This is round ")[1].split()[0])
        given: dict[str, Any] = {"changes": {"lora.rank": 4 * number}, "why": "a larger adapter learns more"}
        if number == 3:
            given["criteria"] = "1"
        return calling(("propose", given), ("finish", {"why": "one change at a time"}))


@pytest.fixture
def world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(module, "train", made.train)
    return made


def go(world: World, base: str, name: str) -> tuple[dict[str, Any], list[Row]]:
    small = recipes.load("tiny")
    data = small.data.model_copy(update={"examples": 8, "minimum": 2, "best_episodes": 1.0, "held_out_share": 0.3})
    planned = plan(
        SearchRequest(
            game="Crafter",
            base=BaseSettings(name="smollm2"),
            gameplay=PlayedModel(name="scripted"),
            recipe=small.model_copy(update={"data": data}),
            scaffold="crafter/v0",
            traces=("taught",),
            held_out="300..301",
            gate=GateSettings(batch=4, most=4),
            name=name,
            resume=True,
            engine=EngineSettings(
                kind="llm", model="hosted_vllm/toy", api_base=base, options={"most": 4, "batch": 4} | OPTIONS
            ),
            decider=DeciderSettings(
                kind="llm", model="hosted_vllm/toy", api_base=base, rounds=3, width=1, options=OPTIONS
            ),
        )
    )
    there = storage.exists(name)
    search = storage.load(name) if there else storage.create(planned.config, planned.scaffold)
    decider, engine = (
        deciders.make(search.config.decider, search.folder),
        engines.make(search.config.engine, search.folder),
    )

    async def once() -> dict[str, Any]:
        try:
            return await Search(search, decider, engine, Players(world), Watcher(), 2).run()  # type: ignore[arg-type]
        finally:
            await decider.close()
            assert isinstance(engine, Written)
            await engine.close()

    return asyncio.run(once()), ledger.read(search.folder)


@pytest.fixture
def served() -> Iterator[tuple[MetaLlm, str]]:
    model = MetaLlm()
    with fake_openai(model) as fake:
        yield model, fake.base


def test_criteria_are_handed_on_from_judge_to_decider_and_back(
    world: World, served: tuple[MetaLlm, str], folder: Path
) -> None:
    _, base = served
    result, rows = go(world, base, "whole")
    assert [(row.recipe.lora.rank, row.criteria) for row in rows] == [(4, "1"), (8, "2"), (12, "1")]
    assert rows[0].data == rows[2].data != rows[1].data, "what an earlier version selected is found again"
    assert result["trainings"] == 3
    kept = Criteria(folder.parent / "whole")
    assert kept.in_force().number == 1 and kept.version("2").by.startswith("the judge of Crafter, seed 7")
    second = (folder.parent / "whole/decided/2/transcript.jsonl").read_text()
    assert "The criteria in force: version 2" in second and "new ground" in second


def test_a_search_that_was_stopped_anywhere_ends_the_same_and_pays_for_nothing_twice(
    world: World, served: tuple[MetaLlm, str]
) -> None:
    model, base = served
    whole, rows = go(world, base, "whole")
    paid, events = model.paid, len(world.events)
    assert paid == 3 * 2 + 3 + 2, "in the third round nothing is judged anew"
    assert events > 7
    for stop in (0, 3, 7):
        model.paid, world.stop_at = 0, stop
        world.events.clear()
        with pytest.raises(Stopped):
            go(world, base, f"cut-{stop}")
        assert go(world, base, f"cut-{stop}") == (whole, rows)
        assert model.paid == paid

    model.paid, model.fail_at = 0, 1  # in the middle of the first round's deliberation
    with pytest.raises(UserError):
        go(world, base, "gone")
    model.fail_at = None
    assert go(world, base, "gone") == (whole, rows)
    assert model.paid == paid


def test_a_proposal_that_selects_too_little_is_a_row_of_the_ledger_and_the_search_goes_on(
    world: World, served: tuple[MetaLlm, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, base = served
    decide = model._decide

    def greedy(opening: str, replies: int) -> dict:
        if "This is round 2" in opening and replies == 1:
            more = {"changes": {"data.examples": 4000, "data.minimum": 3000}, "why": "more is better than less"}
            return calling(("propose", more), ("finish", {"why": "as many as there are"}))
        return decide(opening, replies)

    monkeypatch.setattr(model, "_decide", greedy)
    result, rows = go(world, base, "greedy")
    assert [row.outcome == "short" for row in rows] == [False, True, False]
    assert "the recipe needs 3000" in rows[1].told and not rows[1].adapter
    assert result["trainings"] == 3 and result["best"]["number"] != "2.1.1"
