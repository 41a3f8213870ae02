"""What a command is given to work on: its task, the evidence, and the files to edit."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from automem import scaffold, stats_view
from automem.check import Report
from automem.check.folder import contents
from automem.runs import RUN, Run
from automem.scaffold import write_files
from automem.trace import RunTrace, stats
from automem.vocabulary import one_line
from meta.evidence import Evidence
from meta.reviewers.command import inside, view
from meta.reviewers.command.contained import INSIDE, Place
from meta.reviewers.command.options import CommandOptions

ATTEMPTS = 40
"""Earlier attempts that are shown, the latest ones."""

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    autoescape=False,  # Markdown
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters["line"] = lambda text: one_line(str(text), 600)


@dataclass(frozen=True)
class Again:
    """What a round begins with, beside the evidence.

    Attributes:
        files: of the candidate, path -> bytes.
        said: the ``REVISION.md`` of the round before; None in the first.
        complaint: what was wrong with what the round before left; empty in the first.
    """

    files: Mapping[str, bytes]
    said: bytes | None = None
    complaint: str = ""


def write(evidence: Evidence, folder: Path, begin: Again, options: CommandOptions, minutes: float | None) -> Place:
    """Write it below the attempt's folder, in place of what an earlier round was given.

    Args:
        evidence: what the reviewer may know.
        folder: the attempt's.
        begin: what the round begins with.
        options: what the command may use.
        minutes: that are left; None is no limit.
    """
    given = folder / "given"
    shutil.rmtree(given, ignore_errors=True)
    write_program(given)
    write_files(given / "candidate", begin.files)
    if begin.said is not None:
        (given / "REVISION.md").write_bytes(begin.said)
    workspace = given / "workspace"
    files = {"SCAFFOLDS.md": _manual(), "CHECK.md": begin.complaint.encode()}
    write_files(workspace, {name: data for name, data in files.items() if data})
    evidence.parent.save(workspace / "parent")
    shown = list(evidence.attempts)[-ATTEMPTS:]
    for attempt in shown:
        if attempt.candidate.is_dir():
            write_files(workspace / "attempts" / attempt.number, contents(attempt.candidate).sources)
    traces = {"parent": evidence.run} | {a.number: trace for a in shown if (trace := a.trace()) and trace.episodes}
    folders: dict[str, Path] = {}
    figures = {}
    for name, trace in traces.items():
        bare = _bare(name, trace)
        folders |= _write_trace(bare, trace, workspace, f"traces/{name}")
        figures[name] = stats_view.plain_run(stats.of_run(bare, trace.episodes))
    write_files(workspace / "figures", {f"{name}.json": _json(found) for name, found in figures.items()})
    known = {
        "evidence": evidence,
        "tasks": ", ".join(f"{task.task}, {task.steps} steps" for task in evidence.run.run.config.tasks),
        "attempts": shown,
        "older": len(evidence.attempts) - len(shown),
        "figures": {name: _summary(found) for name, found in figures.items()},
        "complaint": begin.complaint,
        "options": options,
        "minutes": minutes,
    }
    (workspace / "TASK.md").write_text(_TEMPLATES.get_template("task.j2").render(known), encoding="utf-8")
    return Place(given, folders, folder / "workspace")


def write_program(given: Path) -> None:
    """Write what every workspace needs to be worked in."""
    write_files(given / "etc", {name: text.encode() for name, text in view.etc().items()})
    write_files(given, {"bin/automem": view.launcher().encode(), INSIDE: Path(inside.__file__).read_bytes()})
    (given / "bin" / "automem").chmod(0o755)


def complaint_of(report: Report) -> str:
    """What the checker found, for whoever has to mend it."""
    lines = ["# What the checker found", "", "Mend every error; nothing is played before that.", ""]
    for finding in report.findings:
        place = finding.file + ("" if finding.line is None else f":{finding.line}")
        lines.append(f"- {finding.severity}: candidate/{place}: {finding.message} ({finding.code})")
        lines.append(f"  do: {finding.do}")
    return "\n".join([*lines, *(["", "```", report.traceback, "```"] if report.traceback else []), ""])


def complaint_about(problems: Sequence[str]) -> str:
    """Why what was left cannot be used, for whoever has to mend it."""
    return "\n".join(["# Why this cannot be used", "", *(f"- {problem}" for problem in problems), ""])


def _bare(name: str, trace: RunTrace) -> Run:
    """The run as if only the episodes that may be seen had been planned: its plan would tell the other seeds."""
    seen = {(episode.task, episode.seed) for episode in trace.episodes}
    tasks = [
        task.model_copy(update={"seeds": tuple(seed for seed in task.seeds if (task.task, seed) in seen)})
        for task in trace.run.config.tasks
    ]
    config = trace.run.config.model_copy(update={"name": name, "tasks": tuple(task for task in tasks if task.seeds)})
    return replace(trace.run, config=config)


def _write_trace(bare: Run, trace: RunTrace, workspace: Path, place: str) -> dict[str, Path]:
    """Write what a run is without its episodes; path in the workspace -> folder of each episode.

    An empty folder is made for each: what is read-only gets no new one.
    """
    write_files(workspace / place, {RUN: bare.config.as_toml().encode()})
    for played in bare.config.scaffolds.values():
        if (bare.folder / played.folder).is_dir():
            write_files(workspace / place / played.folder, contents(bare.folder / played.folder).sources)
    folders = {}
    for episode in trace.episodes:
        shown = f"{place}/{episode.folder.relative_to(bare.folder).as_posix()}"
        (workspace / shown).mkdir(parents=True)
        folders[shown] = episode.folder.resolve()
    return folders


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)


def _summary(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures that are compared at a glance: name -> number."""
    overall = figures["summary"]["overall"]
    numbers = {name: value for name, value in overall["behaviour"].items() if isinstance(value, int | float)}
    return {"episodes": len(figures["episodes"]), "progression": overall["progression"] or 0.0, **numbers}


def _manual() -> bytes:
    """How scaffolds are written: the project's own, not that of a working folder."""
    for root in reversed(scaffold.roots()):
        if (root / "README.md").is_file():
            return (root / "README.md").read_bytes()
    return b"The manual of scaffolds is not installed here.\n"
