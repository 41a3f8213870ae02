"""Recipes: what comes with AutoMem, and what is said of a file that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from automem.errors import UserError
from specialist import recipe
from specialist.recipe import ATTENTION, MLP


@pytest.mark.parametrize("name", recipe.presets())
def test_a_preset_loads(name: str) -> None:
    loaded = recipe.load(name)
    assert loaded.name == name
    assert recipe.load(str(recipe.PRESETS / f"{name}.toml")) == loaded


@pytest.mark.parametrize(
    ("name", "rank", "modules", "examples"),
    [
        ("crafter", 256, ATTENTION, 600),
        ("minihack", 128, (*ATTENTION, *MLP), 300),
        ("nethack", 256, (*ATTENTION, *MLP), 800),
    ],
)
def test_the_settings_of_the_paper(name: str, rank: int, modules: tuple[str, ...], examples: int) -> None:
    loaded = recipe.load(name)
    assert (loaded.lora.rank, loaded.lora.modules) == (rank, modules)
    assert (loaded.data.examples, loaded.train.cutoff) == (examples, 16_384)


def test_recipes_for_cpus_are_small() -> None:
    assert {"crafter-cpu", "tiny"} <= set(recipe.presets())
    for name in ("crafter-cpu", "tiny"):
        loaded = recipe.load(name)
        assert loaded.lora.rank <= 8 and loaded.data.examples <= 200 and loaded.train.cutoff <= 4096


def wrong(folder: Path, text: str) -> str:
    path = folder / "my.toml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        recipe.load(str(path))
    assert str(path) in str(error.value)
    return str(error.value)


def test_every_field_that_is_wrong_is_listed(tmp_path: Path) -> None:
    text = '[lora]\nrank = 0\ntargets = "everything"\n[train]\nepoch = 3\nlearning_rate = "fast"\n[date]\n'
    told = wrong(tmp_path, text)
    for field in ("lora.rank", "lora.targets", "train.epoch", "train.learning_rate", "date"):
        assert f"\n  {field}" in told
    assert "greater than or equal to 1" in told


def test_sums_that_cannot_be_are_told(tmp_path: Path) -> None:
    assert "data.minimum 9 is more than data.examples 5" in wrong(tmp_path, "[data]\nexamples = 5\nminimum = 9")


@pytest.mark.parametrize("text", ["rank = ", "[lora", "\x00"])
def test_what_is_no_toml_is_told(tmp_path: Path, text: str) -> None:
    assert "not valid TOML" in wrong(tmp_path, text)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not valid TOML"):
        recipe.load(str(path))


def test_an_unknown_name_lists_the_presets() -> None:
    with pytest.raises(UserError, match=r"no recipe 'crafter-gpu'.*crafter, crafter-cpu, minihack, nethack, tiny"):
        recipe.load("crafter-gpu")


def test_a_file_says_how_it_differs_from_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[lora]\ntargets = ["q_proj", "up_proj"]\n')
    loaded = recipe.load(str(path))
    assert loaded.name == "mine" and loaded.lora.modules == ("q_proj", "up_proj")
    assert loaded.train == recipe.TrainRecipe()
