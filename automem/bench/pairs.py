"""Which runs are held against each other when benches are compared."""

from __future__ import annotations

from automem import runs
from automem.bench import storage
from automem.bench.storage import Bench
from automem.errors import UserError
from automem.runs import Run

Pair = tuple[Run, Run]


def is_of_benches(first: str, second: str | None) -> bool:
    """Whether benches are compared."""
    return storage.is_bench(first) and (second is None or storage.is_bench(second))


def runs_to_compare(first: str, second: str | None) -> list[Pair]:
    """Two runs as they are; of two benches, the runs of each agent that took part in both; of one bench, its first
    agent's run with that of every other. Raises `UserError`."""
    if is_of_benches(first, second):
        bench = storage.load(first)
        return _within(bench) if second is None else _between(bench, storage.load(second))
    if second is None:
        raise UserError(f"{first!r} is no bench: name two runs to compare, or one bench (automem runs lists both)")
    for name, other in ((first, second), (second, first)):
        if storage.is_bench(name):
            raise UserError(f"{name} is a bench and {other} is none: name a run of it, such as {_example(name)}")
    return [(runs.load(first), runs.load(second))]


def _within(bench: Bench) -> list[Pair]:
    begun = bench.runs()
    if len(begun) < 2:
        raise UserError(f"bench {bench.config.name} has {len(begun)} agents that have begun; two are needed to compare")
    return [(begun[0], other) for other in begun[1:]]


def _between(a: Bench, b: Bench) -> list[Pair]:
    found = []
    for agent in a.config.agents:
        runs_of = a.run(agent.label), b.run(agent.label)
        if runs_of[0] is not None and runs_of[1] is not None:
            found.append((runs_of[0], runs_of[1]))
    if not found:
        listed = [", ".join(agent.label for agent in bench.config.agents) for bench in (a, b)]
        raise UserError(f"{a.config.name} ({listed[0]}) and {b.config.name} ({listed[1]}) have no agent in common")
    return found


def _example(name: str) -> str:
    bench = storage.load(name)
    return f"{bench.config.name}/{bench.config.agents[0].label}"
