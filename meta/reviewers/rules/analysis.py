"""What a revision says about itself: figures, what changes, why."""

from __future__ import annotations

import json
from collections.abc import Sequence

from meta.reviewers.rules.findings import FileFigures, Measured
from meta.reviewers.rules.proposal import Proposal


def analysis(measured: Measured, proposal: Proposal, goes_on: str, dropped: Sequence[tuple[Proposal, str]]) -> str:
    """Markdown: measured figures, the change and its reason, and what was proposed first and could not be made."""
    parts = [
        "## Measured",
        _play(measured),
        _files(measured),
        "## What changes",
        f"{proposal.change}.",
        "## Why",
        proposal.reason,
    ]
    if goes_on:
        parts.append(goes_on)
    if dropped:
        parts += ["## Proposed first, and dropped", "\n".join(f"- {p.name}: {problem}" for p, problem in dropped)]
    parts.append(f"`{proposal.name}` {json.dumps(dict(proposal.parameters), sort_keys=True)}")
    return "\n\n".join(parts) + "\n"


def _play(measured: Measured) -> str:
    rates = measured.rates
    rows = [
        ("progression", f"{100 * measured.progression:.1f} %"),
        ("steps that changed nothing", f"{rates['stuck_share']:.1%}"),
        ("steps to and fro", f"{rates['oscillating_share']:.1%}"),
        ("actions that the game does not have, a step", f"{rates['invalid_per_step']:.3f}"),
        ("writes that told a file the same again", f"{rates['duplicate_write_share']:.1%}"),
        ("searches that found nothing", f"{rates['empty_search_share']:.1%}"),
        ("bytes that memory grew by, a step", f"{rates['added_bytes_per_step']:.1f}"),
        ("results that were cut, a step", f"{rates['truncated_reads_per_step']:.2f}"),
        ("replies a step, LOG and PLAN", f"{rates['log_turns_per_step']:.2f} and {rates['plan_turns_per_step']:.2f}"),
        ("prompt tokens a step", f"{rates['prompt_tokens_per_step']:.0f}"),
    ]
    head = f"{measured.episodes} episodes, {measured.steps} steps.\n\n| | |\n|---|---|\n"
    return head + "\n".join(f"| {name} | {value} |" for name, value in rows)


def _files(measured: Measured) -> str:
    used = [file for file in measured.files.values() if file.writes or file.consulted or file.end_bytes]
    if not used:
        return "No memory file was used."
    head = (
        "| file | writes a step | duplicates | told before | bytes a step | at the end | read at | cut a step "
        "| searches a step, without a line |\n|---|---|---|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(_file(file, measured) for file in used)


def _file(file: FileFigures, measured: Measured) -> str:
    cells = [
        file.name,
        f"{measured.per_step(file.writes):.2f}",
        f"{file.duplicate_share:.0%}",
        f"{file.repeated:.0%}",
        f"{measured.per_step(file.added_bytes):.1f}",
        f"{file.end_bytes:.0f}",
        f"{file.read_steps:.0%}",
        f"{measured.per_step(file.truncated):.2f}",
        f"{measured.per_step(file.searches):.1f}, {file.nothing / max(1, file.searches):.0%}",
    ]
    return "| " + " | ".join(cells) + " |"
