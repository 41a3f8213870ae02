"""Differences between scaffolds: in words, line by line, and safe to look at whoever wrote them."""

from __future__ import annotations

import io
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from automem import lineage, scaffold
from automem.errors import UserError
from automem.scaffold import Scaffold
from automem.scaffold_diff import ScaffoldDiff, compare_scaffolds, page, terminal
from automem.scaffold_diff.lines import TextDiff
from tests.versions import ROOT, write_run, write_version

HOOKS = """\
from automem.hooks import Memory, Step

LIMIT = 3


def near(lines):
    return lines[-LIMIT:]


class Hooks:
    def observe(self, step: Step):
        return {"threats": "zombie"}

    def op_NEAR(self, args, memory: Memory):
        return ", ".join(near(memory.search("map_notes.txt", args[0])))
"""

OWN = """
[[ops.own]]
name = "NEAR"
args = "thing"
meaning = "where the nearest thing is"

[hooks]
shows = ["threats", "vitals"]
"""

HOSTILE = "[red]not markup[/red] \x1b[31mred\x1b[0m \u202eevil\u202c <script>alert(1)</script> &amp; \t{{ '{{' }}\r"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOMEM_RUNS", raising=False)


def said(old: Scaffold, new: Scaffold) -> dict[str, list[str]]:
    """Section -> its lines, each with its mark."""
    return {
        section.title: [f"{line.mark} {line.text}" for line in section.said]
        for section in compare_scaffolds(old, new, lineage.read()).words
    }


def changed(*replacements: tuple[str, str], path: str = "scaffold.toml", ref: str = "crafter/b") -> Scaffold:
    """A child of crafter/v0 with texts replaced in one file."""
    loaded = write_version(ref, scaffold.load("crafter/v0").identity)
    for old, new in replacements:
        file = loaded.folder / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
    return scaffold.load(ref)


def test_only_the_name_differs() -> None:
    assert set(said(scaffold.load("crafter/v0"), changed())) == {"versions"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'kind = "log"\ndescribe = "what each',
            'kind = "map"\nkey = "{x},{y}"\ndescribe = "what each',
            ["~ map_notes.txt: log -> map, keyed x,y"],
        ),
        (
            'name = "map_notes.txt"\nkind = "log"',
            'name = "map_{block}.txt"\nkind = "map"\nblock = 8\nkey = "{x},{y}"',
            [
                "~ map_notes.txt is now called map_{block}.txt",
                "~ map_{block}.txt: log -> map, keyed x,y, one for each block of 8 x 8 cells",
            ],
        ),
        (
            'name = "map_notes.txt"\nkind = "log"\n'
            'describe = "what each step showed: where you were, what was around, what the action did"\n'
            'entry = "Step {step}, {action}: {observation}"',
            'name = "map.txt"\nkind = "map"\nkey = "{x},{y}"',
            [
                "~ map_notes.txt is now called map.txt",
                "~ map.txt: log -> map, keyed x,y",
                '~ map.txt: an entry: "Step {step}, {action}: {observation}" -> none',
                '~ map.txt: described as "what each step showed: where you were, what was around, what the action '
                'did" -> none',
            ],
        ),
        (
            'entry = "Step {step}, {action}: {observation}"',
            'entry = "{what}"',
            ['~ map_notes.txt: an entry: "Step {step}, {action}: {observation}" -> "{what}"'],
        ),
        (
            'kind = "note"',
            'kind = "note"\npin = true',
            ["~ goals.txt: now pinned: shown in every prompt"],
        ),
        (
            'describe = "what you learned',
            'max_lines = 40\ndescribe = "what you learned',
            ["~ lessons.txt: any number of lines -> at most 40 lines"],
        ),
        (
            'describe = "what you learned',
            'changes = true\ndescribe = "what you learned',
            ["~ lessons.txt: now takes only what changed"],
        ),
        (
            'describe = "the achievements and what each of them needs"',
            'describe = "goals"',
            ['~ goals.txt: described as "the achievements and what each of them needs" -> "goals"'],
        ),
        (
            '[[files]]\nname = "lessons.txt"\nkind = "log"\n'
            'describe = "what you learned about the rules, dangers and mistakes not to repeat"',
            '[[files]]\nname = "status.txt"\nkind = "note"\ndescribe = "vital signs"\npin = true',
            [
                "- lessons.txt: removed; it was a log (what you learned about the rules, dangers and mistakes not to "
                "repeat)",
                "+ status.txt: new, a note, pinned: shown in every prompt (vital signs)",
            ],
        ),
    ],
)
def test_memory_files_are_explained(old: str, new: str, says: list[str]) -> None:
    found = said(scaffold.load("crafter/v0"), changed((old, new)))
    assert found["memory files"] == says
    assert set(found) == {"versions", "memory files"}


def test_a_renamed_file_with_its_first_contents_is_one_change_in_words_and_in_files() -> None:
    new = changed(("goals.txt", "plan.txt"))
    (new.folder / "files/goals.txt").rename(new.folder / "files/plan.txt")
    new = scaffold.load("crafter/b")
    old = scaffold.load("crafter/v0")
    assert said(old, new)["memory files"] == ["~ goals.txt is now called plan.txt"]
    (renamed,) = [file for file in compare_scaffolds(old, new, lineage.read()).files if file.status == "renamed"]
    assert (renamed.was, renamed.path, renamed.diff) == ("files/goals.txt", "files/plan.txt", TextDiff((), 0, 0))


def test_two_files_that_could_be_the_old_one_are_not_called_renamed() -> None:
    old = changed(ref="crafter/a")
    new = write_version("crafter/b", old.identity)
    again = '[[files]]\nname = "{0}"\nkind = "log"\nentry = "Step {{step}}, {{action}}: {{observation}}"\n'
    toml = (new.folder / "scaffold.toml").read_text()
    start = toml.index("[[files]]")
    end = toml.index("[[files]]", start + 1)
    (new.folder / "scaffold.toml").write_text(toml[:start] + again.format("x.txt") + again.format("y.txt") + toml[end:])
    assert [line[:2] for line in said(old, scaffold.load("crafter/b"))["memory files"]] == ["- ", "+ ", "+ "]


def test_first_contents_are_explained() -> None:
    new = changed()
    (new.folder / "files/goals.txt").write_text("Live.\n")
    (new.folder / "files/rules.txt").write_text("Sleep at night.\n")
    found = said(scaffold.load("crafter/v0"), scaffold.load("crafter/b"))["memory files"]
    assert found[0].startswith("~ goals.txt: begins with another text, +1 -")
    assert found[1] == "+ rules.txt: begins with a text, 16 characters"
    assert said(scaffold.load("crafter/b"), scaffold.load("crafter/v0"))["memory files"][1] == (
        "- rules.txt: no longer begins with a text"
    )


def test_operations_and_limits_are_explained() -> None:
    new = changed(('"CREATE"]', '"UPSERT_MAP"]'), ("result_chars = 2000", "result_chars = 4000\nmax_files = 9"))
    found = said(scaffold.load("crafter/v0"), new)
    assert found["operations"] == [
        "- lost CREATE: make a new, empty file",
        "+ gained UPSERT_MAP: set what is at a coordinate of the map",
    ]
    assert found["limits"] == [
        "~ result_chars: 2000 -> 4000 (characters that one result shows)",
        "~ max_files: default -> 9 (files in the memory folder)",
    ]


def hooked(ref: str, hooks: str = HOOKS, own: str = OWN, prompt: str = "{{ hooks.threats }}\n") -> Scaffold:
    """A child of crafter/v0 with code."""
    folder = Path("scaffolds") / ref
    shutil.copytree(ROOT / "crafter/v0", folder)
    toml = (folder / "scaffold.toml").read_text().replace('version = "v0"', f'version = "{folder.name}"')
    toml = toml.replace('parent = ""', f'parent = "{scaffold.load("crafter/v0").identity}"')
    (folder / "scaffold.toml").write_text(toml.replace("[[files]]", own.lstrip() + "\n[[files]]", 1))
    (folder / "hooks.py").write_text(hooks)
    (folder / "prompts/plan.j2").write_text(prompt + (folder / "prompts/plan.j2").read_text())
    return scaffold.load(str(folder))


def test_hooks_and_prompts_are_explained() -> None:
    found = said(scaffold.load("crafter/v0"), hooked("crafter/b"))
    assert found["operations"] == ["+ gained <|NEAR|>thing<|END|>, of its own: where the nearest thing is"]
    assert found["hooks"] == [
        "+ hooks.py: new code, 15 lines",
        "+ gained observe: gives texts to the prompts, before LOG and PLAN",
        "+ gained op_NEAR: carries out the operation NEAR",
        "+ gained the text threats, shown in plan.j2",
        "+ gained the text vitals, but no prompt shows it",
    ]
    (line,) = found["prompts"]
    assert line.startswith("~ plan.j2: +1 -0 lines") and line.endswith("now shows hooks.threats")
    back = said(scaffold.load("crafter/b"), scaffold.load("crafter/v0"))
    assert back["hooks"][0] == "- hooks.py: removed, 15 lines" and "- lost the text vitals" in back["hooks"]
    assert back["prompts"][0].endswith("no longer shows hooks.threats")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"zombie"', '"skeleton"', ["~ observe changed"]),
        ("return lines[-LIMIT:]", "return lines[:LIMIT]", ["~ code around them changed: near"]),
        ("LIMIT = 3", "LIMIT = 4", ["~ code around them changed"]),
        ("LIMIT = 3", "LIMIT = 3  # enough", ["~ only comments or layout changed"]),
        (
            "    def op_NEAR",
            "    def maintain(self, step, memory):\n        return []\n\n    def op_NEAR",
            ["+ gained maintain: runs memory operations of its own, after LOG"],
        ),
    ],
)
def test_changed_code_is_told_from_changed_layout(old: str, new: str, says: list[str]) -> None:
    assert old in HOOKS
    found = said(hooked("crafter/a"), hooked("crafter/b", HOOKS.replace(old, new)))
    assert found["hooks"][1:] == says


def test_where_a_text_is_shown_is_told() -> None:
    new = hooked("crafter/b", prompt="{{ hooks.threats }} {{ hooks['vitals'] }}\n")
    found = said(hooked("crafter/a"), new)
    assert found["hooks"] == ["~ the text vitals: shown in no prompt -> plan.j2"]
    assert found["prompts"][0].endswith("now shows hooks.vitals")


def test_kinship_is_told() -> None:
    root = scaffold.load("crafter/v0")
    one = write_version("crafter/one", root.identity)
    two = write_version("crafter/two", one.identity)
    three = write_version("crafter/three", two.identity)
    other = write_version("crafter/other", one.identity)
    orphan = write_version("crafter/orphan", "ab" * 32)
    short = {v.ref: f"{v.ref} ({v.identity[:12]})" for v in (root, one, two, three, other, orphan)}

    def kinship(a: Scaffold, b: Scaffold) -> str:
        return said(a, b)["versions"][0][2:]

    assert kinship(root, one) == f"{short['crafter/one']} is a child of {short['crafter/v0']}"
    assert kinship(one, root) == kinship(root, one)
    assert kinship(one, three) == (
        f"{short['crafter/three']} descends from {short['crafter/one']}, by way of {short['crafter/two']}"
    )
    assert kinship(two, other).endswith(f"are both children of {short['crafter/one']}")
    assert kinship(three, other).endswith(f"share the ancestor {short['crafter/one']}")
    assert kinship(three, orphan).startswith("no ancestor in common is known")
    assert "abababababab, which is not known here" in kinship(three, orphan)
    assert kinship(one, one).startswith("the same version")


def test_figures_of_both_and_their_difference_are_told() -> None:
    old, new = scaffold.load("crafter/v0"), changed()
    write_run("before", old, {1: 0.2, 2: 0.3, 3: 0.4})
    write_run("after", new, {1: 0.4, 2: 0.5, 3: 0.6, 4: 0.1})
    found = said(old, new)["measured"]
    assert "30.00 %" in found[0] and "run before" in found[0]
    assert found[2] == (
        "+ crafter/b against crafter/v0, openai/some-model: +20.00 [+20.0, +20.0] points on the same 3 episodes, "
        "runs before and after"
    )


def hostile() -> ScaffoldDiff:
    """A scaffold whose prompt, notes and descriptions try to be more than text."""
    new = changed()
    (new.folder / "prompts/handoff.j2").write_text(HOSTILE.replace("{{ '{{' }}", "") + "x" * 30_000)
    (new.folder / "notes.md").write_text(HOSTILE)
    toml = new.folder / "scaffold.toml"
    toml.write_text(
        toml.read_text().replace("the achievements", r"<img src=x onerror=alert(1)> [red] \u001b[31m \u202e the")
    )
    return compare_scaffolds(scaffold.load("crafter/v0"), scaffold.load("crafter/b"), lineage.read())


def shown(diff: ScaffoldDiff, *, side_by_side: bool = False, tty: bool = False, width: int = 80) -> str:
    out = io.StringIO()
    terminal.show(Console(file=out, force_terminal=tty, width=width), diff, side_by_side)
    return out.getvalue()


@pytest.mark.parametrize("side_by_side", [False, True])
def test_a_pipe_gets_text_and_no_colours(side_by_side: bool) -> None:
    text = shown(hostile(), side_by_side=side_by_side)
    assert "\x1b" not in text and "\u202e" not in text and "\r" not in text
    assert "[red]" in text and "more" in text


def test_in_a_pipe_lines_are_as_long_as_they_are() -> None:
    expected = (
        r"+[red]not markup[/red] \x1b[31mred\x1b[0m \u202eevil\u202c <script>alert(1)</script> &amp; → {{ '{{' }}\r"
    )
    assert expected in shown(hostile()).splitlines()


@pytest.mark.parametrize("width", [60, 140])
def test_a_terminal_gets_colours_of_ours_only_and_side_by_side_fits_it(width: int) -> None:
    text = shown(hostile(), side_by_side=True, tty=True, width=width)
    assert "\x1b[" in text and "\u202e" not in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "\x1b" not in plain
    table = [line for line in plain.splitlines() if re.match(r" *\d+ [ -] ", line)]
    assert table and all(len(line) <= width for line in table)


def test_a_missing_newline_at_the_end_is_told() -> None:
    new = changed()
    notes = new.folder / "notes.md"
    notes.write_text((ROOT / "crafter/v0/notes.md").read_text().rstrip("\n"))
    diff = compare_scaffolds(scaffold.load("crafter/v0"), scaffold.load("crafter/b"), lineage.read())
    assert "no newline at the end" in shown(diff)
    assert "no newline at the end" in page.render(diff)


class Page(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_holds_nothing_that_runs_or_is_fetched_whatever_a_scaffold_says() -> None:
    text = page.render(hostile())
    found = Page(text)
    assert not {"script", "img", "link", "iframe", "object", "embed", "form", "base"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on") or name in ("src", "href", "srcset")]
    assert "url(" not in text and "@import" not in text
    assert "default-src 'none'" in text
    assert "\x1b" not in text and "\u202e" not in text
    content = "".join(found.texts)
    assert "<script>alert(1)</script> &amp;" in content and "<img src=x onerror=alert(1)> [red]" in content


def test_a_page_says_words_before_files_and_shows_each_file_in_both_views() -> None:
    text = page.render(compare_scaffolds(scaffold.load("crafter/v0"), hooked("crafter/b"), lineage.read()))
    assert text.index("gained the text threats") < text.index("<details")
    assert text.count("<details") == text.count('<table class="one">') == text.count('<table class="two">') == 3
    assert "<b>v0</b>" in text and "<b>b</b>" in text


def test_a_page_replaces_only_pages_of_its_own(tmp_path: Path) -> None:
    diff = compare_scaffolds(scaffold.load("crafter/v0"), changed(), lineage.read())
    target = tmp_path / "diff.html"
    page.write(target, page.render(diff))
    page.write(target, page.render(diff))
    other = tmp_path / "thesis.html"
    other.write_text("years of work")
    with pytest.raises(UserError, match="--force"):
        page.write(other, page.render(diff))
    assert other.read_text() == "years of work"
    page.write(other, page.render(diff), force=True)
    assert "crafter/b" in other.read_text()
    with pytest.raises(UserError, match="is a folder"):
        page.write(tmp_path, "x")
    with pytest.raises(UserError, match="cannot be written"):
        page.write(tmp_path / "none" / "x.html", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["diff.html", "scaffolds", "thesis.html"]
