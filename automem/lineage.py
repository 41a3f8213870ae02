"""Versions of scaffolds: which are known here, which was made from which, and which runs played them.

A version is known by its identity, the SHA-256 of its files. Its ``scaffold.toml`` holds the identity of
its parent, and runs hold copies of what they played, so the lineage can be told even of versions whose
folder has since been changed or removed.

A version is immutable once it has been evaluated: results name its hash, and a name that means other
files today than in a run would tie figures to the wrong scaffold. `check_unchanged` refuses that.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from automem import runs, scaffold
from automem.errors import UserError
from automem.runs import Run
from automem.scaffold import Scaffold, ScaffoldError

SHORT = 12
"""Hex digits of an identity where it is shown in short."""

_PREFIX = re.compile(r"[0-9a-f]{8,64}", re.IGNORECASE)


@dataclass(frozen=True)
class Version:
    """A version of a scaffold that is known here.

    Attributes:
        ref: ``game/version``.
        identity: SHA-256 of its files, 64 hex digits.
        parent: identity of its parent; empty for a root; None when its files cannot be read any more.
        place: the folder that holds its files.
        current: that folder lies under a scaffold root, so that the version can be played by name.
        runs: the runs that played exactly these files, the latest first.
        problem: why its files cannot be read; empty when they can.
        loaded: it, as its files say; None when they cannot be read.
    """

    ref: str
    identity: str
    parent: str | None
    place: Path
    current: bool
    runs: tuple[Run, ...] = ()
    problem: str = ""
    loaded: Scaffold | None = field(default=None, compare=False, repr=False)

    @property
    def may_have_code(self) -> bool:
        """It has a ``hooks.py``, or nobody can tell."""
        return self.loaded is None or self.loaded.hooks is not None

    @property
    def game(self) -> str:
        """The game that it plays."""
        return self.ref.partition("/")[0]

    @property
    def short(self) -> str:
        """The first digits of the identity."""
        return self.identity[:SHORT]


@dataclass(frozen=True)
class Broken:
    """A folder under a scaffold root that does not load."""

    ref: str
    place: Path
    problem: str


@dataclass(frozen=True)
class Lineage:
    """All versions that are known: those under the scaffold roots, and those that runs have kept.

    Attributes:
        versions: by identity; those that can be played by name first, then those known from runs.
        broken: folders under the roots that do not load.
    """

    versions: Mapping[str, Version]
    broken: tuple[Broken, ...] = ()

    def of(self, game: str) -> list[Version]:
        """The versions of one game."""
        return [version for version in self.versions.values() if version.game == game]

    def games(self) -> list[str]:
        """The games that any version plays, sorted."""
        return sorted({version.game for version in self.versions.values()})

    @cached_property
    def _children(self) -> Mapping[str, list[Version]]:
        found: dict[str, list[Version]] = {}
        for version in self.versions.values():
            if version.parent:
                found.setdefault(version.parent, []).append(version)
        return found

    def children(self, identity: str) -> list[Version]:
        """The versions made from this one."""
        return self._children.get(identity, [])

    def ancestors(self, identity: str, parent: str | None = None) -> list[str]:
        """Identities from the parent up, as far as they are known; the last may be one that is not known here.

        Args:
            identity: where to begin; it need not be known here if `parent` is given.
            parent: its parent, when the version is not one of `versions`.
        """
        if parent is None:
            parent = self._parent(identity)
        found: list[str] = []
        while parent and parent not in found and parent != identity:
            found.append(parent)
            parent = self._parent(parent)
        return found

    def _parent(self, identity: str) -> str:
        version = self.versions.get(identity)
        return (version.parent or "") if version else ""

    def name(self, identity: str) -> str:
        """The version's ref with its short identity, or the short identity alone."""
        version = self.versions.get(identity)
        return f"{version.ref} ({version.short})" if version else identity[:SHORT]


def read(found: Sequence[Run] | None = None) -> Lineage:
    """All versions under the scaffold roots and in the runs folder.

    Args:
        found: the runs, when they have been read already.
    """
    found = runs.all_runs() if found is None else found
    played_by: dict[str, list[Run]] = {}
    for run in found:
        for played in run.config.scaffolds.values():
            played_by.setdefault(played.identity, []).append(run)
    versions: dict[str, Version] = {}
    broken: list[Broken] = []
    for folder in _folders():
        named = f"{folder.parent.name}/{folder.name}"
        try:
            loaded = scaffold.load(str(folder))
        except (ScaffoldError, OSError) as error:
            broken.append(Broken(named, folder, str(error)))
            continue
        versions.setdefault(loaded.identity, _version(loaded, True, played_by.get(loaded.identity, ())))
    for run in found:
        for played in run.config.scaffolds.values():
            if played.identity not in versions:
                versions[played.identity] = _kept(run, played, played_by[played.identity])
    return Lineage(versions, tuple(broken))


def _folders() -> list[Path]:
    return [toml.parent for root in scaffold.roots() for toml in sorted(root.glob("*/*/scaffold.toml"))]


def _version(loaded: Scaffold, current: bool, played_by: Iterable[Run]) -> Version:
    parent = loaded.schema.scaffold.parent
    return Version(loaded.ref, loaded.identity, parent, loaded.folder, current, tuple(played_by), loaded=loaded)


def _kept(run: Run, played: runs.PlayedScaffold, played_by: Sequence[Run]) -> Version:
    """A version that only runs have: read from the first copy that is still what its run says."""
    problem = ""
    for keeper in (run, *(other for other in played_by if other is not run)):
        for copy in keeper.config.scaffolds.values():
            if copy.identity != played.identity:
                continue
            folder = keeper.folder / copy.folder
            try:
                loaded = scaffold.load(str(folder))
            except (ScaffoldError, OSError) as error:
                problem = problem or str(error)
                continue
            if loaded.identity == played.identity:
                return _version(loaded, False, played_by)
            problem = problem or f"{folder} was changed since the run began"
    return Version(
        played.ref, played.identity, None, run.folder / played.folder, False, tuple(played_by), problem or "no copy"
    )


def changed_since_evaluated(version: Scaffold | Version, found: Sequence[Run] | None = None) -> list[Run]:
    """Runs that played another version under this one's name, the earliest first; none if it is as it was.

    A name belongs to the files that were evaluated first under it. Reads the ``run.toml`` of each run and
    nothing else; those that cannot be read are passed over.

    Args:
        version: as it is now; its ``game/version`` counts, wherever its folder is.
        found: the runs, when they have been read already.
    """
    identities = played_under(version.ref, runs.all_runs() if found is None else found)
    if not identities or version.identity == next(iter(identities)):
        return []
    return [run for identity, played in identities.items() if identity != version.identity for run in played]


def played_under(ref: str, found: Sequence[Run]) -> dict[str, list[Run]]:
    """Identities that runs played under a name, the one that was evaluated first leading, with those runs.

    Args:
        ref: ``game/version``.
        found: runs, the latest first, as `runs.all_runs` gives them.
    """
    identities: dict[str, list[Run]] = {}
    for run in reversed(found):
        for played in run.config.scaffolds.values():
            if played.ref == ref:
                identities.setdefault(played.identity, []).append(run)
    return identities


def check_unchanged(version: Scaffold, found: Sequence[Run] | None = None) -> None:
    """Refuse a version that was changed in place after it was evaluated. Raises `UserError`.

    Args:
        version: what is to be played. A run that is resumed needs no such check: it plays its own copy.
        found: the runs, when they have been read already.
    """
    changed = changed_since_evaluated(version, found)
    if changed:
        raise UserError(_told(version, changed))


def _told(version: Scaffold, changed: Sequence[Run]) -> str:
    """What happened and what to do about it."""
    ref, folder = version.ref, version.folder
    names = ", ".join(run.config.name for run in changed[:3]) + (" and others" if len(changed) > 3 else "")
    runs_ = "run" if len(changed) == 1 else "runs"
    lines = [
        f"{where(folder)}: {ref} has been evaluated with other files ({runs_} {names}), and an evaluated version does "
        "not change.",
        f"The files that were played are in {_kept_files(ref, changed)}.",
    ]
    if folder.name != version.schema.scaffold.version:
        lines.append(
            f"If this is a new version, its scaffold.toml still names the old one: set version = "
            f'"{folder.name}" and parent = "{_identity(changed[0], ref)}".'
        )
    else:
        lines += [
            "Make the changed files a version of their own, then put the old ones back:",
            f"  automem scaffold new {version.game}/NEWVERSION --from {shlex.quote(str(_reference(version)))}",
            f"  {how_to_restore(version, changed)}",
        ]
    lines.append("A run that was only a trial can be removed instead, with its folder.")
    return "\n".join(lines)


def told_unreadable(run: Path) -> str:
    """What a ``run.toml`` that cannot be read means for versions, in one line."""
    return (
        f"{where(run)} cannot be read, so what this run played is not known, and a version that was changed after it "
        "passes for unchanged; mend the file, or remove the run's folder"
    )


def how_to_restore(version: Scaffold, changed: Sequence[Run]) -> str:
    """The command that puts the files back that were evaluated; what notes.md says since stays.

    Args:
        version: one that was changed in place.
        changed: what `changed_since_evaluated` found.
    """
    folder, kept = (shlex.quote(str(path)) for path in (where(version.folder), _kept_files(version.ref, changed)))
    return f"find {folder} -mindepth 1 -not -name notes.md -delete && cp -rn {kept}/. {folder}"


def _kept_files(ref: str, changed: Sequence[Run]) -> Path:
    first = changed[0]
    return next(first.folder / played.folder for played in first.config.scaffolds.values() if played.ref == ref)


def where(folder: Path) -> Path:
    """A folder as a person would name it from the working folder."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _identity(run: Run, ref: str) -> str:
    return next(played.identity for played in run.config.scaffolds.values() if played.ref == ref)


def _reference(version: Scaffold) -> str | Path:
    """How to name it on the command line: its ref where that leads to its folder."""
    try:
        return version.ref if scaffold.find(version.ref) == version.folder else where(version.folder)
    except ScaffoldError:
        return where(version.folder)


def resolve(text: str) -> Scaffold:
    """Load a version however it is named (`locate`). Raises `UserError`."""
    return scaffold.load(str(locate(text)))


def locate(text: str) -> Path:
    """The folder of a version however it is named. Raises `UserError`.

    Args:
        text: ``game/version``; a folder; a run (``runs/NAME``) that played one scaffold; or the first
            digits of an identity, 8 or more, of any version that is known here.
    """
    with contextlib.suppress(ScaffoldError):
        return scaffold.find(text)
    run = _run(text)
    if run is not None:
        return _only_copy(text, run)
    if _PREFIX.fullmatch(text):
        return _by_identity(text.lower())
    known = ", ".join(scaffold.available()) or "none"
    raise ScaffoldError(
        f"no scaffold {text!r}. Name a version, a folder with a scaffold.toml, a run (runs/NAME), or the first 8 or "
        f"more digits of an identity. Versions: {known}"
    )


def _run(text: str) -> Run | None:
    folder = Path(text)
    if (folder / runs.RUN).is_file():
        return runs.load(text)
    if folder.parent == Path("runs") and runs.exists(folder.name):
        return runs.load(folder.name)
    return None


def _only_copy(text: str, run: Run) -> Path:
    copies = [run.folder / played.folder for played in run.config.scaffolds.values()]
    if len(copies) == 1:
        return copies[0]
    listed = ", ".join(map(str, copies))
    raise UserError(f"{text}: this run played {len(copies)} scaffolds; name one of them: {listed}")


def _by_identity(prefix: str) -> Path:
    fitting = [version for identity, version in read().versions.items() if identity.startswith(prefix)]
    if not fitting:
        raise UserError(f"no version known here has an identity that begins with {prefix}; see: automem scaffold log")
    if len(fitting) > 1:
        listed = ", ".join(f"{version.ref} {version.identity[:20]}" for version in fitting)
        raise UserError(f"{prefix}: several identities begin so: {listed}; give more digits")
    (version,) = fitting
    if version.problem:
        raise UserError(f"{version.ref} ({version.short}) is known from a run, but not readable: {version.problem}")
    return version.place
