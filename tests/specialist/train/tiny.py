"""A tiny model of random weights, with a chat template and a tokenizer like the embedded model's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from specialist.example import Dataset, Example, Source, write

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def write_tiny(folder: Path, *, layers: int = 2, hidden: int = 32, seed: int = 0, **more: object) -> Path:
    """A Llama of some thousand weights, as Hugging Face lays it out: it reads bytes."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate([*special, *letters])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>", additional_special_tokens=special
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(special) + len(letters),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=2,
        pad_token_id=2,
        bos_token_id=1,
        initializer_range=0.3,  # an adapter leaves the embeddings as they are: with small ones nothing is ever sure
        **more,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def example(step: int, *, system: str = "You keep notes.", told: str = "", target: str | None = None) -> Example:
    """An example like a LOG phase: what was seen is written down."""
    thing = ("tree", "water", "stone", "coal", "sand")[step % 5]
    text = f"<|APPEND|>map.txt|{thing} {step % 3}<|END|>" if target is None else target
    return Example(
        prompt=(
            {"role": "system", "content": system},
            {"role": "user", "content": f"=== STEP {step} ===\nYou see {thing} {step % 3}.{told}"},
        ),
        target=text,
        source=Source(
            run="first", task="crafter", seed=1, step=step, phase="log", turn=0, kept=((0, len(text)),) if text else ()
        ),
    )


def write_dataset(folder: Path, train: Iterable[Example], held_out: Iterable[Example] = ()) -> Dataset:
    """A dataset of these examples."""
    return write(folder, train, held_out, scaffold="5" * 64, game="crafter", runs=["first"])
