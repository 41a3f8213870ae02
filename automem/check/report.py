"""What a check found: plain data, for people (`automem.check.show`) and for programs (`Report.as_dict`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from automem.vocabulary import one_line

Severity = Literal["error", "warning"]

_LONGEST = 600
"""Characters of one text of a finding: what it quotes comes from the scaffold and may be anything."""

MOST_OF_A_KIND = 50
"""Findings of one code in one file that are listed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a scaffold that has to be mended, or that its author should know.

    Attributes:
        file: relative to the scaffold's folder; empty for the folder as a whole.
        line: from 1; None where it belongs to no line.
        severity: "error": it cannot be played, or breaks what every scaffold promises; "warning": it can be played.
        code: stable name of the kind of finding, such as ``template-variable``.
        message: what is wrong, in one line.
        do: what to do, in one line.
    """

    file: str
    line: int | None
    severity: Severity
    code: str
    message: str
    do: str

    def __post_init__(self) -> None:
        for name in ("file", "message", "do"):
            object.__setattr__(self, name, one_line(getattr(self, name), _LONGEST))


def error(file: str, line: int | None, code: str, message: str, do: str) -> Finding:
    """A finding that makes the scaffold unusable."""
    return Finding(file, line, "error", code, message, do)


def warning(file: str, line: int | None, code: str, message: str, do: str) -> Finding:
    """A finding that its author should know."""
    return Finding(file, line, "warning", code, message, do)


@dataclass(frozen=True, slots=True)
class Report:
    """What a check of a scaffold found.

    Attributes:
        ref: as it was asked for.
        folder: the scaffold's folder.
        identity: SHA-256 of its files; None where they could not all be read.
        findings: by file and line, each once.
        checked: what was looked at, in a few words each.
        skipped: what was not, and why.
        figures: what the smoke episode showed: name -> number; empty when none was played.
        traceback: of an exception in the smoke episode that is a defect of AutoMem; empty when there was none.
    """

    ref: str
    folder: Path
    identity: str | None
    findings: tuple[Finding, ...]
    checked: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    traceback: str = ""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make the scaffold unusable."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The other findings."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    @property
    def ok(self) -> bool:
        """Whether the scaffold can be used: there is no error."""
        return not self.errors

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "ref": self.ref,
            "folder": str(self.folder),
            "identity": self.identity,
            "ok": self.ok,
            "errors": len(self.errors),
            "warnings": len(self.warnings),
            "findings": [asdict(finding) for finding in self.findings],
            "checked": list(self.checked),
            "skipped": list(self.skipped),
            "figures": dict(self.figures),
            "traceback": self.traceback,
        }


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, by file and line; of one code in one file no more than a person would read."""
    unique = {(f.file, f.line, f.code, f.message): f for f in findings}.values()
    kept: list[Finding] = []
    counts: dict[tuple[str, str], int] = {}
    for finding in sorted(unique, key=lambda f: (f.file, f.line or 0)):
        kind = (finding.file, finding.code)
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= MOST_OF_A_KIND:
            kept.append(finding)
        elif counts[kind] == MOST_OF_A_KIND + 1:
            kept.append(replace(finding, message=f"{finding.message} (and more like this, not listed)"))
    return tuple(kept)
