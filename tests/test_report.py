"""Reports: what the file holds, what it lets in, and what the command says when something is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import games
from automem import runs, scaffold
from automem.episode import RESULT, STEPS
from automem.errors import UserError
from automem.records import StepRecord
from automem.report import edits
from automem.report.episode import Asked, pack
from automem.report.gather import Gathered, gather
from automem.report.page import page
from automem.report.screens import Screens
from automem.report.svg import restyled
from automem.report.write import writable, write
from automem.runs import Run
from automem.trace import EpisodeTrace, TraceWriter, read
from tests.commands import caller
from tests.report.made import Page, finish, run_of, steps_of, unpacked
from tests.traces import Written, a_run, mapping_scaffold, play

HOSTILE = "\x1b[31m\x07</script><img src=x onerror=alert(1)><!-- \u2028 ]]> {{7*7}} &amp; <b>"

Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run of `scripted`: two episodes of Crafter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOMEM_RUNS", str(tmp_path_factory.mktemp("runs")))
        yield a_run("one", seeds="7..8", steps=25)


@pytest.fixture(scope="module")
def gathered(played: Run) -> Gathered:
    """All that a report of that run shows."""
    return gather([played], workers=1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with its own runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOMEM_RUNS", str(tmp_path / "runs"))
    return tmp_path


def asked(run: Run, number: int = 0) -> Asked:
    job = run.jobs()[number]
    return Asked(job.folder, run.config.name, job.task, job.seed, job.steps)


def applied(lines: list[str], changes: list[edits.Edit]) -> list[str]:
    made = list(lines)
    for at, gone, come in reversed(changes):
        made[at : at + gone] = come
    return made


LINES = st.lists(st.sampled_from(["", "a", "b", "c", "tree 1,2"]), max_size=12)


@given(LINES, LINES)
def test_edits_make_the_new_lines_of_the_old_ones(old: list[str], new: list[str]) -> None:
    found = edits.edits(old, new)
    assert applied(old, found) == new
    assert bool(found) == (old != new)


def test_a_large_change_is_told_without_comparing_every_line() -> None:
    old, new = [f"a {n}" for n in range(5000)], [f"b {n}" for n in range(5000)]
    assert applied(old, edits.edits(old, new)) == new


def test_memory_is_the_traces_at_every_step(folder: Path) -> None:
    loaded = mapping_scaffold(folder / "mapping")
    run = run_of("mapped", loaded)
    job = run.jobs()[0]
    play(job.folder, loaded, 40)
    trace = EpisodeTrace(job.folder)
    found = steps_of(pack(asked(run)))
    assert len(found) == len(trace) + 1
    assert len({json.dumps(step["folder"]) for step in found}) > 10
    for number, step in enumerate(found[:-1]):
        assert step["folder"] == trace.memory(number)
    assert found[-1]["folder"] == trace.memory(len(trace) - 1)


def test_a_step_holds_what_was_recorded(folder: Path) -> None:
    loaded = mapping_scaffold(folder / "mapping")
    run = run_of("mapped", loaded)
    job = run.jobs()[0]
    play(job.folder, loaded, 12)
    records, _ = read(job.folder / STEPS)
    found = steps_of(pack(asked(run)))
    for step, record in zip(found, records, strict=False):
        assert step["observation"] == record.observation and step["action"] == record.action
        assert [turn["text"] for turn in step.get("log", [])] == [turn.text for turn in record.log]
        assert [turn["text"] for turn in step["plan"]] == [turn.text for turn in record.plan]
        told = [(op["label"], op["result"]) for turn in step.get("log", []) for op in turn.get("ops", [])]
        assert told == [(op.label, op.result) for turn in record.log for op in turn.ops]
        assert [op["label"] for op in step.get("maintained", [])] == [op.label for op in record.maintained]
        assert [event[1] for event in step.get("hooks", [])] == [event.kind for event in record.hooks]
    assert any(step.get("maintained") for step in found) and any(step.get("hooks") for step in found)
    assert any(step.get("raw") == "go" and step["action"] == "Noop" for step in found)


def test_pictures_show_the_game_as_it_was(played: Run) -> None:
    packed = pack(asked(played))
    head, found = unpacked(packed.head), steps_of(packed)
    assert head["kind"] == "tiles" and not head["notes"]
    job = played.jobs()[0]
    game = games.make(job.task, max_steps=job.steps)
    game.reset(job.seed)
    width = 9
    for step in found:
        picture, screen = step["picture"], game.screen()
        assert len(picture["cells"]) == 63
        looks = [head["legend"]["looks"][ord(cell) - 0x30] for cell in picture["cells"]]
        for row in range(7):
            for column in range(width):
                names, (characters, _) = looks[row * width + column], screen[row][column]
                assert ("tree" in names) == (characters == "/\\")
                assert ("cow" in names) == (characters == "co")
                assert any(name.startswith("player-") for name in names) == ((row, column) == (3, 4))
        if "action" in step:
            game.step(step["action"])


def test_screens_can_be_put_together_from_what_changed() -> None:
    game = games.make("MiniHack-MazeWalk-9x9-v0")
    game.reset(3)
    screens, shown = Screens(), {}
    for action in ("north", "east", "south", "west", "east"):
        screen = game.screen()
        packed = screens.add(screen)
        for number, text, runs_ in packed["rows"]:
            shown[number] = (text, runs_)
        assert [shown[n][0] for n in range(packed["of"])] == ["".join(t for t, _ in row) for row in screen]
        assert all(sum(shown[n][1][::2]) == len(shown[n][0]) for n in shown)
        game.step(action)
    assert len(packed["rows"]) < 24
    looks = {screens.styles[number] for _, runs_ in shown.values() for number in runs_[1::2]}
    assert any(back for _, back, _, _ in looks), "the cursor is reversed"
    game.close()


def test_pictures_end_where_the_game_shows_something_else(folder: Path, played: Run) -> None:
    job = played.jobs()[0]
    records, _ = read(job.folder / STEPS)
    run = run_of("other", EpisodeTrace(job.folder).scaffold, seeds=(job.seed,), steps=job.steps)
    copy = run.jobs()[0].folder
    copy.mkdir(parents=True)
    writer = TraceWriter(copy / STEPS)
    for record in records:
        changed = replace(record, observation=record.observation + "!") if record.step == 9 else record
        writer.append(changed)
    writer.close()
    packed = pack(asked(run))
    found = steps_of(packed)
    assert all("picture" in step for step in found[:9]) and not any("picture" in step for step in found[9:])
    assert any("from step 9 on" in note and "another text" in note for note in packed.notes)
    assert [step["observation"] for step in found[:25]][9].endswith("!")


def test_the_death_of_a_game_costs_its_pictures_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "deadly.py").write_text("import os\n\ndef make(task, **options):\n    os._exit(3)\n")
    (folder / "deadly-1.dist-info").mkdir()
    (folder / "deadly-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1\n")
    (folder / "deadly-1.dist-info" / "entry_points.txt").write_text("[automem.games]\ndeadly = deadly:make\n")
    monkeypatch.syspath_prepend(str(folder))
    games.registry._added.cache_clear()
    try:
        loaded = scaffold.load("crafter/v0")
        run = run_of("dying", loaded, task="deadly")
        written = Written(run.jobs()[0].folder, loaded)
        for number in range(3):
            written.step([("APPEND", "map_notes.txt", f"{number}")])
        written.writer.close()
        found = gather([run])
    finally:
        games.registry._added.cache_clear()
    episode = found.episodes[0]
    assert any("the game died" in why for why in episode.trouble)
    assert episode.packed is not None and len(steps_of(episode.packed)) == 4


def hostile_run(folder: Path) -> Run:
    """A run whose every text tries to be something else."""
    loaded = scaffold.load("crafter/v0")
    run = run_of("bad", loaded, seeds=(5, 6), model=HOSTILE)
    written = Written(run.jobs()[0].folder, loaded)
    for number in range(6):
        written.step([("APPEND", "map_notes.txt", f"{HOSTILE} {number}")], note=HOSTILE)
    written.writer.close()
    finish(written.folder, observation=HOSTILE)
    other = Written(run.jobs()[1].folder, loaded)
    record = replace(_step(written), achievements={HOSTILE: 1}, raw_action=HOSTILE, warnings=(HOSTILE,), system=HOSTILE)
    other.writer.append(record)
    other.writer.append(replace(record, step=1, achievements={HOSTILE: 1, "wood": 1}))
    other.writer.close()
    return run


def _step(written: Written) -> StepRecord:
    return written.records[0]


def test_text_of_traces_stays_text(folder: Path) -> None:
    text = page(gather([hostile_run(folder)], pictures=False, workers=1))
    read_ = Page(text)
    assert "img" not in read_.tags and "onerror" not in read_.attributes
    assert not [name for name in read_.attributes if name.startswith("on")]
    links = [value for name in ("src", "href") for value in read_.attributes.get(name, [])]
    assert not [link for link in links if not link.startswith("#") and link != "data:,"]
    assert HOSTILE in " ".join(read_.texts), "the model's name is shown as it is"
    assert "{{7*7}}" in text and "49" not in json.loads(read_.scripts["index"])["episodes"][0]["name"]
    # One script runs; all the others are data.
    assert text.count("<script>") == 1 and text.count("</script>") == text.count("<script")


def test_the_page_asks_for_nothing(gathered: Gathered) -> None:
    text = page(gathered)
    read_ = Page(text)
    policy = next(value for value in read_.attributes["content"] if "default-src" in value)
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert "style" not in read_.attributes, "the policy would ignore it"
    addresses = [v for name in ("src", "href", "action", "srcset", "data") for v in read_.attributes.get(name, [])]
    outside = [address for address in addresses if "//" in address]
    assert not outside and "@import" not in text and "url(" not in read_.scripts["style"]


def test_the_figures_are_the_runs(played: Run, gathered: Gathered) -> None:
    text = Page(page(gathered)).text
    summary = played.summary()
    assert summary is not None
    assert f"{100 * summary['overall']['progression']:.1f}" in text
    assert json.loads(json.dumps(gathered.summaries[0]["overall"])) == summary["overall"]
    assert "a program that follows rules. Its figures are not those of an LLM" in text
    assert played.config.scaffolds["crafter"].identity[:12] in text


def test_unfinished_and_damaged_episodes_are_named_and_not_in_the_mean(folder: Path) -> None:
    loaded = scaffold.load("crafter/v0")
    run = run_of("partly", loaded, seeds=(1, 2, 3, 4, 5, 6))
    jobs = {job.seed: job for job in run.jobs()}
    for seed in (1, 2, 3, 5):
        written = Written(jobs[seed].folder, loaded)
        for number in range(8):
            written.step([("APPEND", "map_notes.txt", f"{number}")])
        written.writer.close()
    finish(jobs[1].folder, progression=0.25)
    (jobs[5].folder / RESULT).write_text("{")
    finish(jobs[6].folder, progression=0.75)
    damaged = jobs[3].folder / STEPS
    os.truncate(damaged, damaged.stat().st_size - 7)
    found = gather([run], pictures=False, workers=1)
    text = Page(page(found)).text
    assert "seed 2 not finished: 8 steps were played" in text
    assert "seed 3 not finished: 7 steps" in text and "record 7" in text and "is incomplete" in text
    assert "seed 4 not begun" in text
    assert "seed 5 not finished: 8 steps" in text and "episode.json: not a finished episode" in text
    assert "seed 6 its trace is gone" in text
    assert found.summaries[0]["overall"]["progression"] == 0.5
    damaged_steps = next(e for e in found.episodes if e.result.seed == 3).packed
    assert damaged_steps is not None and len(steps_of(damaged_steps)) == 8


def test_two_runs_stand_side_by_side_paired(folder: Path) -> None:
    loaded = scaffold.load("crafter/v0")
    made = []
    for name, gain in (("first", 0.0), ("second", 0.1)):
        run = run_of(name, loaded, seeds=(1, 2, 3))
        made.append(run)
        for job in run.jobs():
            written = Written(job.folder, loaded)
            written.step()
            written.writer.close()
            finish(job.folder, progression=0.1 * job.seed + gain, scaffold=loaded.identity)
    text = Page(page(gather(made, pictures=False, workers=1))).text
    assert "second minus first" in text and "+10.0" in text and "3 / 0 / 0" in text


def test_behaviour_is_shown_for_each_task_and_operation(folder: Path) -> None:
    a_run("both", seeds="7", steps=6, task="smoke")
    run = runs.load("both")
    text = page(gather([run], pictures=False, replays=0, workers=1))
    summary = run.summary()
    assert summary is not None and len(summary["per_task"]) > 1
    for task, row in summary["per_task"].items():
        part = text.split(f"<summary>{task}</summary>")[1].split("</details>")[0]
        tokens = Page(part).text.split("prompt tokens / step ")[1].split()[0]
        assert tokens == f"{row['behaviour']['prompt_tokens_per_step']:.0f}"
    counted = summary["overall"]["behaviour"]["totals"]["operations"]
    overall = Page(text.split("By task")[0]).text
    for name, count in counted.items():
        assert f"{name} % {100 * count / sum(counted.values()):.1f}" in overall


def test_the_report_says_how_large_memory_files_ended(folder: Path) -> None:
    loaded = scaffold.load("crafter/v0")
    run = run_of("grown", loaded, seeds=(1, 2))
    for job in run.jobs():
        written = Written(job.folder, loaded)
        for _ in range(2 * job.seed):
            written.step([("APPEND", "map_notes.txt", "1234")])
        written.writer.close()
        finish(job.folder)
    text = Page(page(gather([run], pictures=False, replays=0, workers=1))).text
    assert "map_notes.txt 3 15 2" in text


@pytest.mark.parametrize("label", ["plain", HOSTILE])
def test_only_shapes_and_text_pass_from_a_chart(label: str) -> None:
    bad = (
        '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"><script>x()</script><foreignObject/>'
        '<image href="http://x"/><a href="javascript:x()"><path d="M0,0"/></a>'
        '<g style="x"><path d="M0,0" fill="url(http://x)" stroke="#123456" role="graphics-symbol" aria-label="it"/></g>'
        "</svg>"
    )
    found = restyled(bad, {"#123456": "run-0"}, label)
    read_ = Page(found)
    assert set(read_.tags) == {"svg", "g", "path", "title"} and read_.tags["path"] == 1
    assert set(read_.attributes) == {"role", "aria-label", "d", "class"}
    assert read_.attributes["class"] == ["stroke-run-0"] and read_.attributes["aria-label"] == [label]


def test_only_a_report_is_written_over(tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    writable(out)
    out.write_text("somebody's page")
    with pytest.raises(UserError, match="not a report"):
        writable(out)
    writable(out, force=True)
    write('<!doctype html><meta charset="utf-8"><meta name="generator" content="AutoMem report">', out)
    writable(out)
    with pytest.raises(UserError, match="is a folder"):
        writable(tmp_path)
    with pytest.raises(UserError, match="no folder"):
        writable(tmp_path / "nowhere" / "x.html")
    assert [path.name for path in tmp_path.iterdir()] == ["x.html"]


@pytest.fixture
def automem(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process; returns exit code and everything printed."""

    call = caller(monkeypatch, capfd)

    def run(*arguments: str) -> tuple[int, str]:
        code, out, err = call(*arguments)
        return code, " ".join((out + err).split())

    return run


def test_the_command_writes_a_file(automem: Command, folder: Path, played: Run) -> None:
    code, said = automem("report", str(played.folder), "--out", "r.html", "--workers", "1")
    assert code == 0 and "r.html" in said and "MB" in said
    text = (folder / "r.html").read_text()
    assert unpacked(Page(text).scripts["episode-0"])["steps"] == 25
    # Again, over itself, and with fewer episodes to watch.
    code, _ = automem("report", str(played.folder), "--out", "r.html", "--replays", "1", "--no-pictures")
    index = json.loads(Page((folder / "r.html").read_text()).scripts["index"])
    assert code == 0 and [episode["id"] for episode in index["episodes"]] == [0]


def test_mistakes_are_one_message_and_code_2(automem: Command, folder: Path, played: Run) -> None:
    (folder / "mine.html").write_text("mine")
    run_of("idle", scaffold.load("crafter/v0"))
    for arguments, says in (
        (("nosuchrun",), "no run 'nosuchrun'"),
        (("idle",), "no step was played"),
        ((str(played.folder), "--out", "mine.html"), "not a report"),
        ((str(played.folder), "--out", "nowhere/x.html"), "no folder"),
        ((str(played.folder), "--out", "."), "is a folder"),
    ):
        code, said = automem("report", *arguments)
        assert code == 2 and says in said and "Traceback" not in said
    assert (folder / "mine.html").read_text() == "mine"
    assert {path.name for path in folder.iterdir()} == {"mine.html", "runs"}
