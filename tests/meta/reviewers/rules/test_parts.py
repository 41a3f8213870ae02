"""The generated ``hooks.py``: it is what a person could have written, and its parts do what they say."""

from __future__ import annotations

from typing import Any

import pytest

from automem.hooks import Memory, Step, source
from meta.reviewers.rules.hook_code import PARTS, NotOurs, assembled, parts_of, with_part

OPTIONS: dict[str, dict[str, Any]] = {
    "notice": {"still": 3, "returns": 4},
    "words": {"file": "notes.txt", "most": 3},
    "prune": {"files": {"places.txt": 60}},
    "repair": {"meant": {"go west": "Move West"}},
}


def hooks(*parts: str) -> Any:
    """The object that a generated file makes."""
    space: dict[str, Any] = {}
    exec(compile(assembled({name: OPTIONS[name] for name in parts}), "hooks.py", "exec"), space)
    made = space["Hooks"]()
    made.reset("crafter", "Crafter")
    return made


def memory(**files: str) -> Memory:
    """A folder whose files have these texts; ``_`` in a name stands for a dot."""
    texts = {name.replace("_", "."): text for name, text in files.items()}

    def ask(question: str, *args: Any) -> Any:
        lines = texts.get(args[0], "").splitlines() if args else []
        return {"read": lambda: texts.get(args[0], ""), "tail": lambda: lines[-args[1] :]}[question]()

    return Memory(ask)


def step(number: int, observation: str = "", *history: str) -> Step:
    return Step(number, observation, history[-1] if history else None, None, history)


def test_every_part_is_tested() -> None:
    assert OPTIONS.keys() == PARTS.keys()


@pytest.mark.parametrize("parts", [[name] for name in PARTS] + [list(PARTS)], ids=lambda parts: "+".join(parts))
def test_what_is_assembled_can_be_a_scaffolds_hooks(parts: list[str]) -> None:
    read = source.read(assembled({name: OPTIONS[name] for name in parts}), [])
    assert read.problems == ()
    assert "reset" in read.methods and len(read.methods) > 1


def test_parts_are_added_one_by_one_and_known_again() -> None:
    first = with_part(None, "prune", OPTIONS["prune"])
    both = with_part(first, "notice", OPTIONS["notice"])
    assert parts_of(both) == {"notice": OPTIONS["notice"], "prune": OPTIONS["prune"]}
    changed = with_part(both, "notice", {"still": 9, "returns": 4})
    assert parts_of(changed)["notice"]["still"] == 9
    assert "still=9" in changed


@pytest.mark.parametrize("change", [lambda text: text + "\n# mine\n", lambda text: "class Hooks:\n    pass\n"])
def test_code_of_others_is_left_alone(change: Any) -> None:
    with pytest.raises(NotOurs, match="someone else"):
        with_part(change(assembled({"prune": OPTIONS["prune"]})), "notice", OPTIONS["notice"])


def test_notice_speaks_when_nothing_changes_and_only_then() -> None:
    made = hooks("notice")
    said = [made.observe(step(n, "a wall", *["Do"] * n)).get("notice", "") for n in range(6)]
    assert said[:3] == ["", "", ""] and "3 steps" in said[3] and "Do" in said[3]
    assert made.observe(step(6, "a door", "Move East")) == {}


def test_notice_speaks_of_going_to_and_fro() -> None:
    made = hooks("notice")
    said = [made.observe(step(n, "here" if n % 2 else "there")).get("notice", "") for n in range(10)]
    assert not any(said[:4]) and "to and fro" in said[-1]
    fresh = hooks("notice")
    assert not any(fresh.observe(step(n, f"place {n}")) for n in range(20))


def test_prune_takes_what_is_said_most_often_and_keeps_what_is_rare() -> None:
    text = "".join(f"{n},0: ground\n" for n in range(8)) + "9,9: diamond\n"
    operations = hooks("prune").maintain(step(1), memory(places_txt=text))
    gone = [key for name, file, key in operations if (name, file) == ("DELETE", "places.txt")]
    assert len(gone) == len(operations) > 0 and "9,9" not in gone
    left = [line for line in text.splitlines() if line.partition(": ")[0] not in gone]
    assert sum(len(line) + 1 for line in left) <= 60


def test_prune_takes_the_oldest_of_a_kind_first() -> None:
    made = hooks("prune")
    old = "".join(f"{n},0: ground\n" for n in range(4))
    assert made.maintain(step(1), memory(places_txt=old)) == []
    # An entry that was set anew may stand anywhere in the file.
    mixed = "".join(f"{n},5: ground\n" for n in range(3)) + old
    gone = [args[-1] for args in made.maintain(step(2), memory(places_txt=mixed))]
    assert gone and all(key.endswith(",0") for key in gone)


def test_repair_understands_what_was_meant_and_nothing_else() -> None:
    made = hooks("repair")
    assert made.check_action(step(1), "Go  West!") == "Move West"
    assert made.check_action(step(1), "Move West") is None
    assert made.check_action(step(1), "xyzzy") is None


def test_words_are_those_of_most_lines() -> None:
    made = hooks("words")
    assert made.observe(step(0)) == {}
    made.maintain(step(0), memory(notes_txt="tree at 1,2\ntree tree near lake\nlake, tree and cow\n"))
    assert made.observe(step(1)) == {"words": "Words in notes.txt: tree, lake, and."}
