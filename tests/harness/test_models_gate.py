"""How many requests are sent at once: slow start, halving, and waiting when told to."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from harness.models.gate import START, Gate


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
    """Let all go as far as it can; where no timer or connection is, that is always the same."""
    for _ in range(20):
        await asyncio.sleep(0)


class Clock(asyncio.SelectorEventLoop):
    """An event loop on which only the test lets time pass."""

    now = 0.0

    def time(self) -> float:
        return self.now

    async def until(self, now: float) -> None:
        await settle()
        self.now = now
        await settle()


def run_by(clock: Clock, scenario: Callable[[], Awaitable[object]]) -> None:
    with asyncio.Runner(loop_factory=lambda: clock) as runner:
        runner.run(scenario())


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
    clock = Clock()

    async def scenario() -> None:
        gate = Gate(8)
        gate.hold(20)
        gate.hold(10)  # A shorter one does not shorten it.
        held = Holder(gate, 5)
        for now in (0, 10.1, 19.9):
            await clock.until(now)
            assert (len(held.sent), gate.gauge.waiting, gate.gauge.in_flight) == (0, 5, 0)
        await clock.until(20.1)
        assert (len(held.sent), gate.gauge.waiting, gate.gauge.in_flight) == (5, 0, 5)
        await held.end()

    run_by(clock, scenario)


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
    clock = Clock()

    async def scenario() -> None:
        gate = Gate(1)
        task = asyncio.create_task(gate.pause(10))
        await clock.until(9.9)
        assert (gate.gauge.waiting, gate.gauge.in_flight) == (1, 0)
        await clock.until(10.1)
        assert (gate.gauge.waiting, task.done()) == (0, True)

    run_by(clock, scenario)
