"""The page of a search: what it says of one that is over, of one that is not, and of hostile text."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from automem import runs
from automem.cli import app
from automem.errors import UserError
from automem.trace.episode import EpisodeTrace
from specialist import adapter, page
from specialist.candidate import candidates_of
from specialist.page import readings
from specialist.search import ledger, storage
from specialist.search.storage import SearchFolder
from specialist.select import decisions
from specialist.select.llm.criteria import Criteria
from tests.report import chromium
from tests.report.chromium import Browser
from tests.report.elements import Elements
from tests.specialist.page import made

EVIL = "<script>window.hit=1</script><img src=x onerror='window.hit=1'>\u202e\x1b[2J"


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchFolder]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        yield made.begun()


@pytest.fixture(scope="module")
def over(collected: SearchFolder, tmp_path_factory: pytest.TempPathFactory) -> SearchFolder:
    return _finished(collected, tmp_path_factory.mktemp("over"))


@pytest.fixture(scope="module")
def written(over: SearchFolder) -> str:
    """Its page."""
    return page.render(over)


@pytest.fixture(scope="module")
def read(written: str) -> Elements:
    """The same, as a browser reads it."""
    return Elements(written)


def _finished(collected: SearchFolder, folder: Path, gains: tuple[float, ...] = (0.2, 0.25, 0.3)) -> SearchFolder:
    with pytest.MonkeyPatch.context() as patch:
        return made.finished(_copied(collected, folder, patch), gains)


def _copied(search: SearchFolder, folder: Path, patch: pytest.MonkeyPatch) -> SearchFolder:
    patch.setenv("AUTOMEM_RUNS", str(folder))
    shutil.copytree(search.folder, folder / search.config.name)
    return storage.load(search.config.name)


@pytest.fixture
def search(over: SearchFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SearchFolder:
    """A copy of the finished search to change."""
    return _copied(over, tmp_path, monkeypatch)


def shown(search: SearchFolder) -> Elements:
    return Elements(page.render(search))


def test_a_search_that_is_over_says_what_it_was_worth(read: Elements) -> None:
    text = read.text
    assert "The gate accepted 1.1.1. On 3 held-out episodes, which the search never used" in text
    assert "1.1.1 gains +25.0 points [+12.6, +37.4] of progression over the untrained base model" in text
    assert "valid memory turns %20.0 → 90.0+70.0 points" in text
    assert "duplicate writes %50.0 → 10.0−40.0 points" in text
    assert "held-out loss nats a token2 → 0.5−75 %" in text
    assert "cannot be told from chance" not in text and "not finished" not in text
    assert "the same in every episode" in text  # empty searches


def test_models_seeds_and_programs_are_told(read: Elements) -> None:
    text = read.text
    assert "training100..102 (3)" in text
    assert "gate200..203 (4)" in text
    assert "held out300..302 (3)" in text
    assert "No seed has two roles" in text
    assert "scripted (a program, not a language model)" in text
    assert "smollm2" in text and "crafter/small" in text


def test_commands_name_runs_and_an_adapter_that_are_there(written: str, over: SearchFolder) -> None:
    commands = re.findall(r'<code class="command">automem (\w+) ([^<]+)</code>', written)
    reports = [shlex.split(rest) for command, rest in commands if command == "report"]
    assert len(reports) == 6 and max(map(len, reports)) == 2  # five runs, and before and after side by side
    played = {runs.load(name).folder.resolve() for names in reports for name in names}
    assert played == {path.parent.resolve() for path in over.folder.glob("*/**/run.toml")}
    adapters = [shlex.split(rest.partition("--specialist ")[2])[0] for command, rest in commands if command != "report"]
    assert len(adapters) == 3
    assert {adapter.load(name).identity for name in adapters} == {(over.result() or {})["best"]["adapter"]}


def test_each_training_run_has_its_row_its_curve_and_its_end(read: Elements) -> None:
    found = read
    assert "train.learning_rate 0.0002 → 0.9" in found.text
    assert "the loss left all bounds after step 2" in found.text
    assert "4 seeds: better by more than 2 points" in found.text
    labels = [attributes.get("aria-label") for attributes in found.of("svg")]
    for number in ("1.1.1", "1.2.1"):
        assert labels.count(f"Losses of training run {number} by step") == 2  # both scales
    assert labels.count("Held-out loss of every training run, by tokens trained on") == 2
    for told in ("step 0: 2 nats", "step 60: 0.5 nats"):
        assert f"held-out loss after {told}" in found.text


def test_what_was_selected_adds_up(over: SearchFolder, read: Elements) -> None:
    found = list(decisions.read(over.data(made.KEY) / "selection"))
    accepted = sum(one.accepted for one in found)
    text = read.text
    assert f"{accepted} of {len(found)} candidates" in text
    for phase in ("log", "plan"):
        mine = [one for one in found if one.place.phase == phase]
        assert f"{phase.upper()}{len(mine)}{sum(one.accepted for one in mine)}" in text
    for why in {one.why for one in found}:
        of_phase = [sum(one.why == why and one.place.phase == phase for one in found) for phase in ("log", "plan")]
        assert f"{why}{of_phase[0]}{of_phase[1]}{sum(of_phase)}" in text
    weighed = [(one.accepted, one.points["concise"]) for one in found if "concise" in one.points]
    points = sum(one for _, one in weighed) / len(weighed)
    assert f"concise{points:+.2f}{sum(accepted for accepted, _ in weighed)}" in text
    assert "of 3 gave examples" in text


def test_candidates_are_shown_verbatim_with_their_reasons(over: SearchFolder, written: str) -> None:
    found = readings.chosen(over.data(made.KEY) / "selection")
    kinds = {(one.accepted, one.place.phase if one.accepted else one.why) for one in decisions.read(
        over.data(made.KEY) / "selection"
    )}  # fmt: skip
    assert set(found) == kinds
    text = written
    for of_kind in found.values():
        for decision in of_kind:
            place = decision.place
            assert str(place) in text
            folder = over.folder.parent / place.run / "episodes" / place.task / f"seed-{place.seed}"
            (candidate,) = (
                one for one in candidates_of(place.run, EpisodeTrace(folder), place.step) if one.place == place
            )
            for turn in candidate.turns:
                assert turn.text.replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;") in text


@given(st.lists(st.integers(), unique=True), st.integers(1, 9))
def test_examples_are_spread_over_all_scores(scores: list[int], most: int) -> None:
    ordered = sorted(scores)
    found = readings.even(ordered, most)
    assert len(found) == min(most, len(ordered)) == len(set(found))
    assert found == sorted(found)
    if most > 1 and ordered:
        assert (found[0], found[-1]) == (ordered[0], ordered[-1])
        places = [ordered.index(one) for one in found]
        gaps = [b - a for a, b in pairwise(places)]
        assert not gaps or max(gaps) - min(gaps) <= 1


def test_a_difference_within_chance_is_called_that(collected: SearchFolder, tmp_path: Path) -> None:
    search = _finished(collected, tmp_path, (0.3, -0.05, 0.0))
    text = shown(search).text
    assert "Careful. The difference in progression on held-out seeds cannot be told from chance" in text
    assert "holds 0" in text


def test_nothing_accepted_is_said_first(search: SearchFolder) -> None:
    path = search.folder / storage.RESULT
    result = json.loads(path.read_text())
    result["accepted"], result["best"]["outcome"] = False, "inconclusive"
    path.write_text(json.dumps(result))
    text = shown(search).text
    assert "The gate accepted nothing; 1.1.1 is only the one of the lowest held-out loss." in text
    assert "Nothing was accepted: the gate calls 1.1.1 inconclusive." in text
    assert "The gate accepted 1.1.1" not in text


def test_a_search_of_which_every_run_diverged_has_nothing_to_compare(search: SearchFolder) -> None:
    rows = [row for row in ledger.read(search.folder) if row.outcome == "diverged"]
    ledger.write(search.folder, rows)
    gone = {"trainings": 1, "accepted": False, "best": None, "held_out": None}
    (search.folder / storage.RESULT).write_text(json.dumps(gone))
    shutil.rmtree(search.folder / "play")
    text = shown(search).text
    assert "1 training run gave no adapter: there is nothing to compare." in text
    assert "Before and after" not in text


def test_an_unfinished_search_says_what_is_missing(search: SearchFolder) -> None:
    (search.folder / storage.RESULT).unlink()
    (search.folder / ledger.LEDGER).unlink()
    for play in (search.folder / "play").glob("*/held-out"):
        shutil.rmtree(play)
    shutil.rmtree(next((search.folder / "trainings").glob("*/adapter")))
    found = shown(search)
    assert "This search is not finished: 0 training runs over" in found.text
    assert "step 60 of 60" in found.text
    assert "held-out seeds: 0 of 6 episodes are played" in found.text
    assert "1 round of 1 not proposed yet" in found.text
    assert "No training run is over yet" in found.text
    assert found.of("svg")  # what was trained so far
    assert "--run small --resume" in found.text


def test_a_search_in_its_last_stage_says_how_far_it_is(search: SearchFolder) -> None:
    (search.folder / storage.RESULT).unlink()
    first, *_, last = sorted((search.folder / "play").glob("*/held-out/episodes/*/seed-*/episode.json"))
    first.unlink()
    last.unlink()
    text = shown(search).text
    assert "1 specialist accepted so far" in text
    assert "held-out seeds: 4 of 6 episodes are played" in text


def test_a_search_that_has_just_begun_has_a_page(collected: SearchFolder) -> None:
    text = shown(collected).text
    assert "nothing is selected yet" in text
    assert "None has begun." in text
    assert "automem report small/collect/1" in text


def test_every_link_leads_somewhere_on_the_page(read: Elements) -> None:
    found = read
    ids = [attributes["id"] for _, attributes in found.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [str(link["href"]) for link in found.of("a")]
    assert targets and [target for target in targets if target[:1] != "#" or target[1:] not in ids] == []


def test_a_row_for_which_nothing_was_trained_links_nowhere(search: SearchFolder) -> None:
    rows = ledger.read(search.folder)
    untrained = {"number": "2.1.1", "training": "", "data": "", "examples": 0, "adapter": "", "told": "too few"}
    ledger.write(search.folder, [*rows, rows[-1].model_copy(update={**untrained, "outcome": "diverged"})])
    found = shown(search)
    assert "2.1.1" in found.text and "too few" in found.text
    assert {str(link["href"]) for link in found.of("a") if "training-" in str(link["href"])} == {
        f"#training-{row.training}" for row in rows
    }


def poison(search: SearchFolder) -> None:
    """Hostile text in every place that a model's words come to."""
    rows = ledger.read(search.folder)
    ledger.write(
        search.folder,
        [
            row.model_copy(
                update={
                    "why": EVIL, "told": EVIL, "recipe": row.recipe.model_copy(update={"name": EVIL}),
                    "looks": tuple(look.model_copy(update={"why": EVIL}) for look in row.looks),
                }
            )
            for row in rows
        ],
    )  # fmt: skip
    folder = search.data(made.KEY) / "selection"
    kept = [
        decisions.Decision(one.place, one.accepted, one.score, one.why, EVIL, {EVIL: 1.0})
        for one in decisions.read(folder)
    ]
    for _ in decisions.write(folder, kept):
        pass
    statistics = json.loads((folder / "statistics.json").read_text())
    statistics["engine"] = statistics["version"] = EVIL
    statistics["reasons"] = {EVIL: next(iter(statistics["reasons"].values()))}
    (folder / "statistics.json").write_text(json.dumps(statistics))


def test_what_models_wrote_stays_text(search: SearchFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(search)
    hostile = [{"text": EVIL, "errors": [EVIL], "refused": [EVIL]}]
    monkeypatch.setattr(readings, "_turn", lambda turn: hostile[0])
    found = shown(search)
    assert len(found.of("script")) == 1
    assert found.of("img") == found.of("iframe") == found.of("object") == []
    assert all(str(link["href"]).startswith("#") for link in found.of("a"))
    assert not any(name.startswith("on") or name == "src" for _, attributes in found.found for name in attributes)
    assert found.text.count("window.hit=1") > 20
    assert "\u202e" not in found.text and "\x1b" not in found.text and "\\u202e" in found.text


def test_replies_whose_trace_is_gone_cost_only_themselves(search: SearchFolder) -> None:
    shutil.rmtree(search.collected(1) / "episodes")
    text = shown(search).text
    assert "Cannot be shown: its trace cannot be read any more." in text
    assert "To read" in text


def test_the_command_writes_it_for_a_search(search: SearchFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(search.folder.parent)
    for name in ("small", str(search.folder)):
        ran = CliRunner().invoke(app, ["report", name])
        assert ran.exit_code == 0 and "report-small.html" in ran.output
        path = Path("report-small.html")
        assert Elements(path.read_text()).text.startswith(" AutoMem search: small")
        path.unlink()


def test_criteria_that_a_model_wrote_are_shown_as_text(search: SearchFolder) -> None:
    criteria = Criteria(search.folder)
    criteria.versions()
    criteria.add(f"## Short notes\n\n- **brief** {EVIL[:60]} [here](http://example.com)\n" + "x" * 100, "a model", "w")
    found = shown(search)
    assert "Criteria, version 1" in found.text and "Criteria, version 2 in force" in found.text
    assert "window.hit=1" in found.text and len(found.of("script")) == 1
    assert all(str(link["href"]).startswith("#") for link in found.of("a"))


def test_nothing_but_an_earlier_page_is_written_over(search: SearchFolder) -> None:
    path = search.folder / storage.PAGE
    assert page.write(search, path) == path.stat().st_size
    page.write(search, path)
    path.write_text("mine")
    with pytest.raises(UserError, match="is not a page of a search"):
        page.write(search, path)


@pytest.mark.skipif(chromium.FOUND is None, reason=chromium.WHY_NOT)
def test_a_browser_opens_it_fetches_nothing_and_keys_are_enough(search: SearchFolder) -> None:
    poison(search)
    path = search.folder / storage.PAGE
    page.write(search, path)
    with Browser(1280, 800) as browser:
        browser.open(path)
        assert browser.problems == []
        assert browser.requests == [path.absolute().as_uri()]
        assert browser.run("window.hit") is None
        visible = "[...document.querySelectorAll('.scale.linear')].some(chart => chart.offsetParent)"
        assert browser.run(visible) is False
        browser.run("document.getElementById('scale-logarithmic').focus()")
        browser.press("ArrowRight")
        browser.until(visible)
        browser.run("document.querySelectorAll('details').forEach(box => box.open = true)")
        browser.resize(390, 800)
        assert browser.run("document.documentElement.scrollWidth") <= 390
