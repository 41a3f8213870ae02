"""What is wrong with hooks: as they are written, and as they behave in a short episode."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.console import Console

from automem.check import Report, check, show
from automem.sandbox import SandboxUnavailable
from games import registry
from tests.check.broken import ROOT, Broken


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    """A copy of nethack/v0, whose episodes are the quickest."""
    return Broken(tmp_path, "nethack/v0")


SAFE = 'return {"hint": "look around"}'


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        ("import os\n\nclass Hooks:\n    def reset(self, game, task): pass\n", 1, "import os"),
        ("\nfrom games import registry\nclass Hooks:\n    def reset(self, game, task): pass\n", 2, "import games"),
        ("class Hooks:\n    def reset(self, game, task)\n", 2, "not Python"),
        ("class Hook:\n    pass\n", 1, "no class Hooks"),
        ("class Hooks:\n    x = 1\n    def observe(self): return {}\n", 3, "observe(self, step)"),
        ("class Hooks:\n\n    def op_NEAR(self, args, memory): return ''\n", 3, "op_NEAR"),
        ("class Hooks:\n    def __init__(self, game): pass\n    def reset(self, game, task): pass\n", 2, "__init__"),
    ],
)
def test_code_that_cannot_be_used_is_told_by_line(broken: Broken, source: str, line: int, says: str) -> None:
    broken.write("hooks.py", source)
    finding = broken.only("hooks", smoke=True)
    assert (finding.severity, finding.file, finding.line) == ("error", "hooks.py", line)
    assert says in f"{finding.message} {finding.do}"


def test_operations_and_texts_need_their_methods(broken: Broken) -> None:
    broken.add("scaffold.toml", '\n[[ops.own]]\nname = "NEAR"\nmeaning = "what is near"\n')
    broken.write("hooks.py", "\nclass Hooks:\n    def reset(self, game, task): pass\n")
    finding = broken.only("hooks")
    assert (finding.file, finding.line) == ("hooks.py", 2)
    assert "op_NEAR" in finding.message


def test_texts_need_observe_and_observe_needs_texts(broken: Broken) -> None:
    broken.hooks("    def reset(self, game, task):\n        pass")
    finding = broken.only("hooks-observe")
    assert (finding.severity, finding.line) == ("error", broken.line("scaffold.toml", "shows"))
    broken.change("scaffold.toml", 'shows = ["hint"]', "").change("prompts/plan.j2", "{{ hooks.hint }}", "")
    broken.change("hooks.py", "reset(self, game, task)", "observe(self, step)").change("hooks.py", "pass", "return {}")
    finding = broken.only("hooks-observe")
    assert (finding.severity, finding.file) == ("warning", "hooks.py")


def test_hooks_that_are_right_come_out_clean(broken: Broken) -> None:
    broken.hooks(f"""
    def reset(self, game, task):
        self.seen = 0

    def observe(self, step):
        self.seen += 1
        {SAFE}

    def maintain(self, step, memory):
        return [write("status.txt", f"step {{step.number}}, {{len(memory.files())}} files")]

    def check_action(self, step, action):
        return "Noop" if action == "nothing" else None
""")
    broken.add("scaffold.toml", '\n[[files]]\nname = "status.txt"\nkind = "note"\ndescribe = "kept by hooks"\n')
    report = check(str(broken.folder))
    assert not report.findings
    assert report.figures["hook_operations"] == report.figures["steps"] == 25


def test_calls_that_fail_are_told_once_each_at_their_lines(broken: Broken) -> None:
    broken.hooks("""
    def observe(self, step):
        if step.number % 2:
            return {"other": ""}
        raise ValueError(f"at step {step.number}")

    def maintain(self, step, memory):
        return [("READ", "goals.txt")]

    def check_action(self, step, action):
        return {}["x"]
""")
    told = {f.line: (f.code, f.severity, f.message) for f in broken.found(smoke=True)}
    assert {(code, severity) for code, severity, _ in told.values()} == {("hook-error", "error")}
    raised, keyed = told[broken.line("hooks.py", "raise")][2], told[broken.line("hooks.py", "{}[")][2]
    assert raised.startswith("observe, step 0 and 12 more times: ValueError: at step 0")
    assert keyed.startswith("check_action, step 0 and 24 more times: KeyError")
    assert "'other'" in told[broken.line("hooks.py", "def observe")][2]
    assert "READ" in told[broken.line("hooks.py", "def maintain")][2]
    assert len(told) == 4


def test_an_object_that_cannot_be_made_is_told(broken: Broken) -> None:
    broken.hooks(
        "    def __init__(self):\n        raise ValueError('no')\n\n    def observe(self, step):\n        return {}"
    )
    assert {(f.file, f.line) for f in broken.found(smoke=True)} == {("hooks.py", broken.line("hooks.py", "raise"))}


def test_hooks_that_never_answer_are_told(broken: Broken) -> None:
    broken.hooks("    def observe(self, step):\n        while True:\n            pass")
    codes = [f.code for f in broken.found(smoke=True)]
    assert codes and set(codes) <= {"hook-lost", "hook-off"}


def test_the_models_actions_are_played_as_a_rule(broken: Broken) -> None:
    broken.hooks("""
    def observe(self, step):
        return {"hint": "look around"}

    def check_action(self, step, action):
        return "search"
""")
    finding = broken.only("actions-replaced", smoke=True)
    assert (finding.severity, finding.line) == ("error", broken.line("hooks.py", "def check_action"))


def test_doubting_many_actions_is_told(broken: Broken) -> None:
    broken.hooks(
        f"    def observe(self, step):\n        {SAFE}\n\n    def check_action(self, step, action):\n"
        "        return Again('sure?') if step.number % 3 == 0 else None"
    )
    finding = broken.only("actions-replaced", smoke=True)
    assert finding.severity == "warning"


@pytest.mark.parametrize(("every", "severity"), [(1, "error"), (3, "warning")])
def test_what_the_model_has_just_written_stays(broken: Broken, every: int, severity: str) -> None:
    broken.hooks(
        f"    def observe(self, step):\n        {SAFE}\n\n    def maintain(self, step, memory):\n"
        f"        lines = memory.tail('map_notes.txt', 1)\n"
        f"        return [delete('map_notes.txt', line) for line in lines if step.number % {every} == 0]"
    )
    finding = broken.only("writes-undone", smoke=True)
    assert (finding.severity, finding.line) == (severity, broken.line("hooks.py", "def maintain"))


def test_pruning_what_is_old_is_fine(broken: Broken) -> None:
    broken.hooks(
        f"    def observe(self, step):\n        {SAFE}\n\n    def maintain(self, step, memory):\n"
        "        return [write('map_notes.txt', '\\n'.join(memory.tail('map_notes.txt', 5)))]"
    )
    assert not broken.found(smoke=True)


def test_operations_that_the_folder_refuses_are_told(broken: Broken) -> None:
    broken.hooks(
        f"    def observe(self, step):\n        {SAFE}\n\n    def maintain(self, step, memory):\n"
        "        return [upsert('map_notes.txt', 'key', 'value')]"
    )
    finding = broken.only("hook-refused", smoke=True)
    assert (finding.file, finding.line) == ("hooks.py", broken.line("hooks.py", "def maintain"))
    assert "25 times" in finding.message


def test_answers_that_differ_the_second_time_are_told(broken: Broken) -> None:
    broken.hooks("    def observe(self, step):\n        return {'hint': str(id(object()) + id(self))}")
    finding = broken.only("not-repeatable", smoke=True)
    assert (finding.severity, finding.file) == ("error", "hooks.py")
    assert "step 0, prompt of PLAN" in finding.message


def test_hooks_that_ask_for_a_write_in_plan_are_told(broken: Broken) -> None:
    broken.hooks("    def observe(self, step):\n        return {'hint': 'Note it: <|APPEND|>lessons.txt|...<|END|>'}")
    finding = broken.only("write-in-plan", smoke=True)
    assert (finding.severity, "<|APPEND|>" in finding.message) == ("warning", True)


def test_code_that_cannot_be_contained_is_not_run_and_that_is_said(
    broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(config: object) -> None:
        raise SandboxUnavailable("Code of a scaffold cannot be contained on this machine")

    monkeypatch.setattr("automem.check.smoke.choose_mode", nothing)
    report = check(str(broken.hooks(f"    def observe(self, step):\n        {SAFE}").folder))
    assert report.ok and not report.figures
    assert report.skipped == ("smoke episode: Code of a scaffold cannot be contained on this machine",)


def test_a_defect_of_ours_is_told_with_where_it_happened(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    def defective(*_: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("automem.check.smoke.episode.play", defective)
    report = check(str(broken.folder))
    assert [finding.code for finding in report.findings] == ["smoke-crash"]
    console = Console(width=200)
    with console.capture() as printed:
        show(report, console)
    for said in (printed.get(), report.as_dict()["traceback"]):
        assert "Traceback" in said and "in defective" in said and "ZeroDivisionError: a mistake" in said


def test_an_episode_that_takes_too_long_is_ended(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("automem.check.smoke.SECONDS", 0.01)
    assert broken.only("smoke-slow", smoke=True).severity == "error"


def test_a_program_with_an_event_loop_can_check(broken: Broken) -> None:
    async def check_inside() -> Report:
        return check(str(broken.folder))

    report = asyncio.run(check_inside())
    assert report.figures["steps"] == 25 and not report.findings


def test_prompts_that_grow_large_are_told(broken: Broken) -> None:
    broken.hooks("    def observe(self, step):\n        return {'hint': 'x' * 20000}")
    broken.change("scaffold.toml", 'shows = ["hint"]', 'shows = ["hint"]\ntext_chars = 20000')
    broken.add("prompts/plan.j2", "\n{{ hooks.hint }}\n")
    assert broken.only("prompt-large", smoke=True).severity == "warning"


def test_a_template_that_fails_with_real_texts_is_told_at_its_line(broken: Broken) -> None:
    broken.hooks("    def observe(self, step):\n        return {'hint': 'x'} if step.number < 5 else {'hint': 'nine'}")
    broken.add("prompts/plan.j2", '\n{% if hooks.hint == "nine" %}\n{{ 1 / 0 }}\n{% endif %}\n')
    finding = broken.only("template-failed", smoke=True)
    assert (finding.file, finding.line) == ("prompts/plan.j2", broken.line("prompts/plan.j2", "1 / 0"))


@pytest.mark.parametrize("ref", sorted("/".join(path.parts[-3:-1]) for path in ROOT.glob("*/*/scaffold.toml")))
def test_every_version_here_comes_out_clean_and_leaves_nothing_behind(
    ref: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    report = check(ref)
    assert report.ok and not report.findings and not report.skipped
    assert report.figures["steps"] == 25
    assert not list(tmp_path.iterdir())


PLUG_IN = """
from games.protocol import Observation, Progress, Transition


class Chess:
    actions = {"e2e4": "open"}
    instructions = "Win."
    default_action = "e2e4"

    def __init__(self, task, max_steps=10):
        self.task, self.left = task, max_steps

    def reset(self, seed):
        return Observation("a board", "white")

    def step(self, action):
        self.left -= 1
        return Transition(Observation("a board", "white"), 0.0, False, self.left <= 0, self.progress())

    def progress(self):
        return Progress(0.0)

    def close(self):
        pass
"""


@pytest.mark.parametrize(
    ("action", "skipped"), [("e2e4", ()), ("<|END|>", ("smoke episode: scripted cannot play chess",))]
)
def test_a_game_of_another_package_is_played_or_skipped_with_a_note(
    broken: Broken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, skipped: tuple[str, ...]
) -> None:
    installed = tmp_path / "installed"
    about = installed / "chess-1.dist-info"
    about.mkdir(parents=True)
    (installed / "chess_game.py").write_text(PLUG_IN.replace("e2e4", action))
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: chess\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[automem.games]\nchess.Blitz = chess_game:Chess\n")
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setenv("PYTHONPATH", str(installed))
    registry._added.cache_clear()
    try:
        report = check(str(broken.change("scaffold.toml", 'game = "nethack"', 'game = "chess"').folder))
    finally:
        registry._added.cache_clear()
    assert not report.findings
    assert report.figures["steps"] == 25
    assert report.skipped == skipped
