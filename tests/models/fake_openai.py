"""An OpenAI-compatible server on loopback that answers as a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One HTTP answer. `body` is sent as JSON unless it is bytes; `wait` is waited for before answering."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    wait: threading.Event | None = None


def completion(text: str = "hello", *, prompt: int = 11, written: int = 3, cached: int = 0, model: str = "toy") -> dict:
    """The body of a chat completion."""
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def refusal(status: int, message: str, **headers: str) -> Answer:
    """An error as OpenAI's servers send it."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"error": {"message": message, "type": "error", "code": None}}, names)


class FakeOpenAI:
    """The server's address, what it was asked, and what it will answer.

    Answers are used in order, the last one for every call after it.
    """

    def __init__(self, answers: list[Answer | Callable[[dict], Answer]], models: tuple[str, ...]) -> None:
        self.answers = answers
        self.models = models
        self.requests: list[dict] = []
        self.keys: list[str | None] = []
        self.most_at_once = 0
        self.at_once = 0
        self.lock = threading.Lock()
        self.base = ""

    def next_answer(self, request: dict, key: str | None) -> Answer:
        with self.lock:
            answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
            self.requests.append(request)
            self.keys.append(key)
        return answer(request) if callable(answer) else answer


@contextmanager
def fake_openai(
    *answers: Answer | Callable[[dict], Answer], models: tuple[str, ...] = ("toy",)
) -> Iterator[FakeOpenAI]:
    """Serve `answers` while the block runs."""
    fake = FakeOpenAI(list(answers) or [Answer(body=completion())], models)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def send(self, answer: Answer) -> None:
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send(Answer(body={"data": [{"id": name} for name in fake.models]}))

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with fake.lock:
                fake.at_once += 1
                fake.most_at_once = max(fake.most_at_once, fake.at_once)
            try:
                answer = fake.next_answer(request, self.headers.get("Authorization"))
                if answer.wait is not None:
                    answer.wait.wait(30)
                self.send(answer)
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                with fake.lock:
                    fake.at_once -= 1

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 1024

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    fake.base = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
