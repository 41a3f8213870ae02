"""The `llm` reviewer as the loop knows it."""

from __future__ import annotations

from automem.models.protocol import ChatModel, ModelError
from meta.dialogue import LlmOptions
from meta.dialogue.model import make as make_model
from meta.dialogue.model import options_of
from meta.evidence import Evidence
from meta.reviewer import Desk, ReviewerUnavailable, Revision
from meta.reviewers.llm.review import review
from meta.settings import ReviewerSettings


class LlmReviewer:
    """See `meta.reviewer.Reviewer`."""

    def __init__(self, model: ChatModel, options: LlmOptions | None = None) -> None:
        """Nothing is contacted yet.

        Args:
            model: whom to ask; closed with the reviewer.
            options: how. Its sampling and patience are the model's own.
        """
        self.name = f"llm {model.name}"
        self._model = model
        self._options = options or LlmOptions()

    async def ready(self) -> None:
        """Check key and server. Raises `ReviewerUnavailable`."""
        try:
            await self._model.ready()
        except ModelError as error:
            raise ReviewerUnavailable(str(error)) from None

    async def revise(self, evidence: Evidence, desk: Desk) -> Revision:
        """Let the model work on the candidate; see `meta.reviewer.Reviewer.revise`."""
        return await review(self._model, self._options, evidence, desk)

    async def close(self) -> None:
        """Let go of connections."""
        await self._model.close()


def make(settings: ReviewerSettings) -> LlmReviewer:
    """The reviewer of these settings; reaches nothing. Raises `UserError`."""
    whose = "reviewer llm"
    options = options_of(LlmOptions, settings.options, whose)
    return LlmReviewer(make_model(settings.model, settings.api_base, options, whose), options)
