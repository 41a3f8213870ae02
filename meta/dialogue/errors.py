"""How a dialogue ends without a result."""

from __future__ import annotations

from automem.errors import UserError
from meta.reviewer import Spent


class DialogueFailed(Exception):
    """Nothing came of it: a budget ran out, or the model called no tools. The text says why.

    Taken up again, it ends so again.
    """

    def __init__(self, why: str, spent: Spent | None = None) -> None:
        super().__init__(why)
        self.spent = spent or Spent()


class DialogueUnavailable(UserError):
    """The model cannot be reached. When the cause is mended, the dialogue goes on where it was."""
