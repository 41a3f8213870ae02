"""Everything that is wrong with a scaffold, at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from automem import lineage, scaffold
from automem.check import code, folder, initial, messages, schema, sense
from automem.check.folder import FILES, HOOKS, PROMPTS, TOML, Contents
from automem.check.report import Finding, Report, error, in_order, warning
from automem.check.schema import SchemaRead
from automem.check.templates import Templates
from automem.scaffold import Scaffold
from games import registry

_UNREADABLE = frozenset({"toml", "not-a-file", "file-too-large", "unreadable", "too-many-files"})
"""Codes of errors with which loading is not even tried."""

_MOST_VERSIONS = 500
"""Folders beside a scaffold that are looked through for its parent."""


def check(ref: str, *, smoke: bool = True, unsafe: bool = False) -> Report:
    """Check a scaffold, whatever is in it.

    Args:
        ref: ``game/version`` or a folder.
        smoke: play a short episode with `scripted`, if the scaffold can be loaded.
        unsafe: run its hooks even where nothing can contain them.

    Raises:
        ScaffoldError: there is no scaffold of that name.
        UserError: no scaffold's doing: the configuration is wrong, or the disk is full.
    """
    where = scaffold.find(ref)
    found = folder.contents(where)
    read = schema.read(found.texts.get(TOML))
    findings = [*found.findings, *read.findings]
    findings += _schema(read, found)
    findings += _identity(where, read, found)
    findings += _templates(read, found)
    checked = ["files", TOML, "templates"]
    if HOOKS in found.texts:
        findings += code.findings(found.texts[HOOKS], read)
        checked.append(HOOKS)
    figures: Mapping[str, float] = {}
    traceback = ""
    skipped: list[str] = []
    loaded = _loaded(where, findings)
    if loaded is not None and smoke:
        from automem.check import smoke as smoke_episode  # models, games and processes: only where they are used

        played = smoke_episode.play(loaded, unsafe)
        findings += played.findings
        figures, traceback = played.figures, played.traceback
        (skipped if played.skipped else checked).append(played.skipped or "a smoke episode")
    elif smoke:
        skipped.append("a smoke episode: mend the errors first")
    return Report(ref, where, found.identity, in_order(findings), tuple(checked), tuple(skipped), figures, traceback)


def _loaded(where: Path, findings: list[Finding]) -> Scaffold | None:
    """The scaffold as it would be played; None when it cannot be, which is a finding if there was no error yet."""
    if any(finding.severity == "error" and finding.code in _UNREADABLE for finding in findings):
        return None
    try:
        return scaffold.load(str(where.resolve()))
    except Exception as wrong:  # whatever it was: a check says what is wrong with a scaffold, and never raises for it
        if not any(finding.severity == "error" for finding in findings):
            findings.append(error("", None, "load", f"{type(wrong).__name__}: {wrong}", "mend what it names"))
        return None


def _schema(read: SchemaRead, found: Contents) -> Iterator[Finding]:
    """What the schema says, where nothing that it depends on had to be left out."""
    valid, positions = read.schema, read.positions
    if not read.wrong & {"ops", "files"}:
        yield from sense.operations(valid, positions, HOOKS in found.sources)
    if read.own_known and "hooks" not in read.wrong:
        yield from sense.own_operations(valid, positions, HOOKS in found.sources)
    if not read.wrong & {"limits", "files"}:
        yield from sense.files(valid, positions)
        yield from sense.costs(valid, positions)
        yield from initial.findings(valid, found.below(FILES), positions)


def _templates(read: SchemaRead, found: Contents) -> Iterator[Finding]:
    valid = read.schema
    known = "hooks" not in read.wrong
    templates = Templates(found.below(PROMPTS), valid.limits.model_dump(), valid.hooks.shows, known=known)
    yield from templates.findings
    yield from messages.findings(templates, valid, known="ops" not in read.wrong)
    for i, name in enumerate(valid.hooks.shows):
        if known and templates.shown is not None and name not in templates.shown:
            line = read.positions.line(("hooks", "shows", i))
            do = f"show {{{{ hooks.{name} }}}} in log.j2 or plan.j2, or remove it"
            yield warning(TOML, line, "text-not-shown", f"no template shows the text {name}", do)
    pinned = [i for i, file in enumerate(valid.files) if file.pin]
    if pinned and "files" not in read.wrong and not messages.shows_pinned(templates, valid):
        line = read.positions.line(("files", pinned[0], "pin"))
        message = f"{valid.files[pinned[0]].name} is pinned, and no template shows pinned files"
        yield warning(TOML, line, "pin-not-shown", message, "show {{ pinned }} in log.j2 and plan.j2")


def _identity(where: Path, read: SchemaRead, found: Contents) -> Iterator[Finding]:
    """Whether the scaffold is what it says it is: its name, its game, its parent."""
    if "scaffold" in read.wrong:
        return
    identity, positions = read.schema.scaffold, read.positions
    name = where.resolve().name
    if identity.version != name:
        message = f"it calls itself {identity.version}, and its folder {name}"
        do = f'write version = "{name}", or rename the folder'
        yield warning(TOML, positions.line(("scaffold", "version")), "version-name", message, do)
    if identity.game not in {registry.game_of(task) for task in registry.tasks()}:
        message = f"no task here belongs to the game {identity.game}"
        do = "mend the name, or install the package that adds the game"
        yield warning(TOML, positions.line(("scaffold", "game")), "unknown-game", message, do)
    if not identity.parent:
        return
    line = positions.line(("scaffold", "parent"))
    if identity.parent == found.identity:
        yield error(TOML, line, "parent", "it is its own parent", "put the identity of the version it was made from")
    elif identity.parent not in _known(where):
        message = f"its parent {identity.parent[:12]} is none of the versions here"
        do = "put the identity of the version it was made from there; automem scaffold show REF prints a version's"
        yield warning(TOML, line, "parent", message, do)


def _known(where: Path) -> Iterator[str]:
    """Identities of the versions beside a folder, whether or not they load, and of all in the lineage."""
    for path in islice(where.resolve().parent.glob("*/scaffold.toml"), _MOST_VERSIONS):
        identity = folder.contents(path.parent).identity
        if identity is not None:
            yield identity
    yield from lineage.read().versions
