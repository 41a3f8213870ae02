"""The scoreboard: its figures and labels, what hostile names do in it, and that a browser can use it."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from automem.bench import references, scoreboard
from automem.bench.scoreboard import charts
from automem.errors import UserError
from tests.bench import made_up
from tests.report import chromium
from tests.report.chromium import Browser
from tests.report.elements import Elements

_TABLE = re.compile(r'<table id="board".*?</table>', re.S)


@pytest.fixture
def results() -> dict[str, Any]:
    return made_up.results()


def board(text: str) -> str:
    """The scoreboard's table as text."""
    found = _TABLE.search(text)
    assert found is not None
    return spaced(found[0])


def spaced(text: str) -> str:
    """The text of some HTML, with space between cells."""
    return Elements(text.replace("<t", " <t").replace("<span", " <span")).text


def test_agents_stand_with_figures_labels_and_the_furthest_first(results: dict[str, Any]) -> None:
    shown = board(scoreboard.render(results))
    ours = shown[: shown.index("Published, not measured here")]
    places = [
        ours.index(name) for name in ("scripted not a language model", "memory, made-up/model with", "random not")
    ]
    assert places == sorted(places)
    assert ours.index("broken incomplete: 23 of 25 episodes") > places[-1]
    assert "incomplete: 3 of 5 episodes" in ours
    assert "30.00 ± 4.74" in ours and "[20.5, 39.5]" in ours
    assert "1,534" in ours and "$1.25" in ours and "12 s" in ours


def test_what_a_reader_must_not_miss_is_said(results: dict[str, Any]) -> None:
    shown = Elements(scoreboard.render(results)).text
    assert "2 episodes failed" in shown
    assert "generated levels, not on the official ones: MiniHack-Boxoban-Medium-v0" in shown
    assert "Not language models: scripted, random." in shown
    assert "made up: the server was gone" in shown
    results["settings"] |= {"suite_steps": False}
    assert "Not the step limits of suite balrog" in Elements(scoreboard.render(results)).text


def test_published_figures_are_a_part_of_their_own_with_links(results: dict[str, Any]) -> None:
    text = scoreboard.render(results)
    shown = board(text)
    known = references.load()
    assert shown.index("broken") < shown.index("AutoMem paper") < shown.index("BALROG leaderboard")
    # MiniHack and what is made of it stand where BALROG's scoring does, not under success.
    assert "27.27 ± 3.58 (10) – 0.31 ± 0.28 (5) – 5.00 ± 3.44 (40) 10.86 ± 1.66 (55)" in shown
    assert "NetHack: 0.0 unconfirmed, left out" in shown
    assert "other settings" in shown
    targets = {link["href"] for link in Elements(text).of("a")}
    assert {known.link(reference) for reference in known.references} <= targets


def test_like_for_like_is_not_called_different(results: dict[str, Any]) -> None:
    whole = made_up.as_balrog(results)
    whole["agents"] = [agent for agent in whole["agents"] if agent["complete"]]
    text = scoreboard.render(whole)
    assert "other settings" not in board(text)
    assert "This bench differs" not in text


def test_a_game_that_was_not_played_has_no_column_and_no_figures_of_others(results: dict[str, Any]) -> None:
    results["settings"]["tasks"] = results["settings"]["tasks"][-1:]
    shown = board(scoreboard.render(results))
    assert "NetHack" in shown and "Crafter" not in shown and "overall" not in shown
    assert "Llama-3.2-90B-it" not in shown  # nothing of it in NetHack can be shown
    assert "Qwen2.5-72B-it" in shown


def test_every_task_has_its_figures_by_seed(results: dict[str, Any]) -> None:
    shown = spaced(scoreboard.render(results))
    assert "agent 42 43 44 45 46 scripted" in shown
    assert "memory 10.0 30.0 10.0 30.0 10.0 30.0" in shown
    assert "broken – – 30.0 90.0 30.0" in shown  # two failed, and are not zero


def test_an_agent_without_any_finished_episode_is_listed(results: dict[str, Any]) -> None:
    nothing = made_up.row([], 25)
    results["agents"] = [results["agents"][3] | {"complete": False, "overall": nothing, "per_game": {}, "per_task": {}}]
    text = scoreboard.render(results)
    assert "memory incomplete: 0 of 25 episodes" in board(text)
    assert 'id="charts"' not in text


def test_an_agent_that_could_not_be_played_is_named_with_the_reason(results: dict[str, Any]) -> None:
    results["agents"][0]["error"] = "no server there"
    shown = spaced(scoreboard.render(results).partition('id="failed"')[2])
    assert "random all all no server there" in shown and "broken NetHackChallenge-v0 42 made up" in shown
    assert "outside the game" not in shown


def test_charts_tell_each_mark_in_words() -> None:
    ours = [
        charts.Ours("mine (no LLM)", 0, 12.5, 10.0, 15.0, "mine: 12.5 %"),
        charts.Ours("x", 1, 3.0, None, None, "x!"),
    ]
    svg = charts.progression(ours, [charts.Published("Somebody", 40.0, "Somebody, theirs: 40 %")], "A chart")
    titles = re.findall(r"<title>(.*?)</title>", svg)
    assert set(titles) == {"mine: 12.5 %", "x!", "Somebody, theirs: 40 %"}
    texts = [text.strip() for text in re.findall(r"<text[^>]*[^/]>(.*?)</text>", svg)]
    assert {"mine (no LLM)", "Somebody", "40"} <= set(texts)
    assert "50" not in texts


def test_only_times_differ_between_equal_benches(results: dict[str, Any]) -> None:
    other = copy.deepcopy(results)
    assert scoreboard.render(other) == scoreboard.render(results)
    other["times"] = {"created": "1999-01-01T00:00:00+00:00", "seconds": {}}
    assert scoreboard.render(other) != scoreboard.render(results)


def hostile(results: dict[str, Any]) -> dict[str, Any]:
    """The results with hostile text wherever somebody else may write."""
    for number, agent in enumerate(results["agents"]):
        agent |= {"label": f"{number}{made_up.EVIL}", "model": made_up.EVIL, "run": made_up.EVIL}
        agent["scaffolds"] = {"crafter": {"ref": made_up.EVIL, "identity": made_up.EVIL}}
        agent["behaviour"] = {f"{made_up.EVIL}_share": 0.5}
    results["agents"][2]["failed"][0] |= {"error": made_up.EVIL, "seed": made_up.EVIL}
    results["agents"][0]["error"] = made_up.EVIL
    results |= {"bench": made_up.EVIL, "suite": made_up.EVIL, "command": made_up.EVIL}
    results["versions"] = {made_up.EVIL: made_up.EVIL}
    results["settings"]["tasks"][0]["facts"] = {"levels": made_up.EVIL}
    return results


def test_hostile_names_stay_text(results: dict[str, Any]) -> None:
    known = references.load()
    text = scoreboard.render(hostile(results))
    shown = Elements(text)
    assert len(shown.of("script")) == len(shown.of("style")) == 1
    assert shown.of("img") == shown.of("iframe") == []
    ours = {known.link(reference) for reference in known.references}
    ours |= {url for s in known.sources.values() for url in (s.url, s.permalink) if url}
    assert {str(link["href"]) for link in shown.of("a") if not str(link["href"]).startswith("#")} == ours
    assert not any(name.startswith("on") or name in ("src", "style") for _, found in shown.found for name in found)
    assert shown.text.count("<script>window.hit=1</script>") > 10
    assert "\u202e" not in text and "\x1b" not in text


def test_nothing_but_an_earlier_scoreboard_is_written_over(results: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "scoreboard.html"
    assert scoreboard.write(results, path) == path.stat().st_size
    scoreboard.write(results, path)
    path.write_text("mine")
    with pytest.raises(UserError, match="is not a scoreboard"):
        scoreboard.write(results, path)
    scoreboard.write(results, path, force=True)
    assert scoreboard.MARK in path.read_text()


@pytest.mark.skipif(chromium.FOUND is None, reason=chromium.WHY_NOT)
def test_a_browser_sorts_and_opens_with_keys_and_fetches_nothing(results: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "scoreboard.html"
    scoreboard.write(results, path)
    rows = "[...document.querySelectorAll('#board tbody:not(.published) th[scope=row]')]"
    names = f"{rows}.map(e => e.innerText.trim().split(/\\s/)[0])"
    theirs = "[...document.querySelectorAll('#of-automem td:nth-child(2)')].map(e => e.dataset.value)"
    head = "document.querySelectorAll('#board thead th')[1]"
    with Browser(1280, 900) as browser:
        browser.open(path)
        assert browser.problems == []
        assert browser.requests == [path.absolute().as_uri()]
        browser.run(f"{head}.querySelector('button').focus()")
        browser.press("Enter")
        assert browser.run(f"{head}.getAttribute('aria-sort')") == "descending"
        assert browser.run(names) == ["broken", "scripted", "memory", "random"]
        assert browser.run(theirs) == ["0.5136", "0.4727", "0.25"]
        browser.press("Enter")
        assert browser.run(f"{head}.getAttribute('aria-sort')") == "ascending"
        assert browser.run(names) == ["random", "memory", "scripted", "broken"]
        assert browser.run("document.querySelector('#of-automem').rows[0].className") == "head"
        shown = "document.querySelector('#of-balrog tr:last-child').offsetHeight > 0"
        assert browser.run(shown) is False
        browser.run("document.querySelector('[data-opens=of-balrog]').focus()")
        browser.press("Enter")
        assert browser.run(shown) is True
        assert browser.run("document.querySelector('[data-opens=of-balrog]').getAttribute('aria-expanded')") == "true"
        browser.resize(390, 844)
        assert browser.run("document.documentElement.scrollWidth") <= 390
        scoreboard.write(hostile(made_up.results()), path)
        browser.open(path)
        assert browser.run("window.hit") is None
        assert browser.problems == []
        assert browser.run("document.documentElement.scrollWidth") <= 390
