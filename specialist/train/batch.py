"""The tensors of a forward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from specialist.train.schedule import common
from specialist.train.tokens import Tokenised

IGNORED = -100
"""The label of a token that is not learned, as PyTorch's losses have it."""

COLUMN = "examples"
"""The column of a dataset of passes: indexes of examples."""


class Collator:
    """Makes the tensors of a pass from indexes of examples."""

    def __init__(self, examples: Sequence[Tokenised], padding: int, sharing: bool) -> None:
        """Args: padding: the token id to fill up with; sharing: whether what all share is put apart."""
        self._examples = examples
        self._padding = padding
        self._sharing = sharing

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """See `tensors`; `rows` is one row of a dataset of passes."""
        (row,) = rows
        return tensors([self._examples[i] for i in row[COLUMN]], self._padding, self._sharing)


def tensors(examples: Sequence[Tokenised], padding: int, sharing: bool) -> dict[str, Tensor]:
    """The tensors of a pass, for `specialist.train.shared`.

    Rows are filled up on the left, so that the targets of all end in the last column.

    Returns:
        ``input_ids`` (examples, own): token ids without what is shared, `own` being the longest one's.
        ``attention_mask`` (examples, shared + own): 1 for tokens, 0 for filling.
        ``position_ids`` (examples, own): positions, from the beginning of what is shared.
        ``labels`` (examples, kept): the last `kept` token ids where they are a target's, else `IGNORED`; `kept` is
            one more than the longest target, as the token before a target predicts its first one.
        ``prefix_ids`` (1, shared): what all examples begin with; absent when nothing is put apart.
    """
    shared = common([one.prompt for one in examples]) if sharing and len(examples) > 1 else 0
    rows = [one.prompt[shared:] + one.target for one in examples]
    own = max(map(len, rows))
    kept = 1 + max(len(one.target) for one in examples)
    found = {
        "input_ids": torch.full((len(rows), own), padding),
        "attention_mask": torch.zeros((len(rows), shared + own), dtype=torch.long),
        "position_ids": torch.zeros((len(rows), own), dtype=torch.long),
        "labels": torch.full((len(rows), kept), IGNORED),
    }
    found["attention_mask"][:, :shared] = 1
    for at, (row, one) in enumerate(zip(rows, examples, strict=True)):
        found["input_ids"][at, own - len(row) :] = torch.tensor(row)
        found["attention_mask"][at, shared + own - len(row) :] = 1
        found["position_ids"][at, own - len(row) :] = torch.arange(shared, shared + len(row))
        found["labels"][at, kept - len(one.target) :] = torch.tensor(one.target)
    if shared:
        found["prefix_ids"] = torch.tensor([examples[0].prompt[:shared]])
    return found
