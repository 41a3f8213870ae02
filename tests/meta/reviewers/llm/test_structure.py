"""What counts as a structural change, and what is only wording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from automem import scaffold
from automem.scaffold import Scaffold
from meta.reviewers.llm.structure import changes

PARENT = scaffold.load("crafter/v1")


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[str, str, str], Scaffold]:
    """The parent with a text in one of its files replaced."""

    def made(path: str, old: str, new: str) -> Scaffold:
        PARENT.save(tmp_path / "made")
        file = tmp_path / "made" / path
        text = file.read_text() if file.exists() else ""
        assert old in text
        file.write_text(text.replace(old, new, 1) if old else text + new)
        return scaffold.load(str(tmp_path / "made"))

    return made


Changed = Callable[[str, str, str], Scaffold]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("prompts/log.j2", "", "\nBe careful."),
        ("prompts/log.j2", "", "{# a comment #}"),
        ("hooks.py", "", "\n# a comment\n"),
        ("files/goals.txt", "", "plan: eat\n"),
        ("scaffold.toml", 'describe = "', 'describe = "all about '),
    ],
)
def test_wording(changed: Changed, path: str, old: str, new: str) -> None:
    found = changes(PARENT, changed(path, old, new))
    assert found.any and found.structural == ()


@pytest.mark.parametrize(
    ("path", "old", "new", "told"),
    [
        ("scaffold.toml", "log_turns = 5", "log_turns = 3", "[limits] of scaffold.toml"),
        ("scaffold.toml", '"SEARCH", ', "", "[ops] of scaffold.toml"),
        ("scaffold.toml", "pin = true", "pin = false", "[files] of scaffold.toml"),
        ("hooks.py", "", "\nEXTRA = 1\n", "hooks.py"),
        ("prompts/log.j2", "", "{% if step.number > 3 %}late{% endif %}", "prompts/log.j2"),
        ("prompts/plan.j2", "{{ observation }}", "{{ observation }}{{ task }}", "prompts/plan.j2"),
        ("files/new.txt", "", "text", "which files memory begins with"),
    ],
)
def test_structure(changed: Changed, path: str, old: str, new: str, told: str) -> None:
    assert changes(PARENT, changed(path, old, new)).structural == (told,)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("scaffold.toml", "", "\n# a comment\n"),
        ("notes.md", "", "more"),
        ("scaffold.toml", 'version = "v1"', 'version = "w"'),
    ],
)
def test_what_is_not_played_is_no_change(changed: Changed, path: str, old: str, new: str) -> None:
    found = changes(PARENT, changed(path, old, new))
    assert not found.any and found.structural == ()
