"""Naming tasks and making games."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import games
from games import registry


def test_the_ten_tasks() -> None:
    assert len(games.tasks()) == len(set(games.tasks())) == 10
    assert {games.game_of(task) for task in games.tasks()} == {"crafter", "minihack", "nethack"}
    assert [games.game_of(task) for task in games.tasks()].count("minihack") == 8


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("crafter", "Crafter"),
        ("NetHack", "NetHackChallenge-v0"),
        ("nethack", "NetHackChallenge-v0"),
        ("NETHACKCHALLENGE-V0", "NetHackChallenge-v0"),
        (" minihack-quest-easy-v0 ", "MiniHack-Quest-Easy-v0"),
    ],
)
def test_names_that_people_write(written: str, meant: str) -> None:
    assert games.canonical(written) == meant


@pytest.mark.parametrize(
    ("written", "offered"),
    [
        ("craftr", "Crafter"),
        ("boxoban", "MiniHack-Boxoban-Medium-v0"),
        ("MiniHack-Quest-Esy-v0", "MiniHack-Quest-Easy-v0"),
        ("chess", "NetHackChallenge-v0"),
        ("", "Crafter"),
    ],
)
@pytest.mark.parametrize("ask", [games.canonical, games.make, games.game_of])
def test_an_unknown_task_is_named_with_what_may_have_been_meant(ask, written: str, offered: str) -> None:
    with pytest.raises(games.UnknownTask) as caught:
        ask(written)
    assert repr(written) in str(caught.value)
    assert offered in str(caught.value)


def test_importing_games_loads_no_simulator() -> None:
    program = (
        "import sys, games, games.suites; games.tasks(); games.versions(); games.suites.load('balrog');"
        "print([name for name in ('crafter', 'nle', 'minihack', 'gymnasium') if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_every_task_makes_its_game_and_takes_its_actions() -> None:
    for task in games.tasks():
        game = games.make(task, max_steps=2)
        assert game.task == task
        assert game.default_action in game.actions
        assert game.reset(42).text
        assert game.instructions
        with pytest.raises(games.InvalidAction):
            game.step("00")
        for _ in range(2):
            moved = game.step(game.default_action)
            assert 0 <= moved.progress.progression <= 1
        assert moved.done, "an action that the game cannot take counts as no step"
        assert game.screen()
        game.close()
        game.close()


def test_another_package_adds_a_game(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    (tmp_path / "towers.py").write_text(
        "class Towers:\n    def __init__(self, task, discs=3):\n        self.made = task, discs\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    entries = [
        metadata.EntryPoint("towers.Hanoi-v1", "towers:Towers", registry.ENTRY_POINTS),
        metadata.EntryPoint("Crafter", "towers:Towers", registry.ENTRY_POINTS),
    ]
    monkeypatch.setattr(registry.metadata, "entry_points", lambda group: entries if group == "automem.games" else [])
    registry._added.cache_clear()
    try:
        assert games.tasks()[10:] == ("towers.Hanoi-v1",)
        assert "towers" not in sys.modules, "an added game is loaded only when it is made"
        assert games.game_of("towers.hanoi-v1") == "towers"
        assert games.make("TOWERS.Hanoi-v1", discs=5).made == ("towers.Hanoi-v1", 5)
        assert games.make("Crafter").task == "Crafter", "an added game cannot replace one of ours"
    finally:
        registry._added.cache_clear()


def test_the_package_that_adds_a_game_decides_it_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    about = tmp_path / "towers-2.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: towers\nVersion: 2.1\n")
    (about / "entry_points.txt").write_text("[automem.games]\ntowers.Hanoi-v1 = towers:Towers\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry._added.cache_clear()
    try:
        assert games.versions(["towers.Hanoi-v1", "Crafter"]) == {"towers": "2.1", **games.versions()}
        assert "towers" not in games.versions(["Crafter"])
    finally:
        registry._added.cache_clear()


def test_versions_name_the_packages_that_decide_a_game() -> None:
    versions = games.versions()
    assert {"crafter", "nle", "minihack", "gymnasium", "numpy"} <= versions.keys()
    assert versions["crafter"] == metadata.version("crafter")
