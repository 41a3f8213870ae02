"""A dialogue with a meta-LLM that works with tools: asked, answered, bounded, and recorded so that it can be resumed.

Whoever needs one brings tools, a room that they work on, and what the model is told (`meta.dialogue.dialogue`).
Tools that ask about traces are in `meta.dialogue.traces`.
"""

from meta.dialogue.dialogue import Dialogue, Words
from meta.dialogue.errors import DialogueFailed, DialogueUnavailable
from meta.dialogue.options import LlmOptions

__all__ = ["Dialogue", "DialogueFailed", "DialogueUnavailable", "LlmOptions", "Words"]
