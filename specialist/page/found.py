"""What a page about a search is made of: the search, over or not, as far as its folder tells it.

Every part may be missing: a search is read while it runs, after it was killed, and after it failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from automem import runs
from automem.episode import EpisodeResult, load_result
from automem.errors import UserError
from automem.runs import Run
from meta.storage import read_json
from specialist import prepare
from specialist.adapter import MANIFEST, Manifest
from specialist.example import FACTS, Facts
from specialist.prepare import Prepared
from specialist.search import ledger
from specialist.search.decider import Proposal
from specialist.search.ledger import Row
from specialist.search.players import UNTRAINED
from specialist.search.search import DATASET, SELECTION
from specialist.search.storage import SearchFolder
from specialist.select import statistics
from specialist.select.episodes import name_of
from specialist.select.statistics import STATISTICS, Statistics
from specialist.train import curve, spec
from specialist.train.spec import ADAPTER, Begun


@dataclass(frozen=True)
class Data:
    """What was selected and prepared in one way.

    Attributes:
        key: name of its folder under ``data/``.
        selection: folder of the decisions.
        statistics: of the selection; None while it is not over.
        facts: of the dataset; None while there is none.
        prepared: what cleaning left out.
    """

    key: str
    selection: Path
    statistics: Statistics | None
    facts: Facts | None
    prepared: Prepared | None


@dataclass(frozen=True)
class Training:
    """A training run.

    Attributes:
        name: of its folder under ``trainings/``.
        rows: of the ledger that speak of it; none while it is under way.
        begun: what it was told; None when it was not begun.
        curve: as far as it came.
        failure: why it was stopped for good; empty when it was not.
        manifest: of its adapter; None when there is none.
    """

    name: str
    rows: tuple[Row, ...]
    begun: Begun | None
    curve: tuple[curve.Row, ...]
    failure: str
    manifest: Manifest | None

    @property
    def number(self) -> str:
        """As the ledger calls it, by the row that says most; the folder's name before it does."""
        return self.rows[-1].number if self.rows else self.name


@dataclass(frozen=True)
class Played:
    """Episodes of a player.

    Attributes:
        who: ``teacher``, ``base``, or the beginning of an adapter's identity.
        purpose: ``collect``, ``gate`` or ``held-out``.
        run: holds them.
        name: by which commands find the run.
        results: of the finished ones.
    """

    who: str
    purpose: str
    run: Run
    name: str
    results: tuple[EpisodeResult, ...]

    @property
    def planned(self) -> int:
        """Episodes that may be played; a gate that decides early plays fewer."""
        return sum(len(task.seeds) for task in self.run.config.tasks)


@dataclass(frozen=True)
class Found:
    """A search.

    Attributes:
        search: its folder.
        rounds: what was proposed, by round, from 1.
        rows: of the ledger.
        data: by key, those that were trained on first, in that order.
        trainings: in the order of the ledger; then those that it does not know yet.
        collected: runs of the teacher.
        played: runs of the untrained base model and of specialists.
        result: as ``result.json``; None while the search is not over.
    """

    search: SearchFolder
    rounds: Mapping[int, tuple[Proposal, ...]]
    rows: tuple[Row, ...]
    data: tuple[Data, ...]
    trainings: tuple[Training, ...]
    collected: tuple[Played, ...]
    played: tuple[Played, ...]
    result: Mapping[str, Any] | None

    def data_of(self, identity: str) -> Data | None:
        """The dataset of this identity."""
        return next((one for one in self.data if one.facts and one.facts.identity == identity), None)

    def of(self, who: str, purpose: str) -> Played | None:
        """What a player played; of an adapter, its identity may be given whole."""
        return next((one for one in self.played if (one.who, one.purpose) == (who[:16], purpose)), None)


def read(search: SearchFolder) -> Found:
    """Read a search. Raises `UserError` for what is damaged."""
    rows = tuple(ledger.read(search.folder))
    return Found(
        search=search,
        rounds=_rounds(search),
        rows=rows,
        data=_data(search, rows),
        trainings=_trainings(search, rows),
        collected=tuple(_played(search, f, "teacher", "collect") for f in _runs(search, "collect/*")),
        played=tuple(_played(search, f, f.parent.name, f.name) for f in _runs(search, "play/*/*")),
        result=search.result(),
    )


def _rounds(search: SearchFolder) -> dict[int, tuple[Proposal, ...]]:
    found = {}
    for number in range(1, search.config.decider.rounds + 1):
        path = search.proposals(number)
        try:
            kept = read_json(path)
            if kept is not None:
                found[number] = tuple(Proposal.model_validate(one) for one in kept)
        except ValidationError as error:
            raise UserError(f"{path}: no proposals of this version of AutoMem: {error}") from error
    return found


def _data(search: SearchFolder, rows: Sequence[Row]) -> tuple[Data, ...]:
    found = [_one_data(folder) for folder in sorted((search.folder / "data").glob("*")) if folder.is_dir()]
    order = list(dict.fromkeys(row.data for row in rows if row.data))
    known = [one for identity in order for one in found if one.facts and one.facts.identity == identity]
    return (*known, *(one for one in found if one not in known))


def _one_data(folder: Path) -> Data:
    selection, dataset = folder / SELECTION, folder / DATASET
    there = dataset.is_dir()
    return Data(
        key=folder.name,
        selection=selection,
        statistics=statistics.read(selection) if (selection / STATISTICS).is_file() else None,
        facts=_facts(dataset) if there else None,
        prepared=prepare.prepared(dataset) if there else None,
    )


def _facts(dataset: Path) -> Facts:
    """Without reading all examples, as opening the dataset would."""
    try:
        return Facts.model_validate_json((dataset / FACTS).read_bytes())
    except (OSError, ValidationError) as error:
        raise UserError(f"{dataset}: no dataset of this version of AutoMem: {error}") from error


def _trainings(search: SearchFolder, rows: Sequence[Row]) -> tuple[Training, ...]:
    folders = [folder.name for folder in sorted((search.folder / "trainings").glob("*")) if folder.is_dir()]
    names = dict.fromkeys([*(row.training for row in rows if row.training), *folders])
    return tuple(_training(search, name, [row for row in rows if row.training == name]) for name in names)


def _training(search: SearchFolder, name: str, rows: Sequence[Row]) -> Training:
    folder = search.folder / "trainings" / name
    try:
        begun, points, failure = spec.begun(folder), tuple(curve.rows(folder)), spec.failure(folder) or ""
        manifest = None
        if (folder / ADAPTER).is_dir():
            manifest = Manifest.model_validate_json((folder / ADAPTER / MANIFEST).read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{folder}: no training run of this version of AutoMem: {error}") from error
    return Training(name, tuple(rows), begun, points, failure, manifest)


def _runs(search: SearchFolder, pattern: str) -> list[Path]:
    """Folders of runs; the untrained base model's before those of specialists."""
    found = [file.parent for file in search.folder.glob(f"{pattern}/{runs.RUN}")]
    return sorted(found, key=lambda folder: (folder.parent.name != UNTRAINED, len(folder.name), folder))


def _played(search: SearchFolder, folder: Path, who: str, purpose: str) -> Played:
    run = runs.load(str(folder))
    results = tuple(result for job in run.jobs() if (result := load_result(job.folder)) is not None)
    return Played(who, purpose, run, name_of(run), results)
