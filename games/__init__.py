"""Long games as text games. Importing this package loads no simulator."""

from games.protocol import Game, InvalidAction, Observation, Progress, Screen, Transition
from games.registry import UnknownTask, canonical, facts, game_of, make, tasks, versions

__all__ = [
    "Game",
    "InvalidAction",
    "Observation",
    "Progress",
    "Screen",
    "Transition",
    "UnknownTask",
    "canonical",
    "facts",
    "game_of",
    "make",
    "tasks",
    "versions",
]
