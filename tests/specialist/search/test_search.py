"""The search as a whole: real traces are collected and selected; training and play are stood in for, to be quick.

What is at stake here is the order of things, what is kept, and that a search that was stopped anywhere ends the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from automem.episode import EpisodeResult
from automem.errors import UserError
from automem.metrics import Counts
from automem.runs import PlayedModel
from meta.gate import Look
from meta.settings import GateSettings
from specialist import recipe as recipes
from specialist.adapter import CONFIG, MANIFEST, WEIGHTS, Adapter, BaseModelId, Manifest, identity_of
from specialist.adapter import load as load_adapter
from specialist.example import Dataset, Example
from specialist.search import ledger, storage
from specialist.search import search as module
from specialist.search.deciders.halving import Halving
from specialist.search.ledger import Row
from specialist.search.run import SearchPlan, SearchRequest, plan
from specialist.search.search import Search
from specialist.search.settings import BaseSettings, DeciderSettings
from specialist.search.storage import SearchFolder
from specialist.select.rules import Rules
from specialist.train.curve import Row as CurveRow
from specialist.train.spec import ADAPTER, BEGUN, Begun, Diverged, Setup, TrainSpec, record_failure

SCRIPTED = PlayedModel(name="scripted")


class Stopped(Exception):
    """Somebody killed the search."""


class World:
    """What is stood in for, what was asked of it, and when it is to stop."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.stop_at: int | None = None
        self.diverge: Callable[[recipes.Recipe], bool] = lambda recipe: False
        self.gain: Callable[[str], float] = lambda identity: 0.3

    def event(self, text: str) -> None:
        """Something is about to be done; this is where the search may be killed."""
        if self.stop_at is not None and len(self.events) == self.stop_at:
            self.stop_at = None
            raise Stopped
        self.events.append(text)

    async def train(self, what: TrainSpec, folder: Path, watcher: object = None) -> Adapter:
        self.event(f"train {folder.name}")
        folder.mkdir(parents=True, exist_ok=True)
        if self.diverge(what.recipe):
            record_failure(folder, "the loss is not a number")
            raise Diverged("the loss is not a number")
        (folder / BEGUN).write_text(
            Begun(
                spec=what,
                setup=Setup(device="cpu", processes=1, dtype="float32", batch=1, checkpointing=False),
                base=BaseModelId(name=what.base, fingerprint="f"),
                data="",
            ).model_dump_json()
        )
        made = folder / ADAPTER
        made.mkdir()
        lora = what.recipe.lora
        made.joinpath(CONFIG).write_text(json.dumps({"r": lora.rank, "lora_alpha": 1, "target_modules": ["q_proj"]}))
        made.joinpath(WEIGHTS).write_bytes(folder.name.encode())
        data = Dataset(what.dataset)
        loss = abs(lora.rank - 8) / 100 + 1 / (1 + what.recipe.train.epochs)
        manifest = Manifest(
            identity=identity_of(made),
            base=BaseModelId(name=what.base, fingerprint="f"),
            recipe=what.recipe,
            data=data.facts.identity,
            scaffold=data.facts.scaffold,
            game=data.facts.game,
            consult_turns=data.facts.consult_turns,
            created="now",
            versions={},
            losses={"train": loss, "held_out_before": 2.0, "held_out_after": loss},
        )
        made.joinpath(MANIFEST).write_text(manifest.model_dump_json())
        return load_adapter(made)


class Players:
    """Plays by formula: an untrained model comes to 0.2, a specialist to `World.gain` more."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def play(
        self, adapter: Adapter | None, like: Adapter, seeds: Sequence[int], purpose: str
    ) -> tuple[EpisodeResult, ...]:
        name = "" if adapter is None else adapter.identity
        self.world.event(f"play {name[:6]} {purpose} {len(seeds)}")
        gain = 0.0 if adapter is None else self.world.gain(name)
        counts = Counts(
            steps=10, writes=10, duplicate_writes=2 if adapter else 8, memory_turns=10, valid_memory_turns=9
        )
        return tuple(
            EpisodeResult(
                "Crafter",
                seed,
                10,
                10,
                0.2 + gain + 0.001 * (seed % 3),
                {},
                {},
                0.0,
                False,
                True,
                {},
                "s",
                "m",
                counts,
                "",
            )
            for seed in seeds
        )

    async def check_tokens(self, adapter: Adapter, examples: Sequence[Example]) -> None:
        """Asked before a specialist plays for the first time."""
        self.world.event(f"tokens {adapter.identity[:6]}")
        assert examples

    async def close(self) -> None:
        """Nothing to close."""


class Watcher:
    """Hears of it."""

    def __init__(self) -> None:
        self.told_of: list[str] = []

    def opened(self, search: SearchFolder, done: int) -> None: ...
    def doing(self, text: str, steps: int = 0) -> None: ...
    def told(self, text: str) -> None:
        self.told_of.append(text)

    def planned(self, plan: object) -> None: ...
    def row(self, row: CurveRow) -> None: ...
    def looked(self, number: str, look: Look) -> None: ...
    def ended(self, row: Row) -> None: ...
    def turn(self, phase: object, turn: object) -> None: ...
    async def stepped(self, *_: object) -> None: ...
    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None: ...


class Counted(Halving):
    """`halving`, and how often it was asked."""

    def __init__(self, world: World, width: int) -> None:
        super().__init__(width)
        self._world = world

    async def propose(self, number: int, rows: Sequence[Row], start: recipes.Recipe):  # type: ignore[no-untyped-def]
        self._world.event(f"propose {number}")
        return await super().propose(number, rows, start)


def request(name: str, **changes: Any) -> SearchRequest:
    small = recipes.load("tiny")
    data = small.data.model_copy(update={"examples": 20, "minimum": 4, "best_episodes": 1.0, "held_out_share": 0.3})
    given: dict[str, Any] = {
        "game": "Crafter", "base": BaseSettings(name="smollm2"), "gameplay": SCRIPTED,
        "recipe": small.model_copy(update={"data": data}), "scaffold": "crafter/small",
        "collect_seeds": "100..102", "collect_steps": 30, "steps": 10, "held_out": "300..303", "name": name,
        "gate": GateSettings(batch=4, most=40),
        "decider": DeciderSettings(rounds=2, width=3, keep=3),
    }  # fmt: skip
    return SearchRequest(**(given | changes))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("AUTOMEM_RUNS", str(tmp_path / "runs"))
    made = World()
    monkeypatch.setattr(module, "train", made.train)
    return made


def go(world: World, planned: SearchPlan, watcher: Watcher | None = None) -> tuple[SearchFolder, dict[str, Any]]:
    there = storage.exists(planned.config.name)
    search = storage.load(planned.config.name) if there else storage.create(planned.config, planned.scaffold)
    decider = Counted(world, planned.config.decider.width)
    run = Search(search, decider, Rules(), Players(world), watcher or Watcher(), 2).run()  # type: ignore[arg-type]
    return search, asyncio.run(run)


def rows(search: SearchFolder) -> list[Row]:
    return ledger.read(search.folder)


def test_a_search_trains_narrows_down_judges_and_holds_out(world: World) -> None:
    search, result = go(world, plan(request("whole", decider=DeciderSettings(rounds=1, width=3, keep=3))))
    found = rows(search)
    assert sorted(row.outcome for row in found) == ["accepted", "dropped", "dropped", "promoted"]
    best = next(row for row in found if row.outcome == "accepted")
    assert best.recipe.train.epochs == pytest.approx(3 * found[0].recipe.train.epochs), "the last rung trains in full"
    assert best.looks and best.looks[-1].lower is not None and best.looks[-1].lower > 0
    assert best.after["duplicate_write_share"] == pytest.approx(0.2)
    assert result["accepted"] and result["best"]["number"] == best.number
    held_out = result["held_out"]
    assert held_out["pairs"] == 4
    assert held_out["progression"]["difference"]["mean"] == pytest.approx(0.3)
    assert held_out["behaviour"]["duplicate_write_share"]["difference"]["mean"] == pytest.approx(-0.6)
    assert world.events[-2:] == [f"play {best.adapter[:6]} held-out 4", "play  held-out 4"]
    first = next(i for i, event in enumerate(world.events) if event.startswith("play"))
    assert world.events[first - 1] == f"tokens {best.adapter[:6]}", "the server is asked before anything is played"


def test_nothing_learnt_from_comes_from_an_evaluation(world: World) -> None:
    search, _ = go(world, plan(request("seeds", decider=DeciderSettings())))
    used = {e.source.seed for path in search.folder.glob("data/*/dataset") for e in Dataset(path)}
    assert used and used <= {100, 101, 102}
    assert not used & search.config.evaluation_seeds


def test_traces_of_evaluation_seeds_are_refused(world: World) -> None:
    search, _ = go(world, plan(request("first", decider=DeciderSettings())))
    learnt = f"{search.config.name}/collect/1"
    with pytest.raises(UserError, match="101"):
        go(world, plan(request("second", traces=(learnt,), collect_seeds=None, held_out="101,400,401,402")))


def test_a_search_that_was_stopped_anywhere_ends_like_one_that_never_was(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, whole = go(world, plan(request("whole")))
    expected, events = rows(search), list(world.events)
    assert len(events) > 12
    for stop in range(len(events)):
        monkeypatch.setenv("AUTOMEM_RUNS", str(tmp_path / f"cut-{stop}"))
        world.events.clear()
        world.stop_at = stop
        with pytest.raises(Stopped):
            go(world, plan(request("whole")))
        again, result = go(world, plan(request("whole", resume=True)))
        assert rows(again) == expected
        assert result == whole
        trained = [event for event in world.events if event.startswith(("train", "propose"))]
        assert len(trained) == len(set(trained)), "nothing is proposed or trained twice"


def test_a_run_that_diverged_is_recorded_and_another_goes_on(world: World) -> None:
    start = request("x").recipe
    world.diverge = lambda recipe: (
        recipe.lora.rank == start.lora.rank and recipe.train.learning_rate == (start.train.learning_rate)
    )
    search, result = go(world, plan(request("diverged", decider=DeciderSettings(rounds=1, width=4, keep=4))))
    found = {row.outcome: row for row in rows(search)}
    assert "not a number" in found["diverged"].told and not found["diverged"].adapter
    assert result["best"] is not None


def test_with_nothing_trained_there_is_no_best_and_no_held_out_seed_is_played(world: World) -> None:
    world.diverge = lambda recipe: True
    _, result = go(world, plan(request("none")))
    assert result["best"] is None and not any("held-out" in event for event in world.events)


def test_what_plays_no_better_is_not_accepted_and_the_best_of_the_rest_is_held_out_all_the_same(world: World) -> None:
    world.gain = lambda identity: 0.0
    search, result = go(world, plan(request("alike")))
    assert not result["accepted"]
    assert {row.outcome for row in rows(search)} <= {"promoted", "dropped", "inconclusive", "rejected"}
    full = [row for row in rows(search) if row.is_whole]
    assert result["best"]["number"] == min(full, key=lambda row: row.held_out_loss).number


def test_a_second_best_is_held_against_the_best_so_far(world: World) -> None:
    _, result = go(world, plan(request("rounds")))
    gate = [event for event in world.events if "gate" in event]
    first = result["best"]["adapter"][:6]
    assert f"play {first} gate 4" in gate and gate.count("play  gate 4") == 1


def test_without_a_gate_the_lowest_held_out_loss_is_the_best(world: World) -> None:
    search, result = go(world, plan(request("no-gate", gate=None)))
    assert not any(" gate " in event for event in world.events)
    full = [row for row in rows(search) if row.outcome == "unjudged"]
    assert result["best"]["outcome"] == "unjudged"
    assert len(full) == 2 and result["best"]["number"] == min(full, key=lambda row: row.held_out_loss).number
    assert not result["accepted"]


def test_a_search_is_not_resumed_with_other_settings(world: World) -> None:
    go(world, plan(request("mine", decider=DeciderSettings())))
    with pytest.raises(UserError, match=r"held_out: .*then"):
        plan(request("mine", decider=DeciderSettings(), held_out="500..503", resume=True))
    with pytest.raises(UserError, match="there already"):
        plan(request("mine"))


def test_a_later_proposal_that_cannot_be_trained_here_costs_only_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refusing(what: TrainSpec, folder: Path, watcher: object = None) -> Adapter:
        if what.recipe.lora.rank != 4:
            raise UserError("too little memory")
        return await world.train(what, folder, watcher)

    monkeypatch.setattr(module, "train", refusing)
    search, result = go(world, plan(request("refused", decider=DeciderSettings(rounds=1, width=8, keep=8))))
    found = [row for row in rows(search) if row.outcome == "refused"]
    assert found and all("too little memory" in row.told and not row.adapter for row in found)
    assert result["best"] is not None
    large = request("large").recipe
    large = large.model_copy(update={"lora": large.lora.model_copy(update={"rank": 9})})
    with pytest.raises(UserError, match="too little memory"):
        go(world, plan(request("large", recipe=large)))
