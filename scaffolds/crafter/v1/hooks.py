"""What the player of Crafter is told beside the observation, worked out from the texts that it has seen itself.

Texts for the prompts: `now` (place, and what the last action changed), `warnings` (needs, threats, steps without
effect), `tech` (which achievements are possible, what the next ones lack), `places` (what the map does not hold yet)
and `upkeep` (notes that grew long). An action that cannot work, or that kills, is questioned once.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass
from itertools import pairwise

from automem.hooks import Again, Memory, Operation, Step, delete, upsert

Cell = tuple[int, int]

TREE: dict[str, tuple[str, dict[str, int], tuple[str, ...]]] = {
    "collect_wood": ("Do on a tree", {}, ()),
    "collect_sapling": ("Do on grass, 1 try in 10", {}, ()),
    "collect_drink": ("Do on water", {}, ()),
    "eat_cow": ("Do on a cow, several hits", {}, ()),
    "place_plant": ("on grass", {"sapling": 1}, ()),
    "place_table": ("", {"wood": 2}, ()),
    "make_wood_pickaxe": ("", {"wood": 1}, ("table",)),
    "make_wood_sword": ("", {"wood": 1}, ("table",)),
    "collect_stone": ("", {"wood_pickaxe": 1}, ()),
    "place_stone": ("", {"stone": 1}, ()),
    "make_stone_pickaxe": ("", {"wood": 1, "stone": 1}, ("table",)),
    "make_stone_sword": ("", {"wood": 1, "stone": 1}, ("table",)),
    "collect_coal": ("", {"wood_pickaxe": 1}, ()),
    "wake_up": ("Sleep in a closed place until energy is 9", {}, ()),
    "defeat_zombie": ("", {"wood_sword": 1}, ()),
    "place_furnace": ("", {"stone": 4}, ()),
    "collect_iron": ("", {"stone_pickaxe": 1}, ()),
    "defeat_skeleton": ("in dark caves", {"stone_sword": 1}, ()),
    "make_iron_pickaxe": ("", {"wood": 1, "coal": 1, "iron": 1}, ("table", "furnace")),
    "make_iron_sword": ("", {"wood": 1, "coal": 1, "iron": 1}, ("table", "furnace")),
    "eat_plant": ("Do on a plant when it is ripe", {}, ()),
    "collect_diamond": ("", {"iron_pickaxe": 1}, ()),
}
"""Achievement, from easy to hard: how, what must be carried, what must be among the 8 cells around."""

COMPASS: dict[str, Cell] = {"north": (0, -1), "south": (0, 1), "west": (-1, 0), "east": (1, 0)}
WALKABLE = ("grass", "sand", "path")
CREATURES = ("cow", "zombie", "skeleton", "arrow")
FLEETING = ("grass", "path", *CREATURES)
"""Kinds whose nearest place may change without a step of one's own."""
COMMON = ("tree", "stone", "water")
GROUND = {"stone": (*WALKABLE, "water", "lava"), "table": WALKABLE, "furnace": WALKABLE, "plant": ("grass",)}
"""What has to be in front when a thing is placed."""
USELESS = ("sand", "path", "table", "furnace", "lava", "nothing")
"""What "Do" does nothing to."""
THREATS = {"zombie": 3, "skeleton": 4, "arrow": 3, "lava": 2}
"""What hurts, and how near it is when it is mentioned."""
HEALTH = {"zombie": 5, "skeleton": 3}
DAMAGE = {"iron_sword": 5, "stone_sword": 3, "wood_sword": 2}
RIPE = 300
"""Steps until a plant is ripe, at least."""
DAY, DUSK, NIGHT, DAWN = 300, 130, 150, 272
"""Steps of a day; when in it the night is near, begins and ends."""

MEANT = {
    **dict.fromkeys("collect gather mine chop drink eat attack hit fight kill use interact".split(), "Do"),
    **{way: f"Move {way.title()}" for way in COMPASS}, "wait": "Noop", "nothing": "Noop", "rest": "Sleep",
    "up": "Move North", "down": "Move South", "left": "Move West", "right": "Move East",
}  # fmt: skip
"""First word of an action that the game does not have -> the action that is meant."""

PLAIN = ("ground", *WALKABLE, "stone", "tree")
"""Entries of the map that are taken off it when it is long, in this order."""
MAP_CHARS, MAP_KEPT = 1950, 1700
"""Characters of the map at which it is shortened, and to how many: a prompt shows all of what is left."""
NOTE_BYTES = 1200
"""A file that is longer ought to be condensed; `BOUNDED` ones are kept short already."""
BOUNDED = ("map.txt", "recent.txt")
IDLE, CIRCLE, STALE = 3, 10, 60
"""Steps without effect, to and fro, with nothing new, after which they are mentioned."""
AGAIN = 4
"""Steps before the same action is questioned again."""
ROOM = 6
"""Cells of a closed room at most: whoever can walk over more lies in the open."""


@dataclass(frozen=True)
class View:
    """One observation: kind -> (steps, direction), what is in front, vital signs, what is carried."""

    sights: dict[str, tuple[int, str]]
    ahead: str
    vitals: dict[str, int]
    items: dict[str, int]
    sleeping: bool

    def steps(self, kind: str) -> int:
        """Steps to the nearest of a kind; 99 when there is none."""
        return self.sights.get(kind, (99, ""))[0]

    def offset(self, kind: str) -> Cell | None:
        """Where the nearest of a kind is, when the text leaves no doubt."""
        steps, direction = self.sights[kind]
        ways = [COMPASS[way] for way in direction.split("-")]
        if len(ways) == 1:
            return ways[0][0] * steps, ways[0][1] * steps
        return (ways[0][0] + ways[1][0], ways[0][1] + ways[1][1]) if steps == 2 else None

    def told(self, kind: str) -> str:
        """``zombie 2 steps north-west``."""
        steps, direction = self.sights[kind]
        return f"{kind} {steps} step{'s' if steps > 1 else ''} {direction}"

    def lacks(self, takes: dict[str, int]) -> dict[str, int]:
        """How many of each item are missing."""
        return {name: n - self.items.get(name, 0) for name, n in takes.items() if self.items.get(name, 0) < n}


def look(text: str) -> View:
    """Read an observation."""
    around, _, rest = text.partition("Your status:")
    seen = re.findall(r"- (\w+) (\d+) steps? to your ([a-z-]+)", around)
    ahead = re.search(r"You face (\w+) at", around)
    return View(
        {kind: (int(steps), direction) for kind, steps, direction in seen},
        ahead[1] if ahead else "nothing",
        {name: int(value) for name, value in re.findall(r"- (\w+): (\d+)/9", rest)},
        {name: int(count) for name, count in re.findall(r"- (\w+): (\d+)$", rest, re.M)},
        "You are sleeping" in around,
    )


def moved(before: View, view: View, turned: bool, direction: str, known: bool) -> bool:
    """Whether a move took a step, or only turned the player to what is in the way.

    `turned`: the player faced another way before; `known`: the cell is known to be open.
    """
    if not turned:
        return before.ahead in WALKABLE
    if any(kind not in WALKABLE and sight == (1, direction) for kind, sight in before.sights.items()):
        return False
    if view.ahead in WALKABLE or (before.steps(view.ahead) > 1 and view.ahead not in CREATURES):
        return True
    fixed = [{kind: s for kind, s in v.sights.items() if kind not in FLEETING} for v in (before, view)]
    return fixed[0] != fixed[1] or known


def gains(before: View, view: View) -> dict[str, int]:
    """What became more or less, by how much."""
    change = Counter({**view.vitals, **view.items})
    change.subtract({**before.vitals, **before.items})
    return {name: n for name, n in change.items() if n}


def listed(items: dict[str, int]) -> str:
    """``1 wood and 1 stone``."""
    return " and ".join(f"{count} {name.replace('_', ' ')}" for name, count in items.items())


def repaired(action: str) -> str:
    """The action of the game that is meant; the same where that is not clear."""
    verb, *others = [w for w in re.findall(r"[a-z]+", action.lower()) if w not in ("a", "an", "the")] or [""]
    thing = "_".join(others).replace("sapling", "plant") or verb
    if verb in ("place", "build", "put", "plant") and thing in GROUND:
        return f"Place {thing.title()}"
    if verb in ("make", "craft", "build") and f"make_{thing}" in TREE:
        return f"Make {thing.replace('_', ' ').title()}"
    return MEANT.get(thing if verb in ("move", "go", "walk", "turn", "face") else verb, action)


class Hooks:
    """See the module."""

    def reset(self, game: str, task: str) -> None:
        self.view: View | None = None
        self.x, self.y, self.facing = 0, 0, "south"
        self.done: dict[str, int] = {}
        self.open: dict[Cell, bool] = {(0, 0): True}
        self.trail: deque[Cell] = deque(maxlen=CIRCLE)
        self.plants: dict[Cell, int] = {}
        self.placed: dict[str, int] = {}
        self.idle, self.fresh, self.outcome = 0, 0, ""
        self.text, self.map = "", dict[Cell, str]()
        self.goals, self.upkeep = " ".join(TREE), ""
        self.questioned: dict[str, int] = {}

    # What the prompts show.

    def observe(self, step: Step) -> dict[str, str]:
        view = look(step.observation)
        if self.view is not None and step.action is not None:
            self._follow(step.number, step.action, self.view, view)
        self.view = view
        for kind in view.sights:
            offset = view.offset(kind)
            if offset is not None and kind not in CREATURES:
                self._know((self.x + offset[0], self.y + offset[1]), kind)
        self._know(self._ahead(), view.ahead)
        warnings = (*self._needs(view), *self._dangers(view, step.number))
        return {
            "now": f"You are at {self.x},{self.y}, facing {self.facing}.{self.outcome}",
            "warnings": "\n".join(f"- {line}" for line in warnings),
            "tech": self._tech(view, step.number),
            "places": self._places(view),
            "upkeep": self.upkeep,
        }

    def _follow(self, number: int, action: str, before: View, view: View) -> None:
        """Where the last action led, and what it did."""
        held, target = (self.x, self.y, self.facing), self._ahead()
        direction = action.removeprefix("Move ").lower()
        if direction in COMPASS and not (before.sleeping and before.vitals.get("energy", 0) < 9):
            turned, self.facing = direction != self.facing, direction
            if moved(before, view, turned, direction, self._ahead() in self.open):
                self.x, self.y = self._ahead()
        if action == "Place Plant" and view.ahead == "plant" != before.ahead:
            self.plants[target] = number
        changes, new = gains(before, view), self._achieved(number, action, before, view)
        asleep = before.sleeping or view.sleeping
        if new or asleep or not self.open.get((self.x, self.y)) or any(changes.get(item, 0) > 0 for item in view.items):
            self.fresh = number
        self.open[self.x, self.y] = True
        self.trail.append((self.x, self.y))
        chance = action == "Do" and before.ahead in ("grass", "water", *CREATURES)
        same = held == (self.x, self.y, self.facing) and before.ahead == view.ahead and not changes
        self.idle = self.idle + 1 if same and not chance and not asleep else 0
        changed = ", ".join(f"{name} {n:+d}" for name, n in changes.items())
        self.outcome = (f" Changed: {changed}." if changed else "") + (f" New: {', '.join(new)}." if new else "")
        if self.idle and action != "Noop":
            why = self._objection(before, action) or (f"{view.ahead} is in the way" if direction in COMPASS else "")
            self.outcome += f" {action} did nothing: {why or 'no visible reason'}."

    def _achieved(self, number: int, action: str, before: View, view: View) -> list[str]:
        """Note the achievements that a step shows; those that are new."""
        shown = [f"collect_{item}" for item in view.items if view.items[item] > before.items.get(item, 0)]
        shown += [f"make_{item}" for item in view.items]
        thing = action.removeprefix("Place ").lower()
        if thing in GROUND and view.ahead == thing != before.ahead:
            shown.append(f"place_{thing}")
            self.placed[thing] = self.placed.get(thing, 0) + 1
        if action == "Do" and not before.sleeping:
            fed = view.vitals.get("food", 0) > before.vitals.get("food", 0)
            gone = view.ahead != before.ahead and view.steps(before.ahead) > 2
            shown += ["collect_drink"] if before.ahead == "water" else []
            shown += ["eat_plant"] if before.ahead == "plant" and fed else []
            shown += ["eat_cow"] if before.ahead == "cow" and (fed or gone) else []
            shown += [f"defeat_{before.ahead}"] if before.ahead in HEALTH and gone else []
        if before.sleeping and not view.sleeping and view.vitals.get("energy") == 9:
            shown.append("wake_up")
        new = [name for name in shown if name in TREE and name not in self.done]
        self.done.update(dict.fromkeys(new, number))
        return new

    def _know(self, cell: Cell, kind: str) -> None:
        """Keep whether a cell is open (True: walked on), and forget a plant that is gone."""
        if kind in WALKABLE:
            self.open.setdefault(cell, False)
        elif kind not in CREATURES:
            self.open.pop(cell, None)
        if kind != "plant" and kind not in CREATURES:
            self.plants.pop(cell, None)

    def _ahead(self) -> Cell:
        dx, dy = COMPASS[self.facing]
        return self.x + dx, self.y + dy

    def _needs(self, view: View) -> list[str]:
        lines = []
        for name, remedy in (("health", ""), ("drink", "water"), ("food", "cow"), ("energy", "")):
            level = view.vitals.get(name, 9)
            if level > 3 or view.sleeping:
                continue
            if not remedy:
                what = "keep away from fights" if name == "health" else "close yourself in and Sleep"
            elif remedy in view.sights:
                what = view.told(remedy)
            else:
                what = "".join(self._nearest(remedy, 1)) or f"no {remedy} known, look for one"
            lines.append(f"{name} {level}/9{', health falls' if level == 0 else ''}: {what}")
        return lines

    def _dangers(self, view: View, number: int) -> list[str]:
        hit = next((n for sword, n in DAMAGE.items() if sword in view.items), 1)
        lines = []
        for kind, near in THREATS.items():
            if view.steps(kind) <= near:
                blows = f", {-(-HEALTH[kind] // hit)} hits kill it" if kind in HEALTH else ""
                lines.append(view.told(kind) + blows)
        hour = number % DAY
        if DUSK <= hour < NIGHT:
            lines.append(f"night in {NIGHT - hour} steps: have stones for a shelter")
        elif NIGHT <= hour < DAWN and not view.sleeping:
            lines.append(f"night for {DAWN - hour} more steps: zombies gather on grass")
        if self.idle >= IDLE:
            lines.append(f"{self.idle} steps without any effect: do something else")
        elif len({*self.trail}) <= 3 and sum(a != b for a, b in pairwise(self.trail)) > CIRCLE // 2:
            lines.append("going to and fro: choose one place and walk there")
        if number - self.fresh >= STALE:
            lines.append(f"nothing new for {number - self.fresh} steps: go where you have not been")
        return lines

    def _tech(self, view: View, number: int) -> str:
        """What can be reached now, and what the next ones lack."""
        now, later = [], []
        for name, (how, takes, beside) in TREE.items():
            lacks = view.lacks(takes)
            apart = [thing for thing in beside if not self._beside(view, thing)]
            if name in self.done or (name == "wake_up" and view.vitals.get("energy", 9) > 6):
                continue
            if name == "eat_plant":
                for (x, y), since in self.plants.items():
                    ripe = since + RIPE + 5
                    (now if number >= ripe else later).append(f"eat_plant at {x},{y} from step {ripe} on")
            elif lacks:
                later += [f"{name} lacks {listed(lacks)}"] if len(later) < 3 else []
            else:
                note = f"go beside {' and '.join(apart)}" if apart else how
                now.append(f"{name} ({note})" if note else name)
        text = f"{len(self.done)}/{len(TREE)} achievements. Possible now: {', '.join(now) or 'none'}."
        return f"{text} Later: {'; '.join(later)}." if later else text

    def _places(self, view: View) -> str:
        """Things at known places that the map does not hold, and entries that are wrong."""
        missing, wrong = [], []
        dx, dy = COMPASS[self.facing]
        seen = {view.offset(kind): kind for kind in view.sights} | {(dx, dy): view.ahead}
        for offset, kind in seen.items():
            if offset is None or kind in CREATURES or kind == "nothing":
                continue
            cell = (self.x + offset[0], self.y + offset[1])
            noted = self.map.get(cell, "").split(" ")[0]
            walkable = kind in WALKABLE
            if noted in (*GROUND, *COMMON, "coal", "iron", "diamond", "lava") and noted != kind:
                wrong.append(f"{cell[0]},{cell[1]} is {'ground' if walkable else kind}")
            elif not noted and not walkable and not self._crowded(kind, cell):
                missing.append(f"{cell[0]},{cell[1]} {kind}")
        texts = [f"Not on the map: {'; '.join(missing)}."] if missing else []
        return " ".join([*texts, f"Wrong on the map: {'; '.join(wrong)}."] if wrong else texts)

    def _crowded(self, kind: str, cell: Cell) -> bool:
        """Whether the map has common things of this kind nearby already."""
        near = (abs(x - cell[0]) + abs(y - cell[1]) <= 2 for (x, y), what in self.map.items() if what.startswith(kind))
        return kind in COMMON and any(near)

    # Memory.

    def maintain(self, step: Step, memory: Memory) -> list[Operation]:
        self._read_map(memory)
        if self.upkeep or step.number % 10 == 0:
            long = [file for file in memory.files() if file.bytes > NOTE_BYTES and file.name not in BOUNDED]
            self.upkeep = " ".join(f"{file.name} has {file.bytes} bytes: condense it with WRITE." for file in long)
        operations = []
        goals = " ".join(name for name in TREE if name not in self.done) or "none"
        if goals != self.goals:
            self.goals = goals
            operations.append(upsert("goals.txt", "open", goals))
        excess = len(self.text) - MAP_KEPT if len(self.text) > MAP_CHARS else 0
        plain = [(PLAIN.index(what), -self._steps(cell), cell) for cell, what in self.map.items() if what in PLAIN]
        for _, _, (x, y) in sorted(plain)[:90] if excess else ():
            if excess > 0:
                operations.append(delete("map.txt", f"{x},{y}"))
                excess -= len(f"{x},{y}: {self.map.pop((x, y))}\n")
        return operations

    def _read_map(self, memory: Memory) -> None:
        text = memory.read("map.txt")
        if text != self.text:
            self.text = text
            found = re.findall(r"^(-?\d+),(-?\d+): ?(.*)$", text, re.M)
            self.map = {(int(x), int(y)): what for x, y, what in found}

    def op_NEAR(self, args: tuple[str, ...], memory: Memory) -> str:
        self._read_map(memory)
        thing = args[0].lower() if args else ""
        found = self._nearest(thing, int(args[1]) if len(args) > 1 and args[1].isdecimal() else 3)
        kinds = ", ".join(sorted({what.split(" ")[0] for what in self.map.values()})) or "nothing"
        return "\n".join(found) or f"no {thing or 'thing'} on the map, which holds: {kinds}"

    def _nearest(self, thing: str, most: int) -> list[str]:
        """The nearest entries of the map that contain a word: ``water 8,-3 (5 east, 2 south)``."""
        found = sorted((self._steps(cell), cell) for cell, what in self.map.items() if thing in what.lower())
        return [f"{self.map[cell]} {cell[0]},{cell[1]} ({self._way(cell)})" for _, cell in found[:most]]

    def _steps(self, cell: Cell) -> int:
        return abs(cell[0] - self.x) + abs(cell[1] - self.y)

    def _way(self, cell: Cell) -> str:
        x, y = cell[0] - self.x, cell[1] - self.y
        parts = [(abs(x), "east" if x > 0 else "west"), (abs(y), "south" if y > 0 else "north")]
        return ", ".join(f"{n} {name}" for n, name in parts if n) or "here"

    # Actions.

    def check_action(self, step: Step, action: str) -> str | Again | None:
        meant = repaired(action)
        reason = self._objection(self.view, meant) if self.view is not None else None
        if reason and step.number - self.questioned.get(meant, -AGAIN) >= AGAIN:
            self.questioned[meant] = step.number
            return Again(f"{reason}. Choose another, or write it again if you are sure")
        return meant if meant != action else None

    def _objection(self, view: View, action: str) -> str | None:
        """Why an action cannot work, or must not be done; None when nothing speaks against it."""
        kind, _, rest = action.partition(" ")
        name = rest.lower().replace(" ", "_")
        if view.sleeping:
            return None
        if kind == "Move":
            deadly = view.sights.get("lava") == (1, name) or (view.ahead == "lava" and self.facing == name)
            return "lava lies there, the step kills" if deadly else None
        if action == "Do":
            lacks = view.lacks(TREE.get(f"collect_{view.ahead}", ("", {}, ()))[1])
            why = f"{view.ahead} takes a {' '.join(lacks).replace('_', ' ')}" if lacks else None
            return f"Do has no use on {view.ahead}" if view.ahead in USELESS else why
        if action == "Sleep":
            return self._no_rest(view)
        _, takes, beside = TREE.get(f"{kind.lower()}_{name}", ("", {}, ()))
        if view.lacks(takes):
            return f"it takes {listed(takes)}, you have {listed({item: view.items.get(item, 0) for item in takes})}"
        if kind == "Place" and view.ahead not in GROUND.get(name, (view.ahead,)):
            return f"it needs free {' or '.join(GROUND[name])} in front, you face {view.ahead}"
        if kind == "Make" and name in view.items:
            return f"you carry a {rest.lower()} already"
        apart = [thing for thing in beside if not self._beside(view, thing)]
        return f"no {' and no '.join(apart)} among the 8 cells around you" if apart else None

    def _beside(self, view: View, thing: str) -> bool:
        """Whether a thing is among the 8 cells around, or may be."""
        steps, direction = view.sights.get(thing, (99, ""))
        return steps == 1 or (steps == 2 and ("-" in direction or self.placed.get(thing, 0) > 1))

    def _no_rest(self, view: View) -> str | None:
        energy, supplies = view.vitals.get("energy", 0), min(view.vitals.get("food", 9), view.vitals.get("drink", 9))
        if energy == 9:
            return "energy is 9/9, you cannot fall asleep"
        if supplies <= 1 < energy:
            return "you would wake up starving, eat and drink first"
        room, edge = {(self.x, self.y): True}, [(self.x, self.y)]
        while edge and len(room) <= ROOM:
            x, y = edge.pop()
            beside = [(x + dx, y + dy) for dx, dy in COMPASS.values()]
            edge += [cell for cell in beside if cell in self.open and cell not in room]
            room |= dict.fromkeys(edge, True)
        near = " and ".join(view.told(kind) for kind in HEALTH if view.steps(kind) <= 8)
        exposed = f"you lie in the open{near and f' with {near}'}, a zombie hits a sleeper for 7: wall yourself in"
        return exposed if len(room) > ROOM else None
