"""The memory folder: a directory of text files that outlives every step of an episode.

The files live here, in memory, and `Memory.flush` brings the directory level once a phase,
so that a person can read along. What an operation answers depends on the operations before
it and on nothing else: running the recorded operations again rebuilds the folder of any step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from automem.memory import execute
from automem.memory.disk import Folder
from automem.memory.execute import Result
from automem.memory.files import MapFile, TextFile
from automem.memory.store import FileSpec, Limits, Refused, Store
from automem.vocabulary import Op, file_name_problem

PINNED_CHARS = 200_000
"""Characters of pinned files that a prompt shows."""


class Memory:
    """The memory folder of one episode.

    Args:
        folder: the directory, made if it is not there; None keeps the files in memory only,
            to rebuild a past step without a disk.
        files: what the scaffold plans for; of specs that fit a name, the first counts.
        limits: what it may hold and show.
        initial: file name -> contents at the start.
        replace: empty the directory first; otherwise it must be empty.

    Raises:
        MemoryWriteFailed: the folder cannot be made or written, or holds something already.
        ValueError: `initial` has a name or a map line that no operation could have made, or
            does not fit the limits.
    """

    def __init__(
        self,
        folder: Path | None,
        files: Sequence[FileSpec] = (),
        limits: Limits | None = None,
        *,
        initial: Mapping[str, str] | None = None,
        replace: bool = False,
    ) -> None:
        self._store = Store(files, limits or Limits())
        self._pins = any(spec.pin for spec in self._store.specs)
        self._warnings: list[str] = []
        for name, text in (initial or {}).items():
            self._begin(name, text)
        self._folder: Folder | None = None
        if folder is not None:
            self.lay_down(folder, replace=replace)

    def lay_down(self, folder: Path, *, replace: bool = False) -> None:
        """Write the files, as they stand, to a directory of their own, and keep it level from now on.

        Args and errors are the constructor's. For an episode that is resumed: its directory is not
        touched before everything that was stored has proved right.
        """
        self._folder = Folder(Path(folder), replace)
        for file in self._store.files.values():
            file.stale = True
        self.flush()

    def _begin(self, name: str, text: str) -> None:
        wrong = file_name_problem(name)
        if wrong:
            raise ValueError(f"initial memory file: {wrong}")
        try:
            execute.write(self._store, name, text)
        except Refused as refused:
            raise ValueError(f"initial memory file {name}: {refused}") from refused

    def run(self, op: Op) -> Result:
        """Run a memory operation. Never raises for any `op`; one that is refused changes nothing."""
        return execute.execute(self._store, op)

    def target(self, op: Op) -> str:
        """The file that an operation which was carried out was about; ``*`` for every file."""
        spec = self._store.coordinates
        if op.name == "UPSERT_MAP" and spec is not None:
            return execute.map_file(spec, op.args[0])
        return op.args[0]

    def listing(self) -> list[tuple[str, int, int]]:
        """Name, lines and bytes of every file, sorted by name."""
        files = self._store.files
        return [(name, (file := files[name]).lines.live, file.size) for name in self._store.names]

    def pinned(self) -> list[tuple[str, str]]:
        """Name and text of every pinned file, each as READ shows it, sorted by name.

        Once `PINNED_CHARS` are shown, the rest is named only.
        """
        if not self._pins:
            return []
        shown, left = [], PINNED_CHARS
        for name in self._store.names:
            spec = self._store.spec(name)
            if spec is not None and spec.pin:
                text = execute.read(self._store, name).text if left > 0 else "(not shown: too much is pinned)"
                left -= len(text)
                shown.append((name, text))
        return shown

    def read(self, name: str) -> str:
        """The whole text of a file. Raises KeyError if it is not there."""
        return self._store.files[name].lines.text()

    def tail(self, name: str, n: int) -> list[str]:
        """The last `n` lines of a file, oldest first. Raises KeyError if it is not there."""
        return list(islice(self._store.files[name].lines.newest_first(), n))[::-1]

    def newest_first(self, name: str) -> Iterator[str]:
        """The lines of a file. Raises KeyError if it is not there."""
        return self._store.files[name].lines.newest_first()

    def matching(self, name: str, query: str) -> Iterator[str]:
        """The lines of a file that contain the query, case ignored, newest first; all of them for an empty query.

        Raises KeyError if the file is not there.
        """
        lines = self._store.files[name].lines
        if not query:
            return lines.newest_first()
        found = lines.matches(query.lower())
        return (line for chunk, i in found if (line := chunk.lines[i]) is not None)

    def size(self, name: str) -> int:
        """Bytes of a file. Raises KeyError if it is not there."""
        return self._store.files[name].size

    def snapshot(self) -> dict[str, str]:
        """The whole text of every file by name, sorted."""
        return {name: self.read(name) for name in self._store.names}

    def flush(self) -> list[str]:
        """Bring the directory level; called once a phase.

        Returns:
            One line for each thing that somebody else did to the folder since the last time.
            Such a change is never read: the file is written again as it stands here.

        Raises:
            MemoryWriteFailed: full disk, or a folder that cannot be written. What was on disk
                stays; what was not written yet is kept here and is written next time.
        """
        folder, store = self._folder, self._store
        if folder is None:
            for file in store.files.values():
                file.level()
            store.removed.clear()
            return []
        warnings, changed = folder.foreign()
        self._warnings += warnings
        for name, file in store.files.items():
            if changed is None or name in changed:
                file.stale = True
        for name in sorted(store.removed):
            folder.remove(name)
            store.removed.discard(name)
        for name, file in store.files.items():
            if not file.appended and not file.stale:
                continue
            if not self._level(folder, name, file):
                self._warnings.append(f"{name} was changed by someone else; written again as the agent knows it")
                folder.replace(name, file.lines.text().encode())
            file.level()
        warnings, self._warnings = self._warnings, []
        return warnings

    @staticmethod
    def _level(folder: Folder, name: str, file: TextFile | MapFile) -> bool:
        """Bring one file level; False if somebody else touched it."""
        if file.stale:
            return folder.rewrite(name, file.lines.text().encode())
        return folder.append(name, file.appended)

    def close(self) -> None:
        """Bring the directory level and let go of it. Safe to call twice."""
        if self._folder is None:
            return
        try:
            self.flush()
        finally:
            self._folder.close()
            self._folder = None
