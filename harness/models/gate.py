"""How many requests a server is sent at once: found out, not guessed.

A gate begins with a few requests in flight and lets one more in for each reply, which doubles them
with every round (slow start). When the server says that it is too much, the number is halved, and
from then on it grows by one a round. That is how TCP finds a line's capacity (RFC 5681), with "too
many requests" in place of a lost packet. A burst counts once: refusals of requests that were sent
before the last halving say nothing new.

When a server says how long to wait, nobody asks before: every request waits, not only the one that
was told.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from harness.request import Gauge

START = 8
"""Requests in flight at the start."""


class Gate:
    """Lets requests through, as many at once as the server bears.

    Of one event loop; its methods are called on it.

    Attributes:
        gauge: Where the requests stand now.
    """

    def __init__(self, most: int) -> None:
        """Begin with `START` requests in flight, or fewer if so few are asked for.

        Args:
            most: Requests in flight at once that are never exceeded.
        """
        self.gauge = Gauge(limit=min(START, most))
        self._most = most
        self._limit = float(self.gauge.limit)
        self._slow_start = True
        self._burst = 0
        self._opens = 0.0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[int]:
        """Wait until a request may be sent, and hold its place while it is in flight.

        Yields:
            The burst that the request belongs to; `too_many` wants it back.
        """
        await self._enter()
        try:
            yield self._burst
        finally:
            self.gauge.in_flight -= 1
            self._admit()

    async def pause(self, seconds: float) -> None:
        """Wait before a retry, counted as waiting."""
        self.gauge.waiting += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self.gauge.waiting -= 1

    def hold(self, seconds: float) -> None:
        """Let nobody through for so long."""
        self._opens = max(self._opens, asyncio.get_running_loop().time() + seconds)

    def well(self) -> None:
        """A request in flight was answered: let more in, if the limit was what held them back."""
        if self.gauge.in_flight < self.gauge.limit:
            return
        grown = self._limit + (1 if self._slow_start else 1 / self._limit)
        self._set(min(grown, float(self._most)))

    def too_many(self, burst: int) -> None:
        """A request was refused because there are too many: let half as many in.

        Args:
            burst: What `slot` gave for the refused request.
        """
        if burst < self._burst:
            return
        self._burst += 1
        self._slow_start = False
        self._set(max(1.0, self._limit / 2))

    def _set(self, limit: float) -> None:
        self._limit = limit
        self.gauge.limit = int(limit)

    async def _enter(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        self.gauge.waiting += 1
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            self._left(place)
            raise

    def _left(self, place: asyncio.Future[None]) -> None:
        """Who is let in and cancelled at the same time gives the place to the next."""
        if not place.cancelled():
            self.gauge.in_flight -= 1
            self._admit()
        elif place in self._queue:
            self._queue.remove(place)
            self.gauge.waiting -= 1

    def _admit(self) -> None:
        """Let in those who wait, in their order."""
        loop = asyncio.get_running_loop()
        if self._queue and loop.time() < self._opens:
            if self._timer is None:
                self._timer = loop.call_at(self._opens, self._reopen)
            return
        while self._queue and self.gauge.in_flight < self.gauge.limit:
            place = self._queue.popleft()
            self.gauge.waiting -= 1
            if not place.cancelled():
                self.gauge.in_flight += 1
                place.set_result(None)

    def _reopen(self) -> None:
        self._timer = None
        self._admit()
