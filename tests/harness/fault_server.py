"""A server that gives scripted answers, faults among them, over real HTTP."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.models.remote import Patience
from harness.request import Model, Peek, Reply, Request

QUICK = Patience(retries=3, timeout=10.0, pause=0.01, longest_pause=0.05)
REQUEST = Request(({"role": "user", "content": "P__"},), 77, ("i", 0, 4), Peek(None, {}))


def completion(content: object = "```\nUp\n```", finish: str = "stop", **message: object) -> str:
    """The body of a chat completion of OpenAI's."""
    return json.dumps(
        {
            "choices": [{"message": {"content": content, **message}, "finish_reason": finish}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 5},
        }
    )


def refusal(
    message: str, code: object = None, kind: str | None = None, param: object = None
) -> str:
    """The body of a refusal of OpenAI's."""
    return json.dumps({"error": {"message": message, "code": code, "type": kind, "param": param}})


def one_by_one(model: Model, *requests: Request) -> list[Reply]:
    """What a model says to requests one after another; it is closed."""

    async def run() -> list[Reply]:
        try:
            return [await model.reply(request) for request in requests or (REQUEST,)]
        finally:
            await model.close()

    return asyncio.run(run())


class Answer:
    """One scripted HTTP answer."""

    def __init__(self, status: int = 200, body: str = "", headers: dict[str, str] | None = None):
        self.status, self.body, self.headers = status, body, headers or {}

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        data = self.body.encode()
        handler.send_response(self.status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(data)))
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)


class Hang(Answer):
    """No answer until the test is over."""

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        handler.server.over.wait()


class Dribble(Answer):
    """A byte now and then, so that no single read takes long, and never an end."""

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "100000")
        handler.end_headers()
        while not handler.server.over.wait(0.02):
            handler.wfile.write(b" ")
            handler.wfile.flush()


class Half(Answer):
    """A body that breaks off."""

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        handler.wfile.write(self.body.encode()[:20])
        handler.close_connection = True


class Echo(Answer):
    """Repeats the key that it was sent, as careless servers do."""

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        names = ("authorization", "x-api-key", "x-goog-api-key")
        said = next(filter(None, map(handler.headers.get, names))).removeprefix("Bearer ")
        Answer(self.status, self.body.replace("KEY", said)).send(handler)


class Server(ThreadingHTTPServer):
    """Gives the scripted answers in turn, the last one for ever, and keeps the requests."""

    daemon_threads = True
    request_queue_size = 512
    models: tuple[str, ...] | str | None = None
    """What it lists under /v1/models; a body as it is; None for a server without such a list."""

    def __init__(self, answers: list[Answer]):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers, self.asked, self.over = answers, [], threading.Event()
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone away is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path != "/v1/models" or self.server.models is None:
            return Answer(404, refusal("no such path")).send(self)
        if isinstance(self.server.models, str):
            return Answer(200, self.server.models).send(self)
        listed = [{"id": name, "object": "model"} for name in self.server.models]
        return Answer(200, json.dumps({"object": "list", "data": listed})).send(self)

    def do_POST(self) -> None:
        body = self.asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.server.asked.append((self.path, headers, body, time.monotonic()))
            number = len(self.server.asked)
        self.server.answers[min(number, len(self.server.answers)) - 1].send(self)

    def log_message(self, *arguments: object) -> None:
        """Keep the test output clean."""


@contextmanager
def scripted() -> Iterator:
    """A function that starts such servers; all of them end with the context."""
    servers = []

    def start(*answers: Answer) -> Server:
        server = Server(list(answers))
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        return server

    yield start
    for server in servers:
        server.over.set()
        server.shutdown()
        server.server_close()
