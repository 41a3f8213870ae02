"""Taking what a loop found into ``scaffolds/``: the best version and its accepted ancestors, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from automem import scaffold
from automem.errors import UserError
from automem.scaffold import Scaffold
from meta import storage
from meta.evidence import Attempt
from meta.points import bounded
from meta.storage import LoopFolder

MEASURED = """
## Measured

{lines}

Made by loop `{loop}`.
"""


def adopt(loop: LoopFolder) -> list[Path]:
    """Copy the best version of a loop that is over, and the accepted versions between it and the root.

    Their identities stay as they are; what was measured is added to each ``notes.md``.

    Returns: the new folders, ancestors first; those that are there already with the same files are left alone.

    Raises `UserError` when the loop is not over, accepted nothing, or a name is taken by other files.
    """
    result = loop.result()
    name = loop.config.name
    if result is None:
        raise UserError(f"loop {name} is not over; go on with it: automem loop1 … --run {name} --resume")
    accepted = {attempt.identity: attempt for attempt in loop.attempts() if attempt.outcome == "accepted"}
    chain = _chain(result["best"]["identity"], accepted)
    if not chain:
        raise UserError(f"loop {name} accepted nothing, so there is nothing to adopt")
    targets = [_target(loop, attempt) for attempt in chain]
    for attempt, version, target in targets:
        if target.exists():
            continue
        files = dict(version.sources)
        notes = files.get("notes.md", b"").decode("utf-8", errors="replace").rstrip()
        last = attempt is chain[-1]
        files["notes.md"] = f"{notes}\n{_measured(loop, attempt, result if last else None)}".encode()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{target.parent}: cannot be made: {error.strerror}") from error
        storage.write_scaffold(target, files)
    return [target for _, _, target in targets]


def _chain(identity: str, accepted: dict[str, Attempt]) -> list[Attempt]:
    """The attempt that made a version and those that made its ancestors, the eldest first."""
    found: list[Attempt] = []
    while identity in accepted:
        found.append(accepted[identity])
        identity = accepted[identity].parent
    return found[::-1]


def _target(loop: LoopFolder, attempt: Attempt) -> tuple[Attempt, Scaffold, Path]:
    version = loop.version(attempt)
    target = Path("scaffolds") / version.ref
    if target.exists() and scaffold.load(str(target)).identity != version.identity:
        raise UserError(f"{target} is there already and holds other files; move it away, then adopt again")
    return attempt, version, target


def _measured(loop: LoopFolder, attempt: Attempt, result: dict[str, Any] | None) -> str:
    look = attempt.looks[-1]
    lines = [f"Against its parent on gate seeds: {bounded(look.mean, look.lower, look.upper)} over {look.seeds} seeds."]
    if result is not None and result["held_out"] is not None:
        overall = result["held_out"]["overall"]
        lower, upper = overall["interval"] or (None, None)
        lines.append(
            f"Against {loop.config.root.ref} on {overall['pairs']} held-out episodes: "
            f"{100 * overall['mean_a']:.1f} -> {100 * overall['mean_b']:.1f} %, "
            f"{bounded(overall['difference'], lower, upper)}."
        )
        if result["gap"]["flagged"]:
            lines.append("That is less than on the gate's seeds by more than chance explains.")
    lines.append(f"Task model: {loop.config.model.name}; at most {loop.config.steps} steps.")
    return MEASURED.format(lines="\n".join(_plain(lines)), loop=loop.config.name)


def _plain(lines: Sequence[str]) -> Sequence[str]:
    return [f"- {line}" for line in lines]
