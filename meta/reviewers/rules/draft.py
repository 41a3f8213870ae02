"""The candidate's files while they are edited: ``scaffold.toml``, templates, initial files, hooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Table

from automem import scaffold
from meta.reviewers.rules import hook_code

TOML = "scaffold.toml"
HOOKS = "hooks.py"
NOTES = "notes.md"


class CannotEdit(Exception):
    """The files are written in a way that this edit does not know; the text says which."""


class Draft:
    """A scaffold's files in memory; nothing reaches the disk before `save`."""

    def __init__(self, sources: Mapping[str, bytes], version: str, parent: str) -> None:
        """
        Args:
            sources: relative path -> bytes of the version to start from.
            version, parent: the candidate's own name, and its parent's identity.

        Raises `CannotEdit` when ``scaffold.toml`` cannot be edited.
        """
        self._texts = {path: data.decode("utf-8") for path, data in sources.items() if path != NOTES}
        try:
            self._document = tomlkit.parse(self._texts.pop(TOML))
            self._section("scaffold").update({"version": version, "parent": parent})
        except (TOMLKitError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CannotEdit(f"{TOML} cannot be edited: {error}") from error

    # scaffold.toml

    def limit(self, name: str, value: int) -> None:
        """Set one of ``[limits]``."""
        self._section("limits")[name] = value

    def enable(self, *names: str) -> None:
        """Let the model use these operations as well."""
        enabled = self._section("ops")["enabled"]
        for name in names:
            if name not in enabled:
                enabled.append(name)

    def disable(self, *names: str) -> None:
        """Take operations away."""
        enabled = self._section("ops")["enabled"]
        for name in names:
            if name in enabled:
                enabled.remove(name)

    def set_file(self, name: str, **fields: Any) -> None:
        """Change fields of a planned file; None removes one. Raises `CannotEdit` when it is not planned."""
        table = self._file(name)
        if table is None:
            raise CannotEdit(f"{name} is not planned in {TOML}")
        _set(table, fields)

    def rename_file(self, name: str, new: str) -> None:
        """Call a planned file otherwise, its initial contents and mentions in templates included."""
        table = self._file(name)
        if table is None:
            raise CannotEdit(f"{name} is not planned in {TOML}")
        table["name"] = new
        if f"files/{name}" in self._texts:
            self._texts[f"files/{new}"] = self._texts.pop(f"files/{name}")
        self.reword(name, new)

    def add_file(self, name: str, **fields: Any) -> None:
        """Plan another file, or plan it anew."""
        table = self._file(name)
        if table is None:
            table = tomlkit.table()
            table["name"] = name
            files = self._document.get("files")
            if not isinstance(files, AoT):
                if files:
                    raise CannotEdit(f"{TOML}: files are not written as [[files]]")
                files = tomlkit.aot()
                self._document["files"] = files
            if len(files):
                files[-1].add(tomlkit.nl())
            files.append(table)
        _set(table, fields)

    def remove_file(self, name: str) -> None:
        """No longer plan a file, nor give it contents."""
        files = self._document.get("files", [])
        for i, table in enumerate(files):
            if table.get("name") == name:
                del files[i]
                break
        self._texts.pop(f"files/{name}", None)

    def free_name(self, wanted: str) -> str:
        """A file name that is not taken: the wanted one, or it with a number."""
        stem, dot, end = wanted.rpartition(".")
        names = [wanted, *(f"{stem}_{i}{dot}{end}" for i in range(2, 100))]
        return next(name for name in names if self._file(name) is None and f"files/{name}" not in self._texts)

    def _file(self, name: str) -> Table | None:
        return next((table for table in self._document.get("files", []) if table.get("name") == name), None)

    def _section(self, name: str) -> Any:
        section = self._document.get(name)
        if section is None:
            section = tomlkit.table()
            # Before the files: a table after [[files]] is read as well, but not by people.
            items = list(self._document.items())
            later = {key: self._document.pop(key) for key, value in items if isinstance(value, AoT)}
            self._document[name] = section
            for key, value in later.items():
                self._document[key] = value
        return section

    # prompts

    def tell(self, title: str, text: str) -> None:
        """Say something in the system message, under a title of its own; instead of what stood there before."""
        path = "prompts/system.j2"
        section = f"# {title}\n{_quoted(text)}\n"
        old = re.compile(rf"^# {re.escape(title)}\n.*?(?=^# |\Z)", re.M | re.S)
        before = self._text(path)
        if old.search(before):
            self._texts[path] = old.sub(lambda _: f"{section}\n", before, count=1).rstrip("\n") + "\n"
        else:
            self._texts[path] = f"{before.rstrip()}\n\n{section}"

    def reword(self, old: str, new: str) -> bool:
        """Replace words in the templates, white space aside; whether they were there."""
        wanted = re.compile(r"\s+".join(map(re.escape, old.split())))
        found = False
        for path in [path for path in self._texts if path.startswith("prompts/")]:
            self._texts[path], times = wanted.subn(lambda _: new, self._texts[path])
            found = found or times > 0
        return found

    def show_pinned(self) -> None:
        """See to it that LOG and PLAN show pinned files."""
        self._show("pinned", "{% if pinned %}\n\n{{ pinned }}\n{% endif %}")

    def show_hook(self, name: str) -> None:
        """See to it that LOG and PLAN show a text of hooks, when there is one."""
        hooks = self._section("hooks")
        shows = hooks.setdefault("shows", [])
        if name not in shows:
            shows.append(name)
        self._show(f"hooks.{name}", f"{{% if hooks.{name} %}}\n\n{{{{ hooks.{name} }}}}\n{{% endif %}}")

    def _show(self, variable: str, block: str) -> None:
        for path in ("prompts/log.j2", "prompts/plan.j2"):
            text = self._text(path)
            if re.search(rf"\{{\{{[^}}]*\b{re.escape(variable)}\b", text) is None:
                self._texts[path] = f"{text.rstrip()}\n{block}\n"

    def in_hooks(self, name: str) -> bool:
        """Whether the code names something."""
        return name in self._texts.get(HOOKS, "")

    def _text(self, path: str) -> str:
        if path not in self._texts:
            raise CannotEdit(f"there is no {path}")
        return self._texts[path]

    # files and hooks

    def initial(self, name: str, text: str) -> None:
        """What a memory file holds at the start of an episode."""
        self._texts[f"files/{name}"] = text if text.endswith("\n") else f"{text}\n"

    def add_part(self, part: str, **options: Any) -> None:
        """Let hooks do something: a part of `hook_code.PARTS`. Raises `CannotEdit` when hooks are another's."""
        try:
            self._texts[HOOKS] = hook_code.with_part(self._texts.get(HOOKS), part, options)
        except hook_code.NotOurs as error:
            raise CannotEdit(str(error)) from error

    # the disk

    def sources(self) -> dict[str, bytes]:
        """Relative path -> bytes, as `save` would write them."""
        texts = {**self._texts, TOML: tomlkit.dumps(self._document)}
        return {path: text.encode("utf-8") for path, text in sorted(texts.items())}

    def save(self, folder: Path, notes: str) -> None:
        """Make a folder hold these files and nothing else, besides ``notes.md`` with these notes."""
        wanted = {**self.sources(), NOTES: notes.encode("utf-8")}
        for path in sorted(folder.rglob("*"), reverse=True):
            if (path.is_file() or path.is_symlink()) and path.relative_to(folder).as_posix() not in wanted:
                path.unlink()
        # Whoever is killed here finds a scaffold.toml that can be read.
        text = wanted.pop(TOML)
        scaffold.write_files(folder, wanted)
        scratch = folder / f".{TOML}"
        scratch.write_bytes(text)
        scratch.replace(folder / TOML)


def _set(table: Table, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if value is None:
            table.pop(name, None)
        else:
            table[name] = value


def _quoted(text: str) -> str:
    """A text as a template shows it: nothing in it is read as one, and no line is empty."""
    text = "\n".join(line for line in text.splitlines() if line.strip())
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    return "{% raw %}" + text + "{% endraw %}"


def described(names: Iterable[str]) -> str:
    """``a, b and c``."""
    *most, last = list(names) or [""]
    return f"{', '.join(most)} and {last}" if most else last
