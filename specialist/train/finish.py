"""The end of a training run: the adapter on disk, with its manifest."""

from __future__ import annotations

import json
import shutil
import statistics
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from specialist.adapter import CONFIG, MANIFEST, Manifest, identity_of
from specialist.example import Dataset
from specialist.train import curve
from specialist.train.spec import ADAPTER, Begun

LIBRARIES = ("automem", "torch", "transformers", "trl", "peft", "accelerate")

LAST = 10
"""Steps whose mean loss is an adapter's loss in training."""


def save(model: Any, folder: Path, begun: Begun) -> None:
    """Write a trained model's adapter and its manifest; the adapter's folder appears whole or not at all.

    Args:
        model: as PEFT made it.
        folder: of the run.
        begun: what the run was told.
    """
    draft = folder / f".{ADAPTER}.part"
    shutil.rmtree(draft, ignore_errors=True)
    model.save_pretrained(draft)
    (draft / "README.md").unlink(missing_ok=True)  # a form to fill in
    config = json.loads((draft / CONFIG).read_bytes())
    # Where the base model lies on this machine says nothing elsewhere.
    config["base_model_name_or_path"] = begun.base.name
    (draft / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True), encoding="utf-8")
    facts = Dataset(begun.spec.dataset).facts
    manifest = Manifest(
        identity=identity_of(draft),
        base=begun.base,
        recipe=begun.spec.recipe,
        data=begun.data,
        scaffold=facts.scaffold,
        game=facts.game,
        consult_turns=facts.consult_turns,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={name: version(name) for name in LIBRARIES},
        losses=losses(curve.rows(folder)),
    )
    (draft / MANIFEST).write_text(manifest.model_dump_json(indent=2), encoding="utf-8")
    draft.rename(folder / ADAPTER)


def losses(rows: list[curve.Row]) -> dict[str, float]:
    """A finished run's losses, as its manifest has them; those of held-out examples where there are any."""
    trained = [row.loss for row in rows if row.loss is not None]
    held_out = [row.held_out for row in rows if row.held_out is not None]
    found = {"train": statistics.fmean(trained[-LAST:])}
    if held_out:
        found |= {"held_out_before": held_out[0], "held_out_after": held_out[-1]}
    return found
