"""All that a decision looks at, in one place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from automem.models.scripted.nethack.notes import Past, failed_moves, left_out
from automem.models.scripted.nethack.paths import Reach, reach
from automem.models.scripted.nethack.screen import Screen
from automem.models.scripted.nethack.terrain import MONSTERS, OFFSETS, Terrain

_PEACEFUL = re.compile(r"Really attack (?:the |)([^?]+?)\?")


@dataclass(frozen=True, slots=True)
class Scene:
    """The present, and what notes tell of the past.

    Attributes:
        screen, terrain: what is seen.
        actions: names that the prompt lists.
        last: the action whose outcome is seen.
        past: what was read.
        past_steps: steps played so far.
    """

    screen: Screen
    terrain: Terrain
    actions: frozenset[str]
    last: str | None
    past: Past
    past_steps: int

    def has(self, action: str) -> bool:
        """Whether the game has this action."""
        return action in self.actions

    def peaceful(self) -> set[str]:
        """Names of monsters that the game asked about before a blow."""
        told = [self.screen.message, *(m.text for m in self.past.recent)]
        return {name for text in told for name in _PEACEFUL.findall(text)}

    def ways(self) -> Reach:
        """Where one can walk from here, leaving out moves that failed just now and peaceful neighbours."""
        start, peaceful = self.screen.at, self.peaceful()
        hostile = self.terrain.hostile.items()
        beside = {(start, start + OFFSETS[name]) for name, monster in hostile if monster in peaceful}
        vain = left_out(self.past.vain, self.past_steps)
        failed = frozenset(beside.union(failed_moves(self.past.recent), vain))
        return reach(self.terrain, start, failed, not self.has("northeast"))

    def company(self) -> bool:
        """A monster is in view that is not tame."""
        shown = sum(c in MONSTERS for c in self.terrain.cells)
        tame = sum(line.count("tame ") + line.count(" statue") for line in self.screen.seen)
        return shown > tame
