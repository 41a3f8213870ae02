"""NetHack as a text game (NLE's NetHackChallenge), and the text that NetHack and MiniHack share."""

from games.nethack.game import TASKS, NetHack
from games.nethack.text import describe

__all__ = ["TASKS", "NetHack", "describe"]
