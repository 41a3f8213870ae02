"""The transcript of a dialogue: every reply on the disk before it is acted on, so that none is paid for twice.

``transcript.jsonl``, a record a line, ``kind`` first:

- ``began``: whose dialogue it is, and the first two messages;
- ``text``: from here on tools are called in text, and the conversation begins anew;
- ``shortened``: old answers were removed to make room;
- ``reply``: what the model wrote, what it took, and the SHA-256 of what it was sent;
- ``answers``: what it was told;
- ``left``: the records from number ``keep`` on no longer fit, and the dialogue went on from there; what they
  cost still counts;
- ``ended``: how it ended.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from meta.dialogue.errors import DialogueUnavailable
from meta.reviewer import Spent

Record = dict[str, Any]


class Transcript:
    """Reads what is recorded, in order, then adds to it.

    Attributes:
        path: the file.
        spent: what all recorded replies took, those that no longer fit included; `seconds` until the last of them.
    """

    def __init__(self, path: Path) -> None:
        """A line that a kill tore off is dropped. Raises `DialogueUnavailable` when any other one is damaged."""
        self.path = path
        self.spent = Spent()
        self._records: list[Record] = []
        self._at = 0
        for record in self._read():
            if record["kind"] == "left":
                del self._records[record["keep"] :]
            else:
                self._records.append(record)
            if record["kind"] == "reply":
                self._count(record)

    @property
    def resumed(self) -> bool:
        """There is something to be read back."""
        return self._at < len(self._records)

    def peek(self) -> str:
        """The kind of the next record; empty when all have been read."""
        return self._records[self._at]["kind"] if self.resumed else ""

    def next(self, kind: str) -> Record | None:
        """The next record, if it is of this kind."""
        if self.peek() != kind:
            return None
        self._at += 1
        return self._records[self._at - 1]

    def back(self) -> None:
        """The record that was read last is not used after all."""
        self._at -= 1

    def add(self, kind: str, **values: Any) -> Record:
        """Append a record and wait until it is on the disk. What was not read back by then no longer fits."""
        lines = []
        if self.resumed and kind != "ended":
            del self._records[self._at :]
            lines.append({"kind": "left", "keep": self._at})
        record = {"kind": kind, **values}
        lines.append(record)
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        with self.path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if kind != "ended":
            self._records.append(record)
            self._at = len(self._records)
        if kind == "reply":
            self._count(record)
        return record

    def _count(self, reply: Record) -> None:
        took = Spent(1, reply["prompt_tokens"], reply["completion_tokens"], reply["usd"] or 0.0)
        self.spent = replace(self.spent + took, seconds=max(self.spent.seconds, reply["seconds"]))

    def _read(self) -> list[Record]:
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
            _sync_folder(self.path.parent)
            return []
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(self.path, whole)
        records = []
        for number, line in enumerate(data[:whole].splitlines(), 1):
            try:
                record = json.loads(line)
                if not isinstance(record["kind"], str):
                    raise TypeError("kind")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise DialogueUnavailable(
                    f"{self.path}:{number}: this line of the transcript is damaged; mend it, or remove the file to "
                    "begin this dialogue anew (what it holds is then paid for again)"
                ) from error
            if record["kind"] != "ended":
                records.append(record)
        return records


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
