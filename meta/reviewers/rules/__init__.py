"""`rules`: a reviewer without a language model, whose proposals follow from measured figures."""

from meta.reviewers.rules.reviewer import Rules

__all__ = ["Rules"]
