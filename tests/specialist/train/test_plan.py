"""What is said before anything starts."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from specialist.recipe import LoraRecipe, Recipe, TrainRecipe
from specialist.train import plan as planning
from specialist.train.devices import Gpu, Machine, machine
from specialist.train.memory import GIB
from specialist.train.plan import TrainPlan, plan
from specialist.train.spec import BEGUN, TrainSpec
from tests.specialist.train.tiny import example, write_dataset, write_tiny

LAPTOP = Machine(gpus=(), unusable="", cores=2, free=8 * GIB, bfloat16=False)
GPUS = Machine((Gpu("H100", 70 * GIB, 80 * GIB, True),) * 4, "", cores=64, free=500 * GIB, bfloat16=True)


@pytest.fixture
def spec(tiny: Path, tmp_path: Path) -> TrainSpec:
    write_dataset(tmp_path / "data", [example(i) for i in range(20)], [example(i) for i in range(20, 26)])
    recipe = Recipe(lora=LoraRecipe(rank=4), train=TrainRecipe(batch=2, accumulation=4, epochs=3))
    return TrainSpec(dataset=tmp_path / "data", base=str(tiny), recipe=recipe)


def but(spec: TrainSpec, **changes: object) -> TrainSpec:
    """The same with another adapter, training or setting."""
    recipe = spec.recipe
    lora = recipe.lora.model_copy(update={k: v for k, v in changes.items() if k in LoraRecipe.model_fields})
    train = recipe.train.model_copy(update={k: v for k, v in changes.items() if k in TrainRecipe.model_fields})
    rest = {k: v for k, v in changes.items() if k in TrainSpec.model_fields}
    return spec.model_copy(update={**rest, "recipe": recipe.model_copy(update={"lora": lora, "train": train})})


def only_problem(found: TrainPlan) -> str:
    (problem,) = found.problems
    return problem


def test_a_plan_tells_what_will_be_done(spec: TrainSpec, tmp_path: Path):
    found = plan(spec, tmp_path / "run", LAPTOP)
    assert found.problems == ()
    assert (found.examples, found.held_out, found.left_out) == (20, 6, 0)
    assert (found.steps, found.step_examples) == (9, 8), "three epochs of 8, 8 and 4 examples"
    # q and o are 32 x 32; k and v have half as many heads; two layers
    assert found.adapter_parameters == 2 * 4 * (2 * 64 + 2 * 48)
    assert 0 < found.target_tokens < found.epoch_tokens
    assert found.computed_tokens < 3 * found.epoch_tokens, "what examples share is computed once a pass"
    assert GIB < found.memory_needed < found.memory_free
    assert found.begun is not None
    setup = found.begun.setup
    assert (setup.device, setup.processes, setup.dtype, setup.batch) == ("cpu", 1, "float32", 8)
    assert f"-m specialist.train {tmp_path / 'run'}" in found.command
    assert not (tmp_path / "run").exists(), "planning leaves nothing"


def test_all_gpus_are_used_by_the_same_command(spec: TrainSpec, tmp_path: Path):
    found = plan(spec, tmp_path / "run", GPUS)
    assert found.problems == ()
    assert found.begun is not None
    assert (found.begun.setup.device, found.begun.setup.processes, found.begun.setup.dtype) == ("gpu", 4, "bfloat16")
    assert found.step_examples == 32
    assert "accelerate" in found.command
    assert "--num_processes 4" in found.command
    assert "--multi_gpu" in found.command
    assert found.gpus == ("H100, 70 of 80 GiB free",) * 4
    on_cpu = plan(but(spec, device="cpu"), tmp_path / "run", GPUS)
    assert on_cpu.begun is not None
    assert on_cpu.begun.setup.device == "cpu"


def test_examples_longer_than_the_cutoff_are_counted(spec: TrainSpec, tmp_path: Path):
    write_dataset(tmp_path / "more", [example(0), example(1, told=" grass" * 200)])
    found = plan(but(spec, dataset=tmp_path / "more", cutoff=300), tmp_path / "run", LAPTOP)
    assert (found.examples, found.left_out, found.held_out) == (1, 1, 0)
    assert found.problems == ()
    none = only_problem(plan(but(spec, dataset=tmp_path / "more", cutoff=64), tmp_path / "run", LAPTOP))
    assert "of 2 examples none has at most 64 tokens" in none


@pytest.mark.parametrize(
    ("changes", "here", "told"),
    [
        ({"device": "gpu"}, LAPTOP, "a GPU was asked for, and there is none"),
        ({"processes": 3}, LAPTOP, "3 processes were asked for, and there are 2 cores"),
        ({"processes": 5}, GPUS, "5 processes were asked for, and there are 4 GPUs"),
        ({"rank": 513}, LAPTOP, "rank 513 is above 512"),
        ({"rank": 16, "max_rank": 8}, LAPTOP, "rank 16 is above the server's maximum, 8"),
        ({"targets": ("q_proj", "c_attn")}, LAPTOP, "has no c_attn to adapt; it has down_proj, gate_proj, k_proj"),
        ({"base": "no such base"}, LAPTOP, "is no base model"),
    ],
)
def test_what_cannot_work_is_said(spec: TrainSpec, tmp_path: Path, changes: dict, here: Machine, told: str):
    assert told in only_problem(plan(but(spec, **changes), tmp_path / "run", here))


def test_a_gpu_that_torch_cannot_use_is_explained(spec: TrainSpec, tmp_path: Path):
    here = Machine((), "the torch that is installed does not use it", 2, GIB, False)
    assert "the torch that is installed does not use it" in only_problem(
        plan(but(spec, device="gpu"), tmp_path / "run", here)
    )


def test_missing_libraries_are_named_with_how_to_get_them(
    spec: TrainSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("trl", "peft") else there(name))
    problem = only_problem(plan(spec, tmp_path / "run", LAPTOP))
    assert "peft, trl" in problem
    assert "make setup" in problem


def test_less_memory_means_smaller_passes_then_checkpointing_then_a_problem(
    spec: TrainSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def setup(free: int) -> tuple[int, bool] | str:
        found = plan(spec, tmp_path / "run", Machine((), "", 2, free, False))
        if found.problems:
            return found.problems[0]
        assert found.begun is not None
        assert found.memory_needed <= found.memory_free
        return found.begun.setup.batch, found.begun.setup.checkpointing

    base = GIB / planning.SPARE
    found = [setup(int(base * (1 + more / 1000))) for more in (50, 5, 3, 2, 1.5)]
    assert found[0] == (8, False)
    batches = [one for one in found if isinstance(one, tuple)]
    assert sorted(batches, key=lambda one: (-one[0], one[1])) == batches
    assert len(set(batches)) > 1
    told = setup(GIB // 2)
    assert isinstance(told, str)
    assert "1.0 GiB of memory are needed, and this machine has 0.5 free" in told


def test_a_folder_that_holds_another_run_is_refused(spec: TrainSpec, tmp_path: Path):
    folder = tmp_path / "run"
    found = plan(spec, folder, LAPTOP)
    assert found.begun is not None
    found.begun.write(folder)
    assert plan(spec, folder, LAPTOP).problems == ()
    assert plan(spec, folder, GPUS).begun == found.begun, "a run goes on as it began"
    assert "another recipe" in only_problem(plan(but(spec, rank=8), folder, LAPTOP))
    other = write_tiny(tmp_path / "other", seed=1)
    assert "another base model" in only_problem(plan(but(spec, base=str(other)), folder, LAPTOP))
    on_gpus = plan(spec, tmp_path / "gpus", GPUS)
    assert on_gpus.begun is not None
    on_gpus.begun.write(tmp_path / "gpus")
    assert "was begun on 4 GPUs, and there are 0" in only_problem(plan(spec, tmp_path / "gpus", LAPTOP))
    (folder / BEGUN).write_text("{}")
    assert str(folder / BEGUN) in only_problem(plan(spec, folder, LAPTOP))


def test_this_machine_has_cores_and_memory():
    here = machine()
    assert here.cores >= 1
    assert here.free > GIB // 4
