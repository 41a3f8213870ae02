"""`llm`: a decider that is any model which LiteLLM reaches, with tools to ask what came of earlier recipes."""

from specialist.search.deciders.llm.decider import LlmDecider, make

__all__ = ["LlmDecider", "make"]
