"""Examples as tokens: those that the server sees at play, and those that a good reply would have added.

The server renders messages with the model's chat template and lets the model go on from there. So the prompt's
tokens here are the template's with the opening of a reply, and a target's are what follows in the template, up to
the token that ends a turn: what comes after it is never generated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from automem.errors import UserError
from automem.models.protocol import Message
from specialist import base_model
from specialist.example import Example

SHOWN = 6
"""Tokens shown on either side of where two lists part."""


@dataclass(frozen=True, slots=True)
class Tokenised:
    """One example.

    Attributes:
        prompt: token ids up to the opening of the reply.
        target: token ids of the reply and of the end of its turn; at least two.
        system: the text of its first message, which many examples have in common.
    """

    prompt: tuple[int, ...]
    target: tuple[int, ...]
    system: str = ""

    def __len__(self) -> int:
        """Tokens in all."""
        return len(self.prompt) + len(self.target)


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a list of examples can be trained on.

    Attributes:
        examples: in the order in which they were given.
        too_long: how many were left out because of their length.
        unsayable: how many were left out because their text holds a token that ends a turn.
        longest: tokens of the longest one of all.
    """

    examples: tuple[Tokenised, ...]
    too_long: int
    unsayable: int
    longest: int


class Tokens:
    """The tokens of a base model."""

    def __init__(self, folder: Path) -> None:
        """Read the tokenizer in a model's folder. Raises `UserError` when training cannot use it."""
        from transformers import AutoTokenizer

        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError) as error:
            raise UserError(f"{folder}: its tokenizer cannot be read: {error}") from error
        if not self._tokenizer.chat_template:
            raise UserError(f"{folder}: its tokenizer has no chat template, so it cannot be a chat model; take another")
        self._ends = _ends(self._tokenizer.eos_token_id, folder)
        if not self._ends:
            raise UserError(
                f"{folder}: neither its tokenizer nor generation_config.json names a token that ends a turn"
            )
        self._closings = tuple(self._text((end,)) for end in self._ends)

    @property
    def padding(self) -> int:
        """A token id to fill up with; never attended to."""
        found = self._tokenizer.pad_token_id
        return min(self._ends) if found is None else found

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Token ids of a conversation and of the opening of the reply to it."""
        return self._encoded(self._rendered(messages, opening=True))

    def conversation(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Token ids of a conversation, as the template writes one that is over."""
        return self._encoded(self._rendered(messages, opening=False))

    def example(self, example: Example) -> Tokenised:
        """Token ids of an example.

        Raises `UserError` when the model's template does not let a reply be told from its prompt, does not close it
        with a token at which the server stops, or changes its text.
        """
        reply: Message = {"role": "assistant", "content": example.target}
        opened = self._rendered(example.prompt, opening=True)
        whole = self._rendered([*example.prompt, reply], opening=False)
        if not whole.startswith(opened):
            told = self.difference(self._encoded(opened), self._encoded(whole))
            raise UserError(
                f"{example.source}: this model's chat template writes a prompt differently once it is answered, so it"
                f" would be trained on what it never sees at play: {told}. Take another base model"
            )
        # Apart from the prompt, as a reply comes about: no token of a prompt is ever merged with what follows.
        target = self._until_end(self._encoded(whole[len(opened) :]))
        if target is None or self._text(target[:-1]).strip() != example.target.strip():
            raise UserError(
                f"{example.source}: this model's chat template does not write the reply as it is, followed by a token"
                " that ends the turn, so it could not be learned. Take another base model"
            )
        prompt = self._encoded(opened)
        return Tokenised(prompt, target, example.prompt[0]["content"])

    def select(self, examples: Iterable[Example], cutoff: int) -> Selection:
        """Token ids of the examples that can be learned and have at most `cutoff` tokens.

        Raises `UserError` as `example` does.
        """
        given = list(examples)
        sayable = [one for one in given if not any(closing in one.target for closing in self._closings)]
        found = [self.example(one) for one in sayable]
        kept = tuple(one for one in found if len(one) <= cutoff)
        return Selection(kept, len(found) - len(kept), len(given) - len(found), max(map(len, found), default=0))

    def difference(self, ours: Sequence[int], theirs: Sequence[int]) -> str:
        """Where two lists of token ids part, as text for people."""
        at = next((i for i, pair in enumerate(zip(ours, theirs, strict=False)) if len(set(pair)) > 1), None)
        at = min(len(ours), len(theirs)) if at is None else at
        start = max(0, at - SHOWN)
        before, here, there = (
            self._text(ids) for ids in (ours[start:at], ours[at : at + SHOWN], theirs[at : at + SHOWN])
        )
        return f"from token {at} on, after {before!r}, {here!r} is not {there!r}"

    def _text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)

    def _rendered(self, messages: Sequence[Message], *, opening: bool) -> str:
        return self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=opening, tokenize=False)

    def _encoded(self, text: str) -> tuple[int, ...]:
        # The template writes what special tokens there are, and the server adds none either.
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _until_end(self, ids: tuple[int, ...]) -> tuple[int, ...] | None:
        """`ids` up to the first token that ends a turn; None when there is none, or nothing before it."""
        at = next((i for i, token in enumerate(ids) if token in self._ends), 0)
        return ids[: at + 1] if at else None


def _ends(eos: int | None, folder: Path) -> frozenset[int]:
    """The ids at which a server ends a turn: the tokenizer's, and those that the model's folder adds."""
    path = folder / "generation_config.json"
    more = base_model.read_json(path).get("eos_token_id") if path.is_file() else None
    listed = more if isinstance(more, list) else [more]
    return frozenset(token for token in (eos, *listed) if token is not None)
