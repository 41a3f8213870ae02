"""Versions of the criteria: nothing is overwritten, and nothing but a number leads to a file."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from automem.errors import UserError
from specialist.select.llm.criteria import FIRST, LONGEST, Criteria

GOOD = "## one\n" + "what is written must be found again " * 5


def test_a_search_begins_with_the_criteria_that_come_with_automem(tmp_path: Path) -> None:
    kept = Criteria(tmp_path)
    assert kept.in_force().text == FIRST.read_text() and kept.in_force().number == 1
    assert len(kept.in_force().names) >= 6
    assert (tmp_path / "criteria" / "1.md").is_file()


def test_versions_are_added_adopted_and_restored(tmp_path: Path) -> None:
    kept = Criteria(tmp_path)
    made = kept.add(GOOD, "somebody", "a reason\nin two lines")
    assert (made.number, made.why, made.names) == (2, "a reason in two lines", ("one",))
    assert kept.add(GOOD, "somebody", "again") == made, "a resumption adds nothing"
    unused = kept.add(GOOD + "x", "somebody", "not yet", adopt=False)
    assert (unused.number, Criteria(tmp_path).in_force().number) == (3, 2)
    kept.adopt(kept.version("1"))
    assert Criteria(tmp_path).in_force().text == FIRST.read_text()
    assert [version.number for version in kept.versions()] == [1, 2, 3]


@pytest.mark.parametrize("number", ["../1", "1/../1", "", "0", "01", "4", "1 ", "99999", "-1", "1.md", "eins", "１"])
def test_only_the_number_of_a_version_leads_to_one(tmp_path: Path, number: str) -> None:
    with pytest.raises(UserError, match="there is no version"):
        Criteria(tmp_path).version(number)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=200) | st.just(GOOD) | st.just("\r\n## two\r\n" + "words " * 40), max_size=4))
def test_whatever_is_written_is_refused_or_kept_as_a_version_of_its_own(texts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        kept = Criteria(Path(folder))
        expected = [FIRST.read_text()]
        for number, text in enumerate(texts):
            try:
                made = kept.add(text, f"author {number}", "why")
            except UserError:
                continue
            assert made.names and len(made.text) <= LONGEST and made == kept.in_force()
            expected.append(made.text)
        assert [version.text for version in Criteria(Path(folder)).versions()] == expected
        assert {path.suffix for path in (Path(folder) / "criteria").iterdir()} <= {".md", ".json", ""}
