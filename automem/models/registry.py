"""From the name of a model to a model that can be asked."""

from __future__ import annotations

import os

from automem.models.protocol import Model, Sampling

SCRIPTED = "scripted"
SMOLLM2 = "smollm2"
FIXED = "fixed"
NONE = "none"
OURS = {
    SCRIPTED: "a deterministic player, no language model; needs nothing",
    FIXED: "always the same reply, no language model; stands in for one where everything else is tried out",
    NONE: "nobody; for agents that ask no model",
    SMOLLM2: "SmolLM2-135M-Instruct, served by a vLLM of our own on this machine",
}
"""The names that are not LiteLLM's, each with what it is."""
NO_LANGUAGE_MODELS = frozenset({SCRIPTED, FIXED, NONE})
"""Those that are no language models: their results are never shown as one's."""


def check(name: str) -> None:
    """Whether `name` can be a model at all; reaches no server. Raises `UnknownModel`, with what to write instead."""
    if name in OURS:
        return
    from automem.models import litellm_model

    litellm_model.check(name)


def make_model(
    name: str,
    sampling: Sampling | None = None,
    *,
    api_base: str | None = None,
    api_key: str | None = None,
    processes: int = 0,
) -> Model:
    """The model of this name. Nothing is contacted or started before its `ready`.

    Args:
        name: ``scripted``, ``smollm2`` or LiteLLM's ``provider/model``.
        sampling: how it chooses its words; default greedy.
        api_base: address of the server, for ``provider/model``; default ``$AUTOMEM_API_BASE``,
            else the provider's own.
        api_key: default what LiteLLM finds in the environment.
        processes: for ``scripted``, whose thinking is our own work: how many processes share it;
            0 does it in this one.

    Raises:
        UnknownModel: no model has this name.
    """
    sampling = sampling or Sampling()
    if name == SCRIPTED:
        from automem.models.scripted.model import Scripted

        return Scripted(processes=processes)
    if name in (FIXED, NONE):
        from automem.models.fixed import Fixed, Nobody, first_action

        return Fixed(first_action) if name == FIXED else Nobody()
    if name == SMOLLM2:
        from automem.models import smollm2
        from automem.models.served import Served

        return Served(SMOLLM2, smollm2.server_config, smollm2.sampling_for(sampling))
    from automem.models.litellm_model import LiteLLM

    check(name)
    return LiteLLM(name, sampling, api_base=api_base or os.environ.get("AUTOMEM_API_BASE"), api_key=api_key)
