"""Training for real, with a tiny model."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from automem.errors import UserError
from specialist import adapter
from specialist.recipe import LoraRecipe, Recipe, TrainRecipe
from specialist.train import curve
from specialist.train.curve import Row
from specialist.train.plan import TrainPlan, plan
from specialist.train.progress import last_checkpoint
from specialist.train.run import train
from specialist.train.spec import ADAPTER, Begun, Diverged, TrainSpec, failure
from tests.specialist.train.tiny import example, write_dataset

LEARNS = TrainRecipe(learning_rate=2e-2, warmup=0, batch=2, accumulation=2, epochs=12)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch):
    """So small a model only waits for a second thread."""
    import torch

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def spec(tiny: Path, tmp_path: Path) -> TrainSpec:
    write_dataset(tmp_path / "data", [example(i) for i in range(12)], [example(i) for i in range(12, 16)])
    recipe = Recipe(lora=LoraRecipe(rank=4, targets="all"), train=LEARNS)
    return TrainSpec(dataset=tmp_path / "data", base=str(tiny), recipe=recipe, device="cpu")


def with_training(spec: TrainSpec, **changes: object) -> TrainSpec:
    recipe = spec.recipe.model_copy(update={"train": spec.recipe.train.model_copy(update=changes)})
    return spec.model_copy(update={"recipe": recipe})


def begin(spec: TrainSpec, folder: Path, **setup: object) -> Begun:
    """Begin a run without starting processes."""
    found = plan(spec, folder)
    assert found.begun is not None, found.problems
    begun = found.begun.model_copy(update={"setup": found.begun.setup.model_copy(update=setup)})
    begun.write(folder)
    return begun


def train_here(spec: TrainSpec, folder: Path, **setup: object) -> list[Row]:
    """Train in this process; the curve."""
    from specialist.train import trainer

    trainer.train(folder, begin(spec, folder, **setup))
    return curve.rows(folder)


def weights(folder: Path) -> dict:
    from safetensors.torch import load_file

    return load_file(folder / ADAPTER / adapter.WEIGHTS)


class Watched:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.plans: list[TrainPlan] = []
        self.rows: list[Row] = []

    def planned(self, plan: TrainPlan) -> None:
        self.plans.append(plan)

    def row(self, row: Row) -> None:
        self.rows.append(row)


def test_a_run_learns_and_leaves_an_adapter_that_says_what_it_is(spec: TrainSpec, tmp_path: Path):
    folder = tmp_path / "run"
    rows = train_here(spec, folder)
    losses = [row.loss for row in rows if row.loss is not None]
    held_out = [row.held_out for row in rows if row.held_out is not None]
    assert len(losses) == rows[-1].steps == 36
    assert [row.step for row in rows if row.held_out is not None] == [0, 8, 15, 22, 29, 36]
    assert losses[-1] < losses[0] / 4
    assert held_out[-1] < held_out[0] / 3
    assert rows[-1].left == pytest.approx(0, abs=1e-6)
    assert [row.tokens for row in rows] == sorted(row.tokens for row in rows)

    made = adapter.load(folder / ADAPTER)
    manifest = made.manifest
    assert manifest.recipe == spec.recipe
    assert (manifest.game, manifest.scaffold) == ("crafter", "5" * 64)
    assert manifest.losses["held_out_before"] == held_out[0]
    assert manifest.losses["held_out_after"] == held_out[-1]
    assert {"torch", "peft", "trl"} < set(manifest.versions)
    assert (made.rank, len(made.modules)) == (4, 7)
    assert str(tmp_path) not in (folder / ADAPTER / adapter.CONFIG).read_text(), "no paths of this machine"

    data = bytearray((folder / ADAPTER / adapter.WEIGHTS).read_bytes())
    data[-1] ^= 1
    (folder / ADAPTER / adapter.WEIGHTS).write_bytes(data)
    with pytest.raises(UserError, match="was changed since it was trained"):
        adapter.load(folder / ADAPTER)


def test_how_a_step_is_divided_and_computed_does_not_change_what_is_learned(spec: TrainSpec, tmp_path: Path):
    import torch

    spec = with_training(spec, epochs=1, learning_rate=1e-3)
    # All of an epoch in one step, so that the division is all that differs.
    spec = with_training(spec, batch=12, accumulation=1)
    train_here(spec, tmp_path / "whole", batch=12)
    whole = weights(tmp_path / "whole")
    for name, setup in {"two by two": {"batch": 2}, "checkpointing": {"batch": 4, "checkpointing": True}}.items():
        train_here(spec, tmp_path / name, **setup)
        found = weights(tmp_path / name)
        assert found.keys() == whole.keys()
        for key, value in whole.items():
            torch.testing.assert_close(found[key], value, rtol=1e-2, atol=2e-5)


def test_bfloat16_learns_too(spec: TrainSpec, tmp_path: Path):
    rows = train_here(with_training(spec, epochs=6), tmp_path / "run", dtype="bfloat16")
    losses = [row.loss for row in rows if row.loss is not None]
    assert losses[-1] < losses[0] / 2
    assert {str(value.dtype) for value in weights(tmp_path / "run").values()} == {"torch.float32"}


def test_without_held_out_examples_it_trains_all_the_same(spec: TrainSpec, tmp_path: Path):
    write_dataset(tmp_path / "all", [example(i) for i in range(8)])
    rows = train_here(with_training(spec, epochs=1).model_copy(update={"dataset": tmp_path / "all"}), tmp_path / "run")
    assert [row.step for row in rows] == [1, 2]
    assert set(adapter.load(tmp_path / "run" / ADAPTER).manifest.losses) == {"train"}


@pytest.mark.slow
def test_a_run_that_diverges_is_stopped_and_remembered(spec: TrainSpec, tmp_path: Path):
    folder = tmp_path / "run"
    spec = with_training(spec, learning_rate=0.9, schedule="constant", epochs=60)
    with pytest.raises(Diverged, match=r"the (loss|gradient) .* step \d+"):
        asyncio.run(train(spec, folder))
    reason = failure(folder)
    assert reason
    rows = curve.rows(folder)
    assert rows[-1].step < rows[-1].steps / 2
    assert not (folder / ADAPTER).exists()
    with pytest.raises(Diverged, match=re.escape(reason)):
        asyncio.run(train(spec, folder))
    assert curve.rows(folder) == rows, "it is not tried again"


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_as_if_nothing_had_happened(spec: TrainSpec, tmp_path: Path):
    import torch

    reference = train_here(spec, tmp_path / "whole")
    folder = tmp_path / "killed"
    begin(spec, folder)
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    with subprocess.Popen([sys.executable, "-m", "specialist.train", str(folder)], env=environment) as process:
        while process.poll() is None and last_checkpoint(folder) is None:
            threading.Event().wait(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not (folder / ADAPTER).exists()

    watched = Watched()
    made = asyncio.run(train(spec, folder, watched))
    assert [row.step for row in watched.rows] == [row.step for row in reference]
    for row, expected in zip(watched.rows, reference, strict=True):
        assert (row.loss or row.held_out) == pytest.approx(expected.loss or expected.held_out, rel=1e-3)
    seconds = [row.seconds for row in watched.rows]
    assert seconds == sorted(seconds)
    for name, value in weights(tmp_path / "whole").items():
        torch.testing.assert_close(weights(folder)[name], value, rtol=1e-3, atol=1e-4)
    # Asked again, it only tells what was.
    again = Watched()
    assert asyncio.run(train(spec, folder, again)).identity == made.identity
    assert again.rows == watched.rows


@pytest.mark.slow
def test_a_run_that_is_abandoned_ends_and_can_be_gone_on_with(spec: TrainSpec, tmp_path: Path):
    folder = tmp_path / "run"

    async def abandon() -> None:
        begun = asyncio.create_task(train(with_training(spec, epochs=2000), folder))
        while not curve.rows(folder):
            await asyncio.sleep(0.02)
        begun.cancel()
        await begun

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(abandon())
    done = curve.rows(folder)
    threading.Event().wait(0.5)
    assert curve.rows(folder) == done, "nobody trains any more"
    assert not (folder / ADAPTER).exists()


@pytest.mark.slow
def test_two_processes_train_together(spec: TrainSpec, tmp_path: Path):
    spec = spec.model_copy(update={"processes": 2})
    watched = Watched()
    made = asyncio.run(train(with_training(spec, epochs=8), tmp_path / "run", watched))
    losses = [row.loss for row in watched.rows if row.loss is not None]
    assert watched.plans[0].step_examples == 8
    assert len(losses) == 12
    assert losses[-1] < losses[0] / 2
    held_out = [row.held_out for row in watched.rows if row.held_out is not None]
    assert held_out[-1] < held_out[0] / 2
    assert made.identity == adapter.load(tmp_path / "run" / ADAPTER).identity


@pytest.mark.slow
def test_two_processes_learn_what_one_does(spec: TrainSpec, tmp_path: Path):
    import torch

    spec = with_training(spec, epochs=1, learning_rate=1e-3, batch=6, accumulation=1)
    asyncio.run(train(spec.model_copy(update={"processes": 2}), tmp_path / "two"))
    # One process with as many examples in a step sees the same ones.
    train_here(with_training(spec, batch=12), tmp_path / "one", batch=6)
    for name, value in weights(tmp_path / "one").items():
        torch.testing.assert_close(weights(tmp_path / "two")[name], value, rtol=1e-2, atol=2e-5)


@pytest.mark.slow
def test_what_goes_wrong_in_its_processes_is_told_with_their_log(spec: TrainSpec, tmp_path: Path):
    folder = tmp_path / "run"
    begin(spec, folder)
    told = json.loads((folder / "train.json").read_bytes())
    told["spec"]["dataset"] = str(tmp_path / "gone")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "train.json").write_text(json.dumps(told))
    done = subprocess.run(
        [sys.executable, "-m", "specialist.train", str(tmp_path / "elsewhere")], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert str(tmp_path / "gone") in done.stderr


@pytest.mark.gpu
@pytest.mark.slow
def test_a_gpu_trains(spec: TrainSpec, tmp_path: Path):
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU that torch can use")
    watched = Watched()
    made = asyncio.run(train(spec.model_copy(update={"device": "gpu", "processes": 1}), tmp_path / "run", watched))
    begun = watched.plans[0].begun
    assert begun is not None
    assert begun.setup.device == "gpu"
    held_out = [row.held_out for row in watched.rows if row.held_out is not None]
    assert held_out[-1] < held_out[0] / 3
    assert made.rank == 4


@pytest.mark.gpu
@pytest.mark.slow
def test_all_gpus_train_together(spec: TrainSpec, tmp_path: Path):
    import torch

    count = torch.cuda.device_count()
    if count < 2:
        pytest.skip("fewer than two GPUs that torch can use")
    watched = Watched()
    asyncio.run(train(spec.model_copy(update={"device": "gpu"}), tmp_path / "run", watched))
    assert watched.plans[0].step_examples == 4 * count
    held_out = [row.held_out for row in watched.rows if row.held_out is not None]
    assert held_out[-1] < held_out[0]
