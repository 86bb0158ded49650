"""How many requests are sent at once, over real HTTP."""

import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler

import pytest

from agentgym.errors import InvalidOption
from harness import models
from harness.models import Order
from harness.models.gate import START
from harness.models.openai_api import OpenAIModel
from harness.models.remote import Patience
from harness.request import Reply
from tests.harness.fault_server import QUICK, REQUEST, Answer, completion, one_by_one, refusal

pytestmark = pytest.mark.usefixtures("bare_environment")

GOOD = Answer(body=completion())


class Capacity(Answer):
    """Answers 429 when more than so many requests are here at once; it has room until that is."""

    def __init__(self, most: int):
        super().__init__()
        self.most, self.here, self.refused, self.lock = most, 0, 0, threading.Lock()
        self.full = threading.Event()

    def send(self, handler) -> None:
        with self.lock:
            self.here += 1
            fits = self.here <= self.most
            self.refused += not fits
        if not fits:
            self.full.set()
        assert self.full.wait(20)
        time.sleep(0.01)  # Else a client that sends too many would seldom be caught.
        with self.lock:
            self.here -= 1
        (GOOD if fits else Answer(429, refusal("too many"))).send(handler)


def test_a_server_with_little_room_is_not_overrun(serve) -> None:
    server, capacity = serve(), Capacity(4)
    server.answers = [capacity]

    async def gather() -> tuple[list[Reply], OpenAIModel]:
        model = OpenAIModel(
            Order("openai/tiny", server.url, concurrency=64), Patience(retries=20, pause=0.01)
        )
        replies = await asyncio.gather(*(model.reply(REQUEST) for _ in range(200)))
        await model.close()
        return replies, model

    replies, model = asyncio.run(gather())
    assert {reply.stop_reason for reply in replies} == {"stop"}
    # Every refusal is in the record, and without the gate there would be at least 60 at the start.
    assert sum(reply.faults.get("429", 0) for reply in replies) == capacity.refused
    assert model.gauge.retries == sum(reply.retries for reply in replies) == capacity.refused
    assert 0 < capacity.refused < 60
    assert (model.gauge.in_flight, model.gauge.waiting) == (0, 0)
    assert model.gauge.limit <= START


def test_retry_after_holds_for_requests_that_were_not_told(serve) -> None:
    busy = Answer(503, refusal("busy"), {"retry-after": "0.4"})
    server = serve(busy, GOOD)

    async def two() -> tuple[Reply, Reply, float]:
        model = OpenAIModel(Order("openai/tiny", server.url), Patience(retries=1, pause=0.0))
        first = asyncio.create_task(model.reply(REQUEST))
        while not model.gauge.retries:
            await asyncio.sleep(0.005)
        asked = time.monotonic()
        second = await model.reply(REQUEST)
        await asyncio.wait({first})
        await model.close()
        return first.result(), second, asked

    first, second, asked = asyncio.run(two())
    assert (first.faults, second.faults) == ({"503": 1}, {})
    told, *after = [at for _, _, _, at in server.asked]
    assert min(after) - told >= 0.39
    assert second.seconds_waiting >= told + 0.39 - asked


def test_too_many_requests_are_given_more_time_than_another_fault(serve) -> None:
    server = serve(Answer(429, refusal("slow down")), GOOD)
    (reply,) = one_by_one(OpenAIModel(Order("openai/tiny", server.url), Patience(1, pause=0.1)))
    assert reply.retries == 1
    (_, _, _, first), (_, _, _, second) = server.asked
    assert second - first >= 0.39


@pytest.mark.slow
def test_more_connections_than_the_clients_own_limit(serve) -> None:
    resource = pytest.importorskip("resource", reason="Windows has no such limit.")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4000:
        pytest.skip("The system does not allow 4,000 open files.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4000), hard))
    requests, here = 1100, asyncio.Event

    async def scenario() -> int:
        all_here, count = here(), 0

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal count
            try:
                while head := await reader.readuntil(b"\r\n\r\n"):
                    length = next(x for x in head.lower().split(b"\r\n") if b"content-length" in x)
                    await reader.readexactly(int(length.split(b":")[1]))
                    if warm.is_set():
                        count += 1
                        if count == requests:
                            all_here.set()
                        await all_here.wait()
                    body = GOOD.body.encode()
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
                    writer.write(body)
            except asyncio.IncompleteReadError:
                writer.close()

        warm = asyncio.Event()
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = OpenAIModel(Order("openai/tiny", url, concurrency=requests), Patience(retries=0))
        while model.gauge.limit < requests:
            await asyncio.gather(*(model.reply(REQUEST) for _ in range(2 * requests)))
        warm.set()
        replies = await asyncio.gather(*(model.reply(REQUEST) for _ in range(requests)))
        await model.close()
        server.close()
        return sum(reply.stop_reason == "stop" for reply in replies)

    try:
        assert asyncio.run(asyncio.wait_for(scenario(), 120)) == requests
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_requests_than_the_system_allows_connections_are_refused(monkeypatch) -> None:
    resource = pytest.importorskip("resource", reason="Windows has no such limit.")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (200, 300))
    raised = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, to: raised.append(to))
    with pytest.raises(InvalidOption, match="at most 236 here, where the system allows 300 open"):
        models.load("openai/tiny", base_url="http://127.0.0.1:1/v1", concurrency=237)
    assert raised == []
    for concurrency, expected in ((236, [(300, 300)]), (100, [])):
        raised.clear()
        model = models.load("openai/tiny", base_url="http://x/v1", concurrency=concurrency)
        asyncio.run(model.close())
        assert raised == expected


class Together(Answer):
    """Waits until so many requests are here at the same time."""

    def __init__(self, requests: int):
        super().__init__()
        self.gate = threading.Barrier(requests)

    def send(self, handler: BaseHTTPRequestHandler) -> None:
        self.gate.wait(60)
        GOOD.send(handler)


def at_once(url: str, concurrency: int, *rounds: int) -> list[Reply]:
    """The replies of the last round; a round is over before the next begins."""

    async def gather() -> list[Reply]:
        model = OpenAIModel(Order("openai/tiny", url, concurrency=concurrency), QUICK)
        for requests in rounds:
            replies = await asyncio.gather(*(model.reply(REQUEST) for _ in range(requests)))
        await model.close()
        return replies

    return asyncio.run(gather())


def test_as_many_requests_as_asked_for_are_in_flight(serve) -> None:
    server = serve(*[GOOD] * 240, Together(120))
    # The first round is that of the slow start.
    replies = at_once(server.url, 120, 240, 240)
    assert [reply.retries for reply in replies] == [0] * 240
    # The second half waited for the first.
    waited = [reply.seconds_waiting for reply in replies]
    assert min(waited[120:]) > max(waited[:120])


def test_no_more_requests_than_asked_for_are_in_flight(serve) -> None:
    most: list[int] = []

    class Slow(Answer):
        def send(self, handler: BaseHTTPRequestHandler) -> None:
            inside.append(1)
            most.append(len(inside))
            if len(inside) == 3:
                full.set()
            assert full.wait(20)
            time.sleep(0.05)  # For a fourth to come, if it is not held back.
            inside.pop()
            GOOD.send(handler)

    inside, full = [], threading.Event()
    at_once(serve(Slow()).url, 3, 12)
    assert max(most) == 3
