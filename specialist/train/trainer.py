"""The training itself: TRL's trainer with PEFT's LoRA, on passes that were laid out beforehand. Runs in a process of
its own, one for each device."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from datasets import Dataset as Table
from peft import LoraConfig
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

from specialist import base_model
from specialist.example import Dataset
from specialist.recipe import Recipe
from specialist.train import finish
from specialist.train.batch import COLUMN, Collator
from specialist.train.progress import Progress, last_checkpoint
from specialist.train.shared import add_prefix, target_loss
from specialist.train.spec import CHECKPOINTS, Begun, Diverged, Setup
from specialist.train.work import Work, material, work


def train(folder: Path, begun: Begun) -> None:
    """Train what a folder was begun for, from its last checkpoint on, and leave the adapter there.

    Every process of a run calls this.

    Raises `Diverged`, and `UserError` when the data or the base model cannot be used.
    """
    base = base_model.folder(begun.spec.base)
    recipe = begun.spec.recipe
    planned = work(material(Dataset(begun.spec.dataset), base, recipe.train.cutoff), recipe.train, begun.setup)
    checkpoint = last_checkpoint(folder)
    trainer = SpecialistTrainer(folder, base, recipe, begun.setup, planned, resuming=checkpoint is not None)
    trainer.train(resume_from_checkpoint=checkpoint and str(checkpoint))
    if trainer.progress.stopped:
        raise Diverged(trainer.progress.stopped)
    if trainer.is_world_process_zero():
        finish.save(trainer.model, folder, begun)
    trainer.accelerator.wait_for_everyone()


class SpecialistTrainer(SFTTrainer):
    """TRL's trainer, with losses on targets only and what examples share computed once."""

    loss_is_scaled_for_ga = True

    def __init__(
        self, folder: Path, base: Path, recipe: Recipe, setup: Setup, planned: Work, *, resuming: bool
    ) -> None:
        """Load the base model and put a new adapter on it."""
        config = _config(folder, recipe, setup, planned, resuming)
        model = AutoModelForCausalLM.from_pretrained(base, dtype=setup.dtype, local_files_only=True)
        self.planned = planned
        self.progress = Progress(folder, planned)
        self._collate = Collator(planned.given.train.examples, planned.given.padding, planned.sharing)
        self._collate_held_out = Collator(planned.held_out, planned.given.padding, planned.sharing)
        super().__init__(
            model=model,
            args=config,
            data_collator=self._collate,
            train_dataset=Table.from_dict({COLUMN: [one for step in planned.schedule.steps for one in step]}),
            processing_class=AutoTokenizer.from_pretrained(base, local_files_only=True),
            peft_config=LoraConfig(
                task_type="CAUSAL_LM",
                r=recipe.lora.rank,
                lora_alpha=recipe.lora.alpha,
                lora_dropout=recipe.lora.dropout,
                target_modules=list(recipe.lora.modules),
            ),
            callbacks=[self.progress],
        )
        self.model_accepts_loss_kwargs = True  # a step's targets are counted, over all its passes and devices
        add_prefix(self.model.get_base_model())

    def compute_loss(
        self, model: Any, inputs: dict[str, Tensor], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Tensor:
        """The pass's part of the mean over the target tokens of the whole step."""
        summed, _ = target_loss(model, inputs)
        # Gradients of devices are averaged, but the tokens were counted over all of them.
        return summed.sum() / num_items_in_batch * self.accelerator.num_processes

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Measure and note the mean loss of the held-out examples' target tokens."""
        if not self.planned.measured:
            return {}
        started = time.monotonic()
        self.model.eval()
        mine = self.planned.measured[self.args.process_index :: self.args.world_size]
        found_here = []
        with torch.no_grad(), self.compute_loss_context_manager():
            for one in mine:
                inputs = self._prepare_inputs(self._collate_held_out([{COLUMN: one}]))
                summed, counts = (part.tolist() for part in target_loss(self.model, inputs))
                found_here += list(zip(one, summed, counts, strict=True))
        each = sorted(gather_object(found_here))
        loss = sum(summed for _, summed, _ in each) / sum(count for _, _, count in each)
        means = tuple(summed / count for _, summed, count in each)
        self.progress.measured(self.state, loss, means, time.monotonic() - started)
        found = {"eval_loss": loss}
        self.callback_handler.on_evaluate(self.args, self.state, self.control, found)
        return found

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: the manifest says what an adapter is."""


def _config(folder: Path, recipe: Recipe, setup: Setup, planned: Work, resuming: bool) -> SFTConfig:
    on_cpu = setup.device == "cpu"
    return SFTConfig(
        output_dir=str(folder / CHECKPOINTS),
        # A row of the data is a whole pass, in the order of the schedule.
        per_device_train_batch_size=1,
        gradient_accumulation_steps=planned.schedule.slots,
        train_sampling_strategy="sequential",
        dataset_kwargs={"skip_prepare_dataset": True},
        remove_unused_columns=False,
        num_train_epochs=1,
        learning_rate=recipe.train.learning_rate,
        lr_scheduler_type=recipe.train.schedule if recipe.train.warmup == 0 else _with_warmup(recipe),
        warmup_steps=recipe.train.warmup,
        weight_decay=recipe.train.weight_decay,
        seed=recipe.train.seed,
        bf16=setup.dtype == "bfloat16",
        use_cpu=on_cpu,
        ddp_backend="gloo" if on_cpu and setup.processes > 1 else None,
        dataloader_pin_memory=not on_cpu,
        gradient_checkpointing=setup.checkpointing,
        eval_on_start=not resuming,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        save_total_limit=2,
        disable_tqdm=True,
        report_to="none",
    )


def _with_warmup(recipe: Recipe) -> str:
    return "constant_with_warmup" if recipe.train.schedule == "constant" else recipe.train.schedule
