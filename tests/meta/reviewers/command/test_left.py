"""What a command leaves: only what can be a scaffold is taken, and what is refused is told."""

from __future__ import annotations

import pytest

from meta.reviewer import ReviewFailed
from tests.meta.reviewers.command.conftest import Bench

SECRET = "canary-value-5d1c"

REFUSED = {
    "nothing": ("pass", r"nothing differs from the parent .* there is no file REVISION\.md"),
    "no description": ("edit()", r"there is no file REVISION\.md beside candidate/"),
    "an empty description": ("edit(), say(' \\n')", r"REVISION\.md is empty"),
    "a description that is a link": ("edit(), os.symlink('/etc/passwd', 'REVISION.md')", r"no file REVISION\.md"),
    "a description alone": ("say()", "nothing differs from the parent"),
    "notes alone": ("say(), open('candidate/notes.md', 'a').write('x')", "nothing differs from the parent"),
    "a comment": ("say(), edit('[limits]', '[limits] # now')", "nothing differs from the parent"),
    "another version": (
        "edit(), say(), edit('version = \"r1\"', 'version = \"v1\"')",
        r"\[scaffold\] version was changed; it has to stay 'r1'",
    ),
    "another game": (
        "edit(), say(), edit('game = \"crafter\"', 'game = \"nethack\"')",
        r"\[scaffold\] game was changed; it has to stay 'crafter'",
    ),
    "no parent": (
        "edit(), say(), toml.write_text(toml.read_text().replace('parent = \"', 'parent = \"\"  # '))",
        r"\[scaffold\] parent was changed",
    ),
    "a link to a file": ("edit(), say(), os.symlink('/etc/passwd', 'candidate/files/a.txt')", "files/a.txt is a link"),
    "a link to a folder": ("edit(), say(), os.symlink('/', 'candidate/files/all')", "candidate/files/all is a link"),
    "a link in place of the schema": (
        "edit(), say(), toml.unlink(), toml.symlink_to('../parent/scaffold.toml')",
        r"candidate/scaffold\.toml is a link",
    ),
    "a link in place of the candidate": (
        "edit(), say(), os.rename('candidate', 'other'), os.symlink('other', 'candidate')",
        "candidate/candidate is not a folder any more",
    ),
    "a pipe": ("edit(), say(), os.mkfifo('candidate/files/a.txt')", "files/a.txt is neither a file nor a folder"),
    "a socket": (
        "edit(), say(), __import__('socket').socket(1).bind('candidate/files/a.txt')",
        r"files/a\.txt is a file that cannot be read",
    ),
    "a large file": ("edit(), say(), open('candidate/files/a.txt', 'w').write('x' * 300_000)", "a.txt is larger than"),
    "many files": (
        "edit(), say(), [open(f'candidate/files/{i}.txt', 'w').write('x' * 200_000) for i in range(60)]",
        "too much with the others",
    ),
    "another file": ("edit(), say(), open('candidate/run.sh', 'w').write('x')", r"run\.sh is no part of a scaffold"),
    "a file too deep": (
        "edit(), say(), os.makedirs('candidate/files/a'), open('candidate/files/a/b.txt', 'w').write('x')",
        r"files/a/b\.txt is no part of a scaffold",
    ),
    "a name that climbs": (
        "edit(), say(), open('candidate/files/a\\\\..\\n\\x1b.txt', 'w').write('x')",
        "is no part of a scaffold",
    ),
    "no schema": ("say(), toml.unlink()", r"candidate/scaffold\.toml is missing"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_revision_is_refused_and_says_why(bench: Bench, what: str) -> None:
    source, why = REFUSED[what]
    before = {path: path.read_bytes() for path in sorted(bench.candidate.rglob("*")) if path.is_file()}
    with pytest.raises(ReviewFailed, match="the command 'python' left no revision: ") as failed:
        bench.review(source, rounds=1)
    assert failed.match(why)
    assert "\x1b" not in str(failed.value)
    assert failed.value.spent.seconds > 0
    assert {path: path.read_bytes() for path in sorted(bench.candidate.rglob("*")) if path.is_file()} == before
    assert not bench.reports


def test_what_tools_leave_behind_is_left_out(bench: Bench) -> None:
    bench.review(
        """
        for folder in ("candidate/.git", "candidate/__pycache__"):
            os.mkdir(folder)
            open(f"{folder}/x", "w").write("x")
        open("candidate/.DS_Store", "w").write("x")
        edit(), say()
        """
    )
    names = {path.relative_to(bench.candidate).parts[0] for path in bench.candidate.rglob("*")}
    assert names == {"scaffold.toml", "prompts", "files", "notes.md"} & names
    assert "scaffold.toml" in names


def test_links_between_its_own_files_become_files(bench: Bench) -> None:
    bench.review("edit(), say(), os.link('REVISION.md', 'candidate/files/a.txt')")
    file = bench.candidate / "files" / "a.txt"
    assert file.read_text().startswith("Show fewer lines")
    assert file.stat().st_nlink == 1


@pytest.mark.parametrize("where", ["candidate/notes.md", "REVISION.md"])
def test_a_key_does_not_get_into_a_scaffold(bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setenv("AGENT_PASS", SECRET)
    with pytest.raises(ReviewFailed, match=rf"{where} holds the value of AGENT_PASS") as failed:
        bench.review(f"edit(), say(), open({where!r}, 'a').write(os.environ['AGENT_PASS'])", env=["AGENT_PASS"])
    assert SECRET not in str(failed.value)
    kept = [path for path in bench.folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert kept == []


def test_what_it_says_is_plain_text(bench: Bench) -> None:
    revision = bench.review("edit(), say('## Show \\x1b[31m' + 'x' * 9000 + '\\n\\n\\x1b[2J' + 'y' * 90_000)")
    assert revision.description.startswith("Show ") and len(revision.description) <= 200
    assert len(revision.analysis) <= 20_000
    assert (revision.description + revision.analysis).isprintable()
