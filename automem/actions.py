"""From an action as a model writes it to an action that the game has."""

from __future__ import annotations

import difflib
from collections.abc import Mapping


class Actions:
    """The actions of a game, by name."""

    def __init__(self, known: Mapping[str, str]) -> None:
        """Args: known: every action, with what it does."""
        self._known = known
        self._loose = _loose_names(known)

    def meant(self, written: str) -> str | None:
        """The action that was meant: the exact name, else one that differs in case or quotes only."""
        if written in self._known:
            return written
        return self._loose.get(_loosely(written))

    def unknown(self, written: str) -> str:
        """What the model is told of an action that the game does not have."""
        near = difflib.get_close_matches(written[:40], self._known, n=3) or list(self._known)[:3]
        return f"ACTION {written[:40]!r} is not an action of this game; near it are {', '.join(near)}"


def _loosely(name: str) -> str:
    return name.strip().strip("\"'`.").casefold()


def _loose_names(actions: Mapping[str, str]) -> dict[str, str]:
    """Loosely written name -> action, for names that stay unambiguous."""
    loose: dict[str, str] = {}
    twice = set()
    for name in actions:
        key = _loosely(name)
        if key in loose:
            twice.add(key)
        loose[key] = name
    return {key: name for key, name in loose.items() if key and key not in twice}
