"""Two runs, episode against episode."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console
from scipy import stats

import games
from automem import compare_view, runs, scaffold
from automem.compare import compare
from automem.episode import RESULT, EpisodeResult, write_json
from automem.errors import UserError
from automem.metrics import Counts
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold, PlayedSpecialist, Run, RunConfig
from automem.sign_flips import p_value

Scores = Mapping[str, Mapping[int, float]]


def made(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    name: str,
    scores: Scores,
    more: Mapping[str, int] | None = None,
    **changes: object,
) -> Run:
    """A run with these progressions, task -> seed -> progression, and with `more` achievements in every episode."""
    monkeypatch.setenv("AUTOMEM_RUNS", str(folder))
    loaded = {game: scaffold.load(f"{game}/v0") for game in ("crafter", "minihack")}
    config = RunConfig(
        name=name,
        target="crafter",
        created=runs.now(),
        model=PlayedModel(name="scripted"),
        scaffolds={
            game: PlayedScaffold(ref=s.ref, identity=s.identity, folder=f"scaffolds/{s.ref}")
            for game, s in loaded.items()
        },
        tasks=tuple(PlannedTask(task=task, seeds=tuple(found), steps=100) for task, found in scores.items()),
        versions=runs.versions(),
    )
    run = runs.create(config.model_copy(update=changes), loaded)
    for job in run.jobs():
        result = EpisodeResult(
            task=job.task,
            seed=job.seed,
            steps_limit=job.steps,
            steps=100,
            progression=scores[job.task][job.seed],
            achievements={"collect_wood": 1, "collect_iron": int(scores[job.task][job.seed] > 0.5)} | (more or {}),
            reached_at={},
            episode_return=0.0,
            terminated=False,
            truncated=True,
            facts={},
            scaffold=loaded[games.game_of(job.task)].identity,
            model=run.config.model.name,
            specialist="" if run.config.specialist is None else run.config.specialist.model.name,
            agent=run.config.agent,
            counts=Counts(
                steps=100, stuck=(10 if name == "a" else 5) * (job.task == "Crafter"), writes=10, duplicate_writes=1,
                operations={"APPEND": 10, "SEARCH": 30} if name == "a" else {"APPEND": 10, "UPSERT": 10},
            ),
            final_observation="",
        )  # fmt: skip
        job.folder.mkdir(parents=True)
        write_json(job.folder / RESULT, {**asdict(result), "counts": result.counts.as_dict()})
    return run


def test_pairs_give_the_difference_and_its_interval(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours, theirs = [0.2, 0.5, 0.4, 0.9], [0.3, 0.5, 0.6, 0.8]
    a = made(monkeypatch, tmp_path, "a", {"Crafter": dict(enumerate(ours))})
    b = made(monkeypatch, tmp_path, "b", {"Crafter": dict(enumerate([*theirs, 1.0]))})
    found = compare(a, b)
    paired = found.tasks[0]
    reference = stats.ttest_rel(theirs, ours).confidence_interval(0.95)
    assert paired.interval == pytest.approx((reference.low, reference.high))
    assert paired.difference == pytest.approx(0.05) and (paired.won, paired.tied, paired.lost) == (2, 1, 1)
    assert found.overall == replace(paired, name="overall")
    assert found.achievements == {"Crafter": {"collect_iron": (1, 2)}}
    assert any("1 episodes" in warning for warning in found.warnings)
    stuck = next(metric for metric in found.behaviour if metric.name == "stuck_share")
    assert (stuck.a, stuck.b, stuck.change) == (0.1, 0.05, -0.5)


def test_a_game_counts_once_however_many_tasks_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small, large = "MiniHack-MazeWalk-9x9-v0", "MiniHack-MazeWalk-15x15-v0"
    a = made(monkeypatch, tmp_path, "a", {"Crafter": {1: 0.0, 2: 0.0}, small: {1: 0, 2: 0}, large: {1: 0, 2: 0}})
    b = made(monkeypatch, tmp_path, "b", {"Crafter": {1: 0.4, 2: 0.4}, small: {1: 1, 2: 1}, large: {1: 0, 2: 1}})
    found = compare(a, b)
    assert found.overall.difference == pytest.approx((0.4 + (1 + 0.5) / 2) / 2)
    error = next(paired for paired in found.tasks if paired.name == large).error
    assert found.overall.error == pytest.approx(error / 2 / 2)
    # Five episodes differ, each by its part: two of Crafter, three of MiniHack's four.
    assert found.overall.p == pytest.approx(p_value([0.2, 0.2, 0.25, 0.25, 0.25])) == 0.0625


def test_operations_are_compared_by_their_part_of_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a = made(monkeypatch, tmp_path, "a", {"Crafter": {1: 0.0, 2: 0.0}})
    b = made(monkeypatch, tmp_path, "b", {"Crafter": {1: 0.4, 2: 0.4}})
    found = {one.name: (one.a, one.b, one.change) for one in compare(a, b).operations}
    assert found == {"APPEND": (0.25, 0.5, 1.0), "SEARCH": (0.75, 0.0, -1.0), "UPSERT": (0.0, 0.5, None)}


def test_each_task_has_its_own_behaviour(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    task = "MiniHack-MazeWalk-9x9-v0"
    a = made(monkeypatch, tmp_path, "a", {"Crafter": {1: 0.0, 2: 0.0}, task: {3: 0, 4: 0}})
    b = made(monkeypatch, tmp_path, "b", {"Crafter": {1: 0.4, 2: 0.4}, task: {3: 1, 4: 1}})
    found = compare(a, b)
    stuck = {name: next(m for m in of_task if m.name == "stuck_share") for name, of_task in found.per_task.items()}
    assert (stuck["Crafter"].a, stuck["Crafter"].b, stuck[task].a, stuck[task].b) == (0.1, 0.05, 0, 0)
    assert next(m for m in found.behaviour if m.name == "stuck_share").a == 0.05


def test_one_pair_has_no_interval(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a = made(monkeypatch, tmp_path, "a", {"Crafter": {1: 0.25}})
    b = made(monkeypatch, tmp_path, "b", {"Crafter": {1: 0.5}})
    assert compare(a, b).overall.interval is None
    assert compare(a, b).overall.p == 1.0


def test_what_makes_runs_incomparable_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a = made(monkeypatch, tmp_path, "a", {"Crafter": {1: 0.25}})
    b = made(
        monkeypatch,
        tmp_path,
        "b",
        {"Crafter": {1: 0.5}},
        model=PlayedModel(name="smollm2"),
        versions=runs.versions() | {"crafter": "0.0"},
        tasks=(PlannedTask(task="Crafter", seeds=(1,), steps=50),),
    )
    warnings = "\n".join(compare(a, b).warnings)
    for expected in ("scripted and smollm2", "step limits, 100 and 50", "versions of crafter"):
        assert expected in warnings
    same = compare(a, a).warnings
    assert len(same) == 1 and "chance" in same[0]


def test_packages_of_agents_and_games_that_are_not_ours_count_as_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scores = {"Crafter": {1: 0.25}}
    a, b, plain = (
        made(monkeypatch, tmp_path, name, scores, agent=agent, versions=runs.versions() | added)
        for name, agent, added in (
            ("a", "steady", {"steady": "1.0"}), ("b", "steady", {"steady": "2.0"}), ("plain", "memory", {}),
        )
    )  # fmt: skip
    assert compare(a, b).warnings == ("other versions of steady: 1.0 and 2.0",)
    assert compare(a, plain).warnings == ("other agents: steady and memory",)
    # Nor is a run gone on with under another version; one of ours may be newer.
    assert a.config.differences(b.config) == ["steady: 1.0 then, 2.0 now"]
    newer = a.config.model_copy(update={"versions": a.config.versions | {"automem": "9", "vllm": "9", "python": "3"}})
    assert a.config.differences(newer) == []


def test_what_a_reply_may_hold_and_how_often_a_specialist_reads_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = PlayedModel(name="openai/x")
    a, b = (
        made(
            monkeypatch,
            tmp_path,
            name,
            {"Crafter": {1: 0.25}},
            model=model.model_copy(update={"max_tokens": tokens}),
            specialist=PlayedSpecialist(model=model.model_copy(update={"max_tokens": tokens}), consult_turns=turns),
        )
        for name, tokens, turns in (("a", 0, 1), ("b", 99, 4))
    )
    assert compare(a, b).warnings == (
        "other models: openai/x and openai/x with replies of 99 tokens",
        "other memory specialists: openai/x (consult turns: 1) and openai/x with replies of 99 tokens "
        "(consult turns: 4)",
    )


def test_runs_without_a_common_episode_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a = made(monkeypatch, tmp_path, "a", {"Crafter": {1: 0.25}})
    b = made(monkeypatch, tmp_path, "b", {"Crafter": {2: 0.25}})
    with pytest.raises(UserError, match="no finished episode"):
        compare(a, b)


def test_a_result_of_another_run_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a = made(monkeypatch, tmp_path, "a", {"Crafter": {1: 0.25, 2: 0.5, 3: 0.5}})
    b = made(monkeypatch, tmp_path, "b", {"Crafter": {1: 0.5, 2: 1.0}}, model=PlayedModel(name="smollm2"))
    theirs = a.folder / "episodes" / "Crafter" / "seed-2" / RESULT
    copied = b.folder / "episodes" / "Crafter" / "seed-2" / RESULT
    copied.write_bytes(theirs.read_bytes())
    found = compare(a, b)
    assert found.overall.pairs == 1 and found.overall.mean_b == 0.5
    assert "b: left out" in found.warnings[0] and "result of another episode" in found.warnings[0]
    assert "1 episodes were finished by one of the runs only" in "".join(found.warnings)
    (b.folder / "episodes" / "Crafter" / "seed-1" / RESULT).write_text("{")
    with pytest.raises(UserError, match=r"no finished episode .* not a finished episode .*; and 1 more"):
        compare(a, b)


def test_a_person_reads_the_difference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    a = made(monkeypatch, tmp_path, "a", {"Crafter": {1: 0.2, 2: 0.5}})
    b = made(monkeypatch, tmp_path, "b", {"Crafter": {1: 0.3, 2: 0.7}})
    text = io.StringIO()
    compare_view.show(compare(a, b), Console(file=text, width=100))
    assert "APPEND" in text.getvalue() and "+100 %" in text.getvalue()
    assert "0.500" in text.getvalue()  # both went one way: two choices of four
    assert "+15.00" in text.getvalue() and "stuck %" in text.getvalue() and "-50 %" in text.getvalue()


def test_what_somebody_else_stored_does_not_repaint_the_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    evil = "\x1b[2J[red]\u202e"
    a = made(monkeypatch, tmp_path, "a", {"Crafter": {1: 0.2}}, more={evil: 1})
    b = made(monkeypatch, tmp_path, "b", {"Crafter": {1: 0.3}}, model=PlayedModel(name=f"{evil}/x"))
    b = Run(b.folder, b.config.model_copy(update={"name": evil}))
    stored = b.folder / "episodes" / "Crafter" / "seed-1" / RESULT
    data = json.loads(stored.read_text())
    data["counts"]["operations"] |= {evil: 3}
    stored.write_text(json.dumps(data))
    text = io.StringIO()
    compare_view.show(compare(a, b), Console(file=text, width=200))
    shown = text.getvalue()
    assert "\x1b" not in shown and "\u202e" not in shown
    assert shown.count("\\x1b[2J[red]\\u202e") == 4  # title, model, operation, achievement
