"""Crafter: the game, and its observation as text."""

from games.crafter.game import STEP_LIMIT, TASKS, Crafter
from games.crafter.text import describe

__all__ = ["STEP_LIMIT", "TASKS", "Crafter", "describe"]
