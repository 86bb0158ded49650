"""Drives many episodes at once against one model, through two gates.

So many episodes are live; a finished one is refilled at once, and nobody waits for the slowest. So
many requests are in flight; there are more live episodes than that, so that while some games work
the model still has all that it can take. Games, and the writing of the record, run in threads: a
slow oracle or disk never holds up the event loop, on which the model's requests run. A turn goes
to a thread and back once, which takes some 25 microseconds.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import gymnasium as gym

from agentgym.errors import InvalidOption
from harness.episode import make, play
from harness.prices import Price
from harness.record import Episode, Key, Result
from harness.request import Model, Reply, Request
from harness.settings import Assignment

_UNNOTICED = 1e-4
"""Seconds before a slot was free that are not worth a new reply."""


@dataclass(frozen=True)
class Watch:
    """Who is told what happens; called on the event loop, must return at once.

    Attributes:
        on_reply: After every reply.
        on_episode: After every episode, once it is kept.
    """

    on_reply: Callable[[Key, Reply], None] = lambda key, reply: None
    on_episode: Callable[[Episode], None] = lambda episode: None


@dataclass(frozen=True)
class Gates:
    """How much goes on at once.

    Attributes:
        requests: In flight; None takes the model's number.
        episodes: Live; None takes twice the requests, since a game works while another waits.

    Raises:
        InvalidOption: A number below 1.
    """

    requests: int | None = None
    episodes: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("requests", "episodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidOption(f"{name} at once are at least 1, got {value!r}.")

    def within(self, model: Model) -> tuple[int, int]:
        """Requests in flight and live episodes for a model, as numbers."""
        requests = self.requests or model.concurrency
        return requests, self.episodes or 2 * requests


async def play_all(
    assignments: Iterable[Assignment] | AsyncIterable[Assignment],
    model: Model,
    *,
    keep: Callable[[Episode], None],
    watch: Watch | None = None,
    gates: Gates | None = None,
    price: Price | None = None,
) -> None:
    """Play every assignment and hand each episode to `keep` as it ends.

    Once an episode ends with `cost_limit` no more are begun: the run's money is spent.

    Args:
        assignments: Begun in this order. An asynchronous one may make its players wait, and is
            asked for the next by many at once, which an asynchronous generator is not made for.
        model: Answers the requests.
        keep: Called in a thread, for one episode at a time of each player; `Writer.append`.
        watch: Told of every reply and episode.
        gates: How much goes on at once.
        price: Of the model's tokens, for the record; None if unknown.

    Raises:
        FatalProviderError: The provider will never answer; what was played before is kept.
        RecordError: An episode could not be kept.
        AgentGymError: An environment cannot be made or played.
        CancelledError: The run was interrupted; what was played before is kept.
    """
    queue = aiter(assignments if isinstance(assignments, AsyncIterable) else _AtOnce(assignments))
    threads = ThreadPoolExecutor(_threads(), thread_name_prefix="game")
    requests, episodes = (gates or Gates()).within(model)
    slots = asyncio.Semaphore(requests)
    stage = _Stage(model, keep, watch or Watch(), price, threads, slots)
    players = [asyncio.create_task(_player(stage, queue)) for _ in range(episodes)]
    # What is there now lives as long as the run does; to look through it again and again for
    # garbage takes a sixth of the time of a turn.
    gc.freeze()
    try:
        await asyncio.gather(*players)
    finally:
        gc.unfreeze()
        for player in players:
            player.cancel()
        await asyncio.gather(*players, return_exceptions=True)
        # A game in the middle of a step, and a line half written, end before anybody goes on.
        threads.shutdown(wait=True, cancel_futures=True)


@dataclass
class _Stage:
    model: Model
    keep: Callable[[Episode], None]
    watch: Watch
    price: Price | None
    threads: ThreadPoolExecutor
    slots: asyncio.Semaphore
    spent: bool = False


class _AtOnce:
    """Assignments that all exist already: nobody waits for one."""

    def __init__(self, assignments: Iterable[Assignment]) -> None:
        self._rest = iter(assignments)

    def __aiter__(self) -> AsyncIterator[Assignment]:
        return self

    async def __anext__(self) -> Assignment:
        for assignment in self._rest:
            return assignment
        raise StopAsyncIteration


def _threads() -> int:
    return min(8, (os.cpu_count() or 1) + 1)


async def _player(stage: _Stage, queue: AsyncIterator[Assignment]) -> None:
    while not stage.spent and (assignment := await anext(queue, None)) is not None:
        episode = await _play_one(stage, assignment)
        stage.spent = stage.spent or episode.result is Result.COST_LIMIT
        stage.watch.on_episode(episode)


async def _play_one(stage: _Stage, assignment: Assignment) -> Episode:
    begun = await _in_thread(stage, _begin, stage, assignment)
    step = begun.first
    while isinstance(step, Request):
        reply = await _ask(stage, step)
        stage.watch.on_reply(assignment.key, reply)
        step = await _in_thread(stage, _advance, stage, begun.playing, reply)
    begun.env.close()
    return step


async def _ask(stage: _Stage, request: Request) -> Reply:
    """The model's reply, once there is a slot."""
    asked, gauge = time.perf_counter(), stage.model.gauge
    gauge.waiting += 1
    try:
        await stage.slots.acquire()
    finally:
        gauge.waiting -= 1
    waited = time.perf_counter() - asked
    try:
        reply = await stage.model.reply(request)
    finally:
        stage.slots.release()
    if reply.cached or waited < _UNNOTICED:
        return reply
    return replace(reply, seconds_waiting=reply.seconds_waiting + waited)


class _Begun(NamedTuple):
    env: gym.Env[Any, Any]
    playing: Generator[Request, Reply, Episode]
    first: Request | Episode


def _begin(stage: _Stage, assignment: Assignment) -> _Begun:
    env, model = make(assignment), stage.model
    sampling = model.settings.get("sampling")
    playing = play(env, assignment, model=model.name, sampling=sampling, price=stage.price)
    return _Begun(env, playing, _advance(stage, playing, None))


def _advance(
    stage: _Stage, playing: Generator[Request, Reply, Episode], reply: Reply | None
) -> Request | Episode:
    """Send a reply (None begins); the next request, or the episode, kept, when it has ended.

    A generator's end is an exception that a future cannot carry, so it is caught here. What has
    ended is kept at once, so that nothing can come between.
    """
    try:
        return next(playing) if reply is None else playing.send(reply)
    except StopIteration as end:
        stage.keep(end.value)
        return end.value


async def _in_thread(stage: _Stage, function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(stage.threads, function, *arguments)
