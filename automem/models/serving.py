"""Whether a server answers at an address, and serves the model that is wanted of it."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from automem.models.protocol import ModelUnavailable
from automem.models.secrets import scrub

OPENAI_COMPATIBLE = ("hosted_vllm", "openai", "custom_openai", "openai_like", "litellm_proxy", "lm_studio", "llamafile")
"""Providers whose servers list what they serve under ``/models``."""


def base_from_environment(name: str) -> str | None:
    """The address that LiteLLM would take from the environment for this provider."""
    provider = name.partition("/")[0].upper()
    for variable in (f"{provider}_API_BASE", f"{provider}_BASE_URL"):
        if os.environ.get(variable):
            return os.environ[variable].rstrip("/")
    return None


def check_server(name: str, base: str, key: str | None) -> None:
    """Ask the server at `base` what it serves. Raises `ModelUnavailable` when that shows that `name` cannot work."""
    provider, _, model = name.partition("/")
    shown = scrub(base)
    try:
        address = urlsplit(base)
        usable = address.scheme in ("http", "https") and (address.port or 1) > 0 and not any(map(str.isspace, base))
    except ValueError:
        usable = False
    if not usable:
        raise ModelUnavailable(f"{shown!r} is no address of a server: it should look like http://HOST:PORT/v1.")
    key = key or os.environ.get(f"{provider.upper()}_API_KEY")
    request = urllib.request.Request(f"{base}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
    local = address.hostname in ("localhost", "127.0.0.1", "::1")
    opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))
    try:
        with opener.open(request, timeout=10) as response:
            served = [str(entry["id"]) for entry in json.load(response)["data"]]
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise ModelUnavailable(
                f"{name}: the server at {shown} refused the API key (HTTP {error.code})."
                f" It is taken from {provider.upper()}_API_KEY."
            ) from None
        return  # it is there; not every server lists what it serves
    except (OSError, http.client.HTTPException) as error:  # refused, timed out, or something that speaks no HTTP
        reason = scrub(str(getattr(error, "reason", error)))
        raise ModelUnavailable(
            f"{name}: no server answers at {shown} ({reason}). Start it first, or give its address with --api-base."
        ) from None
    except (ValueError, KeyError, TypeError):
        return
    if provider in OPENAI_COMPATIBLE and served and model not in served:
        raise ModelUnavailable(f"{name}: the server at {shown} does not serve {model}, but: {', '.join(served[:10])}.")
