"""Who does the memory work of a run: from what a person names to models that can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from automem import evaluate
from automem.agent import Specialist
from automem.errors import UserError
from automem.models import registry
from automem.models.protocol import Model
from automem.runs import PlayedModel, PlayedSpecialist
from specialist import adapter as adapters
from specialist.adapter import MANIFEST, Adapter
from specialist.serve import bases
from specialist.serve.model import make_memory_model, make_pair, specialist_name

CONSULT_TURNS = 4
"""Replies of a PLAN phase in which a specialist that was not trained may read, where nobody says."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A specialist that was asked for, checked as far as nothing has to be reached.

    Attributes:
        played: as a run stores it.
        adapter: None for a model that needs none.
        base: the base model's name, as its server knows it.
        served: without an adapter, it is a base model on a server of ours.
    """

    played: PlayedSpecialist
    adapter: Adapter | None
    base: str
    served: bool = False


def choose(
    asked: PlayedModel, *, base: str = "", merged: bool = False, consult_turns: int = 0, served: bool = False
) -> Chosen:
    """What a person named.

    Args:
        asked: its name is the folder of an adapter, or a model's; with the address of its server and its sampling.
        base: for an adapter, how the server of its base model is named where it is not one of ours:
            ``hosted_vllm/NAME``.
        merged: serve a merged copy of base model and adapter.
        consult_turns: replies of a PLAN phase in which it may read; 0 is what it was trained on.
        served: for a model without an adapter: we serve it (`specialist.serve.bases`), and LiteLLM need not know it.

    Raises `UserError`.
    """
    folder = Path(asked.name)
    if not (folder / MANIFEST).is_file():
        if merged or base:
            raise UserError(f"{asked.name} is no adapter: there is no {MANIFEST} in it, so nothing can be merged")
        served = served or asked.name == registry.SMOLLM2
        if served:
            bases.base(asked.name)
        else:
            registry.check(asked.name)
        alone = PlayedSpecialist(model=asked, consult_turns=consult_turns or CONSULT_TURNS)
        return Chosen(alone, None, asked.name, served)
    found = adapters.load(folder)
    name = base or found.manifest.base.name
    played = PlayedSpecialist(
        model=asked.model_copy(update={"name": specialist_name(name, found, merged)}),
        adapter=str(folder.resolve()),
        identity=found.identity,
        merged=merged,
        consult_turns=consult_turns or max(1, found.manifest.consult_turns),
    )
    return Chosen(played, found, name)


def make(chosen: Chosen, gameplay: PlayedModel, player: Model, processes: int = 0) -> tuple[Model, Specialist]:
    """The model that acts and the specialist beside it; on one server where both need the same base model.

    Args:
        chosen: the specialist.
        gameplay: the model that acts, as a run stores it.
        player: that model, as it would be made without a specialist; nothing has been started for it.
        processes: of a specialist that is `scripted`; see `automem.models.registry.make_model`.
    """
    model, played = chosen.played.model, chosen.played
    if chosen.adapter is None and not chosen.served:
        return player, Specialist(evaluate.make_model(model, processes), played.consult_turns)
    if chosen.base == gameplay.name and not gameplay.api_base and not model.api_base:
        pair = make_pair(
            chosen.base, chosen.adapter, model.sampling, gameplay_sampling=gameplay.sampling, merged=played.merged
        )
        return pair.gameplay, Specialist(pair.memory, played.consult_turns)
    memory = make_memory_model(
        chosen.base, chosen.adapter, model.sampling, merged=played.merged, api_base=model.api_base
    )
    return player, Specialist(memory, played.consult_turns)
