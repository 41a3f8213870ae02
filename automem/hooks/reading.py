"""What a hook may read of the memory folder in one call, and what that costs it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from automem.memory import Memory
from automem.vocabulary import one_line

READ_CHARS = 8_000_000
"""Characters of the memory folder that one call may read: it is read while other episodes wait."""

SEARCH_SHARE = 8
"""A search costs this part of the file that it looks through, beside what it finds."""

QUESTION_CHARS, LINE_CHARS = 500, 20
"""What a question, and each line of an answer, costs beside its characters."""

QUERY_CHARS = 1000
"""Characters of a query."""


class Reader:
    """Answers what hooks ask of the memory folder during one call."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._left = READ_CHARS

    def answer(self, question: str, args: list[Any]) -> Any:
        """Raises ValueError, with a line for whoever wrote the hooks, when there is no answer.

        Everything is charged before it is done: a question is answered while other episodes wait.
        """
        self._charge(QUESTION_CHARS)
        if question == "files" and not args:
            return self._memory.listing()
        if args and isinstance(args[0], str):
            name = args[0]
            try:
                if question == "read" and len(args) == 1:
                    self._charge(self._memory.size(name))
                    return self._memory.read(name)
                if question == "tail" and len(args) == 2 and type(args[1]) is int:
                    return self._taken(islice(self._memory.newest_first(name), max(args[1], 0)))
                if question == "search" and len(args) == 2 and isinstance(args[1], str):
                    if len(args[1]) > QUERY_CHARS:
                        raise ValueError(f"a query has {QUERY_CHARS} characters at most")
                    self._charge(self._memory.size(name) // SEARCH_SHARE)
                    return self._taken(self._memory.matching(name, args[1]))
            except KeyError:
                return "" if question == "read" else []
        raise ValueError(f"memory cannot answer {one_line(str(question), 40)} with these arguments")

    def _taken(self, newest_first: Iterable[str]) -> list[str]:
        """The lines, oldest first, each charged as it is taken."""
        lines = []
        for line in newest_first:
            self._charge(len(line) + LINE_CHARS)
            lines.append(line)
        return lines[::-1]

    def _charge(self, chars: int) -> None:
        self._left -= chars
        if self._left < 0:
            raise ValueError(f"a call may read {READ_CHARS} characters of memory; read the tail of long files")
