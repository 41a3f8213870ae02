"""What the processor can do that decides how models run on it."""

from __future__ import annotations

from pathlib import Path


def multiply_bfloat16() -> bool:
    """Whether the cores multiply in bfloat16 themselves; elsewhere it is several times slower than float32."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return any(flag in text for flag in ("avx512_bf16", "amx_bf16", " bf16"))
