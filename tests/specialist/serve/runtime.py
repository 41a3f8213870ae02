"""Stands in for the part of vLLM that lists, loads and unloads adapters, and answers chats by their model's name."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def vllm_error(message: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": "any", "param": None, "code": code}}


@dataclass
class Runtime:
    """What the server has, what it was asked, and how it behaves."""

    url: str = ""
    adapters: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refuses: tuple[int, Any] | None = None
    """Status and body of every answer to a request to load."""
    wait_for: int = 1
    """How many requests to load must be there before the first is answered."""
    root: str = "/models/base"
    """Where the base model is, as the server has it."""
    key: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def loads(self) -> int:
        return sum(path == "/v1/load_lora_adapter" for path, _ in self.requests)

    def listed(self) -> dict[str, Any]:
        base = {"id": "base", "root": self.root, "parent": None}
        with self.lock:
            return {"data": [base, *({"id": n, "root": r, "parent": "base"} for n, r in self.adapters.items())]}

    def load(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self.refuses is not None:
            return self.refuses
        with self.lock:
            name = body["lora_name"]
            if name in self.adapters:
                return 400, vllm_error(f"The lora adapter '{name}' has already been loaded.", 400)
            self.adapters[name] = body["lora_path"]
        return 200, f"Success: LoRA adapter '{name}' added successfully."

    def unload(self, body: dict[str, Any]) -> tuple[int, Any]:
        with self.lock:
            if self.adapters.pop(body["lora_name"], None) is None:
                return 404, vllm_error("cannot be found", 404)
        return 200, "Success"

    def chat(self, body: dict[str, Any]) -> tuple[int, Any]:
        if body["model"] not in {"base", *self.adapters}:
            return 404, vllm_error(f"The model `{body['model']}` does not exist.", 404)
        message = {"role": "assistant", "content": f"I am {body['model']}"}
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "usage": usage} | {
            "choices": [choice]
        }


@contextmanager
def running(**behaviour: Any) -> Iterator[Runtime]:
    """A server on loopback; `Runtime.url` is its address with ``/v1``."""
    runtime = Runtime(**behaviour)
    barrier = threading.Barrier(runtime.wait_for)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(200, runtime.listed())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with runtime.lock:
                runtime.requests.append((self.path, body))
            if self.path == "/v1/load_lora_adapter":
                barrier.wait(20)
            act = {
                "/v1/load_lora_adapter": runtime.load,
                "/v1/unload_lora_adapter": runtime.unload,
                "/v1/chat/completions": runtime.chat,
            }[self.path]
            self.answer(*act(body))

        def answer(self, status: int, body: Any) -> None:
            if runtime.key is not None and self.headers.get("Authorization") != f"Bearer {runtime.key}":
                status, body = 401, {"error": "Unauthorized"}
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    runtime.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield runtime
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
