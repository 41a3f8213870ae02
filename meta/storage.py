"""The folder of a loop, and what makes it resumable: each stage leaves a file when it is over, whole or not at all.

::

    runs/<loop>/
      loop.toml                     everything that decides the loop (`meta.settings`)
      root/<version>/               the scaffold that it began with
      attempts/<number>/            number: revision.attempt.continuation
        candidate/                  the files as the reviewer left them
        revision.json               the review is over: what it says, what it took, the candidate's identity
        attempt.json                the attempt is over: how it ended, and the gate's looks
      evaluations/<identity>/       the episodes of a version, as runs: gate, gate-2, …, held-out
      result.json                   the loop is over
      loop.html                     the page about it
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from automem import runs, scaffold
from automem.episode import RESULT as EPISODE
from automem.episode import load_result, write_json
from automem.errors import UserError
from automem.scaffold import Scaffold
from automem.shelf import Shelf, read_toml, write_toml
from meta.evidence import Attempt
from meta.gate import Look
from meta.points import points
from meta.reviewer import Spent
from meta.settings import LoopConfig

LOOP = "loop.toml"
RESULT = "result.json"
COPIED = "copied-from"
"""A file in the folder of an episode that was brought from elsewhere: it says from where."""
PAGE = "loop.html"
REVISION = "revision.json"
ATTEMPT = "attempt.json"


class LoopFolder:
    """A loop on disk.

    Attributes:
        folder: ``runs/<loop>``.
        config: its settings.
    """

    def __init__(self, folder: Path, config: LoopConfig) -> None:
        self.folder = folder
        self.config = config
        self._costs: dict[Path, float] = {}

    def root(self) -> Scaffold:
        """The version that the loop began with. Raises `UserError` when it was changed since."""
        return _unchanged(self.folder / self.config.root.folder, self.config.root.identity)

    def attempt_folder(self, number: str) -> Path:
        """Where an attempt is kept."""
        return self.folder / "attempts" / number

    def evaluation(self, identity: str) -> Path:
        """Where the episodes of a version are kept."""
        return self.folder / "evaluations" / identity[:16]

    def begin(self, number: str) -> None:
        """Make an attempt's folder, if it is not there. Raises `UserError` when the disk refuses."""
        folder = self.attempt_folder(number)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder}: cannot be made: {error.strerror}") from error

    def begun(self, revision: int) -> bool:
        """Whether an attempt at a revision was begun."""
        return any(self.folder.glob(f"attempts/{revision}.*"))

    def attempts(self) -> list[Attempt]:
        """The attempts that are over, in order."""
        numbers = [path.parent.name for path in self.folder.glob(f"attempts/*/{ATTEMPT}")]
        found = [self.attempt(number) for number in sorted(numbers, key=_order)]
        return [attempt for attempt in found if attempt is not None]

    def attempt(self, number: str) -> Attempt | None:
        """An attempt that is over; None while it is not. Raises `UserError` when its file is damaged."""
        path = self.attempt_folder(number) / ATTEMPT
        data = read_json(path)
        if data is None:
            return None
        try:
            played = data["played"]
            return Attempt(
                **{
                    **data,
                    "folder": self.attempt_folder(number),
                    "findings": tuple(data["findings"]),
                    "looks": tuple(Look(**look) for look in data["looks"]),
                    "played": None if played is None else self.folder / played,
                    "shown": tuple(data["shown"]),
                }
            )
        except (TypeError, KeyError) as error:
            raise _damaged(path, error) from error

    def version(self, attempt: Attempt) -> Scaffold:
        """An attempt's files, as they were evaluated. Raises `UserError` when they were changed since."""
        found = attempt.scaffold()
        if found.identity != attempt.identity:
            raise UserError(
                f"{attempt.candidate} was changed after it was evaluated; its evaluation holds a copy of the files "
                f"that were played: {self.evaluation(attempt.identity) / 'gate' / 'scaffolds'}"
            )
        return found

    def keep(self, attempt: Attempt) -> None:
        """Write down that an attempt is over."""
        played = None if attempt.played is None else str(attempt.played.relative_to(self.folder))
        looks = [asdict(look) for look in attempt.looks]
        data = {name: getattr(attempt, name) for name in Attempt.__dataclass_fields__ if name != "folder"}
        write_json(attempt.folder / ATTEMPT, {**data, "played": played, "looks": looks})

    def line(self) -> tuple[str, ...]:
        """The loop in a table: name, when, game, model, reviewer, attempts, what it came to."""
        config = self.config
        try:
            result, attempts = self.result(), len(self.attempts())
            told = "not over" if result is None else "nothing accepted"
            if result is not None and result["held_out"]:
                told = f"{points(result['held_out']['overall']['difference'])} on held-out seeds"
        except (UserError, KeyError, TypeError):
            told, attempts = "damaged", 0
        created = config.created.replace("+00:00", "Z")
        return (config.name, created, config.game, config.model.name, config.reviewer.kind, str(attempts), told)

    def spent(self) -> Spent:
        """What all reviews took so far, those that failed included."""
        total = Spent()
        for path in sorted(self.folder.glob(f"attempts/*/{REVISION}")):
            data = read_json(path)
            try:
                total += Spent(**data["spent"]) if data else Spent()
            except (TypeError, KeyError) as error:
                raise _damaged(path, error) from error
        return total

    def results(self, identity: str = "*", purpose: str = "*") -> list[Path]:
        """The result files of finished episodes: of one version, of gate or held-out seeds, of all replicates."""
        version = identity if identity == "*" else identity[:16]
        runs_of = purpose if purpose == "*" else f"{purpose}*"  # two stars would look through every folder
        found = self.folder.glob(f"evaluations/{version}/{runs_of}/episodes/*/*/{EPISODE}")
        return sorted(path for path in found if not path.parent.name.startswith("."))

    def episodes(self) -> int:
        """Finished episodes."""
        return len(self.results())

    def cost(self) -> float:
        """USD of the episodes that were played here, as far as prices are known; others were paid elsewhere."""
        for path in self.results():
            if path not in self._costs:
                result = None if (path.parent / COPIED).exists() else load_result(path.parent)
                self._costs[path] = 0.0 if result is None else result.counts.cost
        return sum(self._costs.values())

    def result(self) -> dict[str, Any] | None:
        """What the loop came to; None while it is not over."""
        return read_json(self.folder / RESULT)


def create(config: LoopConfig, root: Scaffold) -> LoopFolder:
    """Write a new loop's folder. Raises `UserError` when the name is taken or the disk refuses."""
    folder = runs.free_folder(config.name)
    with runs.born_whole(folder, "loop") as scratch:
        root.save(scratch / config.root.folder)
        write_toml(scratch / LOOP, config)
    return LoopFolder(folder, config)


def change(loop: LoopFolder, config: LoopConfig) -> LoopFolder:
    """Write down settings that a loop goes on with. Raises `UserError` when the disk refuses."""
    if config != loop.config:
        write_toml(loop.folder / LOOP, config)
    return LoopFolder(loop.folder, config)


def read_json(path: Path) -> Any:
    """What a file of the loop holds; None when it is not there. Raises `UserError` when it is damaged."""
    try:
        return orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> UserError:
    return UserError(f"{path}: cannot be read ({error}); remove it and resume the loop to make it again")


def write_scaffold(folder: Path, sources: Mapping[str, bytes]) -> None:
    """Put a scaffold's files where there may be others; the folder holds the old ones, the new ones or none."""
    scratch = folder.with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        scaffold.write_files(scratch, sources)
        scratch.rename(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}; free some space and resume") from error


def _unchanged(folder: Path, identity: str) -> Scaffold:
    found = scaffold.load(str(folder))
    if found.identity != identity:
        raise UserError(
            f"{folder} was changed since the loop began (identity {found.identity[:12]}, expected {identity[:12]}); "
            "restore it, or start a new loop"
        )
    return found


def _order(number: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in number.split("."))


LOOPS = Shelf(LOOP, "loop", "loops", lambda folder: LoopFolder(folder, read_toml(folder / LOOP, LoopConfig, "loop")))
"""All loops."""
exists, load, all_loops = LOOPS.exists, LOOPS.load, LOOPS.all
