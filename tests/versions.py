"""Versions of scaffolds and runs that played them, made in moments: nothing is played."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import games
from automem import runs, scaffold
from automem.episode import EpisodeJob, EpisodeResult
from automem.executor import Outcome
from automem.metrics import Counts
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold, Run, RunConfig
from automem.sandbox.limits import SandboxConfig
from automem.scaffold import Scaffold
from automem.summary import summarise

ROOT = Path(__file__).resolve().parent.parent / "scaffolds"


def write_version(
    ref: str, parent: str = "", game: str = "crafter", changes: Mapping[str, str] | None = None
) -> Scaffold:
    """A version in ./scaffolds, from the game's v0.

    Args:
        ref: its name.
        parent: its parent's identity.
        game: whose v0.
        changes: relative path -> text of files that differ.
    """
    folder = Path("scaffolds") / ref
    shutil.copytree(ROOT / game / "v0", folder)
    toml = (folder / "scaffold.toml").read_text()
    toml = re.sub('version = "v0"\nparent = ""', f'version = "{folder.name}"\nparent = "{parent}"', toml)
    (folder / "scaffold.toml").write_text(toml)
    for path, text in (changes or {}).items():
        (folder / path).write_text(text)
    return scaffold.load(str(folder))


def edit(loaded: Scaffold, old: str, new: str, path: str = "scaffold.toml") -> Scaffold:
    """The version with a text replaced in one of its files, in place."""
    file = loaded.folder / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return scaffold.load(str(loaded.folder))


def write_run(
    name: str,
    played: Scaffold,
    progressions: Mapping[int, float] | None,
    *,
    model: str = "openai/some-model",
    temperature: float = 0.0,
    steps: int = 100,
    created: str = "2026-01-01T00:00:00+00:00",
    seeds: tuple[int, ...] | None = None,
    call_seconds: float = 2.0,
) -> Run:
    """A run of Crafter that played a version: seed -> progression, or None when there is no summary yet."""
    config = RunConfig(
        name=name,
        target="crafter",
        created=created,
        model=PlayedModel(name=model, temperature=temperature),
        scaffolds={
            "crafter": PlayedScaffold(ref=played.ref, identity=played.identity, folder=f"scaffolds/{played.ref}")
        },
        tasks=(PlannedTask(task="Crafter", seeds=seeds or tuple(progressions or (42,)), steps=steps),),
        versions=games.versions(),
        sandbox=SandboxConfig(call_seconds=call_seconds),
    )
    run = runs.create(config, {"crafter": played})
    if progressions is not None:
        results = [_outcome(seed, value, steps) for seed, value in progressions.items()]
        (run.folder / runs.SUMMARY).write_text(json.dumps({"run": name, "model": model, **summarise(results)}))
    return run


def _outcome(seed: int, progression: float, steps: int) -> Outcome:
    job = EpisodeJob(Path("x"), "Crafter", seed, steps, Path("s"))
    counts = Counts(steps=steps)
    result = EpisodeResult(
        "Crafter", seed, steps, steps, progression, {}, {}, 0.0, False, True, {}, "id", "model", counts, "end"
    )
    return Outcome(job, result, None)
