"""The reference revision of MiniHack: what its code says of real screens, and what it asks of memory."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from automem import memory as folder
from automem import scaffold, trace
from automem.episode import STEPS, EpisodeJob, play
from automem.game_pool import GamePool
from automem.hooks import Again, File, Memory, Step
from automem.models.scripted.model import Scripted
from automem.ops import Op
from automem.sandbox import Sandbox, SandboxConfig
from games import registry

REF = "minihack/v1"
SCREENS = {
    name: "\n".join(lines) for name, lines in json.loads((Path(__file__).parent / "minihack.json").read_text()).items()
}
"""Observations of real games."""


def _hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("minihack_v1_hooks", scaffold.find(REF) / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


HOOKS = _hooks()


class Player:
    """Hooks, and the memory folder of the scaffold beside them."""

    def __init__(self, task: str = "MiniHack-Quest-Easy-v0") -> None:
        loaded = scaffold.load(REF)
        self.folder = folder.Memory(None, [file.spec() for file in loaded.schema.files], initial=loaded.initial)
        self.hooks = HOOKS.Hooks()
        self.hooks.reset("minihack", task)
        self.number = 0
        self.history: tuple[str, ...] = ()

    def see(self, text: str, action: str | None = None, raw: str | None = None) -> dict[str, str]:
        """The texts that prompts show after an action led to this observation."""
        self.history = (*self.history, action)[-16:] if action else self.history
        self.step = Step(self.number, text, action, raw or action, self.history)
        self.number += 1
        return self.hooks.observe(self.step)

    def check(self, action: str) -> Any:
        return self.hooks.check_action(self.step, action)

    def maintain(self) -> list[tuple[str, ...]]:
        """What is asked of memory; it is carried out, and nothing of it may be refused."""
        asked = self.hooks.maintain(self.step, Memory(self._ask))
        for name, *arguments in asked:
            result = self.folder.run(Op(name, tuple(arguments), (0, 0)))
            assert result.ok, result.text
        return asked

    def _ask(self, question: str, *args: Any) -> Any:
        if question == "files":
            return [File(*entry) for entry in self.folder.listing()]
        lines = self.folder.read(args[0]).split("\n") if args[0] in self.folder.snapshot() else []
        if question == "search":
            return [line for line in lines if args[1].casefold() in line.casefold()]
        return "\n".join(lines) if question == "read" else lines[-args[1] :]


@pytest.fixture
def player() -> Player:
    return Player()


CORNER = (
    SCREENS["boxoban"]
    .replace("#.....{`.#", "#.....@`.#")
    .replace("#.####.@.#", "#.####...#")
    .replace("(x=41, y=16)", "(x=40, y=10)")
)
"""The player stands west of a boulder behind which the bars make a corner."""


def test_the_map_is_read_for_every_direction(player: Player) -> None:
    around = player.see(SCREENS["room"])["around"]
    assert "stairs up east" in around
    assert "open north, west, northeast, northwest" in around
    assert "unexplored exit" in around and "at 56,3" in around


def test_boulders_are_told_with_what_a_push_would_do() -> None:
    player = Player("MiniHack-Boxoban-Medium-v0")
    around = player.see(SCREENS["boxoban"])["around"]
    assert "boulder that can be pushed north" in around
    assert "Nearest" not in around
    stuck = SCREENS["boxoban"].replace("#.####.@.#", "#@####...#").replace("(x=41, y=16)", "(x=35, y=16)")
    stuck = stuck.replace("#{....``.#", "#`....``.#").replace("#.#####..#", "#`#####..#")
    assert "boulder that is stuck north" in player.see(stuck)["around"]


def test_a_push_into_a_corner_is_asked_again_and_no_other() -> None:
    player = Player("MiniHack-Boxoban-Medium-v0")
    player.see(CORNER)
    assert "corner 42,10" in player.check("east").reason
    assert player.check("west") is None
    player.see(SCREENS["boxoban"])
    assert player.check("north") is None


def test_a_step_into_lava_is_asked_again(player: Player) -> None:
    player.see(SCREENS["lava"])
    assert isinstance(player.check("east"), Again)
    assert player.check("west") is None
    assert "lava" in player.see(SCREENS["lava"])["around"]


@pytest.mark.parametrize(
    ("task", "written", "played"),
    [
        ("MiniHack-Quest-Easy-v0", "zap a", "zap"),
        ("MiniHack-Quest-Easy-v0", "go east", "east"),
        ("MiniHack-Quest-Easy-v0", "run east", "far east"),
        ("MiniHack-Quest-Easy-v0", "pick up", "pickup"),
        ("MiniHack-Corridor-R3-v0", "kick west", "kick"),
        ("MiniHack-Corridor-R3-v0", "search 5 times", "search"),
        ("MiniHack-Boxoban-Hard-v0", "move north", "north"),
        ("MiniHack-MazeWalk-9x9-v0", "go southwest", "southwest"),
        ("MiniHack-Corridor-R3-v0", "run east", None),
        ("MiniHack-Boxoban-Hard-v0", "go northeast", None),
        ("MiniHack-Boxoban-Hard-v0", "search 5", None),
        ("MiniHack-MazeWalk-9x9-v0", "kick west", None),
        ("MiniHack-MazeWalk-9x9-v0", "n", None),
        ("MiniHack-MazeWalk-9x9-v0", "", None),
    ],
)
def test_combined_commands_become_one_that_the_task_has(task: str, written: str, played: str | None) -> None:
    player = Player(task)
    player.see(SCREENS["room"])
    assert player.check(written) == played


@pytest.mark.parametrize("task", [task for task in registry.tasks() if task.startswith("MiniHack-")])
def test_the_actions_of_a_task_are_those_that_the_game_has(task: str) -> None:
    if "Boxoban" in task:
        expected = {"north", "east", "south", "west"}
    else:
        game = registry.make(task, max_steps=5)
        expected = set(game.actions)
        game.close()
    assert Player(task).hooks.actions == expected


def test_going_to_and_fro_is_noticed(player: Player) -> None:
    here = SCREENS["room"]
    there = here.replace("|.....@<..|", "|....@.<..|").replace("(x=62, y=5)", "(x=61, y=5)")
    for i in range(3):
        assert "to and fro" not in player.see((here, there)[i % 2], "west")["warnings"]
    assert "to and fro between 62,5 and 61,5" in player.see(there, "west")["warnings"]


def test_an_action_without_effect_is_noticed(player: Player) -> None:
    for _ in range(2):
        assert player.see(SCREENS["maze"], "west")["warnings"] == ""
    assert "west has changed nothing 2 times" in player.see(SCREENS["maze"], "west")["warnings"]


def test_files_are_kept_when_something_changes_and_only_then(player: Player) -> None:
    player.see(SCREENS["room"])
    assert [op[1] for op in player.maintain()] == ["status.txt", "inventory.txt"]
    player.see(SCREENS["room"], "north")
    assert player.maintain() == []
    player.see(SCREENS["room"].replace("HP:15(15)", "HP:9(15)"), "north")
    assert [op[:2] for op in player.maintain()] == [("WRITE", "status.txt")]


def test_stairs_down_are_told_where_they_are(player: Player) -> None:
    assert player.see(SCREENS["room"])["warnings"] == ""
    seen = SCREENS["room"].replace("|.........|", "|>........|")
    assert player.see(seen, "west")["warnings"].startswith("! Stairs down at 57,4: 5 steps, ")
    assert player.hooks.op_WAY((">",), None).startswith("> at 57,4: 5 steps")
    walled = SCREENS["lava"].replace("}........--------", "}.......>--------")
    assert "no way there is known yet" in Player().see(walled)["warnings"]


def test_a_long_map_keeps_its_newest_lines(player: Player) -> None:
    for i in range(79):
        player.folder.run(Op("UPSERT_MAP", (f"{i},4", "Dlvl 1, been here"), (0, 0)))
        player.folder.run(Op("UPSERT_MAP", (f"{i},3", "Dlvl 1, been here"), (0, 0)))
    player.see(SCREENS["maze"])
    player.maintain()
    kept = player.folder.read("map.txt").splitlines()
    assert len(kept) == 60 and kept[-1].startswith("78,3")


@pytest.mark.parametrize("text", ["", "message:\n", "map:\n@\n", "x" * 9000])
def test_texts_of_another_shape_are_borne(player: Player, text: str) -> None:
    player.see(text)
    player.maintain()
    player.check("eat d" + "a" * 5000)


def test_an_episode_has_no_failing_hook(tmp_path: Path) -> None:
    loaded = scaffold.load(REF)

    async def run() -> None:
        pool, sandbox = GamePool(1), Sandbox(SandboxConfig(call_seconds=20))
        try:
            job = EpisodeJob(tmp_path, "MiniHack-Corridor-R3-v0", 1000, 30, loaded.folder)
            await play(job, loaded, Scripted(), pool, None, sandbox)
        finally:
            pool.close()
            await sandbox.close()

    asyncio.run(run())
    records, damage = trace.read(tmp_path / STEPS)
    assert damage is None and len(records) > 5
    failed = ("error", "lost", "off")
    assert [event for record in records for event in record.hooks if event.kind in failed] == []
    assert any(record.maintained for record in records)
