"""What tests of loops share: a place of their own, and a gate that decides what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from meta import gate
from meta.gate import Look


class Said:
    """A gate that decides what it was told to, in turn."""

    batch = most = 4

    def __init__(self, decisions: Sequence[str]) -> None:
        self.decisions = list(decisions)
        self.alphas: list[float] = []

    def judge(self, differences: Sequence[float], alpha: float) -> Look:
        self.alphas.append(alpha)
        decision: Any = self.decisions.pop(0)
        return Look(len(differences), sum(differences) / len(differences), None, None, decision, "so it was said")


@pytest.fixture
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder without runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)


@pytest.fixture
def decide(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the gate decide what it is given, in turn; without anything, it must not be asked."""

    def to(*decisions: str) -> Said:
        said = Said(decisions)
        monkeypatch.setattr(gate, "make", lambda settings: said)
        return said

    return to
