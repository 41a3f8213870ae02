"""The page of a loop: what it says of one that is over and of one that is not, and what hostile text does in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from automem.errors import UserError
from meta import gate, page, storage
from meta.gate import Look
from meta.page import files
from meta.storage import LoopFolder
from tests.meta import loops
from tests.report import chromium
from tests.report.chromium import Browser
from tests.report.elements import Elements

EVIL = "<script>window.hit=1</script><img src=x onerror='window.hit=1'>"
ANALYSIS = f"""# Wrong

{EVIL}

- [here](javascript:window.hit=1) and ![there](http://example.com/p.png) and <http://example.com>
- **the map** is cut\u202e
"""


class First:
    """A gate that looks twice, and says of the first candidate that it is better, of others that they are not."""

    batch, most = 2, 4

    def __init__(self) -> None:
        self.decided = 0

    def judge(self, differences: Sequence[float], alpha: float) -> Look:
        decision: Any = "continue" if len(differences) < self.most else "rejected" if self.decided else "accepted"
        self.decided += decision != "continue"
        gain = -0.05 if decision == "rejected" else 0.05
        return Look(len(differences), gain, gain - 0.1, gain + 0.1, decision, f"{len(differences)} seeds played")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopFolder]:
    """A loop on a real game: one attempt that does not load, one accepted, one rejected, and nothing left."""

    def broken(folder: Path) -> None:
        (folder / "scaffold.toml").write_text("[scaffold\n")

    edits = {
        "1.1.0": broken,
        "1.1.1": loops.setting("result_chars", 100),
        "2.1.0": loops.setting("search_results", 99),
    }
    with pytest.MonkeyPatch.context() as patch:
        judge = First()
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setitem(gate.GATES, "paper", lambda settings: judge)
        folder, _, _, _ = loops.run(edits, patch)
        yield folder


@pytest.fixture
def loop(made: LoopFolder, tmp_path: Path) -> LoopFolder:
    """A copy of it to change."""
    shutil.copytree(made.folder, tmp_path / "small")
    return storage.load(str(tmp_path / "small"))


def change(path: Path, **values: Any) -> None:
    """Set values of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_loop_that_is_over_gives_both_gains_and_all_that_was_tried(loop: LoopFolder) -> None:
    shown = Elements(page.render(loop))
    result = loop.result()
    assert result is not None
    for purpose in ("gate", "held_out"):
        assert f"{100 * result[purpose]['overall']['difference']:+.1f} points".replace("-", "−") in shown.text
    assert "small-1.1.1 gains" in shown.text
    assert "a program, not a language model" in shown.text
    assert "2 revisions, 4 attempts, 2 of them played (1 accepted, 1 rejected, 1 invalid, 1 nothing left)" in shown.text
    assert "because of 1.1.1" in shown.text
    assert "result_chars: 2000 -> 100" in shown.text
    assert "prompt tokens / step" in shown.text
    assert "not finished" not in shown.text


def test_a_candidate_that_does_not_load_is_shown_with_what_the_checker_said(loop: LoopFolder) -> None:
    shown = Elements(page.render(loop))
    assert "the checker found 1 error(s)" in shown.text
    assert "[scaffold " in shown.text  # the line as it stands in the difference


def test_every_link_leads_somewhere_on_the_page(loop: LoopFolder) -> None:
    shown = Elements(page.render(loop))
    ids = {attributes["id"] for _, attributes in shown.found if "id" in attributes}
    targets = [link["href"] for link in shown.of("a")]
    assert {f"attempt-{number}" for number in ("1.1.0", "1.1.1", "2.1.0", "2.2.0")} - {"attempt-2.2.0"} <= ids
    assert targets
    assert [target for target in targets if not str(target).startswith("#") or str(target)[1:] not in ids] == []


def test_what_models_wrote_stays_text(loop: LoopFolder) -> None:
    path = loop.attempt_folder("1.1.1") / storage.ATTEMPT
    change(path, description=EVIL, analysis=ANALYSIS, why=EVIL, reviewer=EVIL, findings=[EVIL])
    (loop.attempt_folder("1.1.0") / "candidate" / f"{EVIL[:8]}.txt".replace("/", "")).write_text(EVIL + "\u202e\x1b[2J")
    shown = Elements(page.render(loop))
    assert len(shown.of("script")) == 1
    assert shown.of("img") == shown.of("iframe") == []
    assert all(str(link["href"]).startswith("#") for link in shown.of("a"))
    assert not any(name.startswith("on") or name == "src" for _, attributes in shown.found for name in attributes)
    assert shown.text.count("window.hit=1") >= 5
    assert "the map is cut\\u202e" in shown.text
    assert "\u202e" not in shown.text and "\x1b" not in shown.text


def test_a_gain_that_held_out_seeds_do_not_confirm_is_warned_of(loop: LoopFolder) -> None:
    path = loop.folder / storage.RESULT
    result = json.loads(path.read_text())
    held_out = result["held_out"]["overall"] | {"difference": 0.01, "interval": [-0.02, 0.04]}
    kept = result["held_out"] | {"overall": held_out}
    change(path, held_out=kept, gap={"gap": 0.2, "error": 0.01, "flagged": True, "confirmed": False})
    warned = Elements(page.render(loop)).text
    assert "20.0 points smaller than that on gate seeds" in warned
    assert "not confirmed on held-out seeds: its 95 % interval there, −2.0 to +4.0 points, holds 0" in warned
    held_out |= {"interval": [0.005, 0.015]}
    change(
        path, held_out=kept | {"overall": held_out}, gap={"gap": 0.0, "error": 0.1, "flagged": False, "confirmed": True}
    )
    confirmed = Elements(page.render(loop)).text
    assert "than chance allows" not in confirmed and "not confirmed" not in confirmed


def test_a_loop_that_is_not_over_says_so(loop: LoopFolder) -> None:
    (loop.folder / storage.RESULT).unlink()
    (loop.attempt_folder("2.1.0") / storage.ATTEMPT).unlink()
    shutil.rmtree(loop.attempt_folder("2.1.1"))
    shown = Elements(page.render(loop))
    assert "This loop is not finished: 2 attempts over, 1 version accepted so far" in shown.text
    assert "Under way: 2.1.0 (edit 2.1.0)" in shown.text


def test_a_loop_that_has_just_begun_has_a_page(loop: LoopFolder) -> None:
    (loop.folder / storage.RESULT).unlink()
    shutil.rmtree(loop.folder / "attempts")
    shutil.rmtree(loop.folder / "evaluations")
    shown = Elements(page.render(loop))
    assert "0 attempts over, no version has been accepted yet" in shown.text
    assert "No version has finished all tasks of a gate seed yet" in shown.text


def test_episodes_that_are_gone_cost_only_what_is_told_of_them(loop: LoopFolder) -> None:
    shutil.rmtree(loop.evaluation(loop.attempts()[1].identity))
    shown = Elements(page.render(loop))
    assert "behaviour cannot be compared" in shown.text
    assert "1.1.1: none of its episodes is finished" in shown.text


def test_each_memory_file_is_followed_over_versions(loop: LoopFolder) -> None:
    shown = Elements(page.render(loop))
    assert "map_notes.txt" in shown.text
    assert "log · " in shown.text and "as before: log" in shown.text
    assert "excerpts are from the end of the episode on seed 10000" in shown.text
    assert "Step 1, " in shown.text  # what the player wrote


def test_an_excerpt_has_both_ends_of_a_file_and_no_sign_that_does_not_print() -> None:
    text = "".join(f"line {number}\n" for number in range(100))
    first, last = ([f"line {number}" for number in numbers] for numbers in (range(6), range(94, 100)))
    assert files.excerpt(text).split("\n") == [*first, "… 88 more lines …", *last]
    assert files.excerpt("a" * 300) == "a" * 240 + "… 60 more characters"
    assert files.excerpt("\x1b[2J\n") == "\\x1b[2J"
    assert files.excerpt("") == ""


def test_a_difference_that_nobody_would_read_is_named_and_left_out(loop: LoopFolder) -> None:
    candidate = loop.attempt_folder("1.1.1") / "candidate"
    (candidate / "long.txt").write_text("".join(f"{number} of many lines\n" for number in range(9000)))
    text = page.render(loop)
    shown = Elements(text).text
    assert "Too long for this page: long.txt (+9000 −0 lines)" in shown
    assert "result_chars: 2000 -> 100" in shown
    assert len(text) < 1_000_000


def test_nothing_but_an_earlier_page_is_written_over(loop: LoopFolder) -> None:
    path = loop.folder / storage.PAGE
    assert page.write(loop, path) == path.stat().st_size
    page.write(loop, path)
    path.write_text("mine")
    with pytest.raises(UserError, match="is not a page of a loop"):
        page.write(loop, path)


@pytest.mark.skipif(chromium.FOUND is None, reason=chromium.WHY_NOT)
def test_a_browser_opens_it_fetches_nothing_and_keys_are_enough(loop: LoopFolder) -> None:
    change(loop.attempt_folder("1.1.1") / storage.ATTEMPT, description=EVIL, analysis=ANALYSIS)
    path = loop.folder / storage.PAGE
    page.write(loop, path)
    with Browser(1280, 800) as browser:
        browser.open(path)
        assert browser.problems == []
        assert browser.requests == [path.absolute().as_uri()]
        assert browser.run("window.hit") is None
        closed = "document.getElementById('attempt-1.1.0').open"
        assert browser.run(closed) is False
        browser.run("document.querySelector(\".tree a[href='#attempt-1.1.0']\").focus()")
        browser.press("Enter")
        browser.until(closed)
        browser.resize(400, 800)
        assert browser.run("document.documentElement.scrollWidth") <= 400
