"""Golden parity of scores: what BALROG made of recorded games, our games' own code makes of the same data.

What is proved, record by record, in `tests/golden`:

- NetHack (90 records of 4 games): the status numbers of every record, fed in order to `games.nethack.NetHack` as an
  action's outcome, give the recorded progression. All of these games stayed on the first dungeon and experience level,
  so every expected value is 0; higher levels are covered by published episodes below and by the whole table.
- MiniHack (71 records of 7 games): every record's reward and end give the recorded progression, by BALROG's rule
  (last reward) and by ours (the episode was solved), which agree here: both wins were recorded with a reward of 1.0.
- Crafter (69 records of 5 games): every record's counts of achievements, put into the simulator's player, give
  BALROG's number of achievements over 22, which is how its wrapper defines progression (the records hold no figure).
  The five records that follow a game's first action are played again from seed and action: text, counts and score
  are those recorded.
- Return: the rewards of all records, added up in order as BALROG's evaluator does, equal the sum that
  `automem.trace.tally` keeps, at every record, to the bit.

What these data cannot prove: only every 9th to 12th step was recorded, so games cannot be played on beyond the first
action and no record is preceded by all of its game's rewards: the sums above are of the recorded steps only. NetHack
and MiniHack cannot be played again even from the start, because their recorder's seeds did not reach the simulator
(`reset(seed=)` does not seed NLE). Crafter's records hold no rewards; that its rewards are the simulator's own is
tested in `tests/games/test_crafter.py`. How a MiniHack episode ended is not recorded either, beyond that it did;
solved is taken to be an end with a positive reward, which in these tasks only a success gives.

`published.json` fills part of that: figures of real episodes on BALROG's leaderboard, with levels up to 10, a win that
was scored 0 for its step penalty, and every reward of three whole episodes beside the return that BALROG logged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from automem.records import StepRecord
from automem.trace.tally import Tally
from games.crafter import Crafter
from games.minihack import MiniHack
from games.nethack import NetHack
from games.nethack.game import achievements

GOLDEN = Path(__file__).parents[1] / "golden"
NLE = json.loads((GOLDEN / "nethack.json").read_text("utf-8"))
CRAFTER = json.loads((GOLDEN / "crafter.json").read_text("utf-8"))
PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text("utf-8"))

BLSTATS = 27
DEPTH, LEVEL = 12, 18
"""Places in NLE's status numbers."""


def games_of(records: list[dict]) -> Iterator[tuple[tuple[str, int], list[dict]]]:
    """The records of each game, in order."""
    for key, found in groupby(records, key=lambda r: (r.get("task", "Crafter"), r["seed"])):
        yield key, list(found)


NETHACK_GAMES = [(seed, found) for (task, seed), found in games_of(NLE) if task == "NetHackChallenge-v0"]
MINIHACK_GAMES = [(task, found) for (task, _), found in games_of(NLE) if task != "NetHackChallenge-v0"]
CRAFTER_GAMES = [(seed, found) for (_, seed), found in games_of(CRAFTER)]


def test_every_record_belongs_to_a_game_that_is_tested() -> None:
    assert [len(found) for _, found in NETHACK_GAMES] == [29, 20, 27, 14]
    assert [len(found) for _, found in MINIHACK_GAMES] == [12, 11, 5, 12, 9, 10, 12]
    assert [len(found) for _, found in CRAFTER_GAMES] == [11, 13, 13, 18, 14]
    assert len(NLE) == 161 and len(CRAFTER) == 69


@pytest.mark.parametrize(("seed", "records"), NETHACK_GAMES, ids=lambda v: str(v) if isinstance(v, int) else "")
def test_nethack_progression_is_balrogs_on_every_record(seed: int, records: list[dict]) -> None:
    game = NetHack()
    with np.load(GOLDEN / "nethack.npz") as arrays:
        for record in records:
            game._note(arrays[f"{record['id']}.blstats"], None, record["reward"])
            assert game.progress().progression == record["progression"], record["id"]


@pytest.mark.parametrize(("task", "records"), MINIHACK_GAMES, ids=lambda v: v if isinstance(v, str) else "")
def test_minihack_progression_is_balrogs_on_every_record(task: str, records: list[dict]) -> None:
    game = MiniHack(task)
    with np.load(GOLDEN / "nethack.npz") as arrays:
        for record in records:
            solved = record["terminated"] and record["reward"] > 0
            status = SimpleNamespace(name="TASK_SUCCESSFUL" if solved else "RUNNING")
            game._note(arrays[f"{record['id']}.blstats"], status, record["reward"])
            progress = game.progress()
            assert progress.achievements["balrog_success"] == record["progression"], record["id"]
            assert progress.progression == record["progression"], record["id"]


@pytest.mark.parametrize(("seed", "records"), CRAFTER_GAMES, ids=lambda v: str(v) if isinstance(v, int) else "")
def test_crafter_progression_is_balrogs_on_every_record(seed: int, records: list[dict]) -> None:
    game = Crafter()
    game.reset(seed)
    first = records[0]
    moved = game.step(list(game.actions)[first["action_id"]])
    assert first["step"] == 0
    assert moved.observation.long_term == first["long_term_context"]
    assert moved.observation.short_term == first["short_term_context"]
    assert moved.progress.achievements == {name: count for name, count in first["achievements"].items() if count}
    for record in records:
        assert len(record["achievements"]) == 22
        reached = sum(count > 0 for count in record["achievements"].values())
        game._playing().player.achievements.update(record["achievements"])
        assert game.progress().progression == reached / 22.0, record["id"]
    assert game.progress().progression > 0, "the last record of each of these games has reached something"


@pytest.mark.parametrize("records", [found for _, found in (*NETHACK_GAMES, *MINIHACK_GAMES)])
def test_the_return_is_added_up_as_balrog_does(records: list[dict]) -> None:
    tally, balrog = Tally(), 0.0
    for record in records:
        balrog += record["reward"]
        tally.add(_step(record["step"], record["reward"]), "")
        assert tally.reward == balrog, record["id"]


@pytest.mark.parametrize("published", PUBLISHED["nethack"], ids=lambda p: f"{p['submission']}-{p['run']}")
def test_nethack_progression_is_that_of_published_episodes(published: dict) -> None:
    game = NetHack()
    seen = [(depth, 1) for depth in range(1, published["levels"] + 1)]
    seen += [(1, level) for level in range(1, published["experience"] + 1)]
    for depth, level in [*seen, (0, 0)]:
        game._note(_status(depth, level), None, 0.0)
    assert game.progress().progression == published["progression"]
    best = published["highest_achievement"]
    assert best is None or achievements()[best] == published["progression"]


def test_the_whole_table_of_nethack_is_balrogs() -> None:
    """One figure wrong anywhere and this differs; the digest is of BALROG's table, sorted by name."""
    table = json.dumps(achievements(), sort_keys=True)
    assert (
        hashlib.sha256(table.encode()).hexdigest() == "d1b8820bd4a5e2c2fad5ac248c87782f3c5ceb5fa55b9bf297a92cd4cd18185c"
    )


@pytest.mark.parametrize("published", PUBLISHED["crafter"], ids=lambda p: f"{p['submission']}-{p['run']}")
def test_crafter_progression_is_that_of_published_episodes(published: dict) -> None:
    game = Crafter()
    game.reset(1)
    game._playing().player.achievements.update(published["achievements"])
    progress = game.progress()
    assert (progress.progression, len(progress.achievements)) == (published["progression"], published["score"])


@pytest.mark.parametrize("published", PUBLISHED["minihack"], ids=lambda p: f"{p['submission']}-{p['run']}")
def test_minihack_scores_are_those_of_published_episodes(published: dict) -> None:
    """The first was solved, at a cost of 0.01 for the winning move: BALROG logged a success and scored 0."""
    game = MiniHack(published["task"])
    last = list(published["rewards"].values())[-1]
    assert published["end_reason"] == 2, "NLE's number for a task that was solved"
    game._note(_status(1, 1), SimpleNamespace(name="TASK_SUCCESSFUL"), last)
    assert game.progress().progression == 1.0
    assert game.progress().achievements["balrog_success"] == published["progression"]


@pytest.mark.parametrize(
    "published",
    [one for one in (*PUBLISHED["crafter"], *PUBLISHED["minihack"]) if "rewards" in one],
    ids=lambda p: f"{p['submission']}-{p['run']}",
)
def test_the_return_of_whole_published_episodes_is_the_one_that_balrog_logged(published: dict) -> None:
    tally = Tally()
    for step in range(published["num_steps"]):
        tally.add(_step(step, published["rewards"].get(str(step), 0.0)), "")
    assert tally.reward == published["episode_return"]


def _status(depth: int, level: int) -> np.ndarray:
    numbers = np.zeros(BLSTATS, dtype=np.int64)
    numbers[DEPTH], numbers[LEVEL] = depth, level
    return numbers


def _step(step: int, reward: float) -> StepRecord:
    return StepRecord(
        step=step, observation="", log=(), plan=(), raw_action="x", action="x", invalid=0, fallback=False,
        reward=reward, progression=0.0, achievements={}, terminated=False, truncated=False,
    )  # fmt: skip
