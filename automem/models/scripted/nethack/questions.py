"""Answers to what the game asks between two moves: directions, letters, yes or no."""

from __future__ import annotations

import re

from automem.models.scripted.nethack.keys import key
from automem.models.scripted.nethack.lines import aim, beside, loose_thing
from automem.models.scripted.nethack.screen import DIRECTIONS, FIRST_ROW, WIDTH, Screen
from automem.models.scripted.nethack.terrain import Terrain

_FOOD = re.compile(
    r"\b(food rations?|cram|lembas|apples?|oranges?|pears?|melons?|bananas?|carrots?|candy|cookies?|pancakes?|tripe|"
    r"eggs?|slime molds?|lumps? of royal jelly|sprigs?|cloves?|meat|kelp|gunyoki|K-rations?|C-rations?|wafers?)\b"
)
_BAD_FOOD = ("corpse", "gem", "ring", "potion", "wand", "spellbook", "stone", "sling")
DIGGERS = ("pick-axe", "dwarvish mattock", "broad pick")
"""Names of tools that dig."""

_DIGGER_LINE = re.compile(r"\b([a-zA-Z]) ([-+]) [^-+]*?(?:pick-axe|mattock|broad pick)")
_CHOICES = re.compile(r"\[([^\]]*)\]")


def asks(screen: Screen) -> bool:
    """True where the game waits for something else than a move."""
    message = screen.message
    return (
        not screen.here
        or "--More--" in message
        or "Where do you want to travel" in message
        or "Pick up what" in message
    )


def answer(screen: Screen, terrain: Terrain, last: str | None, actions: frozenset[str]) -> str | None:
    """The action that answers, or leaves, the game's question."""
    message = screen.message
    give_up = "esc" if "esc" in actions else None
    if "travel to" in message or (last in ("travel", "down") and not screen.here):
        return _travel(screen, actions) or give_up
    if "In what direction" in message or "what direction" in message:
        return _direction(screen, terrain, last, actions) or give_up
    if "want to eat" in message:
        return _letter(food(screen, _choices(message)), message, actions) or give_up
    if "want to use or apply" in message:
        tools = (horn(screen), digger(screen)) if screen.turn < 0 else (digger(screen), horn(screen))
        return _letter(tools[0] or tools[1], message, actions) or give_up
    if "want to take off" in message:
        return _letter(shield(screen), message, actions) or give_up
    if "want to zap" in message:
        return _letter(wand(screen), message, actions) or give_up
    if "want to drink" in message:
        return _letter(healing(screen), message, actions) or give_up
    if "Are you sure you want to pray" in message or "Improvise" in message:
        return key("y", actions)
    if "eat it?" in message or "eat one?" in message or "Really attack" in message:
        return key("n", actions) or give_up
    if "--More--" in message or "--More--" in " ".join(screen.rows):
        return "more" if "more" in actions else give_up
    if "Pick up what" in message or "Pick up what" in " ".join(screen.rows):
        return _pick(screen, actions) or give_up
    if "[yn" in message:
        return key("n", actions) or give_up
    return give_up or ("more" if "more" in actions else None)


def _choices(message: str) -> str:
    """Letters that a question offers: "ac-f" of "[ac-f or ?*]", spelt out."""
    found = _CHOICES.search(message)
    offered = found[1].removesuffix(" or ?*") if found else ""
    return re.sub(r"(\w)-(\w)", lambda m: "".join(chr(c) for c in range(ord(m[1]), ord(m[2]) + 1)), offered)


def food(screen: Screen, among: str | None = None) -> str | None:
    """The letter of something to eat, the most filling first; `among` limits the letters."""
    edible = [
        (letter, item)
        for letter, item in screen.inventory.items()
        if _FOOD.search(item) and not any(word in item for word in _BAD_FOOD) and (not among or letter in among)
    ]
    edible.sort(key=lambda pair: ("food ration" not in pair[1], "cram" not in pair[1], pair[0]))
    return edible[0][0] if edible else None


def digger(screen: Screen) -> str | None:
    """The letter of a tool that digs downward."""
    return _item(screen, *DIGGERS)


def shield(screen: Screen) -> str | None:
    """The letter of a shield that is worn; it keeps one from swinging a mattock."""
    return next((k for k, item in screen.inventory.items() if "shield" in item and "being worn" in item), None)


def horn(screen: Screen) -> str | None:
    """The letter of a horn; in the quests that have one, it freezes lava."""
    return _item(screen, "horn")


def wand(screen: Screen) -> str | None:
    """The letter of a wand worth trying: one that digs, else one that freezes, else any unknown one."""
    return (
        _item(screen, "wand of digging")
        or _item(screen, "wand of cold")
        or next((letter for letter, item in screen.inventory.items() if "wand" in item and "wand of" not in item), None)
    )


def healing(screen: Screen) -> str | None:
    """The letter of a potion that is known to heal."""
    potions = {letter: item for letter, item in screen.inventory.items() if "potion" in item}
    return next((letter for letter, item in potions.items() if "healing" in item), None)


def _item(screen: Screen, *names: str) -> str | None:
    return next((k for name in names for k, item in screen.inventory.items() if name in item), None)


def _letter(letter: str | None, message: str, actions: frozenset[str]) -> str | None:
    return key(letter, actions) if letter else None


def _travel(screen: Screen, actions: frozenset[str]) -> str | None:
    """Aim at the stairs, and confirm once the cursor is there."""
    if "Where do you want" in message_of(screen):
        return key(">", actions) if any(">" in row for row in screen.rows[FIRST_ROW:22]) else None
    on = screen.rows[screen.y][screen.x] if screen.y < len(screen.rows) else " "
    return key(".", actions) if on == ">" else None


def message_of(screen: Screen) -> str:
    return screen.message


def _direction(screen: Screen, terrain: Terrain, last: str | None, actions: frozenset[str]) -> str | None:
    if "dig" in screen.message:
        return key(">", actions)
    at = _player(screen)
    if at is None:
        return None
    if last in ("kick", "open"):
        for name, (dx, dy) in DIRECTIONS.items():
            if at + dx + dy * WIDTH in terrain.closed and dx * dy == 0:
                return name if name in actions else None
        thing = loose_thing(terrain, at)
        return thing if thing in actions else None
    if wand(screen) and "wand of digging" in screen.inventory.get(wand(screen) or "", ""):
        return key(">", actions)
    return beside(terrain, at) or aim(terrain, at) or "east"


def _player(screen: Screen) -> int | None:
    """Where the player stands while the cursor is elsewhere: the only @ of the map."""
    if screen.here:
        return screen.at
    found = [y * WIDTH + x for y, row in enumerate(screen.rows[:22]) for x, c in enumerate(row) if c == "@"]
    return found[0] if len(found) == 1 else None


def _pick(screen: Screen, actions: frozenset[str]) -> str | None:
    """Mark the digging tool in a menu of what lies here, then confirm."""
    line = _DIGGER_LINE.search(" ".join(screen.rows))
    if line is None:
        return None
    return "more" if line[2] == "+" and "more" in actions else key(line[1], actions)
