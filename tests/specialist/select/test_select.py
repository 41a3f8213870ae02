"""Selecting from real runs: what is taken, what is recorded, what is refused."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import duckdb
import orjson
import pytest

from automem.episode import RESULT, STEPS
from automem.errors import UserError
from automem.trace import EpisodeTrace, RunTrace, sql
from specialist.candidate import Candidate, candidates
from specialist.recipe import DataRecipe
from specialist.select import Selection, Verdict, load, select
from specialist.select import decisions as recorded
from specialist.select.episodes import NOT_BEST, UNFINISHED
from specialist.select.quotas import NOT_GOOD
from specialist.select.rules import Rules

Played = dict[str, RunTrace]
ALL = DataRecipe(examples=10_000, minimum=1, best_episodes=1, per_episode=1000, similar=1)


def chosen(traces: Sequence[RunTrace], folder: Path, recipe: DataRecipe = ALL, **more: object) -> Selection:
    return asyncio.run(select(traces, recipe, Rules(), folder, {99_000}, **more))  # type: ignore[arg-type]


def all_of(traces: Sequence[RunTrace]) -> list[Candidate]:
    return [c for trace in traces for e in trace.episodes for c in candidates(trace.run.config.name, e)]


def copied(played: Played, name: str, folder: Path) -> RunTrace:
    shutil.copytree(played[name].run.folder, folder / name)
    return RunTrace(folder / name)


@pytest.mark.parametrize("name", ["crafter-v0", "crafter-v1", "nethack-v0", "nethack-v1"])
def test_every_candidate_is_decided_on_and_something_good_is_found(played: Played, name: str, folder: Path) -> None:
    selection = chosen([played[name]], folder)
    decided = list(recorded.read(folder))
    found = all_of([played[name]])
    assert [d.place for d in decided] == [c.place for c in found]
    assert 0 < len(selection.accepted) < len(decided)
    assert [d.place for d in decided if d.accepted] == [d.place for d in selection.accepted]
    assert all(d.reason and d.score is not None for d in decided)
    assert load(folder) == selection


def test_what_was_selected_is_verbatim_in_the_trace(played: Played, folder: Path) -> None:
    selection = chosen(list(played.values()), folder)
    taken = list(selection.candidates())
    assert [c.place for c in taken] == [d.place for d in selection.accepted]
    raw: dict[tuple, dict] = {}
    for candidate in taken:
        place = candidate.place
        if place.episode not in raw:
            path = played[place.run].run.folder / "episodes" / place.task / f"seed-{place.seed}"
            raw[place.episode] = dict(enumerate(EpisodeTrace(path).raw()))
        turns = raw[place.episode][place.step][place.phase]
        assert [turn.text for turn in candidate.turns] == [turn["text"] for turn in turns[: len(candidate.turns)]]
        assert all(
            candidate.turns[i].text[slice(*op.span)].startswith("<")
            for i, turn in enumerate(candidate.turns)
            for op in turn.ops
        )
        assert candidate.messages(0)[-1]["content"].count(candidate.record.observation) == 1


def test_it_comes_out_the_same_in_one_process_and_in_two_and_in_any_order(played: Played, tmp_path: Path) -> None:
    recipe = DataRecipe(examples=40, minimum=1, per_episode=9, similar=0.9)
    traces = [played["crafter-v0"], played["nethack-v0"]]
    written = []
    for name, runs, processes in (("a", traces, 1), ("b", traces[::-1], 2), ("c", traces, 1)):
        chosen(runs, tmp_path / name, recipe, processes=processes)
        written.append([(tmp_path / name / file).read_bytes() for file in (recorded.DECISIONS, "statistics.json")])
    assert written[0] == written[1] == written[2]


def test_quotas_are_kept_and_every_reject_says_why(played: Played, folder: Path) -> None:
    recipe = DataRecipe(examples=30, minimum=1, log_share=0.4, best_episodes=0.5, per_episode=12, similar=0.9)
    selection = chosen([played["crafter-v0"]], folder, recipe)
    places = [d.place for d in selection.accepted]
    results = {e.seed: e.result for e in played["crafter-v0"].episodes}
    order = sorted(results, key=lambda s: (-results[s].episode_return, -results[s].progression, s))  # type: ignore[union-attr]
    assert {p.seed for p in places} <= set(order[:2])
    assert len(places) > 15 and abs(Counter(p.phase for p in places)["log"] - 0.4 * len(places)) < 1
    assert all(number <= 12 for number in Counter(p.seed for p in places).values())
    for decision in recorded.read(folder):
        assert (decision.why == NOT_BEST) == (decision.place.seed in order[2:]) == (decision.score is None)
        if decision.why == NOT_GOOD:
            assert decision.reason.startswith(f"score {decision.score:g} below 2: ")


def test_statistics_add_up(played: Played, folder: Path) -> None:
    statistics = chosen([played["crafter-v0"]], folder, DataRecipe(examples=30, minimum=1)).statistics
    decided = list(recorded.read(folder))
    assert statistics.candidates == len(decided) and statistics.accepted == sum(d.accepted for d in decided)
    for phase, of in statistics.phases.items():
        assert of.why == Counter(d.why for d in decided if d.place.phase == phase)
        assert sum(of.why.values()) == of.candidates and of.why["accepted"] == of.accepted
    for episode in statistics.episodes:
        mine = [d for d in decided if d.place.seed == episode.seed]
        assert (episode.candidates, episode.accepted) == (len(mine), sum(d.accepted for d in mine))
    for code, reason in statistics.reasons.items():
        points = [d.points[code] for d in decided if d.accepted and code in d.points]
        assert reason.accepted == len(points) and reason.points_accepted == pytest.approx(sum(points), abs=0.01)


def test_duckdb_joins_decisions_with_what_was_played(played: Played, folder: Path) -> None:
    selection = chosen([played["crafter-v0"]], folder)
    ops = sql(played["crafter-v0"], "select run, task, seed, step, phase, name from ops", rows=10_000)
    with duckdb.connect() as database:
        database.execute(
            "CREATE TABLE ops (run VARCHAR, task VARCHAR, seed INT, step INT, phase VARCHAR, name VARCHAR)"
        )
        database.executemany("INSERT INTO ops VALUES (?, ?, ?, ?, ?, ?)", [list(row) for row in ops.rows])
        found = database.execute(
            f"SELECT name, count(*) FROM '{folder / recorded.DECISIONS}' "
            "JOIN ops USING (run, task, seed, step, phase) WHERE accepted GROUP BY name"
        ).fetchall()
    ran = Counter(op.name for c in selection.candidates() for turn in c.turns for op in turn.ops)
    assert ran["APPEND"] > 10 and dict(found) == ran


def test_whoever_waits_is_told_how_far_it_is(played: Played, folder: Path) -> None:
    heard: list[tuple[int, int]] = []
    chosen([played["crafter-v0"]], folder, told=lambda *how: heard.append(how))
    assert heard == [(1, 3), (2, 3), (3, 3)]


def test_a_run_with_an_evaluation_seed_is_refused(played: Played, folder: Path) -> None:
    with pytest.raises(UserError, match=r"crafter-v0 plays seeds that are kept for evaluation \(9\)"):
        asyncio.run(select([played["crafter-v0"]], ALL, Rules(), folder, {9, 1000}))
    assert not folder.exists()


def test_an_episode_of_another_seed_that_was_put_there_is_refused(played: Played, tmp_path: Path, folder: Path) -> None:
    trace = copied(played, "crafter-v0", tmp_path / "elsewhere")
    path = trace.episodes[0].folder / RESULT
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"seed": 99_000}))
    with pytest.raises(UserError, match="99000"):
        chosen([RunTrace(trace.run)], folder)


def test_a_run_that_is_named_twice_is_refused(played: Played, folder: Path) -> None:
    with pytest.raises(UserError, match="named twice"):
        chosen([played["crafter-v0"], played["crafter-v0"]], folder)


def test_too_few_good_ones_are_said_with_the_reasons_and_recorded(played: Played, folder: Path) -> None:
    recipe = DataRecipe(examples=500, minimum=500, best_episodes=0.5)
    with pytest.raises(
        UserError, match=r"the recipe needs 500. Of the others: episode not among the best: \d+"
    ) as told:
        chosen([played["crafter-v0"]], folder, recipe)
    assert len(list(recorded.read(folder))) == len(all_of([played["crafter-v0"]]))
    with pytest.raises(UserError) as again:
        load(folder)
    assert str(again.value) == str(told.value)


def test_unfinished_and_damaged_episodes_are_recorded_and_left_out(
    played: Played, tmp_path: Path, folder: Path
) -> None:
    trace = copied(played, "crafter-v0", tmp_path / "elsewhere")
    unfinished, damaged = trace.episodes[:2]
    (unfinished.folder / RESULT).unlink()
    with (damaged.folder / STEPS).open("r+b") as file:
        file.truncate((damaged.folder / STEPS).stat().st_size - 5)
    selection = chosen([RunTrace(trace.run)], folder)
    seeds = {d.place.seed for d in selection.accepted}
    assert seeds == {e.seed for e in trace.episodes[2:]}
    whys = {d.place.seed: d.why for d in recorded.read(folder) if d.place.seed not in seeds}
    assert whys == {unfinished.seed: UNFINISHED, damaged.seed: "episode's trace is damaged"}
    assert selection.accepted[0].place.run == str(trace.run.folder)  # not in the folder of runs, and found again
    assert len(list(selection.candidates())) == len(selection.accepted)


def test_a_trace_that_changed_since_is_said(played: Played, tmp_path: Path, folder: Path) -> None:
    trace = copied(played, "crafter-v1", tmp_path / "elsewhere")
    selection = chosen([trace], folder)
    (trace.episodes[0].folder / STEPS).write_bytes(b"")
    with pytest.raises(UserError, match="no longer holds"):
        list(selection.candidates())


def test_a_folder_without_a_selection_is_said(tmp_path: Path, played: Played, folder: Path) -> None:
    with pytest.raises(UserError, match="no selection"):
        load(tmp_path)
    chosen([played["crafter-v1"]], folder)
    torn = (folder / recorded.DECISIONS).read_bytes()[:-9]
    (folder / recorded.DECISIONS).write_bytes(torn)
    with pytest.raises(UserError, match="select again"):
        load(folder)


class Picky:
    """An engine that asks somebody, as one that asks a model would: it is awaited, and looks at the trace."""

    name, version, local = "picky", "1", False

    def __init__(self, short: bool = False) -> None:
        self._short = short

    async def judge(self, episode: EpisodeTrace, candidates: Sequence[Candidate]) -> Sequence[Verdict]:
        await asyncio.sleep(0)
        assert all(episode.step(c.place.step) == c.record for c in candidates[:2])
        good = [c.place.step % 2 == 0 for c in candidates]
        return [Verdict(1.0, g, (), f"step {c.place.step}\ud800") for c, g in zip(candidates, good, strict=True)][
            self._short :
        ]


def test_any_engine_can_judge(played: Played, folder: Path) -> None:
    selection = asyncio.run(select([played["crafter-v0"]], ALL, Picky(), folder, ()))
    assert selection.accepted and all(d.place.step % 2 == 0 for d in selection.accepted)
    assert selection.statistics.engine == "picky"
    assert {d.reason for d in recorded.read(folder) if d.why == NOT_GOOD} >= {"step 1?", "step 3?"}


def test_an_engine_that_leaves_one_out_is_refused(played: Played, folder: Path) -> None:
    with pytest.raises(UserError, match="engine picky gave 77 verdicts on 78 candidates"):
        asyncio.run(select([played["crafter-v0"]], ALL, Picky(short=True), folder, ()))
