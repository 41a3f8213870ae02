"""Names of actions, as BALROG spells them, and the keys that stand behind them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from string import ascii_letters, digits
from types import MappingProxyType
from typing import NamedTuple


class Key(NamedTuple):
    """One action: the code of the key that NLE receives, and what it does in a few words."""

    code: int
    meaning: str


@cache
def nethack_keys() -> Mapping[str, Key]:
    """Every action of NetHack, by name: commands, then the letters and digits that answer questions."""
    keys = {name: Key(_code(key), meaning) for name, (key, meaning) in _data()["keys"].items()}
    keys |= {letter: Key(ord(letter), f"type {letter}") for letter in ascii_letters}
    keys |= {digit: Key(ord(digit), f"type {digit}") for digit in digits}
    return MappingProxyType(keys)


@cache
def _data() -> dict:
    return tomllib.loads(resources.files(__package__).joinpath("actions.toml").read_text("utf-8"))


def _code(key: str) -> int:
    """The code of a key: "^d" is control-d, "M-d" meta-d."""
    if key.startswith("M-"):
        return 0x80 | ord(key[2])
    if len(key) == 2 and key.startswith("^"):
        return 0x1F & ord(key[1])
    return ord(key)
