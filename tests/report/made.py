"""Runs to report on, made in moments."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import games
from automem import runs
from automem.episode import RESULT, EpisodeResult, write_json
from automem.metrics import Counts
from automem.report.episode import Packed
from automem.runs import PlannedTask, PlayedModel, PlayedScaffold, Run, RunConfig
from automem.scaffold import Scaffold


def run_of(
    name: str,
    loaded: Scaffold,
    seeds: tuple[int, ...] = (5,),
    steps: int = 100,
    task: str = "Crafter",
    model: str = "fixed",
) -> Run:
    """A run in the runs folder, of which nothing was played yet."""
    game = games.game_of(task)
    config = RunConfig(
        name=name,
        target=task,
        created=runs.now(),
        model=PlayedModel(name=model),
        scaffolds={game: PlayedScaffold(ref=loaded.ref, identity=loaded.identity, folder="scaffolds/played")},
        tasks=(PlannedTask(task=task, seeds=seeds, steps=steps),),
        versions=runs.versions(),
    )
    return runs.create(config, {game: loaded})


def finish(folder: Path, progression: float = 0.5, observation: str = "the end", scaffold: str = "0" * 64) -> None:
    """Write an ``episode.json`` beside a trace."""
    result = EpisodeResult(
        task=folder.parent.name, seed=int(folder.name.removeprefix("seed-")), steps_limit=100, steps=10,
        progression=progression, achievements={"wood": 3}, reached_at={"wood": 3}, episode_return=1.0,
        terminated=False, truncated=True, facts={}, scaffold=scaffold, model="fixed",
        counts=Counts(steps=10, stuck=2), final_observation=observation,
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / RESULT, {**asdict(result), "counts": result.counts.as_dict()})


def unpacked(packed: str) -> Any:
    """What a compressed part of the page holds."""
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def steps_of(packed: Packed) -> list[dict[str, Any]]:
    """Everything that a report holds of an episode's steps, with the memory folder at each as ``folder``."""
    found = []
    for data in map(unpacked, packed.parts):
        files: dict[str, str] = data["memory"]
        for step in data["steps"]:
            files = _changed(files, step.get("memory", {}))
            found.append({**step, "folder": files})
    return found


def _changed(files: dict[str, str], changes: dict[str, Any]) -> dict[str, str]:
    made = dict(files)
    for name, change in changes.items():
        if change is None:
            del made[name]
        elif isinstance(change, str):
            made[name] = change
        else:
            lines = made[name].split("\n")
            for at, gone, come in reversed(change):
                lines[at : at + gone] = come
            made[name] = "\n".join(lines)
    return made


class Page(HTMLParser):
    """A page as a browser reads it.

    Attributes:
        tags: how often each element occurs.
        attributes: names of all attributes.
        texts: visible text, piece by piece.
        scripts: id or type -> contents of script elements.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.attributes: dict[str, list[str]] = {}
        self.texts: list[str] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")
        if tag in ("script", "style"):
            given = dict(attrs)
            self._script = given.get("id") or given.get("type") or tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is None:
            self.texts.append(data)
        else:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data

    @property
    def text(self) -> str:
        """All visible text."""
        return " ".join(" ".join(self.texts).split())
