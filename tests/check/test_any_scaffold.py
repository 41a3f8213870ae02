"""Whatever is in a folder, checking it ends with a report."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from automem import scaffold
from automem.check import check
from automem.errors import UserError
from tests.check.broken import ROOT, Broken

HOOKS = """from automem.hooks import Step, write


class Hooks:
    def reset(self, game, task):
        self.n = 0

    def observe(self, step: Step) -> dict[str, str]:
        return {"hint": "x"}

    def maintain(self, step, memory):
        return [write("goals.txt", "x")]
"""

SIGNS = (
    *("{{", "}}", "{%", "%}", "<|", "|>", "[[", "]]", "=", "#", "'", '"', "\\", "{x}", "{block}"),
    *("[files]", "[[files]]", "[[ops.own]]", "<|APPEND|>", "<|DONE|>"),
)
SENTENCES = (
    "{{ hooks.hint }}",
    "{{ step }}",
    "{% if x %}",
    "{% for a in hooks %}",
    "{% endfor %}",
    "= 99999999",
    "import os\n",
    "def op_X(self, args, memory): pass\n",
    '"""',
    "\0",
    "\r",
    "\n",
)
PIECES = st.one_of(
    st.text(max_size=30),
    st.binary(max_size=8).map(lambda data: data.decode("latin-1")),
    st.sampled_from((*SIGNS, *SENTENCES)),
)


@st.composite
def mutations(draw: st.DrawFn, text: str) -> str:
    """`text` with a few pieces cut out, put in or moved."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 40)))
        kind = draw(st.sampled_from(("cut", "put", "replace", "move")))
        piece = draw(PIECES) if kind in ("put", "replace") else text[start:stop] if kind == "move" else ""
        if kind == "move":
            to = draw(st.integers(0, len(text)))
            text = text[:to] + piece + text[to:]
        else:
            text = text[:start] + piece + text[stop if kind != "put" else start :]
    return text


SOURCES = {
    str(path.relative_to(ROOT / "crafter" / "v0")): path.read_text()
    for path in sorted((ROOT / "crafter" / "v0").rglob("*"))
    if path.is_file() and path.name != "notes.md"
} | {"hooks.py": HOOKS}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Broken:
    """One folder for all examples."""
    return Broken(tmp_path_factory.mktemp("any"))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutated_scaffold_is_reported_on(place: Broken, data: st.DataObject) -> None:
    for path, text in SOURCES.items():
        place.write(path, text)
    place.write("scaffold.toml", SOURCES["scaffold.toml"] + '\n[hooks]\nshows = ["hint"]\n')
    for path in data.draw(st.lists(st.sampled_from(sorted(SOURCES)), min_size=1, max_size=2, unique=True)):
        before = (place.folder / path).read_text()
        place.write(path, data.draw(mutations(before)).encode("utf-8", "surrogatepass"))
    report = check(str(place.folder), smoke=False)
    try:
        scaffold.load(str(place.folder))
    except UserError:
        assert not report.ok
    # Each mistake that keeps a scaffold from being loaded has a finding of its own, with a file.
    assert not [finding for finding in report.findings if finding.code == "load"], report.findings


DEEP = 20_000


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("scaffold.toml", ""),
        ("scaffold.toml", "a = " + "[" * DEEP),
        ("scaffold.toml", "a = " + "[" * 300 + "]" * 300),
        ("scaffold.toml", ".".join("a" * DEEP) + " = 1"),
        ("scaffold.toml", "a.b = 1\n" * DEEP),
        ("scaffold.toml", "[[files]]\n" * DEEP),
        ("scaffold.toml", "scaffold = 1\nlimits = []\nops = ''\nfiles = {}\nhooks = 2020-01-01"),
        (
            "scaffold.toml",
            "files = [1, [], {}, '']\n[ops]\nenabled = [1, {}, 'READ', 1.5]\nown = 3\n[hooks]\nshows = [[]]",
        ),
        ("scaffold.toml", "x = 1" + "0" * 5000),
        ("scaffold.toml", "\ufeff[scaffold]"),
        ("prompts/plan.j2", "{{ " + "(" * DEEP + "1" + ")" * DEEP + " }}"),
        ("prompts/plan.j2", "{% if 1 %}" * DEEP),
        ("prompts/plan.j2", "{{ x }}\n" * 30_000),
        ("prompts/plan.j2", "{{ 9" + "9" * 5000 + " }}"),
        ("prompts/plan.j2", "<|APPEND|>\n" * 3000),
        ("prompts/plan.j2", '{% include "plan.j2" %}'),
        (
            "prompts/plan.j2",
            "{% for a in observation %}{% for b in observation %}{{ memory }}{% endfor %}{% endfor %}" * 9,
        ),
        ("prompts/sub/x.j2", "{{ nothing }}"),
        ("hooks.py", "x = " + "(" * DEEP),
        ("hooks.py", "x = a" + ".b" * DEEP),
        ("hooks.py", "x = " + "-" * DEEP + "1"),
        ("hooks.py", "class Hooks:\n  pass\n" * 5000),
        ("hooks.py", "\0"),
        ("hooks.py", "# -*- coding: nonsense -*-\n"),
        ("files/goals.txt", "\0\x01\ud800".encode("utf-8", "surrogatepass")),
        ("files/goals.txt", "x" * 262_144),
    ],
    ids=lambda value: str(value[:24]),
)
def test_a_hostile_file_is_reported_on_quickly(broken: Broken, path: str, text: str | bytes) -> None:
    broken.write(path, text)
    start = time.process_time()
    broken.found()
    assert time.process_time() - start < 5


@pytest.mark.parametrize("path", ["scaffold.toml", "hooks.py", "prompts/plan.j2"])
def test_things_that_are_no_files_are_not_opened(broken: Broken, path: str) -> None:
    (broken.folder / path).unlink(missing_ok=True)
    if path == "scaffold.toml":
        (broken.folder / path).symlink_to(ROOT / "crafter" / "v0" / "scaffold.toml")
    else:
        os.mkfifo(broken.folder / path)
    told = {(finding.file, finding.code) for finding in broken.found() if finding.severity == "error"}
    assert (path, "not-a-file") in told
    assert told <= {(path, "not-a-file"), (path, "template-missing")}


def test_a_folder_with_very_many_files_is_reported_on(broken: Broken) -> None:
    for i in range(700):
        broken.write(f"files/n{i}.txt", "")
    assert "too-many-files" in {finding.code for finding in broken.found()}


def test_a_file_name_that_is_no_text_is_told(broken: Broken) -> None:
    (Path(os.fsdecode(os.fsencode(broken.folder) + b"/files/\xff.txt"))).write_text("x")
    assert "file-name" in {finding.code for finding in broken.found()}
