"""What a search will do and about what it takes, said before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from specialist.search.rungs import rungs
from specialist.search.settings import SearchConfig
from specialist.train.memory import GIB
from specialist.train.plan import outlook
from specialist.train.spec import TrainSpec


def show(config: SearchConfig, console: Console) -> None:
    """Print it."""
    for line in lines(config):
        console.print(Text(line), highlight=False, soft_wrap=True)


def lines(config: SearchConfig) -> Iterator[str]:
    """In words, stage by stage."""
    yield from _collecting(config)
    data, lora, train = config.recipe.data, config.recipe.lora, config.recipe.train
    yield (
        f"select: {data.examples} examples by {config.engine.kind}, {100 * data.log_share:.0f} % of them LOG; "
        f"at least {data.minimum}"
    )
    whole = rungs(config.decider.width, config.decider.keep)
    trainings = sum(rung.recipes for rung in whole)
    parts = " and ".join(f"{rung.recipes} for {rung.part:.2g} of its epochs" for rung in whole)
    yield f"train: {config.decider.rounds} rounds of {trainings} training runs" + (
        f": {parts}" if trainings > 1 else ""
    )
    targets = lora.targets if isinstance(lora.targets, str) else ", ".join(lora.targets)
    yield (
        f"  the first: rank {lora.rank} on {targets}, learning rate {train.learning_rate:g}, {train.epochs:g} epochs, "
        f"at most {train.cutoff:,} tokens an example"
    )
    yield from _training(config)
    yield from _playing(config)


def first_training(config: SearchConfig) -> TrainSpec:
    """The training run that a search begins with; its dataset is not there yet."""
    return TrainSpec(
        dataset=Path("data"),
        base=config.base.name,
        recipe=config.recipe,
        device=config.training.device,
        processes=config.training.processes,
    )


def _collecting(config: SearchConfig) -> Iterator[str]:
    if config.collect.traces:
        yield f"learn from: {', '.join(config.collect.traces)}"
        return
    episodes = sum(len(task.seeds) for task in config.collect.tasks)
    steps = max(task.steps for task in config.collect.tasks)
    seeds = config.collect.tasks[0].seeds
    yield (
        f"collect: {episodes} episodes of at most {steps:,} steps, seeds {seeds[0]} to {seeds[-1]}; "
        f"{config.collect.teacher.name} does the memory work, {config.gameplay.name} acts"
    )


def _training(config: SearchConfig) -> Iterator[str]:
    found = outlook(first_training(config), Path("trainings") / "…")
    yield f"  at most {found.epoch_tokens:,} tokens an epoch, in steps of {found.step_examples} examples"
    if found.memory_needed:
        yield (
            f"  {found.adapter_parameters:,} weights are trained; one example of {config.recipe.train.cutoff:,} tokens "
            f"takes some {found.memory_needed / GIB:.1f} GiB of memory, and {found.memory_free / GIB:.1f} are free"
        )
    yield f"  {', '.join(found.gpus) or 'no GPU: training runs on the processor'}"
    yield f"  command: {found.command}"
    for problem in found.problems:
        yield f"  not yet: {problem}"


def _playing(config: SearchConfig) -> Iterator[str]:
    steps = sum(task.steps for task in config.tasks)
    if config.gate is not None:
        most = config.gate.most * len(config.tasks)
        yield f"play: at most {2 * most} gate episodes a round, {2 * config.gate.most * steps:,} steps at most"
    seeds = 2 * len(config.held_out)
    yield f"then: {seeds * len(config.tasks)} held-out episodes, {seeds * steps:,} steps at most"
