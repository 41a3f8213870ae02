"""Nights, tiredness and wounds: when to close oneself in, and what to do inside."""

from __future__ import annotations

from automem.models.scripted.crafter.belief import Belief
from automem.models.scripted.crafter.goals import dark
from automem.models.scripted.crafter.rules import BIT, WALKABLE
from automem.models.scripted.crafter.shelter import best_shelter, closed_room, towards
from automem.models.scripted.crafter.steps import WAIT, ground_of

_HUNGRY = 2
"""Food or drink at which resting has to wait."""


def rest(belief: Belief) -> str | None:
    """The action for resting; None when it is not the time for it."""
    vitals = belief.scene.vitals
    energy, health = vitals.get("energy", 9), vitals.get("health", 9)
    supplies = min(vitals.get("food", 9), vitals.get("drink", 9))
    night = dark(belief.step)
    enemies = frozenset(cell for kind in ("zombie", "skeleton", "arrow") for cell in belief.creatures(kind))
    # Arrows fly over water.
    passable = WALKABLE | BIT["water"] if min(belief.distance("skeleton"), belief.distance("arrow")) < 9 else WALKABLE
    room = closed_room(belief.world, *belief.here, enemies, passable)
    if room is not None and supplies > 1:
        if energy < 9 and (night or energy <= 5 or health <= 6 or "wake_up" not in belief.done):
            return "Sleep"
        if health <= 5 and supplies > _HUNGRY:
            return WAIT
        if night:
            # Nights are for digging: what opens no way in is safe.
            ground_of(belief).keep_to_rock(room)
    if room is not None:
        return None
    patience = _patience(belief, energy, health, supplies, night)
    if patience:
        ground = ground_of(belief)
        stones = belief.scene.items.get("stone", 0)
        shelter = best_shelter(belief.world, ground, stones, belief.scene.has("wood_pickaxe"), passable)
        if shelter is not None and shelter.cost <= patience:
            return towards(shelter, belief.world, ground, belief.facing)
    if energy <= 0 and belief.distance("zombie") > 4:
        return "Sleep"
    return None


def _patience(belief: Belief, energy: int, health: int, supplies: int, night: bool) -> int:
    """Steps that a room may take to close; 0 when there is no need for one."""
    if supplies <= _HUNGRY:
        return 0
    if energy <= 2:
        return 40
    if night:
        return 30
    if health <= 3:
        return 12
    if energy < 9 and "wake_up" not in belief.done:
        return 5
    return 0
