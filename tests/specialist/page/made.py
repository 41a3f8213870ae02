"""A search without its hours: collecting, selecting and preparing are the real ones; what models did is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from automem import runs, scaffold
from automem.episode import RESULT, EpisodeResult, load_result, write_json
from automem.metrics import Counts
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold, PlayedSpecialist, Run
from automem.trace import RunTrace
from meta.settings import GateSettings
from specialist.adapter import CONFIG, MANIFEST, WEIGHTS, BaseModelId, Manifest, identity_of
from specialist.example import Dataset
from specialist.prepare import prepare
from specialist.recipe import DataRecipe, LoraRecipe, Recipe, TrainRecipe
from specialist.search import ledger, storage
from specialist.search.collecting import collect
from specialist.search.ledger import Row, Seen
from specialist.search.outcome import outcome, summary
from specialist.search.players import run_config
from specialist.search.search import DATASET, SELECTION
from specialist.search.settings import BaseSettings, CollectSettings, DeciderSettings, SearchConfig
from specialist.search.storage import RESULT as OVER
from specialist.search.storage import SearchFolder
from specialist.select import select
from specialist.select.rules import Rules
from specialist.train import curve, spec
from specialist.train.finish import losses
from specialist.train.spec import ADAPTER, Begun, Setup, TrainSpec

SCRIPTED = PlayedModel(name="scripted")
RECIPE = Recipe(
    name="small",
    data=DataRecipe(examples=16, minimum=4, best_episodes=0.7, held_out_share=0.3),
    lora=LoraRecipe(rank=4, alpha=8),
    train=TrainRecipe(epochs=2),
)
STEEP = RECIPE.model_copy(update={"train": RECIPE.train.model_copy(update={"learning_rate": 0.9})})
KEY, STEPS = "0123456789ab", 40
LEARNT, GATE, HELD_OUT = (100, 101, 102), (200, 201, 202, 203), (300, 301, 302)


class _Nobody:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None

    async def stepped(self, *_: object) -> None: ...


def begun() -> SearchFolder:
    """A search that has collected episodes, in the folder of runs."""
    played = scaffold.load("crafter/small")
    there = PlayedScaffold(ref=played.ref, identity=played.identity, folder=f"scaffolds/{played.ref}")
    config = SearchConfig(
        name="small",
        game="crafter",
        created=runs.now(),
        base=BaseSettings(name="smollm2"),
        gameplay=SCRIPTED,
        scaffold=there,
        collect=CollectSettings(teacher=SCRIPTED, tasks=(_task(LEARNT),)),
        recipe=RECIPE,
        tasks=(_task(GATE),),
        held_out=HELD_OUT,
        decider=DeciderSettings(width=2),
        gate=GateSettings(batch=2, most=4),
        versions=runs.versions(),
    )
    search = storage.create(config, played)
    asyncio.run(collect(search, 1, _Nobody(), workers=1))  # type: ignore[arg-type]
    return search


def selected(search: SearchFolder) -> Dataset:
    """Select from what was collected, and prepare it."""
    trace = RunTrace(runs.load(str(search.collected(1))))
    folder = search.data(KEY)
    chosen = asyncio.run(
        select([trace], RECIPE.data, Rules(), folder / SELECTION, search.config.evaluation_seeds, processes=1)
    )
    return prepare(
        chosen.candidates(), RECIPE.data, folder / DATASET, scaffold=search.scaffold(), game="crafter",
        runs=search.folder.parent,
    )  # fmt: skip


def training(
    search: SearchFolder, data: Dataset, recipe: Recipe, trained: Sequence[float | None], why: str = ""
) -> Row:
    """A training run with these losses by step, held-out ones twice; with a reason it was stopped."""
    folder = search.training(recipe, data.facts.identity)
    told = Begun(
        spec=TrainSpec(dataset=data.folder, base="smollm2", recipe=recipe),
        setup=Setup(device="cpu", processes=1, dtype="float32", batch=2, checkpointing=False),
        base=BaseModelId(name="smollm2", fingerprint="f" * 64),
        data=data.facts.identity,
    )
    told.write(folder)
    steps = len(trained)
    curve.append(folder, curve.Row(0, steps, 1.0, held_out=2.0))
    for step, loss in enumerate(trained, start=1):
        curve.append(folder, curve.Row(step, steps, 1.0 + step, tokens=100 * step, loss=loss, learning_rate=0.1))
    row = Row(
        number="1.1.1", recipe=recipe, why="", data=data.facts.identity, examples=data.facts.train,
        training=folder.name, outcome="trained", seconds=1.0 + steps, tokens=100 * steps,
    )  # fmt: skip
    if why:
        spec.record_failure(folder, why)
        return row.model_copy(update={"outcome": "diverged", "told": why, "number": "1.2.1"})
    curve.append(folder, curve.Row(steps, steps, 2.0 + steps, tokens=100 * steps, held_out=0.5))
    made = _adapter(folder, told, data)
    return row.model_copy(update={"adapter": made.identity, "losses": made.losses})


def _adapter(folder: Path, told: Begun, data: Dataset) -> Manifest:
    there = folder / ADAPTER
    there.mkdir()
    (there / CONFIG).write_text(json.dumps({"r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}))
    (there / WEIGHTS).write_bytes(b"weights")
    manifest = Manifest(
        identity=identity_of(there), base=told.base, recipe=told.spec.recipe, data=told.data,
        scaffold=data.facts.scaffold, game="crafter", consult_turns=1, created=runs.now(), versions=runs.versions(),
        losses=losses(curve.rows(folder)),
    )  # fmt: skip
    (there / MANIFEST).write_text(manifest.model_dump_json())
    return manifest


def played(search: SearchFolder, who: str, purpose: str, progressions: Sequence[float], **counts: int) -> Run:
    """Finished episodes of a player on the first seeds of a purpose, as far as reports look at them."""
    seeds = GATE if purpose == "gate" else HELD_OUT
    folder = search.play(who, purpose)
    specialist = PlayedSpecialist(model=PlayedModel(name="smollm2"))
    config = run_config(search, folder, [_task(seeds)], SCRIPTED, specialist)
    folder.parent.mkdir(parents=True, exist_ok=True)
    run = runs.create(config, {"crafter": search.scaffold()}, folder)
    example = load_result(runs.load(str(search.collected(1))).jobs()[0].folder)
    assert example is not None
    for job, progression in zip(run.jobs(), progressions, strict=False):
        turns = counts.get("memory_turns", 80)
        changed = Counts(**{"steps": STEPS, "memory_turns": turns, "writes": 40, "searches": 40, **counts})
        result = replace(example, seed=job.seed, progression=progression, counts=changed)
        job.folder.mkdir(parents=True)
        write_json(job.folder / RESULT, {**asdict(result), "counts": changed.as_dict()})
    return run


def results(run: Run) -> list[EpisodeResult]:
    """Of a run's finished episodes."""
    return [result for job in run.jobs() if (result := load_result(job.folder)) is not None]


def finished(search: SearchFolder, gains: Sequence[float] = (0.2, 0.25, 0.3)) -> SearchFolder:
    """Bring a search that has collected to its end: one specialist accepted, one training run diverged.

    Args:
        gains: of the specialist in progression, on each held-out seed.
    """
    data = selected(search)
    made = training(search, data, RECIPE, [2.0 * 0.97**step for step in range(60)])
    steep = training(search, data, STEEP, [2.0, 40.0, None], why="the loss left all bounds after step 2")
    before = results(played(search, "base", "gate", [0.1] * 4, valid_memory_turns=16, duplicate_writes=20))
    after = results(played(search, made.adapter, "gate", [0.3] * 4, valid_memory_turns=72, duplicate_writes=4))
    look = Seen(seeds=2, mean=0.2, lower=-0.1, upper=0.5, why="2 seeds: cannot tell yet")
    last = Seen(seeds=4, mean=0.2, lower=0.05, upper=0.35, why="4 seeds: better by more than 2 points")
    made = made.model_copy(
        update={
            "outcome": "accepted", "told": last.why, "looks": (look, last), "before": summary(before),
            "after": summary(after), "why": "the recipe that the search began with",
        }
    )  # fmt: skip
    ledger.write(search.folder, [made, steep.model_copy(update={"why": "a steeper one"})])
    over(search, made, gains)
    return search


def over(search: SearchFolder, best: Row, gains: Sequence[float]) -> None:
    """Play held-out seeds, and write what the search came to."""
    base = played(search, "base", "held-out", [0.1] * 3, valid_memory_turns=16, duplicate_writes=20, empty_searches=20)
    made = played(
        search, best.adapter, "held-out", [0.1 + gain for gain in gains], valid_memory_turns=72, duplicate_writes=4,
        empty_searches=20,
    )  # fmt: skip
    found = {
        "trainings": 2,
        "accepted": best.outcome == "accepted",
        "best": {
            "number": best.number, "adapter": best.adapter, "folder": f"trainings/{best.training}/{ADAPTER}",
            "outcome": best.outcome, "losses": best.losses,
        },
        "held_out": outcome(results(base), results(made)),
    }  # fmt: skip
    write_json(search.folder / OVER, found)


def _task(seeds: tuple[int, ...]) -> PlannedTask:
    return PlannedTask(task="Crafter", seeds=seeds, steps=STEPS)
