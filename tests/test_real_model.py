"""The whole path with a real model: agent, LiteLLM, vLLM, games, traces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from automem import trace
from automem.models.vllm_server import Attached

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.vllm
def test_smoke_is_played_by_the_embedded_model_eight_episodes_at_once(tmp_path: Path, smollm2_server: Attached) -> None:
    before = smollm2_server.prefix_cache()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "automem.cli",
            "eval",
            "smoke",
            "--model",
            "smollm2",
            "--workers",
            "8",
            "--run",
            "smoke",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((tmp_path / "runs" / "smoke" / "summary.json").read_text())
    assert (
        summary["complete"]
        and summary["episodes"] == 8
        and set(summary["per_game"]) == {"crafter", "minihack", "nethack"}
    )
    totals = summary["overall"]["behaviour"]["totals"]

    traces = sorted((tmp_path / "runs" / "smoke").glob("episodes/*/*/steps.jsonl.zst"))
    turns = [t for path in traces for record in trace.read(path)[0] for t in (*record.log, *record.plan)]
    assert len(traces) == 8 and len(turns) == totals["turns"]
    assert all(t.prompt_tokens > 500 and t.model == "smollm2" for t in turns)
    assert totals["prompt_tokens"] == sum(t.prompt_tokens for t in turns)
    # The system prompt is the same at every call of a game: most of what was read came from the cache.
    assert totals["cached_tokens"] > totals["prompt_tokens"] / 2

    # The server's own counters saw the same tokens.
    seen = smollm2_server.prefix_cache().since(before)
    assert seen.queries == totals["prompt_tokens"]
    assert seen.hits == totals["cached_tokens"]
