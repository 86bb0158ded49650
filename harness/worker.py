"""What runs inside each actor of a Ray cluster: a model, and the scheduler that plays it.

Nothing here imports Ray; `harness.cluster` makes actors of `Worker` and is the only one to talk to
them.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import agentgym
from agentgym.errors import AgentGymError
from harness import scheduler
from harness.prices import Purse
from harness.record import Episode, Key
from harness.request import Gauge, Model, Reply
from harness.scheduler import Watch
from harness.settings import Assignment
from harness.terms import Terms

_NEWS_SECONDS = 0.5
"""So long replies are collected before they are told of; an episode that ends is told at once."""


@dataclass(frozen=True)
class Introduction:
    """Who answers in a worker, and where.

    Attributes:
        name: Of the model.
        concurrency: Requests in flight at once.
        episodes: Live at once.
        settings: Of the model, for `run.json`.
        agentgym: Version of agentgym there.
        host: Name of the machine.
        process: Its number on that machine.
    """

    name: str
    concurrency: int
    episodes: int
    settings: dict[str, Any]
    agentgym: str
    host: str
    process: int


@dataclass
class News:
    """What happened in a worker since it was last asked.

    Attributes:
        replies: Key of the episode and the reply, without its text and token ids.
        episodes: Those that ended, in that order.
        gauge: Where the model's requests stand.
        ended: The worker plays nothing more: the run's money is spent.
        fault: Why the worker cannot go on; None if it can.
    """

    replies: list[tuple[Key, Reply]] = field(default_factory=list[tuple[Key, Reply]])
    episodes: list[Episode] = field(default_factory=list[Episode])
    gauge: Gauge = field(default_factory=Gauge)
    ended: bool = False
    fault: AgentGymError | None = None


class Failed(NamedTuple):
    """A model that could not be loaded.

    Attributes:
        host: Name of the machine.
        fault: Why.
    """

    host: str
    fault: AgentGymError


class Worker:
    """One model on one machine of a cluster, playing what it is handed; an actor's class."""

    def __init__(self) -> None:
        """Hold nothing yet; the model is loaded by `start`, whose faults reach the caller whole."""
        self._inbox = _Inbox()
        self._news = News()
        self._changed = asyncio.Event()
        self._model: Model | None = None
        self._purse = Purse(None, None)
        self._playing: asyncio.Task[None] | None = None

    async def start(self, terms: Terms, environment: Mapping[str, str]) -> Introduction | Failed:
        """Load the model and wait for assignments.

        Args:
            terms: How to play.
            environment: Variables, such as keys of providers, that the model may need.
        """
        os.environ.update(environment)
        try:
            self._purse = Purse(terms.price, terms.max_cost)
            # In a thread, because a loader may run an event loop of its own.
            self._model = model = await asyncio.to_thread(terms.model, self._purse)
        except AgentGymError as fault:
            return Failed(platform.node(), fault)
        self._playing = asyncio.create_task(self._play(model, terms))
        self._playing.add_done_callback(lambda task: self._changed.set())
        requests, episodes = terms.gates.within(model)
        return Introduction(
            name=model.name,
            concurrency=requests,
            episodes=episodes,
            settings=model.settings,
            agentgym=agentgym.__version__,
            host=platform.node(),
            process=os.getpid(),
        )

    async def _play(self, model: Model, terms: Terms) -> None:
        await scheduler.play_all(
            self._inbox,
            model,
            keep=lambda episode: None,
            watch=Watch(on_reply=self._on_reply, on_episode=self._on_episode),
            gates=terms.gates,
            price=terms.price,
        )

    def _on_reply(self, key: Key, reply: Reply) -> None:
        self._news.replies.append((key, _counted(reply)))

    def _on_episode(self, episode: Episode) -> None:
        self._news.episodes.append(episode)
        self._changed.set()

    async def exchange(self, more: Sequence[Assignment], spent: float) -> News:
        """Take more to play, and tell what happened once there is something to tell.

        Args:
            more: Assignments, begun in this order after those that were handed over before.
            spent: Of the run's money, by all workers.
        """
        self._purse.spent = max(self._purse.spent, spent)
        self._inbox.put(more)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), _NEWS_SECONDS)
        self._changed.clear()
        news, self._news = self._news, News()
        if self._model is not None:
            news.gauge = replace(self._model.gauge)
        news.fault = self._fault()
        news.ended = self._playing is not None and self._playing.done()
        return news

    def _fault(self) -> AgentGymError | None:
        """What ended the playing; a fault that is no user's is raised, with its place."""
        if self._playing is None or not self._playing.done():
            return None
        fault = self._playing.exception()
        if fault is None or isinstance(fault, AgentGymError):
            return fault
        raise fault

    async def close(self) -> None:
        """Stop playing and free what the model holds."""
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.gather(self._playing, return_exceptions=True)
        if self._model is not None:
            await self._model.close()


class _Inbox:
    """What a worker has still to begin; whoever asks for the next waits until there is one."""

    def __init__(self) -> None:
        self._waiting = asyncio.Queue[Assignment]()

    def put(self, more: Sequence[Assignment]) -> None:
        for assignment in more:
            self._waiting.put_nowait(assignment)

    def __aiter__(self) -> AsyncIterator[Assignment]:
        return self

    async def __anext__(self) -> Assignment:
        return await self._waiting.get()


def _counted(reply: Reply) -> Reply:
    """The reply as the display needs it; its content comes with the episode."""
    return replace(
        reply,
        text="",
        reasoning="",
        tool_calls=(),
        prompt_ids=None,
        completion_ids=None,
        logprobs=None,
    )
