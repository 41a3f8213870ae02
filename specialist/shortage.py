"""Too little to learn from: a person collects more or asks for less; a search goes on with another recipe."""

from __future__ import annotations

from automem.errors import UserError


class Shortage(UserError):
    """Fewer examples than the recipe needs. The text says how many there are, and where the others went."""
