"""What the examples of a pass share is computed once, with its gradients.

The system message is most of a prompt, and the same in all of them. Its keys and values do not depend on what
follows, so one computation of them serves every example: the loss and its gradients are those of examples that were
computed one by one.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional
from transformers import DynamicCache, PreTrainedModel

from specialist.train.batch import IGNORED


def add_prefix(model: PreTrainedModel) -> None:
    """Let the model's forward take ``prefix_ids`` (1, shared): token ids that every row of the batch begins with.

    Both parts are one call, because gradients of many devices are joined call by call.
    """
    whole = model.forward

    def forward(*args: Any, prefix_ids: Tensor | None = None, **inputs: Any) -> Any:
        if prefix_ids is None:
            return whole(*args, **inputs)
        cache = DynamicCache(config=model.config)
        model.base_model(input_ids=prefix_ids, past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(inputs["input_ids"]))
        outputs = whole(*args, **inputs, past_key_values=cache)
        outputs.past_key_values = None
        return outputs

    model.forward = forward


def target_loss(model: Any, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Negative log-likelihood of each example's target of a pass, in nats, shape (examples,); and its target tokens.

    Logits are computed for the last columns only: a vocabulary is large, and prompts are not learned.
    """
    labels = inputs["labels"]
    rest = {name: tensor for name, tensor in inputs.items() if name != "labels"}
    logits = model(**rest, logits_to_keep=labels.shape[1]).logits[:, :-1]
    learned = labels[:, 1:] != IGNORED
    each = functional.cross_entropy(logits[learned].float(), labels[:, 1:][learned], reduction="none")
    rows = learned.nonzero()[:, 0]
    return each.new_zeros(len(labels)).index_add(0, rows, each), learned.sum(dim=1)
