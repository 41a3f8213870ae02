"""What people and programs are told of a check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from automem import scaffold
from automem.check import Report, check, show
from automem.check.report import MOST_OF_A_KIND
from automem.scaffold import ScaffoldError
from tests.check.broken import Broken


def printed(report: Report, width: int = 60) -> str:
    console = Console(width=width, no_color=True, force_terminal=False)
    with console.capture() as capture:
        show(report, console)
    return capture.get()


def test_findings_are_lines_that_an_editor_opens(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(broken.folder.parents[1])
    broken.add("prompts/plan.j2", "\n{{ seed }}\n").change(
        "scaffold.toml", "result_chars = 2000", "result_chars = 20000"
    )
    lines = printed(check(str(broken.folder), smoke=False)).splitlines()
    line = broken.line("prompts/plan.j2", "seed")
    assert lines[0].startswith(f"crafter/v0/prompts/plan.j2:{line}: error: there is no variable 'seed'")
    assert lines[1].startswith("    do: it may use actions, files")
    assert lines[2].startswith(f"crafter/v0/scaffold.toml:{broken.line('scaffold.toml', 'result_chars')}: warning: ")
    assert "1 error, 1 warning" in lines[-1]


def test_a_clean_scaffold_is_told_in_one_line_with_what_was_checked(broken: Broken) -> None:
    report = check(str(broken.folder), smoke=False)
    *before, last = printed(report).splitlines()
    assert last == f"{broken.folder} ({scaffold.load('crafter/v0').identity[:12]}): nothing is wrong"
    assert before == ["checked: files, scaffold.toml, templates"]


def test_what_was_not_checked_is_said(broken: Broken) -> None:
    broken.change("scaffold.toml", 'game = "crafter"', 'game = "chess"')
    report = check(str(broken.folder))
    assert report.ok
    assert "not checked: smoke episode: no task here belongs to chess" in printed(report)


def test_the_report_as_plain_values_can_be_stored(broken: Broken) -> None:
    broken.add("prompts/plan.j2", "\n{{ seed }}\n")
    data = json.loads(json.dumps(check(str(broken.folder), smoke=False).as_dict()))
    assert (data["ok"], data["errors"], data["warnings"]) == (False, 1, 0)
    assert data["identity"] == scaffold_identity(broken)
    assert data["findings"][0] == {
        "file": "prompts/plan.j2",
        "line": broken.line("prompts/plan.j2", "seed"),
        "severity": "error",
        "code": "template-variable",
        "message": "there is no variable 'seed' in plan.j2",
        "do": data["findings"][0]["do"],
    }


def scaffold_identity(broken: Broken) -> str:
    sources = {p.relative_to(broken.folder).as_posix(): p.read_bytes() for p in broken.folder.rglob("*") if p.is_file()}
    return scaffold.identity_of(sources)


def test_warnings_do_not_make_it_unusable(broken: Broken) -> None:
    broken.write("more.txt", "x")
    report = check(str(broken.folder), smoke=False)
    assert report.ok and len(report.warnings) == 1
    assert "0 errors, 1 warning; it can be played" in printed(report, 200)


def test_a_name_that_does_not_exist_is_the_only_thing_that_is_raised(tmp_path: Path) -> None:
    for ref in ("crafter/v99", str(tmp_path), str(tmp_path / "nothing"), "a\0b", ""):
        with pytest.raises(ScaffoldError):
            check(ref)


def test_a_flood_of_findings_of_one_kind_is_cut(broken: Broken) -> None:
    broken.add("prompts/plan.j2", "\n{{ seed }}" * 300)
    assert len(broken.found()) == MOST_OF_A_KIND + 1
    assert "more like this" in broken.found()[-1].message


def test_what_a_scaffold_holds_cannot_steer_the_terminal(broken: Broken) -> None:
    broken.write("files/\x1b[31mred\n\x07.txt", "x")
    broken.change("scaffold.toml", '"TAIL"', '"T\\u001b[2JAIL[bold]"')
    text = printed(check(str(broken.folder), smoke=False), 500)
    assert "\x1b" not in text and "\x07" not in text
    assert "[bold]" in text
