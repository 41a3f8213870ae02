"""The folder of a search, and what makes it resumable: each stage leaves a file when it is over, whole or not at all.

::

    runs/<search>/
      loop2.toml                      everything that decides it (`specialist.search.settings`)
      scaffolds/<game>/<version>/     what is played
      collect/<n>/                    runs of the teacher, on training seeds
      criteria/<n>.md                 versions of the criteria by which `llm` selects (`specialist.select.llm.criteria`)
      judged/<key>/                   what it said of candidates, and why
      data/<key>/selection|dataset    what was selected and prepared
      rounds/<n>.json                 what was proposed
      decided/<n>/                    how `llm` came to it
      trainings/<key>/                training runs (`specialist.train.spec`)
      play/<player>/gate|held-out/    runs of the untrained base model ("base") and of specialists, by identity
      play/base/gate-<n>-turns/       of the base model beside specialists that consult memory for other turns
      ledger.jsonl                    a row for each training run
      result.json                     the search is over
      loop2.html                      the page about it
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from automem import runs, scaffold
from automem.errors import UserError
from automem.scaffold import Scaffold
from automem.shelf import Shelf, read_toml, write_toml
from meta.points import points
from meta.storage import read_json
from specialist.recipe import Recipe
from specialist.search import ledger
from specialist.search.settings import SearchConfig

SEARCH, RESULT, PAGE = "loop2.toml", "result.json", "loop2.html"


class SearchFolder:
    """A search on disk.

    Attributes:
        folder: ``runs/<search>``.
        config: its settings.
    """

    def __init__(self, folder: Path, config: SearchConfig) -> None:
        self.folder = folder
        self.config = config

    def scaffold(self) -> Scaffold:
        """What is played. Raises `UserError` when it was changed since the search began."""
        played = self.config.scaffold
        found = scaffold.load(str(self.folder / played.folder))
        if found.identity != played.identity:
            raise UserError(
                f"{found.folder} was changed since the search began (identity {found.identity[:12]}, expected "
                f"{played.identity[:12]}); restore it, or start a new search"
            )
        return found

    def collected(self, number: int) -> Path:
        """The teacher's run of this number, from 1."""
        return self.folder / "collect" / str(number)

    def data(self, key: str) -> Path:
        """What was selected and prepared in one way."""
        return self.folder / "data" / key

    def proposals(self, number: int) -> Path:
        """What was proposed for a round."""
        return self.folder / "rounds" / f"{number}.json"

    def training(self, recipe: Recipe, data: str) -> Path:
        """Where a recipe is trained on a dataset. Its data settings do not count: the dataset says it all."""
        decides = recipe.model_dump_json(exclude={"name", "data"})
        return self.folder / "trainings" / hashlib.sha256(f"{data} {decides}".encode()).hexdigest()[:16]

    def play(self, player: str, purpose: str) -> Path:
        """A player's run: ``base``, or the identity of an adapter; ``gate`` or ``held-out``."""
        return self.folder / "play" / player[:16] / purpose

    def line(self) -> tuple[str, ...]:
        """The search in a table: name, when, game, models, decider, training runs, what it came to."""
        config = self.config
        try:
            result, trained = self.result(), len(ledger.read(self.folder))
            told = "not over" if result is None else "nothing trained"
            if result is not None and result["held_out"]:
                told = f"{points(result['held_out']['progression']['difference']['mean'])} on held-out seeds"
        except (UserError, KeyError, TypeError):
            told, trained = "damaged", 0
        created = config.created.replace("+00:00", "Z")
        models = f"{config.base.name} for {config.gameplay.name}"
        return (config.name, created, config.game, models, config.decider.kind, str(trained), told)

    def result(self) -> dict[str, Any] | None:
        """What the search came to; None while it is not over."""
        return read_json(self.folder / RESULT)


def create(config: SearchConfig, played: Scaffold) -> SearchFolder:
    """Write a new search's folder. Raises `UserError` when the name is taken or the disk refuses."""
    folder = runs.free_folder(config.name)
    with runs.born_whole(folder, "search") as scratch:
        played.save(scratch / config.scaffold.folder)
        write_toml(scratch / SEARCH, config)
    return SearchFolder(folder, config)


def change(search: SearchFolder, config: SearchConfig) -> SearchFolder:
    """Write down settings that a search goes on with. Raises `UserError` when the disk refuses."""
    if config != search.config:
        write_toml(search.folder / SEARCH, config)
    return SearchFolder(search.folder, config)


def _read(folder: Path) -> SearchFolder:
    return SearchFolder(folder, read_toml(folder / SEARCH, SearchConfig, "search", {"gate": None}))


SEARCHES = Shelf(SEARCH, "search", "searches", _read)
"""All searches."""
exists, load, all_searches = SEARCHES.exists, SEARCHES.load, SEARCHES.all
