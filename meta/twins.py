"""Attempts that are worked on side by side do not see each other, and might come to the same files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


class Twins:
    """Fresh attempts of one revision that are made at the same time. Of equal ones the first is played.

    Each waits until those before it are reviewed and checked, however long that takes: which of them is played
    must not depend on time.
    """

    def __init__(self, numbers: Iterable[str]) -> None:
        """Made while an event loop runs; `numbers` are in order."""
        self._contents = {number: asyncio.get_running_loop().create_future() for number in numbers}

    def tell(self, number: str, content: str) -> None:
        """Say what an attempt will play (`meta.candidate.content_of`), empty for nothing; the first word counts."""
        future = self._contents.get(number)
        if future is not None and not future.done():
            future.set_result(content)

    async def played_by(self, number: str, content: str) -> str:
        """The attempt before this one that plays the same; empty when there is none."""
        if number not in self._contents:
            return ""
        for other, future in self._contents.items():
            if other == number:
                break
            if await future == content:
                return other
        return ""
