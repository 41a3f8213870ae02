"""Crafter for a person's eyes: coloured cells, and the simulator's own picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from games.crafter.tables import CELLS, DIRECTIONS, PLAYER, VIEW, VITALS
from games.protocol import Screen, Span

if TYPE_CHECKING:
    from games.crafter.world import Env

_NIGHT = 0.5


def cells(env: Env, step: int) -> Screen:
    """The cells in view, two characters each, and lines of status and inventory below."""
    reach_x, reach_y = VIEW[0] // 2, VIEW[1] // 2 - 1
    x, y = (int(v) for v in env.player.pos)
    rows = [
        tuple(_cell(env, (column, row)) for column in range(x - reach_x, x + reach_x + 1))
        for row in range(y - reach_y, y + reach_y + 1)
    ]
    return (*rows, *_status(env, step))


def picture(env: Env, size: tuple[int, int]) -> np.ndarray:
    """The simulator's picture as uint8 (height, width, 3). The game goes on as if it had not been drawn.

    Raises ValueError for a size below one pixel a cell.
    """
    width, height = size
    if width < VIEW[0] or height < VIEW[1]:
        raise ValueError(f"a picture of {width}x{height} pixels is too small: at least {VIEW[0]}x{VIEW[1]}")
    before = env.world.random.get_state()
    try:
        return env.draw(size)
    finally:
        env.world.random.set_state(before)


def _cell(env: Env, position: tuple[int, int]) -> Span:
    """How one cell looks; creatures hide the ground."""
    material, thing = env.world[position]
    if thing is None:
        return CELLS[str(material)]
    if thing is env.player:
        east, south = thing.facing
        return PLAYER["asleep" if thing.sleeping else DIRECTIONS[int(east), int(south)]]
    kind = type(thing).__name__.lower()
    return CELLS["sapling" if kind == "plant" and not thing.ripe else kind]


def _status(env: Env, step: int) -> tuple[tuple[Span, ...], ...]:
    """Vitals, achievements and time of day on one line, what is carried on the next."""
    inventory, achievements = env.player.inventory, env.player.achievements
    vitals = tuple(
        (f"{name} {inventory[name]}  ", "bold red" if inventory[name] <= 2 else "bold green") for name in VITALS
    )
    unlocked = sum(count > 0 for count in achievements.values())
    time = "night" if env.world.daylight < _NIGHT else "day"
    carried = "  ".join(
        f"{name.replace('_', ' ')} {count}" for name, count in inventory.items() if count and name not in VITALS
    )
    return (
        (*vitals, (f"{unlocked}/{len(achievements)} achievements", "bold yellow"), (f"  step {step}, {time}", "dim")),
        ((carried or "nothing carried", "cyan"),),
    )
