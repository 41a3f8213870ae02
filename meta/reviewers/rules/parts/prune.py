"""Keeps maps short enough to be shown whole."""

from collections import Counter

from automem.hooks import Memory, Operation, Step, delete


class Prune:
    """Takes entries off a map that has grown too long: of what it says most often, those unchanged for longest."""

    def __init__(self, files: dict[str, int]) -> None:
        """Args: files: map -> characters that it may have."""
        self.most = files
        self.changed: dict[str, dict[str, int]] = {name: {} for name in files}
        self.held: dict[str, dict[str, str]] = {name: {} for name in files}

    def maintain(self, step: Step, memory: Memory) -> list[Operation]:
        return [operation for name in self.most for operation in self._shorter(name, step.number, memory)]

    def _shorter(self, name: str, now: int, memory: Memory) -> list[Operation]:
        lines = [line.partition(": ") for line in memory.read(name).splitlines()]
        entries = {key: value for key, _, value in lines if key}
        changed, held = self.changed[name], self.held[name]
        changed.update({key: now for key, value in entries.items() if held.get(key) != value})
        self.held[name] = entries
        excess = sum(len(key) + len(value) + 3 for key, value in entries.items()) - self.most[name]
        if excess <= 0:
            return []
        left = Counter(entries.values())
        waiting: dict[str, list[str]] = {}
        for key in sorted(entries, key=lambda key: -changed.get(key, 0)):
            waiting.setdefault(entries[key], []).append(key)
        operations: list[Operation] = []
        while excess > -self.most[name] // 10 and len(operations) < 60 and left:
            value = max(left, key=lambda value: (left[value], value))
            key = waiting[value].pop()
            left[value] -= 1
            if left[value] == 0:
                del left[value]
            excess -= len(key) + len(value) + 3
            operations.append(delete(name, key))
        return operations
