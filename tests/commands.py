"""``automem`` in this process, as a person would call it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from automem import cli

Called = Callable[..., tuple[int, str, str]]
"""From the words of a command to its exit code, output and errors."""


def caller(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *before: str) -> Called:
    """What calls commands that begin with these words."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["automem", *before, *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capfd.readouterr()

    return call
