"""The search, top to bottom: collect, select, train, judge, and again; then held-out seeds, once.

Every stage finds what an earlier process finished, so a search that was killed goes on by running again: a pure
function of its settings and of what is on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from automem.episode import EpisodeResult, write_json
from automem.errors import UserError
from automem.statistics import mean
from automem.trace.run import RunTrace
from meta import gate as gates
from meta.gate import Look
from meta.gate.errors import ErrorBudget
from meta.points import bounded
from meta.storage import read_json
from specialist import adapter as adapters
from specialist.adapter import Adapter
from specialist.example import Dataset
from specialist.prepare import prepare
from specialist.recipe import DataRecipe, Recipe
from specialist.search import ledger
from specialist.search.collecting import collect
from specialist.search.decider import Decider, Proposal
from specialist.search.ledger import Row, Seen
from specialist.search.outcome import losses, outcome, summary
from specialist.search.players import Players
from specialist.search.rungs import rungs, shortened, survivors
from specialist.search.storage import RESULT, SearchFolder
from specialist.search.watching import SearchWatcher
from specialist.select.engine import Engine, Written
from specialist.select.selection import select
from specialist.shortage import Shortage
from specialist.train import curve
from specialist.train.run import train
from specialist.train.spec import ADAPTER, Diverged, TrainSpec, begun, failure

DATASET, SELECTION = "dataset", "selection"


class Search:
    """One search."""

    def __init__(
        self,
        folder: SearchFolder,
        decider: Decider,
        engine: Engine,
        players: Players,
        watcher: SearchWatcher,
        workers: int,
    ) -> None:
        """
        Args:
            folder: the search on disk.
            decider: proposes recipes.
            engine: says which memory decisions are good.
            players: play specialists and the base model.
            watcher: is told what happens.
            workers: episodes at once.
        """
        self._search = folder
        self._config = folder.config
        self._decider = decider
        self._engine = engine
        self._players = players
        self._watcher = watcher
        self._workers = workers
        self._rows: list[Row] = []
        self._best: Row | None = None

    async def run(self) -> dict[str, Any]:
        """Search to the end. Returns what ``result.json`` holds. Raises `UserError`; what was done stays."""
        done = self._search.result()
        if done is not None:
            return done
        settings = self._config.decider
        collections, judged = 1, list[list[str]]()
        for number in range(1, settings.rounds + 1):
            proposals = await self._proposals(number)
            if not proposals:
                break
            collections += any(proposal.data == "regenerate" for proposal in proposals)
            traces = await self._traces(collections)
            winner = await self._trained(number, proposals, traces)
            if winner is not None:
                winner = await self._judged(winner, judged)
            judged.append([winner.outcome] if winner is not None and winner.looks else [])
        return await self._finish()

    # Proposals and data.

    async def _proposals(self, number: int) -> list[Proposal]:
        path = self._search.proposals(number)
        kept = read_json(path)
        if kept is not None:
            return [Proposal.model_validate(one) for one in kept]
        self._watcher.doing(f"round {number}: {self._decider.name} proposes")
        found = list(await self._decider.propose(number, self._rows, self._config.recipe))
        if isinstance(self._engine, Written):
            now = self._engine.in_force()
            found = [one.model_copy(update={"criteria": one.criteria or now}) for one in found]
            if found:
                self._engine.adopt(found[-1].criteria)  # what is proposed next goes on from there
        path.parent.mkdir(exist_ok=True)
        write_json(path, [one.model_dump(mode="json") for one in found])
        return found

    async def _traces(self, collections: int) -> list[RunTrace]:
        """The runs to learn from."""
        if self._config.collect.traces:
            return [RunTrace(name) for name in self._config.collect.traces]
        found = []
        for number in range(1, collections + 1):
            planned = sum(len(task.seeds) * task.steps for task in self._config.collect.tasks)
            teacher = self._config.collect.teacher.name
            self._watcher.doing(f"collecting {number}: {teacher} does the memory work", planned)
            found.append(await collect(self._search, number, self._watcher, self._workers))
        return found

    async def _dataset(self, recipe: DataRecipe, criteria: str, traces: Sequence[RunTrace]) -> Dataset:
        """What a recipe selects from the traces, cleaned."""
        engine = self._engine.by(criteria) if isinstance(self._engine, Written) else self._engine
        names = [trace.run.config.name for trace in traces]
        decides = [recipe.model_dump(mode="json"), engine.name, engine.version, names]
        folder = self._search.data(hashlib.sha256(orjson.dumps(decides)).hexdigest()[:12])
        if (folder / DATASET).is_dir():
            return Dataset(folder / DATASET)
        self._watcher.doing(f"selecting by {engine.name}")
        chosen = await select(traces, recipe, engine, folder / SELECTION, self._config.evaluation_seeds)
        runs_folder = self._search.folder.parent
        made = prepare(
            chosen.candidates(),
            recipe,
            folder / DATASET,
            scaffold=self._search.scaffold(),
            game=self._config.game,
            runs=runs_folder,
        )
        self._watcher.told(f"selected {made.facts.train} examples, and {made.facts.held_out} held out")
        return made

    # Training.

    async def _trained(self, number: int, proposals: Sequence[Proposal], traces: Sequence[RunTrace]) -> Row | None:
        """Narrow a round's proposals down by successive halving; the row of the one that is left, or None."""
        left = list(enumerate(proposals, start=1))
        latest: dict[int, Row] = {}
        planned = rungs(len(proposals), self._config.decider.keep)
        for level, rung in enumerate(planned, start=1):
            rows = [await self._train(f"{number}.{n}.{level}", proposal, rung.part, traces) for n, proposal in left]
            latest |= {n: row for (n, _), row in zip(left, rows, strict=True)}
            following = planned[level].recipes if level < len(planned) else 1
            kept = survivors([row.rank_loss for row in rows], following)
            for i, row in enumerate(rows):
                if row.outcome == "trained" and i not in kept:
                    self._note(row.model_copy(update={"outcome": "dropped", "told": "others lost less"}))
                elif row.outcome == "trained" and level < len(planned):
                    self._note(row.model_copy(update={"outcome": "promoted", "told": "trained longer next"}))
            left = [left[i] for i in kept]
        return latest[left[0][0]] if left else None

    async def _train(self, number: str, proposal: Proposal, part: float, traces: Sequence[RunTrace]) -> Row:
        """Train one recipe, or find that it was."""
        recipe = shortened(proposal.recipe, part)
        try:
            dataset = await self._dataset(recipe.data, proposal.criteria, traces)
        except Shortage as shortage:
            if not self._rows:
                raise  # what a person asked for cannot be done; a decider may ask for less next time
            return self._note(self._short(number, recipe, proposal, str(shortage)))
        folder = self._search.training(recipe, dataset.facts.identity)
        row = Row(
            number=number,
            recipe=recipe,
            why=proposal.why,
            data=dataset.facts.identity,
            examples=dataset.facts.train,
            criteria=proposal.criteria,
            training=folder.name,
            outcome="trained",
        )
        stopped = failure(folder) if folder.is_dir() else None
        if stopped is None and not (folder / ADAPTER).is_dir():
            self._watcher.doing(f"{number}: training on {dataset.facts.train} examples")
            spec = TrainSpec(
                dataset=dataset.folder,
                base=self._config.base.name,
                recipe=recipe,
                device=self._config.training.device,
                processes=self._config.training.processes,
            )
            there = folder.is_dir()
            try:
                await train(spec, folder, self._watcher)
            except Diverged as diverged:
                stopped = str(diverged)
            except UserError as refused:
                if not self._rows or there or folder.is_dir():
                    raise  # what a person asked for, or something that can be mended and gone on with
                return self._note(row.model_copy(update={"outcome": "refused", "told": str(refused)}))
        if stopped is not None:
            return self._note(row.model_copy(update={"outcome": "diverged", "told": stopped, **_effort(folder)}))
        made = adapters.load(folder / ADAPTER)
        learnt = {"adapter": made.identity, "losses": made.manifest.losses, **_effort(folder)}
        return self._note(row.model_copy(update=learnt))

    async def _same_tokens(self, row: Row, made: Adapter) -> None:
        """A specialist must meet at play what it was trained on: `UserError` where its server sees other tokens."""
        told = begun(self._search.folder / "trainings" / row.training)
        assert told is not None, "it was trained"
        await self._players.check_tokens(made, list(Dataset(told.spec.dataset)))

    def _short(self, number: str, recipe: Recipe, proposal: Proposal, told: str) -> Row:
        return Row(
            number=number,
            recipe=recipe,
            why=proposal.why,
            data="",
            examples=0,
            criteria=proposal.criteria,
            training="",
            outcome="short",
            told=told,
        )

    # Judging.

    async def _judged(self, row: Row, judged: Sequence[Sequence[str]]) -> Row:
        """Play a specialist against what is best so far, until the gate decides."""
        settings = self._config.gate
        if settings is None:
            told = "no gate: chosen by held-out loss alone"
            row = self._note(row.model_copy(update={"outcome": "unjudged", "told": told}))
            if self._best is None or row.rank_loss < self._best.rank_loss:
                self._best = row
            return row
        gate = gates.make(settings)
        alpha = ErrorBudget(settings.error, self._config.decider.rounds, 1).alpha_of(len(judged) + 1, judged)
        rival, made = self._adapter(self._best), self._adapter(row)
        assert made is not None
        await self._same_tokens(row, made)
        looks: list[Look] = []
        before: Sequence[EpisodeResult] = ()
        after: Sequence[EpisodeResult] = ()
        for end in range(gate.batch, gate.most + gate.batch, gate.batch):
            seeds = self._config.gate_seeds[: min(end, gate.most)]
            planned = len(seeds) * sum(task.steps for task in self._config.tasks)
            self._watcher.doing(f"{row.number}: playing {len(seeds)} gate seeds", 2 * planned)
            after = await self._players.play(made, made, seeds, "gate")
            before = await self._players.play(rival, made, seeds, "gate")
            looks.append(gate.judge(_differences(before, after, seeds), alpha))
            self._watcher.looked(row.number, looks[-1])
            if looks[-1].decision != "continue":
                break
        row = row.model_copy(
            update={
                "outcome": looks[-1].decision,
                "told": looks[-1].why,
                "looks": tuple(Seen(**{k: v for k, v in asdict(look).items() if k != "decision"}) for look in looks),
                "before": summary(before),
                "after": summary(after),
                "cost": sum(result.counts.cost for result in after),
            }
        )
        if row.outcome == "accepted":
            self._best = row
        return self._note(row)

    async def _finish(self) -> dict[str, Any]:
        """Held-out seeds for the best specialist; for the one of the lowest held-out loss where none was accepted."""
        whole = [row for row in self._rows if row.is_whole]
        chosen = self._best or min(whole, key=lambda row: row.rank_loss, default=None)
        result: dict[str, Any] = {
            "trainings": len(self._rows),
            "accepted": self._best is not None and self._config.gate is not None,
            "best": None,
            "held_out": None,
        }
        if chosen is not None:
            made = self._adapter(chosen)
            assert made is not None
            planned = 2 * len(self._config.held_out) * sum(task.steps for task in self._config.tasks)
            await self._same_tokens(chosen, made)
            self._watcher.doing("playing held-out seeds", planned)
            after = await self._players.play(made, made, self._config.held_out, "held-out")
            before = await self._players.play(None, made, self._config.held_out, "held-out")
            result["best"] = {
                "number": chosen.number,
                "adapter": made.identity,
                "folder": str(made.folder.relative_to(self._search.folder)),
                "outcome": chosen.outcome,
                "losses": chosen.losses,
                "held_out_loss": losses(curve.rows(self._search.folder / "trainings" / chosen.training)),
            }
            result["held_out"] = outcome(before, after)
            found = result["held_out"]["progression"]["difference"]
            self._watcher.told(f"held-out seeds: {bounded(found['mean'], *(found['interval'] or (None, None)))}")
        write_json(self._search.folder / RESULT, result)
        return result

    def _adapter(self, row: Row | None) -> Adapter | None:
        return None if row is None else adapters.load(self._search.folder / "trainings" / row.training / ADAPTER)

    def _note(self, row: Row) -> Row:
        """Put a row into the ledger, in place of what it said of the same training run."""
        known = next((i for i, old in enumerate(self._rows) if old.number == row.number), None)
        if known is None:
            self._rows.append(row)
        else:
            self._rows[known] = row
        ledger.write(self._search.folder, self._rows)
        self._watcher.ended(row)
        return row


def _effort(folder: Path) -> dict[str, Any]:
    """Seconds and tokens of a training run, as far as it came."""
    rows = curve.rows(folder)
    return {"seconds": rows[-1].seconds, "tokens": rows[-1].tokens} if rows else {}


def _differences(before: Sequence[EpisodeResult], after: Sequence[EpisodeResult], seeds: Sequence[int]) -> list[float]:
    """After minus before, for each seed, averaged over its tasks."""

    def of(results: Sequence[EpisodeResult], seed: int) -> float:
        found = [result.progression for result in results if result.seed == seed]
        if not found:
            raise UserError(f"seed {seed}: no episode was finished")
        return mean(found)

    return [of(after, seed) - of(before, seed) for seed in seeds]
