"""How many requests are sent at once: slow start, halving, and waiting when told to."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler

import pytest

from agentgym.errors import InvalidOption
from harness import models
from harness.models import Order
from harness.models.gate import START, Gate
from harness.models.openai_api import OpenAIModel
from harness.models.remote import Patience
from harness.request import Reply
from tests.harness.fault_server import QUICK, REQUEST, Answer, completion, refusal

GOOD = Answer(body=completion())


def run(scenario: Callable[[], Awaitable[object]]) -> object:
    return asyncio.run(asyncio.wait_for(scenario(), 20))


class Holder:
    """Requests that stay in flight until they are told how they end."""

    def __init__(self, gate: Gate, requests: int):
        self.gate = gate
        self.sent: list[tuple[int, asyncio.Future]] = []
        self.tasks = [asyncio.create_task(self._one()) for _ in range(requests)]

    async def _one(self) -> None:
        async with self.gate.slot() as burst:
            end = asyncio.get_running_loop().create_future()
            self.sent.append((burst, end))
            (self.gate.well if await end else lambda: self.gate.too_many(burst))()

    async def answer(self, *, well: bool, requests: int | None = None) -> int:
        """End those in flight, or so many of them; how many are in flight afterwards."""
        await settle()
        for _ in range(len(self.sent) if requests is None else requests):
            self.sent.pop(0)[1].set_result(well)
        await settle()
        return len(self.sent)

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_requests_in_flight_double_up_to_the_most() -> None:
    async def scenario() -> None:
        held = Holder(Gate(100), 500)
        rounds = [await held.answer(well=True, requests=0)]
        rounds += [await held.answer(well=True) for _ in range(5)]
        assert rounds == [START, 2 * START, 4 * START, 8 * START, 100, 100]
        await held.end()

    run(scenario)


def test_it_grows_only_where_the_limit_holds_somebody_back() -> None:
    async def scenario() -> None:
        gate = Gate(100)
        for _ in range(50):
            held = Holder(gate, START - 1)
            await held.answer(well=True)
        assert gate.gauge.limit == START

    run(scenario)


def test_a_burst_of_refusals_halves_it_once() -> None:
    async def scenario() -> None:
        gate = Gate(64)
        held = Holder(gate, 500)
        for _ in range(3):
            await held.answer(well=True)
        assert gate.gauge.limit == 64
        await held.answer(well=False, requests=40)
        assert gate.gauge.limit == 32
        # The rest of the 64 were sent before it was halved, and say nothing new.
        await held.answer(well=False, requests=24)
        assert gate.gauge.limit == 32
        assert len(held.sent) == 32
        await held.answer(well=False)
        assert gate.gauge.limit == 16
        await held.end()

    run(scenario)


def test_after_a_refusal_it_grows_by_one_a_round() -> None:
    async def scenario() -> None:
        gate = Gate(64)
        held = Holder(gate, 500)
        await held.answer(well=False)
        assert gate.gauge.limit == START // 2 == 4
        assert [await held.answer(well=True) for _ in range(4)] == [4, 5, 6, 7]
        await held.end()

    run(scenario)


def test_it_never_falls_below_one() -> None:
    async def scenario() -> None:
        gate = Gate(2)
        held = Holder(gate, 50)
        for _ in range(6):
            await held.answer(well=False)
        assert (gate.gauge.limit, len(held.sent)) == (1, 1)
        await held.end()

    run(scenario)


def test_when_told_to_wait_nobody_is_let_in() -> None:
    async def scenario() -> None:
        gate = Gate(8)
        begun = time.monotonic()
        gate.hold(0.2)
        gate.hold(0.1)  # A shorter one does not shorten it.
        entered: list[float] = []

        async def one() -> None:
            async with gate.slot():
                entered.append(time.monotonic() - begun)

        waiting = [asyncio.create_task(one()) for _ in range(5)]
        await asyncio.sleep(0.05)
        assert (entered, gate.gauge.waiting, gate.gauge.in_flight) == ([], 5, 0)
        await asyncio.gather(*waiting)
        assert min(entered) >= 0.19
        assert (gate.gauge.waiting, gate.gauge.in_flight) == (0, 0)

    run(scenario)


def test_first_come_first_served() -> None:
    async def scenario() -> None:
        gate, order = Gate(1), []

        async def one(number: int) -> None:
            async with gate.slot():
                order.append(number)
                await asyncio.sleep(0)

        await asyncio.gather(*map(one, range(10)))
        assert order == list(range(10))

    run(scenario)


@pytest.mark.parametrize("moment", ["while it waits", "when it is let in", "just before"])
def test_who_is_cancelled_takes_no_place(moment: str) -> None:
    async def scenario() -> None:
        gate = Gate(1)
        held = Holder(gate, 3)
        await settle()
        _, second, _ = held.tasks
        if moment == "while it waits":
            second.cancel()
            await settle()
            assert gate.gauge.waiting == 1
        held.sent.pop(0)[1].set_result(True)
        if moment == "when it is let in":
            await asyncio.sleep(0)
        second.cancel()  # The place may be its own by now, though it does not know.
        await settle()
        assert len(held.sent) == 1
        assert await held.answer(well=True) == 0
        assert (gate.gauge.waiting, gate.gauge.in_flight) == (0, 0)
        await held.end()

    run(scenario)


def test_a_pause_before_a_retry_counts_as_waiting() -> None:
    async def scenario() -> None:
        gate = Gate(1)
        task = asyncio.create_task(gate.pause(0.05))
        await settle()
        assert (gate.gauge.waiting, gate.gauge.in_flight) == (1, 0)
        await task
        assert gate.gauge.waiting == 0

    run(scenario)


# Over real HTTP


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


class Capacity(Answer):
    """Answers 429 when more than so many requests are here at once."""

    def __init__(self, most: int):
        super().__init__()
        self.most, self.here, self.refused, self.lock = most, 0, 0, threading.Lock()

    def send(self, handler) -> None:
        with self.lock:
            self.here += 1
            fits = self.here <= self.most
            self.refused += not fits
        time.sleep(0.01)
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

    async def two() -> list[Reply]:
        model = OpenAIModel(Order("openai/tiny", server.url), Patience(retries=1, pause=0.0))
        first = asyncio.create_task(model.reply(REQUEST))
        while not model.gauge.retries:
            await asyncio.sleep(0.005)
        replies = [await model.reply(REQUEST), await first]
        await model.close()
        return replies

    second, first = asyncio.run(two())
    assert (first.faults, second.faults) == ({"503": 1}, {})
    told, *after = [at for _, _, _, at in server.asked]
    assert min(after) - told >= 0.39
    assert second.seconds_waiting > 0.2


def test_too_many_requests_are_given_more_time_than_another_fault(serve) -> None:
    server = serve(Answer(429, refusal("slow down")), GOOD)

    async def once() -> Reply:
        model = OpenAIModel(Order("openai/tiny", server.url), Patience(retries=1, pause=0.1))
        reply = await model.reply(REQUEST)
        await model.close()
        return reply

    assert asyncio.run(once()).retries == 1
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
    assert sum(reply.seconds_waiting > 0.001 for reply in replies) >= 120


def test_no_more_requests_than_asked_for_are_in_flight(serve) -> None:
    most: list[int] = []

    class Slow(Answer):
        def send(self, handler: BaseHTTPRequestHandler) -> None:
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.1)
            inside.pop()
            GOOD.send(handler)

    inside: list[int] = []
    at_once(serve(Slow()).url, 3, 12)
    assert max(most) == 3
