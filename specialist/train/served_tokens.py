"""Whether a running server sees, for a prompt, the tokens that a specialist is trained on."""

from __future__ import annotations

import json
import random
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from automem.errors import UserError
from automem.models.protocol import Message
from specialist.example import Example
from specialist.train.tokens import Tokens

SAMPLE = 24
"""Examples compared at random, beside those that are compared in any case."""

SECONDS = 60.0


def check_server(tokens: Tokens, api_base: str, served_name: str, examples: Sequence[Example]) -> int:
    """Compare our token ids with those of vLLM's ``/tokenize``; the number of conversations compared.

    Args:
        tokens: those of the base model.
        api_base: the server's, ``http://127.0.0.1:<port>/v1``.
        served_name: what it calls the base model.
        examples: from which a sample is taken: one of every system message, the longest, the shortest, and others.

    Raises `UserError` with the first difference, or when the server does not answer.
    """
    url = f"{api_base.removesuffix('/').removesuffix('/v1')}/tokenize"
    compared = 0
    for example in _sample(examples):
        reply: Message = {"role": "assistant", "content": example.target}
        for messages, opening in ((example.prompt, True), ((*example.prompt, reply), False)):
            ours = tokens.prompt(messages) if opening else tokens.conversation(messages)
            theirs = _served(url, served_name, messages, opening)
            if ours != theirs:
                raise UserError(
                    f"{served_name} at {api_base} sees other tokens than training would, so a specialist would play"
                    f" on prompts it never met ({example.source}): {tokens.difference(ours, theirs)}. The server must"
                    " have the base model's own tokenizer and chat template"
                )
            compared += 1
    return compared


def _sample(examples: Sequence[Example]) -> list[Example]:
    def size(at: int) -> int:
        return sum(len(message["content"]) for message in examples[at].prompt)

    if not examples:
        return []
    systems = {example.prompt[0]["content"]: at for at, example in enumerate(examples)}
    order = range(len(examples))
    others = random.Random(0).sample(order, min(SAMPLE, len(examples)))
    chosen = {*systems.values(), max(order, key=size), min(order, key=size), *others}
    return [examples[at] for at in sorted(chosen)]


def _served(url: str, name: str, messages: Sequence[Message], opening: bool) -> tuple[int, ...]:
    body = json.dumps({"model": name, "messages": list(messages), "add_generation_prompt": opening}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    # No proxy: a server of ours is on loopback, whatever the environment says of the world outside.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=SECONDS) as response:
            answer: Any = json.load(response)
        return tuple(map(int, answer["tokens"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{url}: gives no tokens, so they cannot be compared ({error}); is it a vLLM?") from error
