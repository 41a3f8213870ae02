"""What specialists cost a server: loading one while it answers, and tokens per second with and without.

    python benchmarks/specialist_serving.py [--adapters 5] [--rank 8] [--busy 8] [--tokens 64] [--no-merged]

The embedded model; adapters of attention with random weights. First one server with room for adapters: they are
loaded while `--busy` requests are always in flight, none of whose prompts it has seen. Then the speed of the base
model and of a specialist there, and of a merged copy on a server of its own. Some 4 minutes on two cores.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.table import Table

from automem.models.vllm_server import attach
from specialist import adapter as adapters
from specialist.adapter import Adapter, BaseModelId, Manifest
from specialist.recipe import LoraRecipe, Recipe
from specialist.serve import loading
from specialist.serve.bases import base
from specialist.serve.merged import merged_folder
from specialist.serve.model import merged_config
from specialist.serve.slots import slots_for

WORDS = "You keep notes of a long game in files, and write down what each step has shown. "
_numbers = itertools.count()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adapters", type=int, default=5)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--busy", type=int, default=8, help="requests in flight")
    parser.add_argument("--tokens", type=int, default=64, help="tokens written for one request")
    parser.add_argument("--no-merged", action="store_true", help="leave the second server out")
    asked = parser.parse_args()
    console = Console()
    found = base("smollm2")
    with tempfile.TemporaryDirectory() as folder:
        made = [_adapter(Path(folder) / str(seed), seed, asked.rank) for seed in range(asked.adapters)]
        table = Table("server", "asked", "read tokens/s", "written tokens/s, 1 request", f"{asked.busy} at once")
        slots = slots_for([made[0]])
        with attach(found.config(slots)) as server:
            loads, answered, failed = load_while_busy(server.api_base, "smollm2", made, asked.busy, asked.tokens)
            console.print(
                f"loading into a busy server: median {statistics.median(loads) * 1000:.0f} ms, longest"
                f" {max(loads) * 1000:.0f} ms of {len(loads)}; {answered} requests answered meanwhile, {failed} failed"
            )
            room = f"with room for rank {slots.max_rank}"
            table.add_row(room, "base model", *speeds(server.api_base, "smollm2", asked.busy, asked.tokens))
            table.add_row(room, "specialist", *speeds(server.api_base, made[-1].served_name, asked.busy, asked.tokens))
        if not asked.no_merged:
            try:
                with attach(merged_config(found, made[-1])) as server:
                    name = made[-1].served_name
                    table.add_row("of its own", "merged copy", *speeds(server.api_base, name, asked.busy, asked.tokens))
            finally:
                shutil.rmtree(merged_folder(made[-1]), ignore_errors=True)
    console.print(table)


def load_while_busy(
    api_base: str, name: str, made: list[Adapter], busy: int, tokens: int
) -> tuple[list[float], int, int]:
    """Seconds that each adapter took, requests answered meanwhile, and requests that failed."""
    answered, failed, stop = itertools.count(), itertools.count(), threading.Event()
    counts = threading.Semaphore(0)

    def ask_on() -> None:
        while not stop.is_set():
            try:
                complete(api_base, name, _prompt(600), tokens)
                next(answered)
            except OSError:
                next(failed)
            counts.release()

    loads = []
    with ThreadPoolExecutor(busy) as pool:
        for _ in range(busy):
            pool.submit(ask_on)
        time.sleep(2)  # all of them are being read or written
        for one in made:
            began = time.monotonic()
            loading.load(api_base, one)
            loads.append(time.monotonic() - began)
            counts.acquire()  # the next one comes at another moment of their work
        stop.set()
    return loads, next(answered), next(failed)


def speeds(api_base: str, name: str, busy: int, tokens: int) -> tuple[str, str, str]:
    """Tokens per second: read by one request, written for one, written for several at once."""
    complete(api_base, name, _prompt(200), 8)
    began = time.monotonic()
    usage = complete(api_base, name, _prompt(1500), 1)
    read = usage["prompt_tokens"] / (time.monotonic() - began)
    prompts = [_prompt(100) for _ in range(busy)]
    for prompt in prompts:
        complete(api_base, name, prompt, 1)
    began = time.monotonic()
    complete(api_base, name, prompts[0], tokens)
    alone = tokens / (time.monotonic() - began)
    began = time.monotonic()
    with ThreadPoolExecutor(busy) as pool:
        list(pool.map(lambda prompt: complete(api_base, name, prompt, tokens), prompts))
    together = busy * tokens / (time.monotonic() - began)
    return f"{read:.0f}", f"{alone:.1f}", f"{together:.0f}"


def complete(api_base: str, name: str, prompt: str, tokens: int) -> dict[str, Any]:
    """Have `tokens` tokens written; what the server counted. Raises `OSError` when it refuses."""
    body = {"model": name, "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{api_base}/completions", json.dumps(body).encode(), headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=600) as response:
        return json.load(response)["usage"]


def _prompt(tokens: int) -> str:
    """A prompt of roughly so many tokens, whose beginning no other has."""
    return f"Game {next(_numbers)}. " + WORDS * (tokens // 17)


def _adapter(folder: Path, seed: int, rank: int) -> Adapter:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    found = base("smollm2")
    recipe = Recipe(lora=LoraRecipe(rank=rank, alpha=2 * rank, targets="attention"))
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=list(recipe.lora.modules), init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(found.folder()), config).save_pretrained(folder)
    manifest = Manifest(
        identity=adapters.identity_of(folder),
        base=BaseModelId(name=found.name, fingerprint=found.fingerprint()),
        recipe=recipe,
        data="",
        scaffold="",
        game="",
        consult_turns=1,
        created="",
        versions={},
        losses={},
    )
    (folder / adapters.MANIFEST).write_text(manifest.model_dump_json())
    return adapters.load(folder)


if __name__ == "__main__":
    main()
