"""The `llm` reviewer as the loop knows it."""

from __future__ import annotations

from pydantic import ValidationError

from automem.errors import UserError
from automem.models import litellm_model
from automem.models.litellm_model import LiteLLM, Patience
from automem.models.protocol import ChatModel, ModelError, Sampling
from meta.evidence import Evidence
from meta.reviewer import Desk, ReviewerUnavailable, Revision
from meta.reviewers.llm.options import LlmOptions
from meta.reviewers.llm.review import Review
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
        return await Review(self._model, self._options, evidence, desk).run()

    async def close(self) -> None:
        """Let go of connections."""
        await self._model.close()


def make(settings: ReviewerSettings) -> LlmReviewer:
    """The reviewer of these settings; reaches nothing. Raises `UserError`."""
    if not settings.model:
        raise UserError("reviewer llm: name the meta-LLM: --meta-model provider/model, such as openai/gpt-4o-mini")
    litellm_model.check(settings.model)
    try:
        options = LlmOptions.model_validate(settings.options)
    except ValidationError as error:
        listed = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UserError(f"reviewer llm: {listed}") from error
    model = LiteLLM(
        settings.model,
        Sampling(temperature=options.temperature, max_tokens=options.max_tokens),
        api_base=settings.api_base or None,
        patience=Patience(attempts=options.retries + 1, timeout=options.timeout),
    )
    return LlmReviewer(model, options)
