"""How much of a prompt pinned files may take, so that a step costs no more than it did."""

from __future__ import annotations

from automem.scaffold import Scaffold
from meta.reviewers.rules.findings import Measured
from meta.reviewers.rules.thresholds import thresholds

PROMPTS = 2
"""Prompts of a step in which nothing has to be read: one of LOG, one of PLAN."""


def in_prompts(measured: Measured, scaffold: Scaffold) -> int:
    """Characters that each prompt may show of pinned files, in hundreds.

    What a step cost so far, less what two prompts cost without any reading; at least what one result shows now.
    """
    limits = thresholds()["room"]
    spent = measured.rates["prompt_tokens_per_step"] * limits["chars_per_token"]
    left = spent / PROMPTS - measured.first_prompt
    # A map is on average half as long as it may become.
    wanted = min(limits["most"], left / limits["average"])
    return max(scaffold.schema.limits.result_chars, int(wanted) // 100 * 100)


def cost(measured: Measured, chars: float) -> float:
    """By which share of itself a step becomes dearer when each prompt shows so many characters more."""
    spent = measured.rates["prompt_tokens_per_step"] * thresholds()["room"]["chars_per_token"]
    return PROMPTS * chars / spent if spent else 1.0
