"""A bench as Markdown: its figures, its labels, and what hostile names do in it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from markdown_it import MarkdownIt

from automem.bench import markdown, references
from tests.bench import made_up
from tests.report.elements import Elements


@pytest.fixture
def results() -> dict[str, Any]:
    return made_up.results()


def cells(text: str, first: str) -> list[str]:
    """The cells of the first line of a table that begins so."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def html(text: str) -> Elements:
    """As a reader with tables and links that nobody wrote as links, such as GitHub, shows it."""
    return Elements(MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(text))


def test_an_agents_line_has_its_figures(results: dict[str, Any]) -> None:
    agent = results["agents"][3]
    agent["per_game"]["crafter"] = made_up.row([0.1, 0.3], 2) | {"interval": [0.05, 0.4]}
    agent["per_game"]["minihack"] = made_up.row([0.0, 1.0], 2, balrog=0.25) | {"interval": None}
    agent["overall"] = made_up.row([0.2, 0.4], 2, balrog=0.125) | {"interval": [0.0, 1.0]}
    found = cells(markdown.table(results), "**memory**")
    assert found[1] == "memory, made-up/model with specialist made-up-lora"
    assert found[2] == "20.00 ± 7.07 \\[5.0, 40.0\\] (2)"
    assert found[3] == "50.00 ± 35.36 (2)"
    assert found[5:] == ["30.00 ± 7.07 \\[0.0, 100.0\\] (2)", "25.00, 12.50", "1,534", "\\$1.25"]


def test_programs_and_incomplete_means_are_labelled_where_they_stand(results: dict[str, Any]) -> None:
    text = markdown.render(results)
    assert "**not a language model**" in cells(text, "**random**")[1]
    assert "**not a language model**" in cells(text, "**scripted**")[1]
    assert "not a language model" not in cells(text, "**memory**")[1]
    broken = cells(text, "**broken**")
    assert "**incomplete: 23 of 25 episodes**" in broken[1]
    assert broken[4].endswith("(**incomplete: 3 of 5 episodes**)")
    assert "incomplete" not in broken[2]
    assert "2 episodes failed" in text
    assert cells(text, "broken")[1:] == ["NetHackChallenge-v0", "42", "made up: the server was gone"]


def test_what_is_incomplete_comes_last_however_far_it_came(results: dict[str, Any]) -> None:
    lines = [line.split(" | ")[0] for line in markdown.table(results).splitlines() if line.startswith("| **")]
    assert lines == ["| **scripted**", "| **memory**", "| **random**", "| **broken**"]


def test_an_agent_that_finished_nothing_has_no_mean(results: dict[str, Any]) -> None:
    agent = results["agents"][3]
    nothing = made_up.row([], 25)
    agent |= {"complete": False, "overall": nothing, "per_game": {}, "per_task": {}}
    found = cells(markdown.render(results), "**memory**")
    assert found[2:6] == ["–", "–", "–", "incomplete: 0 of 25 episodes"]
    assert "no episode is finished" in markdown.render(results)


def test_shortened_runs_and_generated_levels_are_said(results: dict[str, Any]) -> None:
    text = markdown.render(results)
    assert "Played on generated levels, not on the official ones: MiniHack-Boxoban-Medium-v0." in text
    assert "Not the " not in text
    results["settings"] |= {"suite_steps": False, "suite_seeds": False}
    results["settings"]["tasks"][0]["steps"] = 60
    text = markdown.render(results)
    assert "Not the step limits and seeds of suite balrog" in text
    assert "Crafter: episodes of at most 60 steps instead of 2,000." in text


def test_references_stand_apart_with_their_sources(results: dict[str, Any]) -> None:
    text = markdown.render(results)
    ours, _, theirs = text.partition("## References")
    assert "Qwen2.5-72B-it" not in ours
    for source in references.load().sources.values():
        assert f"]({source.url})" in theirs
    assert "**Not comparable as they stand with the figures above.** MiniHack: generated Boxoban levels" in theirs
    assert "27.27 ± 3.58 (10) | 5.00 ± 3.44 (40) | 0.31 ± 0.28 (5) | 10.86 ± 1.66 (55)" in theirs
    assert "NetHack: 0.0 unconfirmed, left out" in theirs


def test_results_like_balrogs_are_not_set_apart(results: dict[str, Any]) -> None:
    whole = made_up.as_balrog(results)
    whole["agents"] = [agent for agent in whole["agents"] if agent["complete"]]
    assert "Not comparable" not in markdown.render(whole)


def test_a_single_game_has_no_column_for_all_games(results: dict[str, Any]) -> None:
    results["settings"]["tasks"] = results["settings"]["tasks"][:1]
    header = markdown.table(results).splitlines()[0]
    assert header == "| agent | what it is | Crafter | tokens/step | cost |"


def test_times_change_nothing(results: dict[str, Any]) -> None:
    other = copy.deepcopy(results)
    other["times"] = {"created": "1999-01-01T00:00:00+00:00", "seconds": {"random": 9.0}}
    for agent in other["agents"]:
        agent["behaviour"]["seconds_per_step"] = 99.0
    assert markdown.render(other) == markdown.render(results)


def test_hostile_names_stay_text_in_their_cells(results: dict[str, Any]) -> None:
    for agent in results["agents"]:
        agent["behaviour"] = {"stuck_share": 0.5}
    plain = html(markdown.render(results))
    for agent in results["agents"]:
        agent["behaviour"] = {f"{made_up.EVIL}_share": 0.5}
        agent |= {"label": made_up.EVIL, "model": made_up.EVIL, "specialist": made_up.EVIL, "run": made_up.EVIL + "```"}
    results["agents"][2]["failed"][0] |= {"error": made_up.EVIL + "| x |\n\n# heading\n", "seed": made_up.EVIL}
    results["bench"] = results["suite"] = made_up.EVIL
    results["settings"]["tasks"][0]["facts"] = {"levels": made_up.EVIL}
    text = markdown.render(results)
    shown = html(text)
    for tag in ("table", "tr", "td", "th", "h1", "h2", "h3", "a", "pre"):
        assert len(shown.of(tag)) == len(plain.of(tag)), tag
    assert shown.of("script") == shown.of("img") == []
    assert shown.text.count("<script>window.hit=1</script>") > 10
    assert "\u202e" not in text and "\x1b" not in text
    assert "www\\.example" in text


def test_commands_that_hold_a_fence_stay_in_theirs(results: dict[str, Any]) -> None:
    results["command"] = "automem bench ```` x"
    shown = html(markdown.render(results))
    assert len(shown.of("pre")) == 1
    assert "automem bench ```` x automem rerun made-up/random" in shown.text


def test_an_agent_that_could_not_be_played_is_named_with_the_reason(results: dict[str, Any]) -> None:
    results["agents"][0]["error"] = "no server | there"
    text = markdown.render(results)
    assert "no server \\| there" in text.partition("## Failed episodes")[2].partition("## References")[0]
