"""Log-probabilities of given tokens: from PEFT, and from vLLM."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

SCAFFOLDS = Path(__file__).parents[3] / "scaffolds"


def texts() -> list[str]:
    """Three texts of the kind that a specialist reads, of some 500 tokens each: all prompts of a game's scaffold."""
    folders = [SCAFFOLDS / game / "v0" / "prompts" for game in ("crafter", "minihack", "nethack")]
    return ["\n".join(file.read_text() for file in sorted(folder.glob("*.j2"))) for folder in folders]


def prompts(tokenizer: Any) -> list[list[int]]:
    """The texts as token ids."""
    conversations = [[{"role": "user", "content": text}] for text in texts()]
    return [
        tokenizer.apply_chat_template(conversation, add_generation_prompt=True, return_dict=False)
        for conversation in conversations
    ]


def from_model(model: Any, ids: list[int]) -> list[float]:
    """Log-probability (nats) of each token but the first, by a PyTorch model."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, :-1].float()
    return logits.log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()


def from_vllm(api_base: str, name: str, ids: list[int], write: int = 32) -> tuple[list[int], list[float]]:
    """Let a server go on for `write` tokens: all token ids, and the log-probability of each but the first."""
    body = {
        "model": name,
        "prompt": ids,
        "max_tokens": write,
        "ignore_eos": True,
        "temperature": 0,
        "logprobs": 0,
        "prompt_logprobs": 0,
        "return_token_ids": True,
    }
    request = urllib.request.Request(
        f"{api_base}/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=300) as response:
        choice = json.load(response)["choices"][0]
    read = [next(v["logprob"] for k, v in at.items() if int(k) == ids[i]) for i, at in _after_first(choice)]
    return ids + choice["token_ids"], read + choice["logprobs"]["token_logprobs"]


def _after_first(choice: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(choice["prompt_logprobs"]))[1:]
