"""Scaffolds that are wrong in one thing: copies of crafter/v0, edited."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from automem.check import Finding, check

ROOT = Path(__file__).resolve().parents[2] / "scaffolds"

HOOKS_TOML = '\n[hooks]\nshows = ["hint"]\n'


class Broken:
    """A copy of a version that a test may edit."""

    def __init__(self, folder: Path, ref: str = "crafter/v0") -> None:
        self.folder = folder / ref
        shutil.copytree(ROOT / ref, self.folder)

    def change(self, file: str, old: str, new: str) -> Broken:
        """Replace a text that stands in a file once."""
        path = self.folder / file
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new))
        return self

    def write(self, file: str, text: str | bytes) -> Broken:
        """Write a file anew."""
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return self

    def add(self, file: str, text: str) -> Broken:
        """Add at the end of a file."""
        return self.write(file, (self.folder / file).read_text() + text)

    def hooks(self, body: str, shows: bool = True) -> Broken:
        """Write a ``hooks.py`` with these methods (indented by four), and show its text ``hint``."""
        lines = ["from automem.hooks import *", "", "", "class Hooks:", *body.strip("\n").splitlines()]
        self.write("hooks.py", "\n".join(lines) + "\n")
        if shows:
            self.add("scaffold.toml", HOOKS_TOML)
            self.change("prompts/plan.j2", "{{ observation }}", "{{ hooks.hint }}\n{{ observation }}")
        return self

    def line(self, file: str, text: str) -> int:
        """The line on which a text stands first."""
        lines = (self.folder / file).read_text().splitlines()
        return next(i for i, line in enumerate(lines, 1) if text in line)

    def found(self, smoke: bool = False) -> Sequence[Finding]:
        """What the check says."""
        return check(str(self.folder), smoke=smoke).findings

    def only(self, code: str, smoke: bool = False) -> Finding:
        """The one thing that the check says; fails when it says anything else."""
        findings = self.found(smoke)
        assert [finding.code for finding in findings] == [code], findings
        return findings[0]
