"""The parts of a search that need no game: its settings, halving, rungs, and the ledger."""

from __future__ import annotations

import asyncio
import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from automem.errors import UserError
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold
from meta.settings import GateSettings
from specialist import recipe as recipes
from specialist.search import ledger
from specialist.search.deciders.halving import Halving
from specialist.search.ledger import Row
from specialist.search.rungs import rungs, shortened, survivors
from specialist.search.settings import BaseSettings, CollectSettings, SearchConfig

SCRIPTED = PlayedModel(name="scripted")


def task(*seeds: int) -> PlannedTask:
    return PlannedTask(task="Crafter", seeds=seeds, steps=10)


def config(**changes: object) -> SearchConfig:
    settings: dict[str, object] = {
        "name": "s", "game": "crafter", "created": "now",
        "base": BaseSettings(name="smollm2"),
        "gameplay": SCRIPTED,
        "scaffold": PlayedScaffold(ref="crafter/small", identity="a" * 64, folder="scaffolds/crafter/small"),
        "collect": CollectSettings(teacher=SCRIPTED, tasks=(task(1, 2),)),
        "recipe": recipes.load("tiny"),
        "tasks": (task(3, 4),),
        "held_out": (5, 6),
        "gate": GateSettings(batch=2, most=2),
    }  # fmt: skip
    return SearchConfig.model_validate(settings | changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"held_out": (4, 9)}, "seed 4 is a gate seed and a held-out seed"),
        ({"collect": CollectSettings(teacher=SCRIPTED, tasks=(task(1, 3),))}, "seed 3 is a training seed"),
        ({"collect": CollectSettings(teacher=SCRIPTED, tasks=(task(5),))}, "seed 5 is a training seed"),
        ({"collect": CollectSettings(teacher=SCRIPTED)}, "learn either from seeds"),
        ({"base": BaseSettings(name="smollm2", server="hosted_vllm/x", merged=True)}, "leave merged out"),
        ({"gate": GateSettings(batch=2, most=8)}, "the gate plays up to 8 seeds"),
        ({"tasks": (task(3, 4), PlannedTask(task="CorridorBattle", seeds=(3,), steps=9))}, "the same gate seeds"),
    ],
)
def test_seeds_that_would_prove_nothing_are_refused(changes: dict, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        config(**changes)


def test_a_search_is_the_same_wherever_its_server_is_and_another_one_with_other_settings() -> None:
    moved = config(base=BaseSettings(name="smollm2", api_base="http://127.0.0.1:9/v1"), name="t", created="later")
    assert config().differences(moved) == []
    other = config().recipe.model_copy(update={"name": "other"})
    found = config().differences(config(recipe=other, held_out=(7, 8)))
    assert [line.partition(":")[0] for line in found] == ["recipe", "held_out"]
    assert "(5" not in found[0] and "[5, 6] then, [7, 8] now" in found[1]


@given(width=st.integers(1, 64), keep=st.integers(2, 8))
def test_rungs_narrow_down_to_one_that_is_trained_in_full(width: int, keep: int) -> None:
    found = rungs(width, keep)
    assert found[0].recipes == width and found[-1].recipes == 1 and found[-1].part == 1
    assert all(after.recipes == math.ceil(before.recipes / keep) for before, after in pairwise(found))
    assert all(after.part == pytest.approx(before.part * keep) for before, after in pairwise(found))


def test_a_shortened_recipe_asks_for_a_part_of_the_epochs_and_nothing_else() -> None:
    whole = recipes.load("tiny")
    part = shortened(whole, 0.25)
    assert part.train.epochs == whole.train.epochs / 4
    assert shortened(whole, 1) is whole
    assert part.model_copy(update={"train": whole.train}) == whole


@given(losses=st.lists(st.floats(0, 10) | st.just(math.inf), max_size=12), most=st.integers(0, 12))
def test_survivors_are_the_lowest_finite_losses(losses: list[float], most: int) -> None:
    kept = survivors(losses, most)
    finite = sorted(loss for loss in losses if math.isfinite(loss))
    assert sorted(losses[i] for i in kept) == finite[:most]
    assert kept == sorted(set(kept))


def row(number: str, recipe: recipes.Recipe, loss: float, outcome: str = "unjudged") -> Row:
    return Row.model_validate(
        {
            "number": number, "recipe": recipe, "why": "", "data": "d", "examples": 9, "training": "t",
            "adapter": "a" * 64, "losses": {"held_out_after": loss} if loss < math.inf else {}, "outcome": outcome,
        }
    )  # fmt: skip


def propose(width: int, number: int = 1, rows: list[Row] | None = None, seed: int = 0) -> list[recipes.Recipe]:
    start = recipes.load("tiny")
    return [p.recipe for p in asyncio.run(Halving(width, seed).propose(number, rows or [], start))]


def test_halving_begins_with_the_given_recipe_and_varies_what_it_may() -> None:
    start = recipes.load("tiny")
    found = propose(8)
    assert found[0] == start and len(found) == 8
    assert len({recipe.model_dump_json() for recipe in found}) == 8, "nothing is proposed twice"
    for recipe in found:
        assert recipe.data == start.data, "another dataset would make losses incomparable"
        assert recipe.lora.alpha / recipe.lora.rank == pytest.approx(start.lora.alpha / start.lora.rank)
    assert propose(8) == found and propose(8, seed=1) != found


def test_halving_goes_on_from_the_lowest_held_out_loss_of_what_was_trained_in_full() -> None:
    start = recipes.load("tiny")
    best = start.model_copy(update={"lora": start.lora.model_copy(update={"rank": 7})})
    dropped = start.model_copy(update={"lora": start.lora.model_copy(update={"rank": 99})})
    rows = [row("1.1.1", start, 0.9), row("1.2.1", best, 0.5), row("1.3.1", dropped, 0.1, "dropped")]
    found = propose(4, 2, rows)
    assert start not in found and best not in found
    changes = [sum(a != b for a, b in zip(_plain(best), _plain(recipe), strict=True)) for recipe in found]
    assert max(changes) <= 3 and all(recipe.lora.rank != 99 for recipe in found)


def _plain(recipe: recipes.Recipe) -> list[object]:
    return [recipe.lora.rank, recipe.lora.alpha, recipe.train.learning_rate, recipe.train.epochs]


def test_the_ledger_comes_back_as_it_was_written_and_damage_is_told(tmp_path: Path) -> None:
    rows = [row("1.1.1", recipes.load("tiny"), 0.5), row("1.2.1", recipes.load("tiny"), math.inf, "diverged")]
    assert ledger.read(tmp_path) == []
    ledger.write(tmp_path, rows[:1])
    ledger.write(tmp_path, rows)
    assert [one.number for one in ledger.read(tmp_path)] == ["1.1.1", "1.2.1"]
    assert ledger.read(tmp_path)[0] == rows[0]
    (tmp_path / ledger.LEDGER).write_text('{"number": 1}\n')
    with pytest.raises(UserError, match="remove it and resume"):
        ledger.read(tmp_path)
