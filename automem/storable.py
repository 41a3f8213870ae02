"""Text that can be written down: what models and their JSON bring may hold characters that UTF-8 has not."""

from __future__ import annotations


def storable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8")
