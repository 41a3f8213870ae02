"""Keeping API keys out of everything that is shown or stored."""

from __future__ import annotations

import os
import re

_SECRET_NAME = re.compile(r"(_API_KEY|_KEY|_TOKEN|_SECRET|_PASSWORD)$")
_SECRET_SHAPES = (
    re.compile(r"\b(sk|gsk|xai|hf|key|pk)[-_][A-Za-z0-9_\-*]{6,}"),
    re.compile(r"(?<=[Bb]earer )\S+"),
    re.compile(r"(?i)(?<=key=)[^&\s]+"),
    re.compile(r"(?i)(?<=token=)[^&\s]+"),
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
)


def scrub(text: str, *secrets: str | None) -> str:
    """`text` without API keys: those given, those in the environment, and whatever looks like one."""
    known = {value for name, value in os.environ.items() if _SECRET_NAME.search(name)} | {s for s in secrets if s}
    # Longest first: a key may be part of another. Very short values would blank out ordinary words.
    for secret in sorted(known, key=len, reverse=True):
        if len(secret) >= 6:
            text = text.replace(secret, "***")
    for shape in _SECRET_SHAPES:
        text = shape.sub("***", text)
    return text
