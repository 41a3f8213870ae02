"""`llm`: an engine in which a meta-LLM judges candidates in context, by written criteria that it may revise."""

from specialist.select.llm.criteria import Criteria
from specialist.select.llm.engine import LlmEngine, make

__all__ = ["Criteria", "LlmEngine", "make"]
