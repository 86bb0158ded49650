"""Drives many episodes at once against one model.

Each of `concurrency` players plays one episode after another, so a finished one is refilled at
once and nobody waits for the slowest. Games, and the writing of the record, run in threads: a slow
oracle or disk never holds up the event loop, on which the model's requests run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from harness.episode import Assignment, make, play
from harness.record import Episode, Key
from harness.request import Model, Reply, Request


@dataclass(frozen=True)
class Watch:
    """Who is told what happens; called on the event loop, must return at once.

    Attributes:
        on_reply: After every reply.
        on_episode: After every episode, once it is kept.
    """

    on_reply: Callable[[Key, Reply], None] = lambda key, reply: None
    on_episode: Callable[[Episode], None] = lambda episode: None


async def play_all(
    assignments: Iterable[Assignment] | AsyncIterable[Assignment],
    model: Model,
    *,
    keep: Callable[[Episode], None],
    watch: Watch | None = None,
    concurrency: int | None = None,
) -> None:
    """Play every assignment and hand each episode to `keep` as it ends.

    Args:
        assignments: Begun in this order. An asynchronous one may make its players wait, and is
            asked for the next by many at once, which an asynchronous generator is not made for.
        model: Answers the requests.
        keep: Called in a thread, for one episode at a time of each player; `Writer.append`.
        watch: Told of every reply and episode.
        concurrency: Episodes at once; None takes the model's.

    Raises:
        FatalProviderError: The provider will never answer; what was played before is kept.
        RecordError: An episode could not be kept.
        AgentGymError: An environment cannot be made or played.
        CancelledError: The run was interrupted; what was played before is kept.
    """
    queue = aiter(assignments if isinstance(assignments, AsyncIterable) else _AtOnce(assignments))
    threads = ThreadPoolExecutor(_threads(), thread_name_prefix="game")
    stage = _Stage(model, keep, watch or Watch(), threads)
    players = [
        asyncio.create_task(_player(stage, queue)) for _ in range(concurrency or model.concurrency)
    ]
    try:
        await asyncio.gather(*players)
    finally:
        for player in players:
            player.cancel()
        await asyncio.gather(*players, return_exceptions=True)
        # A game in the middle of a step, and a line half written, end before anybody goes on.
        threads.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class _Stage:
    model: Model
    keep: Callable[[Episode], None]
    watch: Watch
    threads: ThreadPoolExecutor


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
    async for assignment in queue:
        episode = await _play_one(stage, assignment)
        await _in_thread(stage, stage.keep, episode)
        stage.watch.on_episode(episode)


async def _play_one(stage: _Stage, assignment: Assignment) -> Episode:
    env, playing = await _in_thread(stage, _begin, assignment, stage.model)
    step = await _in_thread(stage, _advance, playing, None)
    while isinstance(step, Request):
        reply = await stage.model.reply(step)
        stage.watch.on_reply(assignment.key, reply)
        step = await _in_thread(stage, _advance, playing, reply)
    env.close()
    return step


def _begin(
    assignment: Assignment, model: Model
) -> tuple[gym.Env[Any, Any], Generator[Request, Reply, Episode]]:
    env = make(assignment)
    sampling = model.settings.get("sampling")
    return env, play(env, assignment, model=model.name, sampling=sampling)


def _advance(playing: Generator[Request, Reply, Episode], reply: Reply | None) -> Request | Episode:
    """Send a reply (None begins); the next request, or the episode when it has ended.

    A generator's end is an exception that a future cannot carry, so it is caught here.
    """
    try:
        return next(playing) if reply is None else playing.send(reply)
    except StopIteration as end:
        return end.value


async def _in_thread(stage: _Stage, function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(stage.threads, function, *arguments)
