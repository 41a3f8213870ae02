"""Published figures: what comes with AutoMem is whole and says where it is from, and when ours stand beside it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from automem.bench import references
from automem.errors import UserError
from games import suites
from tests.bench import made_up

VALID = """
[sources.one]
title = "One"
citation = "Somebody"
url = "https://example.org"
read = "table 1"
settings = ["text only"]

[[references]]
source = "one"
name = "made up"
agent = "naive"
date = "2026-01-01"
crafter = { progression = 30.0, error = 3.0, episodes = 10 }
minihack = { progression = 6.0, error = 4.0, episodes = 40 }
nethack = { progression = 0.0, error = 0.0, episodes = 5 }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "references.toml"
    path.write_text(text)
    return path


def test_the_papers_figures_are_those_of_the_yardstick() -> None:
    found = {r.name.rpartition(", ")[2]: r for r in references.load().of("automem")}
    told = {name: [r.figure(game).progression for game in references.GAMES] for name, r in found.items()}  # type: ignore[union-attr]
    assert told == {
        "first scaffold": [25.00, 7.50, 0.42],
        "after loop 1": [47.27, 27.50, 1.57],
        "after loop 2": [51.36, 30.00, 1.85],
    }


def test_success_rates_are_whole_episodes_and_their_errors_those_of_balrog() -> None:
    """A slip of the pen in MiniHack's figures would show: each episode is won or lost."""
    for reference in references.load().references:
        figure = reference.minihack
        assert figure is not None and figure.episodes is not None
        won = figure.progression / 100 * figure.episodes
        assert won == pytest.approx(round(won), abs=1e-3), reference.name
        if figure.error is not None:
            share = figure.progression / 100
            expected = 100 * math.sqrt(share * (1 - share) / figure.episodes)
            assert figure.error == pytest.approx(expected, abs=0.02), reference.name


def test_crafters_progression_is_a_whole_number_of_achievements() -> None:
    # Entries of 2024 were partly written by hand, rounded in their own way.
    later = [r for r in references.load().references if r.date > "2025"]
    assert len(later) > 20
    for reference in later:
        figure = reference.crafter
        assert figure is not None and figure.episodes is not None
        reached = figure.progression / 100 * 22 * figure.episodes
        assert reached == pytest.approx(round(reached), abs=0.01), reference.name


def test_a_zero_that_nothing_confirms_is_no_result() -> None:
    found = {r.name: r for r in references.load().references}
    assert found["Llama-3.2-90B-it"].nethack is None
    assert found["Llama-3.2-90B-it"].unconfirmed == ("nethack",)
    assert found["Llama-3.2-90B-it"].overall is None
    assert found["Qwen-2.5-7B-it"].nethack == references.Figure(progression=0, error=0, episodes=5)


def test_every_entry_leads_to_its_own_place() -> None:
    found = references.load()
    links = [found.link(r) for r in found.of("balrog")]
    assert len(set(links)) == len(links)
    assert all("/submissions/LLM/" in link and " " not in link for link in links)


def test_overall_is_the_mean_of_the_games_and_its_error_the_root_of_their_squares(tmp_path: Path) -> None:
    (reference,) = references.load(written(tmp_path, VALID)).references
    assert reference.overall == references.Figure(progression=12.0, error=5.0 / 3, episodes=55)
    without = VALID.replace("progression = 6.0, error = 4.0,", "progression = 6.0,")
    (reference,) = references.load(written(tmp_path, without)).references
    assert reference.overall == references.Figure(progression=12.0, error=None, episodes=55)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('source = "one"', 'source = "two"', "its source 'two' is not among the sources"),
        ("progression = 30.0", "progression = 300.0", "references.0.crafter.progression"),
        ('date = "2026-01-01"', 'date = "yesterday"', "references.0.date"),
        ('agent = "naive"', 'agent = "naive"\nmodle = "x"', "references.0.modle"),
        ('agent = "naive"', 'agent = "naive"\nunconfirmed = ["nethack"]', "nethack: has a figure and is named"),
        ('url = "https://example.org"', 'url = "javascript:alert(1)"', "sources.one.url"),
        ("[[references]]", "[[references]", "not valid TOML"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = written(tmp_path, VALID.replace(old, new, 1))
    with pytest.raises(UserError, match="references.toml") as error:
        references.load(path)
    assert told in str(error.value)


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="stands twice"):
        references.load(written(tmp_path, VALID + VALID[VALID.index("[[references]]") :]))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        references.load(tmp_path / "none.toml")


def test_suite_balrog_as_it_is_compares() -> None:
    results = made_up.as_balrog(made_up.results())
    assert references.differences(results) == {"crafter": [], "minihack": [], "nethack": []}


def test_each_other_setting_is_named() -> None:
    results = made_up.as_balrog(made_up.results())
    tasks = results["settings"]["tasks"]
    tasks[0] |= {"steps": 50, "seeds": [42]}
    tasks[1]["facts"] = {"levels": "generated"}
    del tasks[2]
    assert references.differences(results) == {
        "crafter": ["episodes of at most 50 steps instead of 2,000", "1 episode instead of 10"],
        "minihack": [
            "generated Boxoban levels instead of the official ones",
            "without MiniHack-Boxoban-Medium-v0",
        ],
        "nethack": [],
    }


def test_a_suite_of_one_game_compares_in_that_game_and_says_nothing_of_others() -> None:
    results = made_up.results()
    results["settings"]["tasks"] = [
        {"task": entry.task, "seeds": list(entry.seeds), "steps": entry.steps, "facts": {}}
        for entry in suites.load("nethack").entries
    ]
    assert references.differences(results) == {"nethack": []}
