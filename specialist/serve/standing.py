"""A server that stands until it is told to end: what ``automem serve`` checks, starts and tells."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from automem.errors import UserError
from automem.models.vllm_server import Attached, ServerConfig, attach, covering
from specialist import adapter as adapters
from specialist.adapter import Adapter
from specialist.serve import loading
from specialist.serve.bases import base
from specialist.serve.model import merged_config
from specialist.serve.slots import check, slots_for


@dataclass(frozen=True, slots=True)
class Standing:
    """What is to be served; all of it was checked.

    Attributes:
        config: of the server.
        names: under which it will answer.
        to_load: adapters that are loaded once it is up.
    """

    config: ServerConfig
    names: tuple[str, ...]
    to_load: tuple[Adapter, ...]


def plan(
    model: str,
    specialists: Sequence[str],
    *,
    merged: bool = False,
    max_loras: int | None = None,
    max_rank: int | None = None,
) -> Standing:
    """Check everything that can be known before a server starts; makes the merged copy where that is asked for.

    Args:
        model: see `specialist.serve.bases.base`.
        specialists: folders of adapters.
        merged: serve the one specialist as a merged copy, and nothing else.
        max_loras, max_rank: see `specialist.serve.slots.slots_for`.

    Raises `UserError` with all that is wrong.
    """
    found = base(model)
    if merged and len(specialists) != 1:
        raise UserError(f"a merged copy holds one specialist; {len(specialists)} were given with --specialist")
    if merged and (max_loras or max_rank):
        raise UserError("a merged copy has no room for other specialists: leave out --max-loras and --max-rank")
    chosen = tuple({one.identity: one for one in map(adapters.load, specialists)}.values())
    if merged:
        return Standing(merged_config(found, chosen[0]), (chosen[0].served_name,), ())
    slots = slots_for(chosen, max_loras=max_loras, max_rank=max_rank)
    wrong = []
    for one in chosen:
        try:
            check(one, slots, model, found.fingerprint())
        except UserError as error:
            wrong.append(str(error))
    if wrong:
        raise UserError("\n".join(wrong))
    config = found.config(slots)
    return Standing(config, (config.served_name, *(one.served_name for one in chosen)), chosen)


def start(standing: Standing, port: int | None = None, stop: threading.Event | None = None) -> Attached:
    """Start or join the server, and load the specialists. It ends with its last user.

    Raises `UserError` when it runs already, but not at the port that is asked for; `ModelUnavailable` when it does
    not come up.
    """
    config = covering(standing.config)
    server = attach(config, stop=stop, port=port)
    try:
        running = urlsplit(server.api_base).port
        if port and running != port:
            raise UserError(f"{config.served_name} is being served already, at port {running}: leave --port out")
        for adapter in standing.to_load:
            loading.load(server.api_base, adapter)
    except BaseException:
        server.release()
        raise
    return server


def how_to_use(standing: Standing, server: Attached) -> list[str]:
    """Lines for a person: the address, what is served, and how to ask it."""
    asked = standing.names[-1]
    body = json.dumps({"model": asked, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 32})
    return [
        f"{'serving' if server.started else 'joined the server that runs'} at {server.api_base}",
        *(f"  {name}" for name in standing.names),
        f"log: {server.log}",
        "",
        "ask it:",
        f"  curl {server.api_base}/chat/completions -H 'Content-Type: application/json' -d {shlex.quote(body)}",
        "play with it:",
        f"  automem eval smoke --model {shlex.quote(f'hosted_vllm/{asked}')} --api-base {server.api_base}",
        "",
        "Ctrl-C ends it.",
    ]
