"""What ``scaffolds/README.md`` shows is what holds: its hooks can be played, its limits are the defaults."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from automem import scaffold
from automem.check import check
from automem.config import Config
from automem.sandbox import SandboxConfig
from tests.versions import write_version

README = (Path(__file__).parents[1] / "scaffolds" / "README.md").read_text(encoding="utf-8")


def example(language: str, beginning: str) -> str:
    """The one block of code in the README that begins so."""
    blocks = README.split(f"\n```{language}\n")[1:]
    (found,) = (block.partition("\n```")[0] for block in blocks if block.startswith(beginning))
    return found + "\n"


def test_its_hooks_can_be_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = scaffold.load("crafter/v0")
    made = write_version("crafter/readme", root.identity, changes={"hooks.py": example("python", "from automem.hooks")})
    with (made.folder / "scaffold.toml").open("a") as file:
        file.write('\n[hooks]\nshows = ["warnings"]\n')
        file.write('\n[[files]]\nname = "status.txt"\nkind = "note"\ndescribe = "kept current"\n')
    with (made.folder / "prompts" / "plan.j2").open("a") as file:
        file.write("\n{{ hooks.warnings }}\n")
    found = check(str(made.folder), smoke=True, unsafe=True)
    assert found.findings == () and found.skipped == ()
    assert found.figures["hook_operations"] > 20 and found.figures["hook_failures"] == 0


def test_its_limits_are_the_defaults() -> None:
    shown = Config.model_validate(tomllib.loads(example("toml", "[sandbox]")))
    assert shown.sandbox == SandboxConfig()
    assert shown.sandbox.model_fields_set == set(SandboxConfig.model_fields) - {"unsafe"}  # no file can set that
