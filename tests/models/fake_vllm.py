"""Stands in for vLLM: same flags, same two processes, up at once. Run as a program.

FAKE_VLLM names a JSON file with how to behave; the environment and process ids go beside it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

METRICS = """# HELP vllm:prefix_cache_queries_total Prefix cache queries
vllm:prefix_cache_queries_total{engine="0",model_name="toy"} 1034.0
vllm:prefix_cache_hits_total{engine="0",model_name="toy"} 512.0
"""


def main() -> None:
    plan_file = Path(os.environ["FAKE_VLLM"])
    plan = json.loads(plan_file.read_text())
    starts = plan_file.with_suffix(".starts")
    with starts.open("a") as out:
        out.write("start\n")
    plan_file.with_suffix(".environment").write_text(json.dumps(dict(os.environ)))
    if len(starts.read_text().splitlines()) <= plan.get("port_taken", 0):
        sys.exit("OSError: [Errno 98] Address already in use")
    if plan.get("fails"):
        print("ValueError: this model is not for you", flush=True)
        sys.exit(1)
    # Like vLLM's engine: a second process, which a polite signal to the first does not end.
    ignores = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    )
    engine = subprocess.Popen([sys.executable, "-c", ignores], stdout=subprocess.PIPE)
    assert engine.stdout is not None
    engine.stdout.readline()
    plan_file.with_suffix(".pids").write_text(f"{os.getpid()} {engine.pid}")
    if plan.get("silent"):
        time.sleep(600)
    if plan.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    name = sys.argv[sys.argv.index("--served-model-name") + 1]
    port = int(sys.argv[sys.argv.index("--port") + 1])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(METRICS.encode() if self.path == "/metrics" else self.models())

        def models(self) -> bytes:
            return json.dumps({"data": [{"id": name}]}).encode()

        def log_message(self, *_: object) -> None:
            pass

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
