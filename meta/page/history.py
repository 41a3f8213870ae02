"""What a loop has done so far, read once from its folder: versions, attempts, and what each came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from automem.errors import UserError
from automem.scaffold import Scaffold
from meta import storage
from meta.evidence import Attempt
from meta.page.played import Played, played
from meta.storage import LoopFolder


@dataclass(frozen=True, slots=True)
class Version:
    """A version that was played on as a parent or could have been: the first one, or one that was accepted.

    Attributes:
        identity: SHA-256 of its files.
        name: "root", or the number of the attempt that made it.
        ref: ``game/version``.
        scaffold: its files.
        attempt: what made it; None for the root.
        gate: its episodes on gate seeds; None when there are none.
    """

    identity: str
    name: str
    ref: str
    scaffold: Scaffold
    attempt: Attempt | None
    gate: Played | None


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt that is not over: its number, and what it is known to change."""

    number: str
    description: str


@dataclass(frozen=True, slots=True)
class History:
    """A loop.

    Attributes:
        loop: its folder.
        attempts: those that are over, in order.
        begun: those that are not.
        versions: the first one and the accepted ones, in order.
        result: ``result.json``; None while the loop is not over.
        gate: identity -> episodes on gate seeds, of every version that has any.
        held_out: the same on held-out seeds.
    """

    loop: LoopFolder
    attempts: tuple[Attempt, ...]
    begun: tuple[Begun, ...]
    versions: tuple[Version, ...]
    result: Mapping[str, Any] | None
    gate: Mapping[str, Played]
    held_out: Mapping[str, Played]

    def version(self, identity: str) -> Version | None:
        """The version of this identity, if it is one of `versions`."""
        return next((version for version in self.versions if version.identity == identity), None)

    @property
    def best(self) -> Version | None:
        """What the loop found, when it is over."""
        return None if self.result is None else self.version(self.result["best"]["identity"])


def read(loop: LoopFolder) -> History:
    """Read a loop, over or not. Raises `UserError` for what is damaged."""
    attempts = tuple(loop.attempts())
    root, result = loop.root(), loop.result()
    identities = dict.fromkeys([root.identity, *(a.identity for a in attempts if a.identity)])
    gate = {i: found for i in identities if (found := played(loop, i, "gate")) is not None}
    held_out = {i: found for i in identities if (found := played(loop, i, "held-out")) is not None}
    versions = [Version(root.identity, "root", root.ref, root, None, gate.get(root.identity))]
    for attempt in _accepted(attempts, result):
        made = _loaded(attempt)
        if made is not None:
            versions.append(Version(made.identity, attempt.number, made.ref, made, attempt, gate.get(made.identity)))
    return History(loop, attempts, _begun(loop, attempts), tuple(versions), result, gate, held_out)


def _accepted(attempts: Sequence[Attempt], result: Mapping[str, Any] | None) -> list[Attempt]:
    """Those that became versions: of several accepted side by side the loop goes on with one."""
    found = [attempt for attempt in attempts if attempt.outcome == "accepted"]
    if result is None:
        return found
    kept = {version["identity"] for version in result["accepted"]}
    return [attempt for attempt in found if attempt.identity in kept]


def _loaded(attempt: Attempt) -> Scaffold | None:
    try:
        return attempt.scaffold()
    except (UserError, OSError):
        return None


def _begun(loop: LoopFolder, attempts: Sequence[Attempt]) -> tuple[Begun, ...]:
    over = {attempt.number for attempt in attempts}
    found = []
    for folder in sorted((loop.folder / "attempts").glob("*.*.*")):
        if folder.name not in over:
            kept = storage.read_json(folder / storage.REVISION)
            found.append(Begun(folder.name, str(kept["description"]) if kept else ""))
    return tuple(found)
