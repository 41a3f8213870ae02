"""MiniHack: what the drawn map says, what goes wrong again and again, and commands that hold two."""

from __future__ import annotations

import re
from collections import deque
from itertools import groupby

from automem.hooks import Again, Memory, Operation, Step, write

W = 82
"""Columns of a row here: the 80 of the terminal, and a blank at each end. Cells count row by row."""

DIRECTIONS = {
    "north": -W, "east": 1, "south": W, "west": -1,
    "northeast": 1 - W, "southeast": 1 + W, "southwest": W - 1, "northwest": -1 - W,
}  # fmt: skip
RING = (1, 1 + W, W, W - 1, -1, -1 - W, -W, 1 - W)
"""The eight neighbours, going round from the east; even places are straight."""

MONSTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@&:;'~")
KEPT_LINES, LONG = 60, 80
"""Lines that are kept of a log or map that has grown longer than `LONG`."""

SCENERY = re.compile(
    "(wall|corner|area|door|doorway|corridor|stone|floor|boulder|bars|trap|web|fountain|stairs|altar|alter|corpse|"
    "grave|throne|sink|tree|statue)$"
)
"""How names end that are no monster's."""

ITEM_VERBS = "(eat|apply|use|quaff|drink|zap|put ?on)"
"""Commands that ask for an item's letter."""

WAY_VERBS = ("kick", "open", "close", "force")
WALKS = ("go", "move", "walk", "step", "head", "attack", "hit")
RUNS = ("run", "rush", "go far", "move far", "movefar", "dash")
MEANINGS = {"pick up": "pickup", "go down": "down", "descend": "down", "downstairs": "down", "rest": "wait"}
KEYS = {"a": "apply", "e": "eat", "f": "force", "o": "open", "p": "puton", "q": "quaff", "s": "search", "z": "zap"}
"""MiniHack has no letters: the commands that type them."""

COMPASS = tuple(DIRECTIONS)
QUEST = (*COMPASS, *(f"far {name}" for name in COMPASS), "down", "wait", "more", "apply", "close", "open", "eat",
         "force", "kick", "loot", "pickup", "pray", "puton", "quaff", "search", "zap")  # fmt: skip
ACTIONS = {"Boxoban": COMPASS[:4], "Corridor-R3": (*COMPASS, "open", "kick", "search"), "Quest": QUEST}
"""Part of a MiniHack task's name -> its actions; the others have the eight directions."""


class View:
    """An observation's text, taken apart. Cells are indices into `cells`; `at` is -1 while the cursor is elsewhere."""

    def __init__(self, text: str) -> None:
        head, _, rest = text.partition("\nmap:\n")
        drawn, _, items = rest.partition("\ninventory:\n")
        self.message = " ".join(head.partition("message:\n")[2].partition("\nlanguage observation:\n")[0].split())
        self.seen = head.partition("\nlanguage observation:\n")[2].partition("\ncursor:\n")[0]
        rows = ["", *drawn.split("\n"), *[""] * 24][:24]
        self.bottom = rows[23].strip()
        self.cells = "".join(f" {row[:80]:80} " for row in (*rows[:22], "", ""))
        place = re.search(r"\n(Yourself [^\n]*)?\n?\(x=(\d+), y=(\d+)\)", head)
        here = place is not None and place[1] is not None and int(place[3]) < 22
        self.at = int(place[3]) * W + int(place[2][:2]) + 1 if place is not None and here else -1
        self.inventory = "\n".join(line for line in items.split("\n") if line[1:3] == ": ")
        self.level = number(r"Dlvl:(\d+)", self.bottom)
        self.state = re.sub(r" (?:T|\$):\d+", "", self.bottom)
        self.beside: dict[str, list[str]] = {}
        for line in self.seen.split("\n"):
            name, found, where = line.partition(" adjacent ")
            for direction in re.findall(r"\w+", where.replace(" and ", " ")) if found else ():
                self.beside.setdefault(direction, []).append(name)
        self.boxes = self.cells.count("`") > 1 and "|" not in self.cells and "-" not in self.cells
        self.doors, self.ways = self._ground()

    def _ground(self) -> tuple[dict[int, str], bytearray]:
        """Doors (cell -> open or closed), and for every cell whether it can be entered."""
        cells = self.cells
        ways = bytearray(cells.translate(WALKABLE), "latin-1", "replace")
        doors: dict[int, str] = {}
        for found in re.finditer("[|+-]", cells):
            cell = found.start()
            across = cells[cell - 1] in "|-+" and cells[cell + 1] in "|-+"
            along = cells[cell - W] in "|-+" and cells[cell + W] in "|-+"
            if found[0] == "+" and (across or along):
                doors[cell] = "closed"
            elif (found[0] == "|" and across and not along) or (found[0] == "-" and along and not across):
                doors[cell] = "open"
        if "open door here" in self.message:
            doors[self.at] = "open"
        for name, things in self.beside.items() if self.at >= 0 else ():
            cell = self.at + DIRECTIONS.get(name, 0)
            for thing in things:
                if thing.endswith(("open door", "closed door")):
                    doors[cell] = "closed" if "closed" in thing else "open"
                elif re.search("lava|water|bars|tree|wall of|statue", thing):
                    ways[cell] = BLOCKED
        for cell in doors:
            ways[cell] = FREE
        if self.boxes:
            ways = ways.replace(b"#", b"\0")
        if self.at >= 0:
            ways[self.at] = FREE
        return doors, ways

    def reach(self) -> dict[int, int]:
        """Cell -> the cell before it, for all that can be walked to, nearest first; doors are entered straight."""
        before = {self.at: self.at}
        queue = deque(before) if self.at >= 0 else deque()
        ways, doors = self.ways, self.doors
        straight = self.boxes
        while queue:
            cell = queue.popleft()
            for step in RING[::2] if straight or cell in doors else RING:
                other = cell + step
                if ways[other] and other not in before and not (step not in RING[::2] and other in doors):
                    before[other] = cell
                    queue.append(other)
        return before

    def is_end(self, cell: int) -> bool:
        """Something unknown is next to this cell, and no known way leads on through it."""
        if not any(" " in self.cells[middle - 1 : middle + 2] for middle in (cell - W, cell, cell + W)):
            return False
        out = "".join(".#"[not self.ways[cell + step]] for step in RING)
        return out.count(".") < 2 or (out.count(".") < 4 and (out + out[0]).count(".#") == 1)


BLOCKED, FREE = 0, ord(".")
WALKABLE = {code: BLOCKED if chr(code) in " |-}`" or code > 126 else code for code in range(32, 256)}


def number(pattern: str, text: str) -> int:
    """The number that a pattern finds, or -1."""
    found = re.search(pattern, text)
    return int(found[1]) if found else -1


def place(cell: int) -> str:
    """A cell as x,y of the screen."""
    return f"{cell % W - 1},{cell // W}"


def bearing(start: int, goal: int) -> str:
    """The direction of one cell from another, in one of eight words."""
    dx, dy = goal % W - start % W, goal // W - start // W
    vertical, horizontal = "south" if dy > 0 else "north", "east" if dx > 0 else "west"
    return vertical * (2 * abs(dy) >= abs(dx)) + horizontal * (2 * abs(dx) >= abs(dy))


def route(before: dict[int, int], goal: int) -> list[str]:
    """Names of the steps to a cell that can be reached."""
    names = {step: name for name, step in DIRECTIONS.items()}
    steps = []
    while before[goal] != goal:
        steps.append(names[goal - before[goal]])
        goal = before[goal]
    return steps[::-1]


def runs(steps: list[str]) -> str:
    """``east 3, south 2``: steps, like ones together."""
    groups = [(name, len(list(like))) for name, like in groupby(steps)]
    return ", ".join(f"{name} {n}" if n > 1 else name for name, n in groups[:6]) + (" …" if groups[6:] else "")


def steps_long(steps: list[str]) -> str:
    """How long a way is."""
    return f"{len(steps)} step{'s' * (len(steps) != 1)}"


class Hooks:
    """State of one episode: where the player has been, what is known of stairs, what was written last."""

    def reset(self, game: str, task: str) -> None:
        """See `automem.hooks`."""
        found = [names for part, names in ACTIONS.items() if part in task]
        self.actions = frozenset(found[0] if found else COMPASS)
        self.view = View("")
        self.been: dict[int, set[int]] = {}
        self.known: dict[int, dict[int, str]] = {}
        self.trail: deque[int] = deque(maxlen=24)
        self.idle = 0
        self.files: dict[str, str] = {}

    def observe(self, step: Step) -> dict[str, str]:
        """`around`: the map next to the player and the nearest ways on; `warnings`: what should not be missed."""
        before, self.view = self.view, View(step.observation)
        view = self.view
        if view.at < 0:
            return {"around": "", "warnings": marked([self._answer(step)])}
        same = (view.cells, view.state, view.inventory) == (before.cells, before.state, before.inventory)
        self.idle = self.idle + 1 if same and step.action == (step.history[-2:] or ("",))[0] else int(same)
        self.trail.append(view.at)
        self.been.setdefault(view.level, set()).add(view.at)
        known = self.known.setdefault(view.level, {})
        for found in re.finditer("[<>]", view.cells):
            known[found.start()] = "stairs down" if found[0] == ">" else "stairs up"
        reached = view.reach()
        recent = list(self.trail)[-8:]
        if len(recent) == 8 and 1 < len(set(recent)) < 4 and (missed := self._unexplored(reached)):
            known[missed[0]] = "exit out of reach"
        warnings = [self._answer(step), self._stairs(reached), *self._loops(step)]
        return {"around": self._around(reached), "warnings": marked(warnings)}

    def maintain(self, step: Step, memory: Memory) -> list[Operation]:
        """Status and inventory when they change; long files cut."""
        view = self.view
        operations = []
        if view.at >= 0:
            for name, text in {"status.txt": view.state, "inventory.txt": view.inventory}.items():
                if text and self.files.get(name) != text:
                    self.files[name] = text
                    operations.append(write(name, text))
        if step.number % 20 == 0:
            operations += self._pruned(memory)
        return operations

    def check_action(self, step: Step, action: str) -> str | Again | None:
        """Commands that hold two become the first of them; what would end the game is asked again."""
        view = self.view
        if action in DIRECTIONS and view.at >= 0:
            return self._deadly(action)
        name, rest = parts(action)
        if rest and "What do you want to" in view.message and len(rest[0]) == 1:
            return self._typed(rest[0])
        if rest and "what direction" in view.message and rest[-1] in DIRECTIONS:
            return rest[-1]
        return name if name in self.actions else None

    def op_WAY(self, args: tuple[str, ...], memory: Memory) -> str:
        """The way over the drawn map to a place or to the nearest thing of a kind."""
        view, target = self.view, args[0].strip().lower() if args else ""
        if view.at < 0:
            return "the map cannot be read now: answer the game first"
        before = view.reach()
        if found := re.fullmatch(r"\(?(?:x=)?(\d{1,2}) ?, ?(?:y=)?(\d{1,2})\)?", target):
            goals = [int(found[2]) * W + int(found[1]) + 1]
        elif target == "new":
            goals = self._unexplored(before)
        elif target == "door":
            goals = [cell for cell in before if cell in view.doors and cell != view.at]
        elif target in ("<", ">"):
            wanted = "stairs down" if target == ">" else "stairs up"
            goals = [cell for cell, what in self.known.get(view.level, {}).items() if what == wanted]
        else:
            return "WAY goes to x,y, to > or <, to door, or to new (ground that was not seen yet)"
        near = [cell for cell in before if cell in goals]
        if near:
            steps = route(before, near[0])
            return f"{target} at {place(near[0])}: {steps_long(steps)}: {runs(steps) or 'you are there'}"
        away = f" It lies {bearing(view.at, goals[0])}." if goals else ""
        return f"no way to {target} over what is drawn.{away} Look for unexplored exits, or search for hidden ones."

    def _around(self, before: dict[int, int]) -> str:
        view = self.view
        groups: dict[str, list[str]] = {}
        for name, step in DIRECTIONS.items():
            groups.setdefault(self._beside(name, view.at + step), []).append(name)
        blocked = groups.pop("blocked", [])
        told = [f"{what} {', '.join(names)}" for what, names in groups.items()]
        if blocked:
            told.append("blocked elsewhere" if groups else "blocked on all sides")
        lines = [f"Around you: {'; '.join(told)}."]
        if not view.boxes:
            new = self._unexplored(before)[:2]
            shut = [cell for cell in before if view.doors.get(cell) == "closed" and cell not in new]
            told = []
            for cell in new + shut[:1]:
                what, steps = "closed door" if cell in shut else "unexplored exit", route(before, cell)
                told.append(f"{what} {steps_long(steps)} {bearing(view.at, cell)} at {place(cell)}, first {steps[0]}")
            lines.append(f"Nearest: {'; '.join(told) or 'no unexplored exit; search at dead ends and along walls'}.")
        return "\n".join(lines)

    def _beside(self, name: str, cell: int) -> str:
        """What is next to the player, in a word or two."""
        view = self.view
        shown, things = view.cells[cell], view.beside.get(name, [])
        diagonal = name not in COMPASS[:4]
        if shown in MONSTERS and not (shown in "'~" and not things):
            named = [thing for thing in things if not SCENERY.search(thing)]
            return named[0] if named else f"monster {shown}"
        if shown == "`":
            if not view.boxes:
                return "boulder"
            beyond = view.ways[cell + DIRECTIONS[name]]
            return "blocked" if diagonal else "boulder that can be pushed" if beyond else "boulder that is stuck"
        if cell in view.doors:
            return "blocked" if diagonal else f"{view.doors[cell]} door"
        if shown == "}":
            return next((thing for thing in things if not thing.endswith(("wall", "corner"))), "water or lava")
        if shown in "<>^":
            return {"<": "stairs up", ">": "stairs down", "^": "trap"}[shown]
        if not view.ways[cell] or (diagonal and (view.at in view.doors or view.boxes)):
            return "blocked"
        return "open"

    def _unexplored(self, before: dict[int, int]) -> list[int]:
        """Ends of what is known, where the player has not stood yet, nearest first."""
        been, known = self.been.get(self.view.level, ()), self.known.get(self.view.level, ())
        return [cell for cell in before if cell not in been and cell not in known and self.view.is_end(cell)]

    def _stairs(self, before: dict[int, int]) -> str:
        """Where the stairs down are: most tasks are won on them."""
        view = self.view
        down = [cell for cell, what in self.known[view.level].items() if what == "stairs down"]
        if not down:
            return ""
        if view.at in down or "staircase down here" in view.message:
            return "You stand on the stairs down: use down." if "down" in self.actions else ""
        near = [cell for cell in before if cell in down]
        if not near:
            return f"Stairs down are {bearing(view.at, down[0])} at {place(down[0])}; no way there is known yet."
        steps = route(before, near[0])
        return f"Stairs down at {place(near[0])}: {steps_long(steps)}, {runs(steps)}."

    def _loops(self, step: Step) -> list[str]:
        """Going to and fro, standing still, doing again what did nothing."""
        places = list(self.trail)
        told = []
        if len(places) > 3 and places[-1] == places[-3] != places[-2] == places[-4]:
            told.append(f"You go to and fro between {place(places[-2])} and {place(places[-1])}: choose another aim.")
        patient = step.action in ("search", "wait") or (step.action or "").isdigit()
        if self.idle >= (12 if patient else 2):
            told.append(f"{step.action} has changed nothing {self.idle} times: do something else.")
        elif len(places) == 24 and places.count(places[-1]) >= 20:
            told.append(f"You have been at {place(places[-1])} for most of the last 24 steps.")
        return told

    def _answer(self, step: Step) -> str:
        """What was left of a command that held two."""
        name, rest = parts(step.raw_action or "")
        if step.raw_action == step.action or name != step.action or not rest:
            return ""
        wrote, message = f"You wrote {(step.raw_action or '')[:40]!r}", self.view.message
        if rest[0].isdigit():
            return f"{wrote}: {name} was played once."
        if "[" not in message and "direction" not in message:
            return f"{wrote}, but the game asks for nothing more."
        keys = [self._typed(word) if len(word) == 1 else word for word in rest]
        return f"{wrote}: answer the game with {', then '.join(keys)}." if all(keys) else ""

    def _typed(self, letter: str) -> str | None:
        """The action that types a letter."""
        return KEYS[letter] if KEYS.get(letter) in self.actions else None

    def _deadly(self, action: str) -> Again | None:
        """A step into lava, a boulder into a corner: neither can be taken back."""
        view, step = self.view, DIRECTIONS[action]
        if any(thing == "lava" for thing in view.beside.get(action, [])) and view.cells[view.at + step] == "}":
            return Again(f"{action} is lava, and stepping into it is death")
        target = view.at + 2 * step
        if view.boxes and view.cells[view.at + step] == "`" and view.ways[target] and view.cells[target] != "{":
            walls = [view.cells[target + side] in " #" for side in (-W, 1, W, -1)]
            if (walls[0] or walls[2]) and (walls[1] or walls[3]):
                return Again(f"{action} pushes the boulder into the corner {place(target)}, where it stays for good")
        return None

    def _pruned(self, memory: Memory) -> list[Operation]:
        """Of long files the newest lines, each once."""
        long = [file.name for file in memory.files() if file.lines > LONG and file.name in ("lessons.txt", "map.txt")]
        lines = {name: list(dict.fromkeys(memory.read(name).splitlines())) for name in long}
        return [write(name, "\n".join(lines[name][-KEPT_LINES:])) for name in long]


def marked(lines: list[str]) -> str:
    """Lines that have something to say, each after an exclamation mark."""
    return "\n".join(f"! {line}" for line in lines if line)


def parts(written: str) -> tuple[str, list[str]]:
    """A command that holds two: the action to play now, and what is left; ("", []) where it is not clear."""
    text = " ".join(written[:60].strip(" .!\"'`").split())
    plain = text.lower()
    if plain in MEANINGS:
        return MEANINGS[plain], []
    counted = re.fullmatch(r"(?:(\d+) ?x? )?([a-z ]+?)(?: x?(\d+)(?: (?:times|steps|turns|squares))?)?", plain)
    if counted is None:
        return "", []
    body, count = counted[2], counted[1] or counted[3]
    verb, _, last = body.rpartition(" ")
    if last in DIRECTIONS:
        if verb in WALKS or (count and not verb):
            return last, [count] if count else []
        if verb in RUNS or (count and verb == "far"):
            return f"far {last}", []
        if verb in WAY_VERBS and not count:
            return verb, [last]
    if count:
        return (body, [count]) if body in ("search", "wait") else ("", [])
    found = re.fullmatch(ITEM_VERBS + r" (?:item )?([a-zA-Z])(?: ([a-z]+))?", text, re.IGNORECASE)
    if found is None or (found[3] or "east").lower() not in DIRECTIONS:
        return "", []
    verb = found[1].lower().replace(" ", "")
    return {"use": "apply", "drink": "quaff"}.get(verb, verb), [found[2], *([found[3].lower()] if found[3] else [])]
