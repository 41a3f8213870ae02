"""`llm`: a reviewer that is any model which LiteLLM reaches, with tools to ask about runs and to edit the candidate."""

from meta.dialogue import LlmOptions
from meta.reviewers.llm.reviewer import LlmReviewer, make

__all__ = ["LlmOptions", "LlmReviewer", "make"]
