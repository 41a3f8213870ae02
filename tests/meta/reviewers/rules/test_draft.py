"""Editing a candidate: small changes of files that may look like anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem import scaffold
from automem.scaffold import Scaffold
from meta.reviewers.rules.draft import CannotEdit, Draft


@pytest.fixture
def root() -> Scaffold:
    return scaffold.load("crafter/v0")


def draft_of(root: Scaffold, **changed: str) -> Draft:
    """A draft of the root with other files; ``__`` in a name stands for a slash, ``_`` for a dot."""
    files = {name.replace("__", "/").replace("_", "."): text.encode() for name, text in changed.items()}
    return Draft({**root.sources, **files}, "candidate", root.identity)


def text(draft: Draft, path: str) -> str:
    return draft.sources()[path].decode()


def test_comments_and_layout_of_the_schema_stay(root: Scaffold) -> None:
    toml = root.sources["scaffold.toml"].decode().replace("[limits]", "# mind the tokens\n[limits]  # all of them")
    draft = draft_of(root, scaffold_toml=toml)
    draft.limit("result_chars", 3000)
    draft.set_file("goals.txt", pin=True)
    said = text(draft, "scaffold.toml")
    assert "# mind the tokens\n[limits]  # all of them" in said and "result_chars = 3000" in said
    assert said.count("[[files]]") == toml.count("[[files]]")


def test_a_file_is_added_beside_the_others_and_renamed_with_its_contents(root: Scaffold) -> None:
    draft = draft_of(root, prompts__plan_j2="{{ observation }} see goals.txt {{ memory }}\n")
    draft.add_file("more.txt", kind="note", describe="more")
    draft.rename_file("goals.txt", "aims.txt")
    said = text(draft, "scaffold.toml")
    assert '\n\n[[files]]\nname = "more.txt"' in said and '"goals.txt"' not in said
    assert "files/aims.txt" in draft.sources() and "files/goals.txt" not in draft.sources()
    assert "see aims.txt" in text(draft, "prompts/plan.j2")


def test_a_scaffold_without_files_gets_its_first(root: Scaffold, tmp_path: Path) -> None:
    bare = root.sources["scaffold.toml"].decode().partition("[[files]]")[0]
    draft = Draft({**root.sources, "scaffold.toml": bare.encode()}, "candidate", "")
    draft.add_file("one.txt", kind="note", describe="the only one")
    folder = tmp_path / "made"
    folder.mkdir()
    draft.save(folder, "")
    assert [file.name for file in scaffold.load(str(folder)).schema.files] == ["one.txt"]


def test_what_is_told_twice_stands_once(root: Scaffold) -> None:
    draft = draft_of(root)
    draft.tell("Rules of thumb", "first {x},{y}")
    draft.tell("Another", "stays")
    draft.tell("Rules of thumb", "second")
    said = text(draft, "prompts/system.j2")
    assert "first" not in said and said.count("# Rules of thumb") == 1 and "second" in said and "stays" in said
    assert "# The game" in said


def test_a_template_never_seen_before_gets_a_section_at_its_end(root: Scaffold) -> None:
    draft = draft_of(root, prompts__system_j2="Do well.\n{{ operations }}", prompts__log_j2="{{ observation }} DONE")
    draft.tell("Title", "Words with {{ braces }} in them.")
    draft.show_pinned()
    assert text(draft, "prompts/system.j2").startswith("Do well.\n{{ operations }}\n\n# Title\n")
    assert text(draft, "prompts/log.j2").startswith("{{ observation }} DONE\n")
    assert "{{ pinned }}" in text(draft, "prompts/log.j2")
    assert "{% raw %}" in text(draft, "prompts/system.j2")


def test_what_is_shown_already_is_not_shown_twice(root: Scaffold) -> None:
    draft = draft_of(root)
    draft.show_pinned()
    draft.show_hook("notice")
    draft.show_hook("notice")
    for name in ("log", "plan"):
        said = text(draft, f"prompts/{name}.j2")
        assert said.count("{{ pinned }}") == 1 and said.count("{{ hooks.notice }}") == 1
    assert text(draft, "scaffold.toml").count("notice") == 1


def test_files_that_cannot_be_edited_are_told(root: Scaffold) -> None:
    with pytest.raises(CannotEdit, match="not planned"):
        draft_of(root).set_file("nowhere.txt", pin=True)
    with pytest.raises(CannotEdit, match="cannot be edited"):
        draft_of(root, scaffold_toml='scaffold = "no table"')
    with pytest.raises(CannotEdit, match="someone else"):
        draft_of(root, hooks_py="class Hooks:\n    pass\n").add_part("notice", still=3, returns=4)


def test_saving_leaves_nothing_of_what_was_there(root: Scaffold, tmp_path: Path) -> None:
    scaffold.write_files(tmp_path, {**root.sources, "hooks.py": b"half", "files/old.txt": b"old"})
    draft = draft_of(root)
    draft.save(tmp_path, "# notes\n")
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {*root.sources, "notes.md"}
    loaded = scaffold.load(str(tmp_path))
    assert loaded.schema.scaffold.version == "candidate" and loaded.schema.scaffold.parent == root.identity
