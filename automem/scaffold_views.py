"""Versions of scaffolds for the terminal: as a table, one in full, and the lineage as a tree.

Everything that a scaffold says of itself is shown as it is written: a model may have written it, so
what does not print is shown by a sign that does, and nothing is taken for markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from automem import runs
from automem.lineage import SHORT, Lineage, Version, changed_since_evaluated, where
from automem.lineage_scores import Paired, Score, paired, scores
from automem.runs import Run
from automem.scaffold import Scaffold
from automem.scaffold_diff.code import hook_methods
from automem.scaffold_diff.memory_files import rules
from automem.visible import visible_lines
from automem.vocabulary import OPERATIONS

NAMED = 3
"""How many names a cell lists before it says how many more there are."""


def plain(text: object, style: str = "") -> Text:
    """Text that is shown as it is: no markup, and what does not print made visible."""
    return Text(visible_lines(str(text)), style=style)


def some(names: Sequence[str], most: int = NAMED) -> str:
    """The first few names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def operations(loaded: Scaffold) -> str:
    """How many operations there are: ``7 + 2 own``."""
    own = len(loaded.schema.ops.own)
    return f"{len(loaded.schema.ops.enabled)}" + (f" + {own} own" if own else "")


def kinds(loaded: Scaffold) -> str:
    """How many memory files of which kind: ``2 log, 1 note``."""
    return ", ".join(f"{n} {kind}" for kind, n in sorted(Counter(f.kind for f in loaded.schema.files).items())) or "-"


def table(lineage: Lineage, loaded: Sequence[tuple[Version, Scaffold]], changed: dict[str, list[Run]]) -> Table:
    """Versions that can be played by name, a line each.

    Args:
        lineage: what is known, for the names of parents.
        loaded: the versions to list, with their files.
        changed: identity -> runs that played other files under the same name.
    """
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("scaffold", "identity", "parent", "operations", "files", "hooks", "played by"):
        shown.add_column(heading, overflow="fold", no_wrap=heading == "identity")
    for version, files in loaded:
        parent = lineage.versions.get(version.parent or "")
        hooks = [name for name in hook_methods(files) if not name.startswith("op_")]
        name = plain(version.ref)
        folder = f"{version.place.parent.name}/{version.place.name}"
        if folder != version.ref:
            name.append(f"\nin {visible_lines(str(where(version.place)))}", style="yellow")
        if version.identity in changed:
            name.append("\nchanged after it was evaluated", style="bold red")
        shown.add_row(
            name,
            version.short,
            plain(parent.ref if parent else (version.parent or "-")[:SHORT]),
            operations(files),
            kinds(files),
            ", ".join(hooks) or "-",
            plain(some([run.config.name for run in version.runs]) or "-"),
        )
    return shown


def show(console: Console, loaded: Scaffold, lineage: Lineage, found: Sequence[Run]) -> None:
    """All about one version."""
    schema = loaded.schema
    version = lineage.versions.get(loaded.identity)
    console.print(plain(loaded.ref, "bold"), plain(f"in {where(loaded.folder)}", "dim"), soft_wrap=True)
    rows: list[tuple[str, Text]] = [("identity", plain(loaded.identity)), ("lineage", _descent(loaded, lineage))]
    changed = changed_since_evaluated(loaded, found)
    if changed:
        names = some([run.config.name for run in changed])
        rows.append(("changed", plain(f"after it was evaluated by {names}, which played other files", "bold red")))
    limits = {name: value for name, value in schema.limits.model_dump().items() if value is not None}
    rows.append(("limits", plain(", ".join(f"{name} {value}" for name, value in limits.items()))))
    rows.append(("operations", plain(", ".join(n for n in OPERATIONS if n in schema.ops.enabled))))
    for own in schema.ops.own:
        rows.append(("", plain(f"{own.name}: {own.reference}")))
    if loaded.hooks:
        rows.append(("hooks", plain(f"{', '.join(hook_methods(loaded)) or 'no method'}; {_size(loaded, 'hooks.py')}")))
        if schema.hooks.shows:
            rows.append(("they show", plain(", ".join(schema.hooks.shows))))
    prompts = [path for path in loaded.sources if path.startswith("prompts/")]
    rows.append(("prompts", plain("; ".join(f"{path[8:]} {_size(loaded, path)}" for path in prompts))))
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in rows:
        facts.add_row(name, text)
    console.print(facts)
    console.print(_memory_files(loaded))
    _print_scores(console, version, lineage)
    notes = loaded.sources.get("notes.md", b"").decode("utf-8", errors="replace").strip()
    console.print(Text("notes", style="bold"))
    console.print(Padding(plain(notes or "none"), (0, 0, 0, 2), expand=False))


def _size(loaded: Scaffold, path: str) -> str:
    data = loaded.sources[path]
    lines = data.count(b"\n")
    return f"{lines} lines, {len(data)} bytes"


def _descent(loaded: Scaffold, lineage: Lineage) -> Text:
    above = lineage.ancestors(loaded.identity, loaded.schema.scaffold.parent)
    if not above:
        return plain("a root")
    text = plain("made from " + ", from ".join(lineage.name(identity) for identity in above))
    if above[-1] not in lineage.versions:
        text.append(", which is not known here", style="yellow")
    return text


def _memory_files(loaded: Scaffold) -> Table:
    shown = Table(title="memory files", title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("name", "kind", "what belongs in it", "an entry", "begins with"):
        shown.add_column(name, overflow="fold")
    planned = {file.name for file in loaded.schema.files}
    for file in loaded.schema.files:
        initial = loaded.initial.get(file.name, "")
        begins = f"{len(initial)} characters" if initial else "nothing"
        shown.add_row(*map(plain, (file.name, rules(file), file.describe, file.entry, begins)))
    for name, text in loaded.initial.items():
        if name not in planned:
            shown.add_row(*map(plain, (name, "note", "", "", f"{len(text)} characters")))
    return shown


def _print_scores(console: Console, version: Version | None, lineage: Lineage) -> None:
    console.print(Text("scores", style="bold"))
    if version is None or not version.runs:
        console.print("  no run here has played it")
        return
    for line in _score_lines(version, lineage):
        console.print(Padding(line, (0, 0, 0, 2), expand=False))


def tree(lineage: Lineage, game: str, found: Sequence[Run]) -> tuple[Tree, int]:
    """The lineage of one game, with the scores of each version, and how deep it is."""
    versions = lineage.of(game)
    shown = Tree(Text(game, style="bold"), guide_style="dim")
    drawn: dict[str, int] = {}
    for root in [v for v in versions if not v.parent and v.parent is not None]:
        _grow(shown, root, lineage, found, drawn)
    unknown: dict[str, list[Version]] = {}
    for version in versions:
        if version.parent and version.parent not in lineage.versions:
            unknown.setdefault(version.parent, []).append(version)
    for parent, orphans in unknown.items():
        label = plain(f"{parent[:SHORT]}  not known here: neither under a scaffold root nor in a run", "yellow")
        branch = shown.add(label)
        for orphan in orphans:
            _grow(branch, orphan, lineage, found, drawn)
    lost = [version for version in versions if version.identity not in drawn and version.parent is None]
    if lost:
        branch = shown.add(Text("of unknown descent: their files cannot be read any more", style="yellow"))
        for version in lost:
            _grow(branch, version, lineage, found, drawn)
    # Hashes cannot be in a circle; a damaged copy's words can.
    circle = [version for version in versions if version.identity not in drawn]
    if circle:
        branch = shown.add(Text("each other's parents", style="yellow"))
        for version in circle:
            if version.identity not in drawn:
                _grow(branch, version, lineage, found, drawn)
    return shown, max(drawn.values(), default=0)


def _grow(branch: Tree, first: Version, lineage: Lineage, found: Sequence[Run], drawn: dict[str, int]) -> None:
    """Hang a version and all that was made from it under a branch, and note how deep each of them stands.

    Not recursive: lineages grow long.
    """
    waiting = [(branch, first, 1)]
    while waiting:
        above, version, depth = waiting.pop()
        if version.identity in drawn:
            continue
        drawn[version.identity] = depth
        node = above.add(_node(version, lineage, found))
        waiting += [(node, child, depth + 1) for child in reversed(lineage.children(version.identity))]


def _node(version: Version, lineage: Lineage, found: Sequence[Run]) -> Text:
    label = Text().append(visible_lines(version.ref), style="bold" if version.current else "")
    label.append(f"  {version.short}", style="cyan")
    if not version.current:
        label.append(f"  only in {visible_lines(str(where(version.place)))}", style="dim")
    if version.problem:
        label.append(f"\n{visible_lines(version.problem)}", style="red")
    others = _played_otherwise(version, found)
    if others:
        label.append(f"\nchanged after it was evaluated: {some(others)} played other files by this name", style="red")
    for line in _score_lines(version, lineage):
        label.append("\n").append_text(line)
    return label


def _played_otherwise(version: Version, found: Sequence[Run]) -> list[str]:
    """Runs that played other files under the name of a version that can be played by this name."""
    return [run.config.name for run in changed_since_evaluated(version, found)] if version.current else []


def _score_lines(version: Version, lineage: Lineage) -> Iterator[Text]:
    parent = lineage.versions.get(version.parent or "")
    above = scores(parent) if parent and version.runs else []
    for score in scores(version):
        yield _score_line(score, paired(score, above), parent)


def _score_line(score: Score, difference: Paired | None, parent: Version | None) -> Text:
    line = plain(f"{score.player} · {score.played}: ")
    line.append(visible_lines(score.figures), style="yellow" if score.problem else "green")
    line.append(visible_lines(f", run {score.run}"), style="dim")
    if score.remark:
        line.append(visible_lines(f" ({score.remark})"), style="yellow")
    if difference is not None and parent is not None:
        against = f"\n  against {parent.ref}: {difference.figures}"
        line.append(visible_lines(against), style="bold" if difference.clear else "")
    return line


def legend() -> str:
    """What the figures in a lineage are."""
    return (
        "Mean progression in % with its 95 % interval. Each run stands for itself; runs are not pooled. "
        f"Runs are read from {runs.runs_folder()}/."
    )
