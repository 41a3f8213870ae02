"""When a memory counts as leaner."""

from __future__ import annotations

from typing import Any

import pytest

from automem.episode import EpisodeResult
from automem.metrics import Counts
from meta.lean import leaner


def result(**counts: Any) -> list[EpisodeResult]:
    whole = {"steps": 100, "prompt_tokens": 1000, "writes": 100, "duplicate_writes": 20, "added_bytes": 400, **counts}
    return [EpisodeResult("Crafter", 1, 100, 100, 0.5, {}, {}, 0.0, True, False, {}, "s", "m", Counts(**whole), "")]


@pytest.mark.parametrize(
    ("changes", "is_so"),
    [
        ({}, False),
        ({"duplicate_writes": 10}, True),
        ({"added_bytes": 200}, True),
        ({"duplicate_writes": 11, "added_bytes": 201}, False),
        ({"duplicate_writes": 0, "added_bytes": 401}, False),
        ({"duplicate_writes": 0, "prompt_tokens": 1001}, False),
        ({"duplicate_writes": 0, "completion_tokens": 1}, False),
        ({"duplicate_writes": 0, "steps": 50, "prompt_tokens": 500, "added_bytes": 200}, True),
    ],
)
def test_leaner_is_half_the_waste_at_no_more_tokens(changes: dict[str, Any], is_so: bool) -> None:
    assert leaner(result(**changes), result()) is is_so
