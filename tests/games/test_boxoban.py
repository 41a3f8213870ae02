"""Boxoban levels: files parsed strictly, chosen by the seed, fetched once, or generated and solvable."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games import boxoban
from games.boxoban import BoxobanError
from games.minihack import MiniHack

ROOM = """\
; 0
##########
########@#
########$#
##### #  #
#####  . #
#$   . ###
#   ######
# $ ######
# .  $ . #
##########
"""
STEPS = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}


def _rooms(count: int, first: int = 0) -> str:
    return "\n".join(ROOM.replace("; 0", f"; {first + i}") for i in range(count))


@pytest.fixture
def levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as AUTOMEM_BOXOBAN_LEVELS names it, with a few files of each set."""
    for folder in ("hard", "medium/train"):
        below = tmp_path / "levels" / folder
        below.mkdir(parents=True)
        for number in (2, 0, 1):
            (below / f"00{number}.txt").write_text(_rooms(4, 10 * number), "utf-8")
    monkeypatch.setenv("AUTOMEM_BOXOBAN_LEVELS", str(tmp_path / "levels"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "levels"


# --- files -----------------------------------------------------------------------------


def test_levels_are_parsed_with_their_names() -> None:
    parsed = boxoban.parse(_rooms(3), "hard/000.txt")
    assert [level.name for level in parsed] == ["hard/000.txt 0", "hard/000.txt 1", "hard/000.txt 2"]
    assert parsed[0].find("@") == ((8, 1),)
    assert len(parsed[0].find("$")) == len(parsed[0].find(".")) == 4


@pytest.mark.parametrize(
    ("broken", "line"),
    [
        (_rooms(1).replace("; 0", "0"), 1),
        (_rooms(1).replace("########@#", "#######@#"), 3),
        (_rooms(1).replace("########@#", "########a#"), 3),
        (_rooms(1).replace("@", " "), 2),
        (_rooms(1).replace("$", " ", 1), 2),
        (_rooms(1) + "##########\n", 12),
        (_rooms(2)[: _rooms(2).index("; 1") + 20], 15),
        ("", 1),
    ],
)
def test_broken_file_is_named_with_its_line(broken: str, line: int) -> None:
    with pytest.raises(BoxobanError, match=rf"^medium/000\.txt, line {line}: "):
        boxoban.parse(broken, "medium/000.txt")


@given(st.text(alphabet="; 0\n#.$@x", max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        assert boxoban.parse(text, "file")
    except BoxobanError as error:
        assert "file, line " in str(error)


def test_broken_file_stops_the_episode_before_it_begins(levels: Path) -> None:
    for path in (levels / "hard").iterdir():
        path.write_text("; 0\n###\n", "utf-8")
    with pytest.raises(BoxobanError, match=r"hard/00\d\.txt, line 2"):
        MiniHack("MiniHack-Boxoban-Hard-v0").reset(42)


# --- choice ----------------------------------------------------------------------------


def test_official_levels_are_played_and_said_to_be_official(levels: Path) -> None:
    game = MiniHack("MiniHack-Boxoban-Hard-v0")
    game.reset(42)
    assert game.progress().facts == {"levels": "official"}
    assert game.level is not None and game.level.name.startswith("hard/00")
    game.close()


def test_level_depends_on_the_seed_and_not_on_the_listing(levels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = boxoban.find_source("medium")
    chosen = [source.level(seed).name for seed in range(30)]
    assert len(set(chosen)) > 6
    listing = Path.glob
    monkeypatch.setattr(Path, "glob", lambda self, pattern: reversed(list(listing(self, pattern))))
    random.seed(1)
    before = random.getstate()
    assert [source.level(seed).name for seed in range(30)] == chosen
    assert random.getstate() == before


def test_named_folder_comes_before_the_cache_and_the_cache_before_generation(
    levels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert boxoban.find_source("hard").folder == levels / "hard"
    monkeypatch.delenv("AUTOMEM_BOXOBAN_LEVELS")
    assert boxoban.find_source("hard").kind == "generated"
    cached = boxoban.cache_folder()
    cached.parent.mkdir(parents=True)
    levels.rename(cached)
    assert boxoban.find_source("hard").folder == cached / "hard"


def test_named_folder_without_levels_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOMEM_BOXOBAN_LEVELS", str(tmp_path / "nowhere"))
    with pytest.raises(BoxobanError, match="AUTOMEM_BOXOBAN_LEVELS"):
        boxoban.find_source("hard")


# --- generation ------------------------------------------------------------------------


def _play(level: boxoban.Level, moves: tuple[str, ...]) -> bool:
    """Whether these moves are legal pushes and steps that end with every box on a goal."""
    walls, boxes = set(level.find("#")), set(level.find("$"))
    x, y = level.find("@")[0]
    for move in moves:
        dx, dy = STEPS[move]
        x, y = x + dx, y + dy
        assert (x, y) not in walls
        if (x, y) in boxes:
            pushed = (x + dx, y + dy)
            assert pushed not in walls | boxes
            boxes = boxes - {(x, y)} | {pushed}
    return boxes == set(level.find("."))


@pytest.mark.parametrize("level_set", ["hard", "medium"])
def test_generated_levels_are_of_the_same_shape_and_solvable(level_set: str) -> None:
    rooms = set()
    for seed in range(150):
        made = boxoban.generate(level_set, seed)
        text = "; 0\n" + "\n".join(made.level.rows) + "\n"
        assert boxoban.parse(text, "generated")[0].rows == made.level.rows
        assert _play(made.level, made.solution)
        rooms.add(made.level.rows)
    assert len(rooms) == 150
    assert boxoban.generate(level_set, 3) == boxoban.generate(level_set, 3)


# --- fetching --------------------------------------------------------------------------


def _archive(path: Path, files: dict[str, str]) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"boxoban-levels-master/{name}", text)
    return path.as_uri()


OFFICIAL = {
    "hard/000.txt": _rooms(2),
    "medium/train/000.txt": _rooms(2),
    "medium/valid/000.txt": "not looked at",
    "unfiltered/train/000.txt": "not looked at",
    "LICENSE": "Apache License",
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("AUTOMEM_BOXOBAN_LEVELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "automem" / "boxoban-levels"


def test_fetched_levels_are_found_by_the_next_episode(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOMEM_BOXOBAN_ARCHIVE", _archive(tmp_path / "levels.zip", OFFICIAL))
    seen: list[tuple[int, int]] = []
    assert boxoban.fetch(progress=lambda received, total: seen.append((received, total))) == cache
    assert sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()) == [
        "LICENSE",
        "hard/000.txt",
        "medium/train/000.txt",
    ]
    assert seen[-1][0] == seen[-1][1] > 0
    assert boxoban.find_source("hard").kind == "official"
    monkeypatch.setenv("AUTOMEM_BOXOBAN_ARCHIVE", (tmp_path / "gone.zip").as_uri())
    assert boxoban.fetch() == cache  # once is enough


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({**OFFICIAL, "hard/000.txt": _rooms(1)[:-30]}, r"hard/000\.txt, line"),
        ({"hard/000.txt": _rooms(1)}, "no medium levels"),
        ({"README.md": "something else"}, "no hard"),
    ],
)
def test_broken_archive_installs_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], says: str
) -> None:
    monkeypatch.setenv("AUTOMEM_BOXOBAN_ARCHIVE", _archive(tmp_path / "levels.zip", files))
    with pytest.raises(BoxobanError, match=says):
        boxoban.fetch()
    assert list(cache.parent.iterdir()) == []


def test_no_archive_at_the_address_is_said(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("http://127.0.0.1:9/levels.zip", (tmp_path / "gone.zip").as_uri(), "nonsense"):
        monkeypatch.setenv("AUTOMEM_BOXOBAN_ARCHIVE", address)
        with pytest.raises(BoxobanError, match=r"cannot fetch .*AUTOMEM_BOXOBAN_LEVELS"):
            boxoban.fetch()
    (tmp_path / "levels.zip").write_bytes(b"<html>not found</html>")
    monkeypatch.setenv("AUTOMEM_BOXOBAN_ARCHIVE", (tmp_path / "levels.zip").as_uri())
    with pytest.raises(BoxobanError, match="not the archive"):
        boxoban.fetch()
    assert list(cache.parent.iterdir()) == []


def test_folder_that_is_something_else_is_left_alone(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "mine.txt").write_text("precious")
    with pytest.raises(BoxobanError, match="remove it"):
        boxoban.fetch()
    assert (cache / "mine.txt").read_text() == "precious"
