"""Taking what a loop found into ``scaffolds/``."""

from __future__ import annotations

from typing import Any

import pytest

from automem import scaffold
from automem.errors import UserError
from meta import adopt
from tests.meta.loops import CHARS, TURNS, one, request, run, setting

pytestmark = pytest.mark.usefixtures("own_place")


def test_adopting_brings_the_best_version_and_its_ancestors(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("accepted", "accepted")
    loop, result, _, _ = run({"1.1.0": CHARS, "2.1.0": TURNS}, monkeypatch)
    folders = adopt.adopt(loop)
    assert [str(folder) for folder in folders] == ["scaffolds/crafter/small-1.1.0", "scaffolds/crafter/small-2.1.0"]
    versions = [scaffold.load(str(folder)) for folder in folders]
    assert [v.identity for v in versions] == [a.identity for a in loop.attempts()]
    assert versions[1].schema.scaffold.parent == versions[0].identity
    notes = (folders[1] / "notes.md").read_text()
    assert "because of **2.1.0**" in notes and "2 held-out episodes" in notes and result["best"]["ref"] in notes
    assert adopt.adopt(loop) == folders
    TURNS(folders[1])
    setting("result_chars", 900)(folders[1])
    with pytest.raises(UserError, match="holds other files"):
        adopt.adopt(loop)


def test_nothing_is_adopted_where_nothing_was_accepted(monkeypatch: pytest.MonkeyPatch, decide: Any) -> None:
    decide("rejected")
    loop, _, _, _ = run({"1.1.0": CHARS}, monkeypatch, request(search=one()))
    with pytest.raises(UserError, match="accepted nothing"):
        adopt.adopt(loop)
