"""What the player of Crafter is told beside the observation, worked out from the texts that it has seen itself.

Texts for the prompts: `now` (place, and what the last action changed), `warnings` (needs, threats, steps without
effect), `tech` (which achievements are possible, what the next ones lack), `places` (what the map does not hold yet),
`upkeep` (notes that grew long) and `others` (files that are not pinned). An action that cannot work is questioned once.
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
HUNTERS = ("zombie", "skeleton")
CREATURES = ("cow", *HUNTERS, "arrow")
FLEETING = ("grass", "path", *CREATURES)  # the nearest may change without a step of one's own
COMMON = ("tree", "stone", "water")  # on the map where no other is near
LASTING = (*COMMON, "coal", "iron", "diamond", "lava", "table", "furnace", "plant")  # belongs on the map
GROUND = {"stone": (*WALKABLE, "water", "lava"), "table": WALKABLE, "furnace": WALKABLE, "plant": ("grass",)}
USELESS = ("sand", "path", "table", "furnace", "lava", "nothing")  # "Do" does nothing to it
DEEDS = {"water": "collect_drink", "cow": "eat_cow", "plant": "eat_plant"}  # what "Do" on it achieves in the end
DEEDS |= {"zombie": "defeat_zombie", "skeleton": "defeat_skeleton"}
NEEDS = {"health": ("", "keep away from fights"), "energy": ("", "close yourself in and Sleep")}
NEEDS |= {"drink": ("water", "no water known, look for one"), "food": ("cow", "no cow known, look for one")}
THREATS = {"zombie": (3, "strike first, or wall it off"), "skeleton": (4, "stay out of its line, or strike")}
THREATS |= {"arrow": (3, "step aside"), "lava": (2, "never step there")}  # mentioned when so near
RIPE = 301  # steps until a plant is ripe, at least
DAY, DUSK, NIGHT, DAWN = 300, 130, 150, 272  # steps of a day; when in it the night is near, begins, ends
IDLE, CIRCLE, STALE = 3, 10, 60  # steps without effect, to and fro, with nothing new, that are mentioned
AGAIN = 4  # steps before the same action is questioned again
ROOM = 6  # cells of a closed room: whoever can walk over more lies in the open
PLAIN = {"ground": 0, "grass": 4, "sand": 8, "path": 12, "stone": 16, "tree": 20}
"""What is taken off a long map, the farthest first; the dearer ones count as so many steps nearer."""
MAP_CHARS, MAP_KEPT = 1950, 1700  # when it is shortened, and to what: a prompt shows all of it
NOTE_BYTES, BOUNDED = 1200, ("map.txt", "recent.txt")  # longer files ought to be condensed, but for these
PINNED = ("goals.txt", "lessons.txt", "now.txt", *BOUNDED)
MEANT = {  # first word of an action that the game does not have: the action that is meant
    **dict.fromkeys(("collect", "gather", "mine", "chop", "drink", "eat", "attack", "hit", "fight", "use"), "Do"),
    **{way: f"Move {way.title()}" for way in COMPASS}, "wait": "Noop", "nothing": "Noop", "rest": "Sleep",
    "up": "Move North", "down": "Move South", "left": "Move West", "right": "Move East",
}  # fmt: skip


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
    """Whether a move took a step; `turned`: from another direction; `known`: the cell is known to be open."""
    if not turned:
        return before.ahead in WALKABLE
    if any(kind not in WALKABLE and sight == (1, direction) for kind, sight in before.sights.items()):
        return False
    if view.ahead in WALKABLE or (before.steps(view.ahead) > 1 and view.ahead not in CREATURES):
        return True
    fixed = [{kind: s for kind, s in v.sights.items() if kind not in FLEETING} for v in (before, view)]
    return fixed[0] != fixed[1] or known


def listed(items: dict[str, int]) -> str:
    return " and ".join(f"{count} {name.replace('_', ' ')}" for name, count in items.items())


def way(x: int, y: int) -> str:
    """``5 east, 2 south`` for an offset."""
    parts = [(abs(x), "east" if x > 0 else "west"), (abs(y), "south" if y > 0 else "north")]
    return ", ".join(f"{n} {name}" for n, name in parts if n) or "here"


def repaired(action: str) -> str:
    """The action of the game that is meant; the same where that is not clear."""
    words = re.findall(r"[a-z]+", action.lower()) or [""]
    return MEANT.get(words[-1] if words[0] in ("move", "go", "turn", "face") else words[0], action)


class Hooks:
    """See the module."""

    def reset(self, game: str, task: str) -> None:
        self.view: View | None = None
        self.x, self.y, self.facing, self.strayed = 0, 0, "south", False
        self.open, self.plants = {(0, 0): True}, dict[Cell, int]()
        self.trail: deque[Cell] = deque(maxlen=CIRCLE)
        self.number, self.idle, self.fresh, self.outcome = 0, 0, 0, ""
        self.text, self.map = "", dict[Cell, str]()
        self.upkeep = self.others = ""
        self.done, self.placed, self.questioned = dict[str, int](), dict[str, int](), dict[str, int]()

    def observe(self, step: Step) -> dict[str, str]:
        view = look(step.observation)
        self.strayed = self.strayed or (self.view is None and step.number > 0)  # see _recover
        if self.view is not None and step.action is not None:
            self._follow(step.number, step.action, self.view, view)
        self.view, self.number = view, step.number
        if self.strayed:
            return {}
        offsets = {offset: kind for kind in view.sights if (offset := view.offset(kind))}
        offsets[COMPASS[self.facing]] = view.ahead
        seen = {(self.x + x, self.y + y): kind for (x, y), kind in offsets.items() if kind not in CREATURES}
        for cell, kind in seen.items():
            if kind in WALKABLE:
                self.open.setdefault(cell, False)
            else:
                self.open.pop(cell, None)
            if kind != "plant":
                self.plants.pop(cell, None)
        return {
            "now": f"You are at {self.x},{self.y}, facing {self.facing}.{self.outcome}",
            "warnings": "\n".join(f"- {line}" for line in self._warnings(view)),
            "tech": "" if view.sleeping else self._tech(view),
            "places": self._places(seen),
            "upkeep": self.upkeep,
            "others": self.others and f"There is also {self.others}.",
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
        change = Counter({**view.vitals, **view.items})
        change.subtract({**before.vitals, **before.items})
        changes, new = {name: n for name, n in change.items() if n}, self._achieved(number, action, before, view)
        asleep = before.sleeping or view.sleeping
        if new or asleep or not self.open.get((self.x, self.y)) or any(changes.get(n, 0) > 0 for n in view.items):
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
        fed = view.vitals.get("food", 0) > before.vitals.get("food", 0)
        gone = view.ahead != before.ahead and view.steps(before.ahead) > 2
        proof = {"water": True, "plant": fed, "cow": fed or gone, "zombie": gone, "skeleton": gone}
        if action == "Do" and not before.sleeping and proof.get(before.ahead):
            shown.append(DEEDS[before.ahead])
        if before.sleeping and not view.sleeping and view.vitals.get("energy") == 9:
            shown.append("wake_up")
        new = [name for name in shown if name in TREE and name not in self.done]
        self.done.update(dict.fromkeys(new, number))
        return new

    def _ahead(self) -> Cell:
        return self.x + COMPASS[self.facing][0], self.y + COMPASS[self.facing][1]

    def _warnings(self, view: View) -> list[str]:
        lines = []
        for name, (remedy, advice) in NEEDS.items() if not view.sleeping else ():
            level = view.vitals.get(name, 9)
            known = [view.told(remedy)] if remedy in view.sights else self._nearest(remedy, 1) if remedy else []
            if level <= 3:
                falling = ", health falls" if level == 0 and name != "health" else ""
                lines.append(f"{name} {level}/9{falling}: {(known or [advice])[0]}")
        near = ((kind, advice) for kind, (most, advice) in THREATS.items() if view.steps(kind) <= most)
        lines += [f"{view.told(kind)}: {advice}" for kind, advice in near]
        hour, still = self.number % DAY, self.number - self.fresh
        if DUSK <= hour < NIGHT:
            lines.append(f"night in {NIGHT - hour} steps: have stones for a shelter")
        elif NIGHT <= hour < DAWN and not view.sleeping:
            lines.append(f"night for {DAWN - hour} more steps: zombies gather on grass")
        if self.idle >= IDLE:
            lines.append(f"{self.idle} steps without any effect: do something else")
        elif len({*self.trail}) <= 3 and sum(a != b for a, b in pairwise(self.trail)) > CIRCLE // 2:
            lines.append("going to and fro: choose one place and walk there")
        return lines + ([f"nothing new for {still} steps: go where you have not been"] if still >= STALE else [])

    def _tech(self, view: View) -> str:
        """What can be reached now, and what the next ones lack."""
        now, later = list[str](), list[str]()
        for name, (how, takes, beside) in TREE.items():
            lacks = view.lacks(takes)
            apart = [thing for thing in beside if not self._beside(view, thing)]
            if name in self.done or (name == "wake_up" and view.vitals.get("energy", 9) > 6):
                continue
            if name == "eat_plant":
                for (x, y), since in self.plants.items():
                    which = now if self.number >= since + RIPE else later
                    which.append(f"eat_plant at {x},{y} from step {since + RIPE} on, if you stay near")
            elif lacks:
                later += [f"{name} lacks {listed(lacks)}"] if len(later) < 3 else []
            else:
                note = f"go beside {' and '.join(apart)}" if apart else how
                now.append(f"{name} ({note})" if note else name)
        text = f"{len(self.done)}/{len(TREE)} achievements. Possible now: {', '.join(now) or 'none'}."
        return f"{text} Later: {'; '.join(later)}." if later else text

    def _places(self, seen: dict[Cell, str]) -> str:
        """Things at known places that the map does not hold, and entries that are wrong."""
        missing, wrong = list[str](), list[str]()
        for (x, y), kind in seen.items():
            noted = self.map.get((x, y), "").split(" ")[0]
            near = (self._steps(cell, (x, y)) <= 2 for cell, what in self.map.items() if what == kind)
            if noted in LASTING and noted != kind:
                wrong.append(f"{x},{y} is {'ground' if kind in WALKABLE else kind}")
            elif kind in LASTING and not noted and not (kind in COMMON and any(near)):
                missing.append(f"{x},{y} {kind}")
        parts = {"Not on the map": missing, "Wrong on the map": wrong}
        return " ".join(f"{name}: {'; '.join(found)}." for name, found in parts.items() if found)

    def maintain(self, step: Step, memory: Memory) -> list[Operation]:
        self._read_map(memory)
        if self.strayed:
            self._recover(memory)
        files = memory.files()
        long = [file for file in files if file.bytes > NOTE_BYTES and file.name not in BOUNDED]
        self.upkeep = " ".join(f"{file.name} has {file.bytes} bytes: condense it with WRITE." for file in long)
        self.others = ", ".join(file.name for file in files if file.name not in PINNED)
        goals = " ".join(name for name in TREE if name not in self.done) or "none"
        current = f"open: {goals}" in memory.read("goals.txt").splitlines()
        operations = [] if current else [upsert("goals.txt", "open", goals)]
        excess = len(self.text) - MAP_KEPT if len(self.text) > MAP_CHARS else 0
        plain = [(PLAIN[what] - self._steps(c), c) for c, what in self.map.items() if excess and what in PLAIN]
        for _, (x, y) in sorted(plain)[:90]:
            if excess > 0:
                operations.append(delete("map.txt", f"{x},{y}"))
                excess -= len(f"{x},{y}: {self.map[x, y]}\n")
        return operations

    def _recover(self, memory: Memory) -> None:
        """Take from memory what was known, after this object was made anew in the middle of an episode."""
        place = re.search(r" at (-?\d+),(-?\d+) facing (north|south|west|east)", memory.read("now.txt"))
        goals = re.search(r"^open: (.*)$", memory.read("goals.txt"), re.M)
        if place and goals:
            self.x, self.y, self.facing, self.strayed = int(place[1]), int(place[2]), place[3], False
            self.done = {name: 0 for name in TREE if name not in goals[1].split()}
            self.open = {(self.x, self.y): True}

    def _read_map(self, memory: Memory) -> None:
        text = memory.read("map.txt")
        if text != self.text:
            self.text = text
            found = re.findall(r"^(-?\d+),(-?\d+): ?(.*)$", text, re.M)
            self.map = {(int(x), int(y)): what for x, y, what in found}
            self.plants = {c: n for c, n in self.plants.items() if self.map.get(c, "plant").startswith("plant")}

    def op_NEAR(self, args: tuple[str, ...], memory: Memory) -> str:
        self._read_map(memory)
        thing = args[0].lower() if args else ""
        found = self._nearest(thing, int(args[1]) if len(args) > 1 and args[1].isdecimal() else 3)
        kinds = ", ".join(sorted({what.split(" ")[0] for what in self.map.values()})) or "nothing"
        return "\n".join(found) or f"no {thing or 'thing'} on the map, which holds: {kinds}"

    def _nearest(self, thing: str, most: int) -> list[str]:
        """The nearest entries of the map that contain a word: ``water 8,-3 (5 east, 2 south)``."""
        found = sorted((self._steps(cell), cell) for cell, what in self.map.items() if thing in what.lower())
        return [f"{self.map[x, y]} {x},{y} ({way(x - self.x, y - self.y)})" for _, (x, y) in found[:most]]

    def _steps(self, cell: Cell, start: Cell | None = None) -> int:
        x, y = start or (self.x, self.y)
        return abs(cell[0] - x) + abs(cell[1] - y)

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
            if lacks or view.ahead in USELESS:
                tool = " ".join(lacks).replace("_", " ")
                return f"{view.ahead} takes a {tool}" if lacks else f"Do has no use on {view.ahead}"
            ripe = min(self.plants.values(), default=0) + RIPE
            return f"no plant is ripe before step {ripe}" if view.ahead == "plant" and self.number < ripe else None
        if action == "Sleep":
            return "energy is 9/9, you cannot fall asleep" if view.vitals.get("energy") == 9 else self._exposed(view)
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

    def _exposed(self, view: View) -> str | None:
        """What may happen to whoever falls asleep here."""
        if min(view.vitals.get("food", 9), view.vitals.get("drink", 9)) <= 1 < view.vitals.get("energy", 0):
            return "you would wake up starving, eat and drink first"
        room = [(self.x, self.y)]
        for x, y in room:
            beside = [(x + dx, y + dy) for dx, dy in COMPASS.values()]
            room += [cell for cell in beside if cell in self.open and cell not in room and len(room) <= ROOM]
        near = " and ".join(view.told(kind) for kind in HUNTERS if view.steps(kind) <= 8)
        danger = f"you lie in the open{near and f' with {near}'}, a zombie hits a sleeper for 7: wall yourself in"
        return danger if len(room) > ROOM else None
