"""What the scripted player writes in Crafter, and that it reads back what it wrote, for each kind of scaffold."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from automem import scaffold as scaffolds
from automem.models.scripted.crafter import scene as scenes
from automem.models.scripted.crafter.recall import read_memory
from automem.models.scripted.crafter.recollect import believe
from automem.models.scripted.reading import read_call
from automem.scaffold import Scaffold
from automem.schema import MemoryFile
from benchmarks import scripted_crafter

OPERATIONS = ("READ", "SEARCH", "TAIL", "COUNT", "APPEND", "WRITE", "CREATE", "UPSERT")
TRAIL = "{step} {action} {x},{y} {facing}; {seen}; {status}"

SCHEMAS: dict[str, tuple[MemoryFile, ...]] = {
    "verbatim": (MemoryFile(name="notes.txt", kind="log", entry="Step {step}, {action}: {observation}"),),
    "compact": (MemoryFile(name="trail.txt", kind="log", entry=TRAIL),),
    "map": (MemoryFile(name="map.txt", kind="map", key="{x},{y}", entry="{what}"),),
    "blocks": (
        MemoryFile(name="map_{block}.txt", kind="map", key="{x},{y}", entry="{what}", block=8),
        MemoryFile(name="state.txt", kind="note", entry="{step} {x},{y} {facing}; {seen}; {status}"),
    ),
    "pinned": (
        MemoryFile(name="map.txt", kind="map", key="{x},{y}", entry="{what}", pin=True),
        MemoryFile(name="recent.txt", kind="log", entry=TRAIL, pin=True, max_lines=8),
    ),
    "changes": (
        MemoryFile(name="now.txt", kind="note", entry="planted {planted}; achieved {achieved}", changes=True),
        MemoryFile(name="recent.txt", kind="log", entry="{step}: {x},{y} {facing}, {action}: {seen}", changes=True),
    ),
    "log and map": (
        MemoryFile(name="trail.txt", kind="log", entry="{step}: {action}, {status}, {seen}, at {x},{y} {facing}"),
        MemoryFile(name="map.txt", kind="map", key="{x} {y}", entry="{what} (step {step})"),
    ),
}


def with_files(files: tuple[MemoryFile, ...], enabled: tuple[str, ...] = OPERATIONS) -> Scaffold:
    v0 = scaffolds.load("crafter/v0")
    schema = v0.schema
    ops = schema.ops.model_copy(update={"enabled": enabled})
    return replace(v0, schema=schema.model_copy(update={"files": files, "ops": ops}), initial={})


class Checked(scripted_crafter.Player):
    """A player that notes how often its place was reckoned right, at each PLAN."""

    def __init__(self) -> None:
        super().__init__()
        self.game = None
        self.right: list[bool] = []
        self.facing: list[bool] = []

    async def complete(self, messages):
        call = read_call(messages)
        memory, wanted = read_memory(call)
        if call.phase == "plan" and not wanted:
            player = self.game._env.player
            belief = believe(call, memory)
            self.right.append(belief.here == (int(player.pos[0]) - 32, int(player.pos[1]) - 32))
            self.facing.append(belief.facing == tuple(int(v) for v in player.facing))
        return await super().complete(messages)


def play(monkeypatch, scaffold: Scaffold, seed: int = 1002, steps: int = 90):
    made: list[Checked] = []

    class Player(Checked):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    class Game(scripted_crafter.Crafter):
        def reset(self, seed):
            made_game.append(self)
            return super().reset(seed)

    made_game: list[Game] = []

    class Agent(scripted_crafter.Agent):
        def __init__(self, player, *rest) -> None:
            player.game = made_game[0]
            super().__init__(player, *rest)

    monkeypatch.setattr(scripted_crafter, "Player", Player)
    monkeypatch.setattr(scripted_crafter, "Crafter", Game)
    monkeypatch.setattr(scripted_crafter, "Agent", Agent)
    episode, memory = asyncio.run(scripted_crafter.play_episode(scaffold, seed, steps))
    return episode, memory, made[0]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_read_back(monkeypatch, name):
    """Facing and, where the schema holds places, the place are known at nearly every step."""
    episode, memory, player = play(monkeypatch, with_files(SCHEMAS[name]))
    assert episode.progression >= 6 / 22
    assert sum(player.facing) >= 0.95 * len(player.facing)
    if name != "verbatim":
        assert sum(player.right) >= 0.95 * len(player.right)
    assert episode.writes and memory.listing()


SEEN = r"(?:\w+ [NSWE]{1,2}\d+, )*ahead \w+"
STATUS = r"h\d f\d d\d e\d(?: asleep)?"


@pytest.mark.parametrize(
    ("name", "file", "line"),
    [
        ("verbatim", "notes.txt", r"Step \d+, [A-Z][A-Za-z ]+: (?:You are sleeping.*)?You see.* inventory.*"),
        ("compact", "trail.txt", rf"\d+ [A-Z][A-Za-z ]+ -?\d+,-?\d+ (?:north|south|west|east); {SEEN}; {STATUS}"),
        ("map", "map.txt", rf"-?\d+,-?\d+: (?:[a-z]+|plant since \d+|player facing \w+, sees {SEEN}(?:, asleep)?)"),
        ("blocks", "state.txt", rf"\d+ -?\d+,-?\d+ (?:north|south|west|east); {SEEN}; {STATUS}"),
        ("log and map", "map.txt", r"-?\d+ -?\d+: (?:[a-z]+|plant since \d+) \(step \d+\)"),
    ],
)
def test_entries_look_as_the_scaffold_says(monkeypatch, name, file, line):
    _, memory, _ = play(monkeypatch, with_files(SCHEMAS[name]), steps=40)
    lines = memory.read(file).splitlines()
    assert lines
    for written in lines:
        assert re.fullmatch(line, written), written


def test_one_entry_a_step_in_a_log_and_one_in_a_state(monkeypatch):
    _, memory, _ = play(monkeypatch, with_files(SCHEMAS["verbatim"]), steps=30)
    assert [line.split(",")[0] for line in memory.read("notes.txt").splitlines()] == [f"Step {n}" for n in range(1, 30)]
    _, memory, _ = play(monkeypatch, with_files(SCHEMAS["blocks"]), steps=30)
    assert memory.read("state.txt").startswith("29 ") and memory.read("state.txt").count("\n") == 1


def test_cells_lie_in_the_file_of_their_block(monkeypatch):
    _, memory, _ = play(monkeypatch, with_files(SCHEMAS["blocks"]), steps=60)
    blocks = [name for name, _, _ in memory.listing() if name.startswith("map_")]
    assert len(blocks) > 1
    for name in blocks:
        for line in memory.read(name).splitlines():
            x, y = map(int, line.split(":")[0].split(","))
            assert name == f"map_{x // 8}_{y // 8}.txt"


def test_what_did_not_change_is_not_written_where_a_file_takes_changes_only(monkeypatch):
    episode, memory, _ = play(monkeypatch, with_files(SCHEMAS["changes"]), steps=90)
    lines = [line.partition(": ")[2] for line in memory.read("recent.txt").splitlines()]
    assert 40 < len(lines) < 89 and not any(one == other for one, other in pairwise(lines))
    assert memory.read("now.txt").startswith("planted ")
    # The state changes with every achievement; a line a step and a state a step would be 178 writes.
    assert episode.writes <= len(lines) + 16


def test_nothing_is_written_twice(monkeypatch):
    for name in ("compact", "map", "blocks"):
        episode, _, _ = play(monkeypatch, with_files(SCHEMAS[name]), steps=60)
        assert episode.duplicates <= 0.02 * episode.writes


@pytest.mark.parametrize(
    "files",
    [
        (),
        (MemoryFile(name="notes.txt", kind="note", describe="no entry"),),
        (MemoryFile(name="levels.txt", kind="log", entry="{level}: {message}"),),
        (MemoryFile(name="odd.txt", kind="map", key="{what}", entry="{status}"),),
    ],
)
def test_a_file_that_it_cannot_fill_is_left_alone(monkeypatch, files):
    episode, memory, _ = play(monkeypatch, with_files(files), steps=25)
    assert episode.steps == 25
    assert not episode.writes and not memory.listing()


def test_without_operations_it_plays_on(monkeypatch):
    episode, _, _ = play(monkeypatch, with_files(SCHEMAS["compact"], enabled=("COUNT",)), steps=40)
    assert episode.steps == 40 and episode.progression > 0


def test_one_reply_is_kept_for_the_action(monkeypatch):
    scaffold = with_files(SCHEMAS["compact"])
    limits = scaffold.schema.limits.model_copy(update={"log_turns": 1, "plan_turns": 1})
    scaffold = replace(scaffold, schema=scaffold.schema.model_copy(update={"limits": limits}))
    episode, memory, _ = play(monkeypatch, scaffold, steps=30)
    assert episode.calls == 2 * episode.steps - 1
    assert len(memory.read("trail.txt").splitlines()) == 29
    assert episode.progression > 0


def test_compact_fields_lose_nothing():
    text = (
        "You are sleeping, and will not be able take actions until energy is full.\n\n\n\nYou see:\n"
        "- grass 1 step to your west\n- cow 5 steps to your north-west\n- tree 1 step to your north\n\n"
        "You face tree at your front.\n\nYour status:\n- health: 9/9\n- food: 6/9\n- drink: 5/9\n- energy: 8/9\n\n"
        "Your inventory:\n- sapling: 1\n- wood: 5"
    )
    scene = scenes.read_scene(text)
    fields = (scenes.short_seen(scene), scenes.short_status(scene), scenes.short_inventory(scene))
    assert fields == ("grass W1, cow NW5, tree N1, ahead tree", "h9 f6 d5 e8 asleep", "sapling 1, wood 5")
    assert scenes.scene_of(*fields) == scene
    assert scenes.read_scene(" ".join(text.split())) == scene
