"""Pages on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from automem import pages
from automem.errors import UserError

REPORT = pages.Kind("report", "<!-- report -->", "--out")


def test_one_kind_of_page_is_not_written_over_another(tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    pages.write("<!-- diff -->", page)
    with pytest.raises(UserError, match="not a report"):
        pages.check(page, REPORT)
    pages.write("<!-- report -->", page)
    pages.check(page, REPORT)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="not a report"):
        pages.check(tmp_path / "pipe", REPORT)


def test_a_page_that_cannot_be_written_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "x.html"
    pages.write("first", page)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UserError, match="No space left"):
        pages.write("second", page)
    assert page.read_text() == "first" and [path.name for path in tmp_path.iterdir()] == ["x.html"]
