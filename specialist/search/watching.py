"""Who watches a search is told what happens, in order."""

from __future__ import annotations

from typing import Protocol, Self

from automem.episode import EpisodeListener
from meta.gate import Look
from specialist.search.ledger import Row
from specialist.search.storage import SearchFolder
from specialist.train.curve import Row as CurveRow
from specialist.train.plan import TrainPlan


class SearchWatcher(EpisodeListener, Protocol):
    """Somebody who watches a search; of episodes it is told every turn and step."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def opened(self, search: SearchFolder, done: int) -> None:
        """The search is on disk; so many training runs were over before."""
        ...

    def doing(self, text: str, steps: int = 0) -> None:
        """What the search is busy with; `steps` that episodes play at most, where it is playing."""
        ...

    def told(self, text: str) -> None:
        """Something is over, and this came of it."""
        ...

    def planned(self, plan: TrainPlan) -> None:
        """Training is about to begin, or was done before."""
        ...

    def row(self, row: CurveRow) -> None:
        """Training has come this far."""
        ...

    def looked(self, number: str, look: Look) -> None:
        """The gate has judged a training run's specialist."""
        ...

    def ended(self, row: Row) -> None:
        """A training run is over, and was judged where it was."""
        ...
