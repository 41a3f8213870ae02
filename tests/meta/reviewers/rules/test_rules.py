"""Every rule speaks up when its figures call for it, keeps quiet when they do not, and changes what it says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from automem import scaffold
from automem.metrics import Counts
from automem.scaffold import Scaffold
from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Proposal, Rule, Tried
from meta.reviewers.rules.rules.bounds import Bounds
from meta.reviewers.rules.rules.duplicates import Duplicates
from meta.reviewers.rules.rules.invalid import Invalid
from meta.reviewers.rules.rules.keys import RepeatedKeys
from meta.reviewers.rules.rules.limits import Limits
from meta.reviewers.rules.rules.pins import Pins
from meta.reviewers.rules.rules.places import LogBecomesMap
from meta.reviewers.rules.rules.searches import Searches
from meta.reviewers.rules.rules.stuck import Stuck
from meta.reviewers.rules.rules.topics import Topics
from meta.reviewers.rules.rules.window import Window
from tests.meta.reviewers.rules.figures import carried_out, figures, of_file, planned, verbatim_log


@pytest.fixture(params=["crafter", "minihack", "nethack"])
def root(request: pytest.FixtureRequest) -> Scaffold:
    """The root version of each game."""
    return scaffold.load(f"{request.param}/v0")


@pytest.fixture
def crafter() -> Scaffold:
    return scaffold.load("crafter/v0")


def proposed(rule: Rule, measured: Measured, loaded: Scaffold, tried: Tried | None = None) -> Proposal:
    found = rule.propose(measured, loaded, tried or Tried())
    assert found is not None
    return found


def every(rule: Rule, measured: Measured, loaded: Scaffold) -> list[Mapping[str, Any]]:
    """The parameters that a rule proposes, one after another, when nothing helps."""
    tried, found = Tried(), []
    while (proposal := rule.propose(measured, loaded, tried)) is not None:
        found.append(proposal.parameters)
        tried = tried.adding(proposal)
    return found


# A log becomes a map.


def test_a_verbatim_log_becomes_a_map_and_a_short_log(root: Scaffold, tmp_path: Path) -> None:
    proposal = proposed(LogBecomesMap(), figures(verbatim_log(root), game=root.game), root)
    made = carried_out(proposal, root, tmp_path / "made")
    files = planned(made)
    assert "map_notes.txt" not in files
    short = files["steps.txt"]
    assert short.pin and short.max_lines and short.changes and "{observation}" not in short.entry
    places = files["places.txt"]
    assert places.kind == "map" and places.pin and "{x},{y}" in places.key and places.entry == "{what}"
    assert {"UPSERT", "DELETE"} <= set(made.schema.ops.enabled)
    assert "places.txt" in made.sources["prompts/system.j2"].decode()
    assert "maintain" in made.hooks.methods if made.hooks else False


def test_the_reason_quotes_what_was_measured(crafter: Scaffold) -> None:
    reason = proposed(LogBecomesMap(), figures(verbatim_log(crafter)), crafter).reason
    assert "400 bytes a step" in reason and "70% of what it was told" in reason and "15% of the writes" in reason
    assert "90% of the steps" in reason and "100000 bytes" in reason and "0.80 results a step were cut" in reason


def test_fields_that_a_game_cannot_fill_in_are_not_asked_for(tmp_path: Path) -> None:
    shows = {"facing": False, "level": True, "message": True, "planted": False, "achieved": True}
    nethack = scaffold.load("nethack/v0")
    measured = figures(verbatim_log(nethack), game="nethack", shows=shows)
    files = planned(carried_out(proposed(LogBecomesMap(), measured, nethack), nethack, tmp_path / "made"))
    text = " ".join(file.entry + file.key for file in files.values())
    # Without one of its fields an entry is never written.
    assert "{level}" in text
    assert not any(f"{{{name}}}" in text for name in ("facing", "planted", "achieved"))


@pytest.mark.parametrize(
    "quiet",
    [{"read_steps": 0.1}, {"repeated": 0.2}, {"placed": 0.1}, {"end_bytes": 1500}],
    ids=["seldom read", "always new", "no places", "small"],
)
def test_another_log_stays(crafter: Scaffold, quiet: dict[str, float]) -> None:
    assert LogBecomesMap().propose(figures(verbatim_log(crafter, **quiet)), crafter, Tried()) is None


def test_a_failed_idea_comes_back_with_other_parameters_until_there_are_none(crafter: Scaffold) -> None:
    found = every(LogBecomesMap(), figures(verbatim_log(crafter)), crafter)
    assert len(found) >= 3
    assert all(found.count(parameters) == 1 for parameters in found)


def test_every_choice_of_parameters_can_be_played(root: Scaffold, tmp_path: Path) -> None:
    measured, tried = figures(verbatim_log(root), game=root.game), Tried()
    for number in range(20):
        proposal = LogBecomesMap().propose(measured, root, tried)
        if proposal is None:
            break
        files = planned(carried_out(proposal, root, tmp_path / str(number)))
        assert "map_notes.txt" not in files
        kept = files["steps.txt" if proposal.parameters["lines"] else "state.txt"]
        assert kept.pin and kept.changes and kept.max_lines == (proposal.parameters["lines"] or None)
        assert sum(file.kind == "map" for file in files.values()) == (proposal.parameters["map"] != "none")
        tried = tried.adding(proposal)
    else:
        pytest.fail("no end of choices")


def test_pinned_files_cost_no_more_than_was_spent(crafter: Scaffold, tmp_path: Path) -> None:
    dear = figures(verbatim_log(crafter), counts=Counts(steps=1000, prompt_tokens=8_000_000))
    cheap = figures(verbatim_log(crafter), counts=Counts(steps=1000, prompt_tokens=3_000_000))
    rooms = [
        carried_out(proposed(LogBecomesMap(), measured, crafter), crafter, tmp_path / name).schema.limits.result_chars
        for name, measured in (("dear", dear), ("cheap", cheap))
    ]
    assert rooms[0] > rooms[1] >= crafter.schema.limits.result_chars


def test_lines_that_would_say_the_same_again_become_one_line_of_state(tmp_path: Path) -> None:
    nethack = scaffold.load("nethack/v0")
    shows = {"facing": False, "level": True, "message": True, "planted": False, "achieved": True}
    measured = figures(verbatim_log(nethack, short_again=0.15), game="nethack", shows=shows)
    proposal = proposed(LogBecomesMap(), measured, nethack)
    assert "15% of the lines would say what an earlier line says" in proposal.reason
    made = carried_out(proposal, nethack, tmp_path / "made")
    state = planned(made)["state.txt"]
    assert state.kind == "note" and state.changes and state.pin
    assert not any(file.kind == "log" and file.entry for file in made.schema.files)
    fresh = figures(verbatim_log(nethack, short_again=0.0), game="nethack", shows=shows)
    assert "steps.txt" in planned(carried_out(proposed(LogBecomesMap(), fresh, nethack), nethack, tmp_path / "fresh"))


@pytest.mark.parametrize(("vain", "kept"), [(100, True), (3000, False)])
def test_searching_in_vain_is_taken_away_with_counting(
    crafter: Scaffold, tmp_path: Path, vain: int, kept: bool
) -> None:
    made = carried_out(
        proposed(LogBecomesMap(), figures(verbatim_log(crafter, nothing=vain)), crafter), crafter, tmp_path / "made"
    )
    assert ("SEARCH" in made.schema.ops.enabled) == kept
    assert "READ" in made.schema.ops.enabled and not {"COUNT", "TAIL"} & set(made.schema.ops.enabled)


def test_a_log_in_the_models_own_words_still_gets_what_its_entry_has_in_short(
    crafter: Scaffold, tmp_path: Path
) -> None:
    free = verbatim_log(crafter, fields={}, follows=0.0)
    made = carried_out(proposed(LogBecomesMap(), figures(free), crafter), crafter, tmp_path / "made")
    entry = planned(made)["steps.txt"].entry
    assert "{seen}" in entry and "{status}" in entry and "{observation}" not in entry


# Keys.


@pytest.mark.parametrize(("by_place", "key"), [(1.0, "{x},{y}"), (0.0, "name")], ids=["places", "names"])
def test_a_log_whose_lines_repeat_keys_becomes_a_map(
    crafter: Scaffold, tmp_path: Path, by_place: float, key: str
) -> None:
    told = {"lines": 300, "with_key": 0.9, "same_key": 0.6, "by_place": by_place}
    proposal = proposed(RepeatedKeys(), figures(of_file(crafter, "lessons.txt", **told)), crafter)
    assert "90% of the 300 lines" in proposal.reason and "60% of all of one" in proposal.reason
    made = carried_out(proposal, crafter, tmp_path / "made")
    file = planned(made)["lessons.txt"]
    assert (file.kind, file.key) == ("map", key) and "UPSERT" in made.schema.ops.enabled
    new = of_file(crafter, "lessons.txt", **{**told, "same_key": 0.1})
    by_template = of_file(crafter, "lessons.txt", **told, follows=1.0)
    for other in (new, by_template):
        assert RepeatedKeys().propose(figures(other), crafter, Tried()) is None


# Pins.


def test_a_small_file_that_is_always_read_is_pinned(tmp_path: Path) -> None:
    minihack = scaffold.load("minihack/v0")
    file = of_file(minihack, "plan.txt", reads=900, read_steps=0.9, end_bytes=80)
    proposal = proposed(Pins(), figures(file, game="minihack"), minihack)
    assert planned(carried_out(proposal, minihack, tmp_path / "made"))["plan.txt"].pin
    assert "plan.txt is 80 bytes" in proposal.reason and "90% of the steps" in proposal.reason


def test_a_large_or_seldom_read_file_is_not_pinned(crafter: Scaffold) -> None:
    seldom = of_file(crafter, "goals.txt", read_steps=0.1, end_bytes=600)
    large = of_file(crafter, "goals.txt", read_steps=0.9, end_bytes=1900)
    endless = of_file(crafter, "lessons.txt", read_steps=0.9, end_bytes=300)
    for file in (seldom, large, endless):
        assert Pins().propose(figures(file), crafter, Tried()) is None


# Bounds.


def test_a_log_that_outgrows_its_reads_keeps_its_newest_lines(crafter: Scaffold, tmp_path: Path) -> None:
    file = of_file(crafter, "lessons.txt", lines=400, chars=40_000, end_bytes=40_000, end_lines=400)
    proposal = proposed(Bounds(), figures(file), crafter)
    kept = planned(carried_out(proposal, crafter, tmp_path / "made"))["lessons.txt"].max_lines
    assert kept == proposal.parameters["lines"] and kept < 400


def test_a_map_that_outgrows_its_reads_is_pruned_or_cut_into_blocks(crafter: Scaffold, tmp_path: Path) -> None:
    mapped = carried_out(proposed(LogBecomesMap(), figures(verbatim_log(crafter)), crafter), crafter, tmp_path / "map")
    (tmp_path / "map" / "hooks.py").unlink()
    mapped = scaffold.load(str(tmp_path / "map"))
    file = of_file(mapped, "places.txt", lines=900, chars=18_000, end_bytes=30_000, end_lines=900)
    chosen = every(Bounds(), figures(file), mapped)
    assert any("chars" in parameters for parameters in chosen) and any("block" in parameters for parameters in chosen)
    pruned = carried_out(proposed(Bounds(), figures(file), mapped), mapped, tmp_path / "pruned")
    assert pruned.hooks is not None and "maintain" in pruned.hooks.methods


def test_a_small_file_is_not_bounded(crafter: Scaffold) -> None:
    file = of_file(crafter, "lessons.txt", lines=10, chars=400, end_bytes=400, end_lines=10)
    assert Bounds().propose(figures(file), crafter, Tried()) is None


# Searches.


def test_vain_counts_and_searches_change_the_vocabulary_and_the_words(crafter: Scaffold, tmp_path: Path) -> None:
    counts = Counts(steps=1000, operations={"COUNT": 3000, "SEARCH": 500})
    file = of_file(
        crafter, "map_notes.txt", lines=9, searches=3500, nothing=2000, empty=300, misses={"gold": 1500, "lake": 500}
    )
    measured = figures(file, counts=counts)
    first = proposed(Searches(), measured, crafter)
    assert "57% of them found no line" in first.reason and '"gold"' in first.reason
    assert "COUNT" not in carried_out(first, crafter, tmp_path / "first").schema.ops.enabled
    second = proposed(Searches(), measured, crafter, Tried().adding(first))
    made = carried_out(second, crafter, tmp_path / "second")
    assert made.schema.hooks.shows == ("words",)
    assert "hooks.words" in made.sources["prompts/plan.j2"].decode()


def test_searches_that_find_something_are_left_alone(crafter: Scaffold) -> None:
    file = of_file(crafter, "map_notes.txt", lines=9, searches=3500, nothing=100)
    assert Searches().propose(figures(file), crafter, Tried()) is None


# Invalid actions.


def test_actions_that_the_game_does_not_have_are_understood(crafter: Scaffold, tmp_path: Path) -> None:
    invalid, meant = {"go west": 30, "xyzzy": 20, "once": 1}, {"go west": "Move West", "once": "Do"}
    measured = figures(counts=Counts(steps=1000, invalid=51), invalid=invalid, meant=meant)
    proposal = proposed(Invalid(), measured, crafter)
    assert proposal.parameters == {"meant": {"go west": "Move West"}}
    assert "51 actions in 1000 steps" in proposal.reason and "'go west' was written 30 times" in proposal.reason
    made = carried_out(proposal, crafter, tmp_path / "made")
    assert made.hooks is not None and made.hooks.methods == {"reset", "check_action"}


def test_a_few_slips_are_not_repaired(crafter: Scaffold) -> None:
    measured = figures(counts=Counts(steps=1000, invalid=3), invalid={"go": 3}, meant={"go": "Do"})
    assert Invalid().propose(measured, crafter, Tried()) is None


# Stuck play.


def test_play_without_effect_gets_a_notice_that_prompts_show(crafter: Scaffold, tmp_path: Path) -> None:
    proposal = proposed(Stuck(), figures(counts=Counts(steps=1000, stuck=140, oscillating=50)), crafter)
    assert "14% of the steps changed nothing" in proposal.reason and "5% went to and fro" in proposal.reason
    made = carried_out(proposal, crafter, tmp_path / "made")
    assert made.schema.hooks.shows == ("notice",)
    for name in ("log", "plan"):
        assert "hooks.notice" in made.sources[f"prompts/{name}.j2"].decode()
    assert Stuck().propose(figures(counts=Counts(steps=1000, stuck=140)), made, Tried()) is None


def test_lively_play_gets_none(crafter: Scaffold) -> None:
    assert Stuck().propose(figures(counts=Counts(steps=1000, stuck=10)), crafter, Tried()) is None


# Limits.


def test_limits_that_are_hit_move(crafter: Scaffold, tmp_path: Path) -> None:
    cut = proposed(Limits(), figures(counts=Counts(steps=1000, truncated_reads=800)), crafter)
    assert carried_out(cut, crafter, tmp_path / "cut").schema.limits.result_chars > 2000
    full = proposed(Limits(), figures(full_plan=0.4), crafter)
    assert carried_out(full, crafter, tmp_path / "full").schema.limits.plan_turns > 5
    assert "40% of the PLAN phases" in full.reason
    assert Limits().propose(figures(), crafter, Tried()) is None


# Topics.


def test_a_file_that_mixes_topics_is_split(crafter: Scaffold, tmp_path: Path) -> None:
    mixed = of_file(
        crafter, "lessons.txt", lines=200, chars=9000, topics={"places": 0.5, "rules": 0.3, "state": 0.05, "goals": 0.0}
    )
    proposal = proposed(Topics(), figures(mixed), crafter)
    assert "50% of places" in proposal.reason and "30% of rules" in proposal.reason
    files = planned(carried_out(proposal, crafter, tmp_path / "made"))
    assert {"places.txt", "rules.txt"} <= files.keys() and "state.txt" not in files


def test_lines_that_hold_everything_at_once_are_no_mixture(crafter: Scaffold) -> None:
    whole = verbatim_log(crafter, topics={"places": 0.6, "state": 0.6})
    pure = of_file(crafter, "lessons.txt", lines=200, topics={"places": 0.02, "rules": 0.97})
    assert Topics().propose(figures(whole, pure), crafter, Tried()) is None


# Duplicates.


def test_a_file_that_is_told_the_same_takes_only_changes(crafter: Scaffold, tmp_path: Path) -> None:
    proposal = proposed(Duplicates(), figures(verbatim_log(crafter)), crafter)
    assert "15% of 1000 writes to map_notes.txt" in proposal.reason
    made = carried_out(proposal, crafter, tmp_path / "made")
    assert planned(made)["map_notes.txt"].changes
    assert Duplicates().propose(figures(verbatim_log(made)), made, Tried()) is None


def test_a_file_that_is_told_news_is_left_alone(crafter: Scaffold) -> None:
    assert Duplicates().propose(figures(verbatim_log(crafter, duplicates=10)), crafter, Tried()) is None


# All.


def test_files_that_the_model_made_itself_are_no_reason_to_fail(crafter: Scaffold) -> None:
    told = {"writes": 500, "duplicates": 400, "lines": 500, "chars": 90_000, "repeated": 0.9, "placed": 0.9}
    asked = {"searches": 900, "nothing": 800, "read_steps": 1.0, "end_bytes": 90_000}
    own = FileFigures("diary.txt", None, topics={"places": 0.5, "rules": 0.5}, **told, **asked)  # type: ignore[arg-type]
    for rule in (LogBecomesMap(), Pins(), Bounds(), Topics(), Duplicates()):
        assert rule.propose(figures(own), crafter, Tried()) is None


# The window of a short log.


def test_a_short_log_reaches_further_back_where_play_goes_in_circles(crafter: Scaffold, tmp_path: Path) -> None:
    short = carried_out(proposed(LogBecomesMap(), figures(verbatim_log(crafter)), crafter), crafter, tmp_path / "short")
    file = of_file(short, "steps.txt", lines=1000, chars=80_000, writes=1000)
    circles = figures(file, counts=Counts(steps=1000, stuck=90, oscillating=60, prompt_tokens=9_000_000))
    proposal = proposed(Window(), circles, short)
    assert "15% of the steps" in proposal.reason and "80 characters" in proposal.reason
    before, after = (planned(each)["steps.txt"] for each in (short, carried_out(proposal, short, tmp_path / "long")))
    assert after.max_lines > before.max_lines and str(after.max_lines) in after.describe
    assert Window().propose(figures(file, counts=Counts(steps=1000, stuck=50)), short, Tried()) is None


@pytest.mark.parametrize(("chars", "tokens"), [(480_000, 9_000_000), (80_000, 2_000_000)], ids=["long", "dear"])
def test_a_window_is_no_wider_than_what_is_shown_and_may_cost(
    crafter: Scaffold, tmp_path: Path, chars: int, tokens: int
) -> None:
    short = carried_out(proposed(LogBecomesMap(), figures(verbatim_log(crafter)), crafter), crafter, tmp_path / "short")
    file = of_file(short, "steps.txt", lines=1000, chars=chars, writes=1000)
    measured = figures(file, counts=Counts(steps=1000, stuck=200, prompt_tokens=tokens))
    assert Window().propose(measured, short, Tried()) is None
