"""The report in a real browser: it opens, moves by keyboard, slider and buttons, and shows what the trace holds."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import games
from automem import scaffold
from automem.episode import STEPS
from automem.report.gather import gather
from automem.report.page import page
from automem.report.write import write
from automem.runs import Run
from automem.trace import EpisodeTrace, read
from tests.report import chromium
from tests.report.chromium import Browser
from tests.report.made import finish, run_of
from tests.traces import Written, a_run, mapping_scaffold, play

pytestmark = pytest.mark.skipif(chromium.FOUND is None, reason=chromium.WHY_NOT)

HOSTILE = "</script><img src=x onerror='window.hit=1'><svg onload='window.hit=1'>"

FILES = """Object.fromEntries([...document.querySelectorAll("#files button")].map((button) => {
    button.click();
    const copy = document.querySelector("#file pre").cloneNode(true);
    for (const gone of copy.querySelectorAll("del")) gone.remove();
    return [button.dataset.name, copy.textContent];
}))"""
"""What the page shows of the memory folder: each file's text, without lines that are marked as gone."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(1280, 800) as browser:
        yield browser


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("replay")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(folder / "runs"))
        yield folder


@pytest.fixture(scope="module")
def mapped(runs_folder: Path) -> Run:
    """A run of Crafter with hooks, own operations, maps and refusals."""
    loaded = mapping_scaffold(runs_folder / "mapping")
    run = run_of("mapped", loaded)
    play(run.jobs()[0].folder, loaded, 40)
    return run


@pytest.fixture(scope="module")
def minihack(runs_folder: Path) -> Run:
    return a_run("minihack", seeds="3", steps=8, task="MiniHack-Corridor-R3-v0")


@pytest.fixture(scope="module")
def report(runs_folder: Path, mapped: Run, minihack: Run) -> Path:
    out = runs_folder / "report.html"
    write(page(gather([mapped, minihack], workers=1)), out)
    return out


@pytest.fixture
def at(browser: Browser, report: Path) -> Browser:
    """The replay, at the first step of the first episode."""
    browser.resize(1280, 800)
    browser.open(report)
    browser.until("document.documentElement.dataset.shown === '0,0'")
    browser.run("document.getElementById('player').scrollIntoView()")
    return browser


def shown(browser: Browser, step: int, episode: int = 0) -> None:
    browser.until(f"document.documentElement.dataset.shown === '{episode},{step}'")


def pixels(browser: Browser, selector: str) -> np.ndarray:
    """What the window shows of an element, (height, width, 3)."""
    box = browser.run(
        f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
        " return [b.x, b.y, b.right, b.bottom]; })()"
    )
    image = Image.open(io.BytesIO(browser.screenshot())).convert("RGB").crop([round(v) for v in box])
    return np.asarray(image)


def test_every_way_to_move_leads_to_its_step(at: Browser) -> None:
    for key, step in (
        ("ArrowRight", 1), ("j", 2), ("ArrowRight", 3), ("k", 2), ("ArrowLeft", 1), ("PageDown", 11), ("PageDown", 21),
        ("PageUp", 11), ("End", 40), ("ArrowRight", 40), ("Home", 0), ("ArrowLeft", 0),
    ):  # fmt: skip
        at.press(key)
        shown(at, step)
    at.click("[data-go='10']")
    shown(at, 10)
    at.click("#at", across=0.5)
    shown(at, 20)
    at.press("ArrowRight")  # the slider has the focus now
    shown(at, 21)
    at.run(
        "(() => { const n = document.getElementById('number'); n.focus(); n.value = 33;"
        " n.dispatchEvent(new Event('change')); })()"
    )
    shown(at, 33)
    assert at.run("document.getElementById('at').getAttribute('aria-valuetext')") == "step 33 of 39"
    at.press("Home")
    at.run("location.hash = '#watch=1,2'")  # the field had the focus, where Home has its own meaning
    shown(at, 2, episode=1)
    at.press("[")
    shown(at, 0)
    assert at.problems == []


def test_it_plays_by_itself_to_the_end(at: Browser, minihack: Run) -> None:
    at.run("location.hash = '#watch=1,0'")
    shown(at, 0, episode=1)
    at.run("document.getElementById('speed').value = 15")
    at.press(" ")
    assert at.run("document.getElementById('play').textContent") == "Pause"
    shown(at, len(EpisodeTrace(minihack.jobs()[0].folder)), episode=1)
    at.until("document.getElementById('play').textContent === 'Play'")


def test_a_program_is_called_one(at: Browser) -> None:
    called = "getComputedStyle(document.getElementById('played-by')).display !== 'none'"
    assert not at.run(called)
    at.run("location.hash = '#watch=1,0'")
    shown(at, 0, episode=1)
    assert at.run(called)


def test_marks_are_jumped_to(at: Browser, mapped: Run) -> None:
    records, _ = read(mapped.jobs()[0].folder / STEPS)
    bad = [r.step for r in records if r.invalid or r.fallback or any(h.kind == "error" for h in r.hooks)
           or any(t.errors or not all(o.ok for o in t.ops) for t in (*r.log, *r.plan))]  # fmt: skip
    bad += [r.step for r in records if not all(o.ok for o in r.maintained)]
    bad = sorted(set(bad) - {0})
    at.press("e")
    shown(at, bad[0])
    at.press("e")
    shown(at, bad[1])
    at.press("E", shift=True)
    shown(at, bad[0])


def test_all_of_it_can_be_reached_with_the_tab_key(at: Browser) -> None:
    wanted = {"episode", "at", "play", "number", "speed", "observation", "turns", "file", "help-button"}
    at.run("document.getElementById('replay').focus()")
    reached = set()
    for _ in range(60):
        at.press("Tab")
        reached.add(at.run("document.activeElement.id"))
        if wanted <= reached:
            break
    assert wanted <= reached
    outlined = at.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outlined != "none"
    unnamed = at.run(
        "[...document.querySelectorAll('#player button, #player select, #player input, #player [tabindex]')]"
        ".filter((e) => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim()"
        " || (e.labels && e.labels.length))).map((e) => e.outerHTML)"
    )
    assert unnamed == []


def test_a_panel_that_has_the_focus_scrolls_by_its_own_keys(at: Browser) -> None:
    at.press("PageDown")
    shown(at, 10)
    at.run("document.getElementById('turns').focus()")
    at.press("PageDown")
    at.press("ArrowRight")
    shown(at, 11)


def test_the_memory_folder_shown_is_the_traces(at: Browser, mapped: Run) -> None:
    trace = EpisodeTrace(mapped.jobs()[0].folder)
    for step in (0, 1, 2, 3, 9, 17, 16, 30, 39):
        at.run(f"location.hash = '#watch=0,{step}'")
        shown(at, step)
        assert at.run(FILES) == trace.memory(step)
        marked = at.run("[...document.querySelectorAll('#files .changed')].map((b) => b.dataset.name)")
        assert not step or sorted(marked) == sorted(trace.memory_diff(step - 1, step))


def test_changed_lines_are_marked(at: Browser, mapped: Run) -> None:
    trace = EpisodeTrace(mapped.jobs()[0].folder)
    step, name, diff = next(
        (step, name, diff)
        for step in range(5, len(trace))
        for name, diff in trace.memory_diff(step - 1, step).items()
        if diff.change == "changed" and diff.added
    )
    at.run(f"location.hash = '#watch=0,{step}'")
    shown(at, step)
    at.run(f"document.querySelector(`#files [data-name='{name}']`).click()")
    lines: dict[str, Any] = at.run(
        "Object.fromEntries(['ins', 'del'].map((tag) => [tag, [...document.querySelectorAll(`#file ${tag}`)]"
        ".map((e) => e.textContent.replace(/\\n$/, ''))]))"
    )
    told = diff.diff.split("\n")
    assert lines["ins"] == [line[1:] for line in told if line.startswith("+")]
    assert lines["del"] == [line[1:] for line in told if line.startswith("-")]
    assert at.run("document.querySelector('#file ins').getBoundingClientRect().top < innerHeight")


def test_turns_are_shown_to_the_letter(at: Browser, mapped: Run) -> None:
    records, _ = read(mapped.jobs()[0].folder / STEPS)
    for step in (3, 4, 6, 12):
        at.run(f"location.hash = '#watch=0,{step}'")
        shown(at, step)
        record = records[step]
        replies = at.run("[...document.querySelectorAll('#turns .reply')].map((e) => e.textContent)")
        assert replies == [turn.text for turn in (*record.log, *record.plan)]
        labels = at.run("[...document.querySelectorAll('#turns .op .label strong')].map((e) => e.textContent)")
        ops = [op for turn in record.log for op in turn.ops] + list(record.maintained)
        assert labels == [op.label for op in (*ops, *(op for turn in record.plan for op in turn.ops))]
        assert at.run("document.getElementById('observation').textContent") == record.observation
        marked = at.run("[...document.querySelectorAll('#turns mark')].map((e) => e.textContent)")
        written = [(turn.text, op.span) for turn in (*record.log, *record.plan) for op in turn.ops if not op.by]
        assert marked == [text[slice(*span)] for text, span in written]


def test_crafters_picture_is_the_simulators(at: Browser, mapped: Run) -> None:
    job = mapped.jobs()[0]
    records, _ = read(job.folder / STEPS)
    game = games.make(job.task, max_steps=job.steps)
    game.reset(job.seed)
    for step in range(21):
        if step in (0, 1, 20):
            at.run(f"location.hash = '#watch=0,{step}'")
            shown(at, step)
            drawn = np.array(
                at.run(
                    "(() => { const c = document.querySelector('#picture canvas');"
                    " return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]; })()"
                )
            ).reshape(144, 144, 4)[..., :3]
            difference = np.abs(drawn - game.image((144, 144)).astype(int))
            # Scaled textures of the inventory may differ by a pixel; the view may not.
            assert difference[:112].max() <= 3
            assert difference[112:].mean() < 6
            assert pixels(at, "#picture canvas").std() > 20, "the window shows it, too"
        game.step(records[step].action)


def test_a_screen_is_shown_in_its_colours(at: Browser, minihack: Run) -> None:
    job = minihack.jobs()[0]
    records, _ = read(job.folder / STEPS)
    game = games.make(job.task, max_steps=job.steps)
    game.reset(job.seed)
    for step in range(3):
        at.run(f"location.hash = '#watch=1,{step}'")
        shown(at, step, episode=1)
        text = at.run("document.querySelector('#picture .terminal').textContent")
        assert text.split("\n")[:-1] == ["".join(part for part, _ in row) for row in game.screen()]
        game.step(records[step].action)
    colours = at.run("new Set([...document.querySelectorAll('.terminal span')].map((s) => s.style.color)).size")
    assert colours >= 2
    picture = pixels(at, "#picture .terminal")
    assert picture.std() > 5 and len(np.unique(picture.reshape(-1, 3), axis=0)) > 8


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1000, 700), (390, 844), (1920, 1080)])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_its_window(at: Browser, width: int, height: int, dark: bool) -> None:
    at.resize(width, height)
    at.prefer(dark)
    try:
        assert at.run("document.documentElement.scrollWidth <= innerWidth")
        at.run("document.getElementById('turns').scrollIntoView({block: 'center'})")
        bright = pixels(at, "#turns").mean()
        assert bright < 90 if dark else bright > 170
    finally:
        at.prefer(False)


def test_text_of_traces_does_nothing(browser: Browser, runs_folder: Path) -> None:
    loaded = scaffold.load("crafter/v0")
    run = run_of("bad", loaded, model=HOSTILE)
    written = Written(run.jobs()[0].folder, loaded)
    for number in range(3):
        written.step([("APPEND", "map_notes.txt", f"{HOSTILE} {number}")], note=HOSTILE)
    written.writer.close()
    finish(written.folder, observation=HOSTILE)
    out = runs_folder / "bad.html"
    write(page(gather([run], pictures=False, workers=1)), out)
    browser.open(out)
    shown(browser, 0)
    browser.run("document.getElementById('replay').focus()")
    for step in (1, 2, 3):
        browser.press("ArrowRight")
        shown(browser, step)
        browser.run("document.querySelectorAll('#turns details').forEach((d) => { d.open = true; })")
    assert browser.run("document.getElementById('observation').textContent") == HOSTILE
    browser.press("ArrowLeft")
    shown(browser, 2)
    assert HOSTILE in browser.run("document.querySelector('#file').textContent")
    assert browser.run("window.hit") is None and browser.run("document.querySelectorAll('img').length") == 0
    assert browser.problems == []
    assert [address for address in browser.requests if not address.startswith(("file:", "data:"))] == []
