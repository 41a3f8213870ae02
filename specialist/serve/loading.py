"""Adapters in and out of a running vLLM, through the interface that it has for that.

A server knows an adapter by a name made of its content (`Adapter.served_name`): that a name is there means that
this adapter is, whoever loaded it. Loading it again does nothing.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from automem.models.protocol import ModelUnavailable
from automem.models.secrets import scrub
from specialist.adapter import Adapter
from specialist.serve.slots import room_for

ANSWER_SECONDS = 10.0
"""How long a list of what is served may take."""

LOAD_SECONDS = 120.0
"""How long loading may take: a busy server reads the adapter between two of its steps, from a disk that may be slow."""

HOW_TO_START = (
    "Start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment and --enable-lora --max-lora-rank {rank},"
    " or with --enable-lora --max-lora-rank {rank} --lora-modules {name}={folder}"
)


@dataclass(frozen=True, slots=True)
class Served:
    """One model of a server's list.

    Attributes:
        name: under which it is asked.
        root: the folder or name that it was loaded from, as the server has it.
        parent: the base model's name where this is an adapter; None for a base model.
    """

    name: str
    root: str | None
    parent: str | None


def served(api_base: str, api_key: str | None = None) -> list[Served]:
    """All that the server at `api_base` (``http://HOST:PORT/v1``) serves. Raises `ModelUnavailable`."""
    answer = _call(f"{api_base}/models", None, api_key, ANSWER_SECONDS)
    try:
        models = json.loads(answer)["data"]
        return [Served(str(one["id"]), one.get("root"), one.get("parent")) for one in models]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ModelUnavailable(f"{scrub(api_base)} does not list what it serves: is it a vLLM?") from None


def loaded(api_base: str, api_key: str | None = None) -> frozenset[str]:
    """Names of the adapters that the server has. Raises `ModelUnavailable`."""
    return frozenset(one.name for one in served(api_base, api_key) if one.parent is not None)


def load(api_base: str, adapter: Adapter, api_key: str | None = None) -> bool:
    """Have the server at `api_base` load an adapter; what it answers meanwhile goes on.

    Returns whether this call loaded it: False when it was there, or another process was quicker. The server
    reads the adapter's folder, and may do so again later: it must be able to, and the folder must stay.
    Raises `ModelUnavailable`, with what to do.
    """
    name, folder = adapter.served_name, adapter.folder.resolve()
    if any(one.name == name for one in served(api_base, api_key)):
        return False
    try:
        _call(f"{api_base}/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)}, api_key, LOAD_SECONDS)
    except _Refused as refused:
        # Whoever was quicker loaded the same: the name says so.
        if name in loaded(api_base, api_key):
            return False
        raise ModelUnavailable(_why(refused, api_base, adapter)) from None
    return True


def unload(api_base: str, adapter: Adapter, api_key: str | None = None) -> bool:
    """Have the server forget an adapter. Returns whether it had it. Raises `ModelUnavailable`."""
    if adapter.served_name not in loaded(api_base, api_key):
        return False
    try:
        _call(f"{api_base}/unload_lora_adapter", {"lora_name": adapter.served_name}, api_key, ANSWER_SECONDS)
    except _Refused:
        if adapter.served_name in loaded(api_base, api_key):
            raise
        return False
    return True


class _Refused(ModelUnavailable):
    """The server answered, but with an error."""

    def __init__(self, status: int, said: str, where: str) -> None:
        super().__init__(f"the server at {where} answered with HTTP {status}: {said}")
        self.status, self.said = status, said


def _why(refused: _Refused, api_base: str, adapter: Adapter) -> str:
    """What to tell a person about an adapter that the server would not load."""
    where, folder = scrub(api_base), adapter.folder.resolve()
    rank = room_for(adapter.rank)
    start = HOW_TO_START.format(rank=rank, name=adapter.served_name, folder=folder)
    said = refused.said.lower()
    if refused.status in (401, 403):
        return f"the server at {where} refused the API key (HTTP {refused.status}), so {folder} was not loaded"
    if "enable-lora" in said or (refused.status in (404, 405) and "lora" not in said):
        return f"the server at {where} takes no adapters while it runs. {start}."
    if "max_lora_rank" in said:
        return (
            f"{folder} has rank {adapter.rank}, more than the server at {where} was started for."
            f" Start it with --max-lora-rank {rank}. It said: {refused.said}"
        )
    if refused.status == 404:
        return f"the server at {where} cannot read {folder}; it must see the same folder. It said: {refused.said}"
    return f"the server at {where} did not load {folder}. It said: {refused.said} (HTTP {refused.status})"


def _call(url: str, body: dict[str, Any] | None, api_key: str | None, seconds: float) -> str:
    """What the server answers. Raises `_Refused`, or `ModelUnavailable` when it gives no answer."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
    local = urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
    opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))
    where = scrub(url, api_key)
    try:
        with opener.open(request, timeout=seconds) as response:
            return response.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        raise _Refused(error.code, _said(error, api_key), where) from None
    except TimeoutError:
        raise ModelUnavailable(f"the server at {where} gave no answer within {seconds:.0f} s") from None
    except (OSError, http.client.HTTPException) as error:
        reason = scrub(str(getattr(error, "reason", None) or error or type(error).__name__), api_key)
        raise ModelUnavailable(f"no server answers at {where} ({reason})") from None


def _said(error: urllib.error.HTTPError, api_key: str | None) -> str:
    """The message of an error's body, at most 300 characters, without keys."""
    try:
        text = error.read(10_000).decode(errors="replace")
    except OSError:
        text = ""
    try:
        body = json.loads(text)
        text = body["error"]["message"] if "error" in body else str(body["detail"])
    except (ValueError, KeyError, TypeError):
        pass
    line = " ".join(scrub(str(text), api_key).split()) or str(error.reason)
    return line if len(line) <= 300 else line[:297] + "..."
