"""MiniHack as text games: BALROG's eight tasks."""

from games.minihack.game import TASKS, MiniHack

__all__ = ["TASKS", "MiniHack"]
