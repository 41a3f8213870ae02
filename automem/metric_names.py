"""What the behaviour metrics of `automem.metrics.rates` are called, what they count, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """How a metric is shown.

    Attributes:
        label: what people call it.
        meaning: what it counts, after its name.
    """

    label: str
    meaning: str


METRICS = {
    "stuck_share": Metric("stuck", "steps after which the observation was the same as before"),
    "oscillating_share": Metric("oscillating", "steps that left a state to which the agent had just returned"),
    "invalid_per_step": Metric("invalid actions", "actions written that the game does not have"),
    "fallback_share": Metric("fallback", "steps at which no action was committed, and the game's default was played"),
    "duplicate_write_share": Metric(
        "duplicate writes", "writes that told a file the same again, exactly or but for step numbers and white space"
    ),
    "empty_search_share": Metric("empty searches", "searches that found no line"),
    "valid_turn_share": Metric(
        "valid memory turns", "turns of memory work that wrote operations, of which every one was carried out"
    ),
    "refused_per_step": Metric("refused operations", "operations that the memory folder refused"),
    "refused_writes_per_step": Metric("refused writes", "those of them that would have changed it"),
    "truncated_reads_per_step": Metric("truncated reads", "results longer than the scaffold's limit, cut there"),
    "written_chars_per_step": Metric("characters written", "content of write operations"),
    "added_bytes_per_step": Metric("bytes added", "growth of the memory folder"),
    "updated_share": Metric("entries updated or deleted", "of all entries added, updated and deleted"),
    "log_turns_per_step": Metric("LOG turns", "calls of a model in LOG"),
    "plan_turns_per_step": Metric("PLAN turns", "calls of a model in PLAN"),
    "turns_per_step": Metric("turns", "calls of a model"),
    "prompt_tokens_per_step": Metric("prompt tokens", "as the server counts them"),
    "completion_tokens_per_step": Metric("completion tokens", "as the server counts them"),
    "cached_share": Metric("cached tokens", "of prompt tokens"),
    "seconds_per_step": Metric("seconds of model time", "summed latency of calls"),
}
"""Metric -> how it is shown."""

CLOCKS = frozenset({"seconds_per_step"})
"""Metrics that tell of the machine and not of who played: they differ between two equal runs."""


def metric(name: str) -> Metric:
    """How a metric is shown; one that is not listed goes by its own name."""
    return METRICS.get(name) or Metric(name.removesuffix("_share").removesuffix("_per_step").replace("_", " "), "")


def unit(name: str) -> str:
    """``%`` for shares, ``/ step`` for means over steps."""
    return "%" if name.endswith("_share") else "/ step" if name.endswith("_per_step") else ""


def figure(name: str, value: float | None) -> str:
    """A value as people read it, without its unit: shares in percent; a dash for None."""
    if value is None:
        return "-"
    if name.endswith("_share"):
        return f"{100 * value:.1f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def shares(operations: dict[str, int]) -> dict[str, float]:
    """How large a part of all operations each is, in [0, 1], in name order; empty where there were none."""
    total = sum(operations.values())
    return {name: count / total for name, count in sorted(operations.items())} if total else {}
