"""Tells the model which words its notes have, so that it searches for these."""

import re
from collections import Counter

from automem.hooks import Memory, Operation, Step


class Words:
    """Says, under the name `words`, which words stand in most lines of a file."""

    def __init__(self, file: str, most: int) -> None:
        """Args: file: whose words; most: how many of them."""
        self.file, self.most = file, most
        self.text = ""

    def observe(self, step: Step) -> dict[str, str]:
        return {"words": self.text} if self.text else {}

    def maintain(self, step: Step, memory: Memory) -> list[Operation]:
        lines = memory.tail(self.file, 200)
        found = Counter(word for line in lines for word in set(re.findall(r"[a-z]{3,20}", line.lower())))
        words = [word for word, _ in sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[: self.most]]
        self.text = f"Words in {self.file}: {', '.join(words)}." if words else ""
        return []
