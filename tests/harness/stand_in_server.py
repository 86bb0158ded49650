"""A stand-in for vLLM's server: the same command line, /v1/models and chat completions, no model.

Run as a program. What it does beside that is chosen by the name of the model: `slow` takes a second
to answer at all, `broken` writes a reason and ends, `stubborn` ignores SIGTERM, `mortal` ends with
its first chat completion.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TEXTS = ("model", "served-model-name", "host", "tool-call-parser", "generation-config")
NUMBERS = (
    *("port", "tensor-parallel-size", "data-parallel-size", "max-model-len", "max-num-seqs"),
    "kv-cache-memory-bytes",
)
SWITCHES = (
    *("enable-auto-tool-choice", "enable-prefix-caching", "language-model-only"),
    "enforce-eager",
)
"""Arguments of vLLM 0.32; any other is refused, as it would be."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": self.server.served, "object": "model"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "mortal" in self.server.kind:
            os._exit(7)
        message = {"role": "assistant", "content": f"```\n{asked['model']}\n```"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})

    def _send(self, answer: dict) -> None:
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Keep the log to what the tests look for."""


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in TEXTS:
        parser.add_argument(f"--{name}")
    for name in NUMBERS:
        parser.add_argument(f"--{name}", type=int)
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    kind = Path(given.model).name
    sys.stdout.write(f"loading {given.model}\n")
    sys.stdout.flush()
    if "broken" in kind:
        sys.exit("torch.OutOfMemoryError: the weights do not fit")
    if "stubborn" in kind:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "slow" in kind:
        time.sleep(1)
    # vLLM's engine is a process of its own.
    engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if record := os.environ.get("STAND_IN_RECORD"):
        told = {"pids": [os.getpid(), engine.pid], "given": vars(given), "found": dict(os.environ)}
        Path(record).write_text(json.dumps(told))
    server = ThreadingHTTPServer((given.host, given.port), Handler)
    server.served, server.kind = given.served_model_name, kind
    server.serve_forever()


if __name__ == "__main__":
    main()
