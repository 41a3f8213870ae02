"""MiniHack as text games: BALROG's eight tasks."""

from games.minihack.game import TASKS, MiniHack, facts

__all__ = ["TASKS", "MiniHack", "facts"]
