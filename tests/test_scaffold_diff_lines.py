"""Two texts line by line and word by word, and signs that do not print."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from automem.scaffold_diff.lines import TextDiff, compare, words
from automem.visible import visible

TEXTS = st.text(alphabet="ab \n\r\t", max_size=40)


def rebuilt(diff: TextDiff, side: str) -> str:
    """One side of a text from a comparison that shows all of it."""
    lines = [getattr(row, side) for hunk in diff.hunks for row in hunk.rows]
    return "".join(line.text + ("\n" if line.ends else "") for line in lines if line is not None)


@settings(max_examples=300)
@given(TEXTS, TEXTS)
def test_rows_hold_both_texts_and_the_unified_view_holds_the_same_lines(old: str, new: str) -> None:
    diff = compare(old, new, context=1000)
    if old == new:
        assert diff.hunks == () and diff.added == diff.removed == 0
        return
    assert rebuilt(diff, "old") == old and rebuilt(diff, "new") == new
    unified = [pair for hunk in diff.hunks for pair in hunk.unified()]
    assert "".join(f"{x.text}{chr(10) * x.ends}" for mark, x in unified if mark in " -") == old
    assert "".join(f"{x.text}{chr(10) * x.ends}" for mark, x in unified if mark in " +") == new
    assert sum(mark == "+" for mark, _ in unified) == diff.added
    assert sum(mark == "-" for mark, _ in unified) == diff.removed


@given(TEXTS, TEXTS)
def test_unmarked_words_are_the_same_on_both_sides(old: str, new: str) -> None:
    before, after = words(old, new)
    assert "".join(part for part, _ in before) == old and "".join(part for part, _ in after) == new
    assert "".join(p for p, strong in before if not strong) == "".join(p for p, strong in after if not strong)


def test_a_changed_line_stands_beside_its_old_self_and_its_words_are_marked() -> None:
    diff = compare("a\nfirst thing\nread the map before you go\nz\n", "a\nread the notes before you go\nz\n")
    (hunk,) = diff.hunks
    rows = [(row.old and row.old.text, row.new and row.new.text) for row in hunk.rows]
    assert rows == [
        ("a", "a"),
        ("first thing", None),
        ("read the map before you go", "read the notes before you go"),
        ("z", "z"),
    ]
    row = hunk.rows[2]
    assert row.new is not None
    assert [part for part, strong in row.new.parts if strong] == ["notes"]
    assert hunk.heading == "@@ -1,4 +1,3 @@"


def test_unchanged_lines_far_from_a_change_are_left_out() -> None:
    old = "".join(f"{i}\n" for i in range(100))
    diff = compare(old, old.replace("50\n", "fifty\n").replace("90\n", "ninety\n"))
    assert [hunk.heading for hunk in diff.hunks] == ["@@ -48,7 +48,7 @@", "@@ -88,7 +88,7 @@"]


def test_texts_too_long_to_align_are_shown_as_rewritten_between_what_they_share() -> None:
    old = "same\n" + "a\nb\n" * 2_000 + "end\n"
    new = "same\n" + "b\nc\n" * 2_000 + "end\n"
    diff = compare(old, new, context=10)
    assert not diff.aligned and diff.removed == diff.added == 4_000
    assert rebuilt(diff, "old") == old and rebuilt(diff, "new") == new


def test_lines_that_take_too_long_to_compare_word_by_word_are_shown_without_marks() -> None:
    old, new = ("".join(f"{word} " * 130 + f"{i}\n" for i in range(200)) for word in ("a a", "a b"))
    diff = compare(old, new, context=0)
    assert rebuilt(diff, "old") == old and rebuilt(diff, "new") == new
    marked = [any(strong for _, strong in row.new.parts) for hunk in diff.hunks for row in hunk.rows if row.new]
    assert marked[0] and not marked[-1]


@given(st.text())
def test_what_is_shown_is_printable_and_stays_a_line(text: str) -> None:
    assert visible(text).isprintable()


def test_signs_that_do_not_print_are_told() -> None:
    assert visible("a\tb\x1b[31m\r\u202e") == "a→  b\\x1b[31m\\r\\u202e"
