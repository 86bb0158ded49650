"""Spreads the episodes of a run over a Ray cluster: `python -m harness.eval --ray ADDRESS`.

Each actor loads the model and plays with the same scheduler; this process hands assignments out
and alone writes the record, so a run over a cluster is recorded and resumed like any other. An
assignment is always in one of three places: waiting, held by one actor, or kept. When an actor
dies, what it held waits again, and another actor is asked for in its place.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from textwrap import shorten
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

import agentgym
from harness.demand import Demand, demand
from harness.handout import Work
from harness.joining import ClusterError, join, nodes
from harness.prices import Purse
from harness.record import Episode, Key
from harness.request import Gauge
from harness.run_folder import differences
from harness.scheduler import Watch
from harness.settings import Assignment
from harness.terms import Terms
from harness.worker import Failed, Introduction, News, Worker

KEYS = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "HF_TOKEN",
)
"""Variables of the environment that are handed to the actors, where this process has them."""
DEATHS = 3
"""So many deaths without an episode in between, and an actor is not replaced any more."""
_LOOK_SECONDS = 5.0
"""How often it is checked, while nothing plays, that the cluster still could."""
_CLOSE_SECONDS = 10.0


@dataclass
class _Slot:
    """The place of one actor; when it dies, the next one has the same place."""

    actor: Any
    starting: ray.ObjectRef[Introduction | Failed]
    at: Introduction | None = None
    held: dict[Key, Assignment] = field(default_factory=dict[Key, Assignment])
    gauge: Gauge = field(default_factory=Gauge)
    deaths: int = 0
    last_death: str = ""


class Cluster:
    """A model that plays in many processes of many machines; made by `connect`.

    Attributes:
        name: Of the model.
        concurrency: Requests in flight at once, over all actors that were asked for.
        settings: Of the model, for `run.json`; the actors must agree on them.
        gauge: Where the requests of all actors stand, as they last said.
    """

    def __init__(self, terms: Terms, need: Demand) -> None:
        """Ask a cluster, to which this process is connected, for the actors.

        Raises:
            ClusterError: It has no room for any, or none comes to life.
            AgentGymError: The model cannot be loaded.
        """
        self._terms = terms
        self._demand = need = need.fitted(nodes())
        self._environment = {name: os.environ[name] for name in KEYS if name in os.environ}
        count = need.actors(nodes())
        if not count:
            raise ClusterError(
                f"No node of the Ray cluster has {need} for this model, got {list(nodes())!r}; "
                "add such a node, or play without --ray."
            )
        self._slots = [_Slot(*self._actor()) for _ in range(count)]
        self._first = self._introduce()
        self.gauge = Gauge()

    def _actor(self) -> tuple[Any, ray.ObjectRef[Introduction | Failed]]:
        """Ask Ray for an actor, which comes when there is room; it and its introduction."""
        actor = _WORKER.options(
            num_cpus=1,
            num_gpus=self._demand.gpus,
            scheduling_strategy="SPREAD",
            max_restarts=0,
        ).remote()
        # Not by Ray's `runtime_env`, whose variables, keys too, end up in Ray's logs.
        return actor, actor.start.remote(self._terms, self._environment)

    def _introduce(self) -> Introduction:
        """Wait for the first actor that has its model."""
        while True:
            starting = {slot.starting: slot for slot in self._slots if slot.deaths < DEATHS}
            if not starting:
                raise self._no_actor_left()
            done, _ = ray.wait(list(starting), timeout=_LOOK_SECONDS)
            if not done:
                self._check_room()
                continue
            slot = starting[done[0]]
            try:
                return _welcome(slot, ray.get(done[0]), None)
            except RayTaskError:
                raise
            except RayError as fault:
                self._bury(slot, fault)

    def _bury(self, slot: _Slot, fault: RayError) -> tuple[Assignment, ...]:
        """Put another actor in a dead one's place, unless too many died; what it held."""
        orphans = tuple(slot.held.values())
        slot.held.clear()
        slot.at = None
        slot.gauge = Gauge()
        slot.deaths += 1
        slot.last_death = _cause(fault)
        # It may live and only be out of reach.
        ray.kill(slot.actor)
        if slot.deaths < DEATHS:
            slot.actor, slot.starting = self._actor()
        return orphans

    def _check_room(self) -> None:
        """Refuse to wait for what cannot come.

        Raises:
            ClusterError: No actor is alive, and no node that is alive could hold one.
        """
        if not any(slot.at for slot in self._slots) and not self._demand.actors(nodes()):
            raise ClusterError(
                f"No node with {self._demand} is left in the Ray cluster; mend the cluster, then "
                "the same command goes on."
            )

    def _no_actor_left(self) -> ClusterError:
        last = max(self._slots, key=lambda slot: slot.deaths).last_death
        return ClusterError(
            f"Every actor of the Ray cluster died {DEATHS} time(s) without ending an episode; Ray "
            f"says of one: {last} Mend that, then the same command goes on."
        )

    @property
    def name(self) -> str:
        """Of the model."""
        return self._first.name

    @property
    def concurrency(self) -> int:
        """Requests in flight at once."""
        return self._first.concurrency * len(self._slots)

    @property
    def settings(self) -> dict[str, Any]:
        """Of the model."""
        return self._first.settings

    def _sum_gauges(self) -> None:
        for each in fields(Gauge):
            total = sum(getattr(slot.gauge, each.name) for slot in self._slots)
            setattr(self.gauge, each.name, total)

    @property
    def workers(self) -> tuple[Introduction, ...]:
        """The actors that are up."""
        return tuple(slot.at for slot in self._slots if slot.at)

    async def play_all(
        self,
        assignments: Iterable[Assignment],
        *,
        keep: Callable[[Episode], None],
        watch: Watch | None = None,
        purse: Purse | None = None,
    ) -> None:
        """Play every assignment and hand each to `keep` as it ends, once; call this once.

        Args:
            assignments: Begun in this order, but for those that a dead actor held.
            keep: Called in a thread, for one episode at a time; `Writer.append`.
            watch: Told of every reply and episode.
            purse: Pays for every reply, and when it is empty no more episodes are begun; what it
                spent before counts.

        Raises:
            ClusterError: Nothing is left to play on; what was played before is kept.
            AgentGymError: As `harness.scheduler.play_all`.
        """
        work, thread = Work(assignments), ThreadPoolExecutor(1)
        stage = _Stage(work, keep, watch or Watch(), purse or Purse(None, None), thread)
        lanes = [asyncio.create_task(self._lane(slot, stage)) for slot in self._slots]
        finished = asyncio.create_task(work.finished.wait())
        try:
            running: set[asyncio.Task[Any]] = {*lanes, finished}
            while not work.finished.is_set():
                if running == {finished}:
                    if stage.purse.empty:
                        return
                    raise self._no_actor_left()
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in (*lanes, finished):
                task.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
            await asyncio.gather(*stage.keeping, return_exceptions=True)
            # A line half written ends before anybody goes on.
            thread.shutdown(wait=True)

    async def _lane(self, slot: _Slot, stage: _Stage) -> None:
        """Play on one actor, and on those in its place, until too many died or all is spent."""
        while slot.deaths < DEATHS:
            try:
                await self._start(slot)
                return await self._follow(slot, stage)
            except RayTaskError:
                raise
            except RayError as fault:
                stage.work.give_back(self._bury(slot, fault))

    async def _start(self, slot: _Slot) -> None:
        if slot.at is not None:
            return
        starting = asyncio.ensure_future(_result(slot.starting))
        try:
            while not starting.done():
                await asyncio.wait({starting}, timeout=_LOOK_SECONDS)
                if not starting.done():
                    self._check_room()
        finally:
            starting.cancel()
        _welcome(slot, starting.result(), self._first)

    async def _follow(self, slot: _Slot, stage: _Stage) -> None:
        """Hand assignments to an actor and take in what comes of them, until all is spent."""
        while slot.held or not stage.purse.empty:
            more = [] if stage.purse.empty else stage.work.take(self._room(slot, stage.work))
            slot.held.update({assignment.key: assignment for assignment in more})
            news: News = await slot.actor.exchange.remote(more, stage.purse.spent)
            slot.gauge = news.gauge
            self._sum_gauges()
            await stage.shielded(_take_in(news, slot, stage))
            if news.ended:
                return

    def _room(self, slot: _Slot, work: Work) -> int:
        """How many more an actor is handed.

        Some ahead of what it plays at once, so that it need not wait for the next; fewer as fewer
        are left, so that in the end no actor sits on what another could play.
        """
        actors = sum(slot.at is not None for slot in self._slots)
        share = -(-work.missing // actors)
        at_once = min(self._first.episodes, share)
        ahead = min(at_once, len(work.waiting) // (2 * actors))
        return at_once + ahead - len(slot.held)

    async def close(self) -> None:
        """End the actors and leave the cluster."""
        closing = [_result(slot.actor.close.remote()) for slot in self._slots if slot.at]
        tasks = [asyncio.ensure_future(each) for each in closing]
        if tasks:
            # An actor that hangs or died is ended all the same.
            await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        ray.shutdown()


# Ray gives the decorated class methods that its types do not have.
_WORKER: Any = ray.remote(Worker)


def _welcome(slot: _Slot, came: Introduction | Failed, first: Introduction | None) -> Introduction:
    """Note that an actor has its model; `first` is whose model it must equal.

    Raises:
        ClusterError: It could not load it, or it has another one.
    """
    if isinstance(came, Failed):
        raise ClusterError(f"On {came.host}: {came.fault}") from came.fault
    if came.agentgym != agentgym.__version__:
        raise ClusterError(
            f"{came.host} has agentgym {came.agentgym}, this machine {agentgym.__version__}; "
            "install the same version on both."
        )
    changes = list(differences(first.settings, came.settings, "settings")) if first else []
    if first and changes:
        raise ClusterError(
            f"{first.host} and {came.host} have loaded different models ({first.host} is there, "
            f"{came.host} is now): {'; '.join(changes[:5])}. Give both the same weights."
        )
    slot.at = came
    return came


@dataclass(frozen=True)
class _Stage:
    work: Work
    keep: Callable[[Episode], None]
    watch: Watch
    purse: Purse
    thread: ThreadPoolExecutor
    keeping: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def shielded(self, taking_in: Coroutine[Any, Any, None]) -> None:
        """Let what an actor told be kept whole, also where the run is stopped meanwhile."""
        task = asyncio.create_task(taking_in)
        self.keeping.add(task)
        task.add_done_callback(self.keeping.discard)
        await asyncio.shield(task)


async def _take_in(news: News, slot: _Slot, stage: _Stage) -> None:
    """Keep what ended, tell who watches, and raise what ended the actor's playing."""
    for key, reply in news.replies:
        stage.purse.pay(reply)
        stage.watch.on_reply(key, reply)
    for episode in news.episodes:
        await _keep(episode, slot, stage)
    if news.fault is not None:
        raise news.fault


async def _keep(episode: Episode, slot: _Slot, stage: _Stage) -> None:
    if episode.key not in slot.held:
        return
    await asyncio.get_running_loop().run_in_executor(stage.thread, stage.keep, episode)
    del slot.held[episode.key]
    slot.deaths = 0
    stage.work.kept()
    stage.watch.on_episode(episode)


def _cause(fault: RayError) -> str:
    """The end of what Ray says, which has the cause, in one line and without colours."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", str(fault)).strip()
    return shorten(plain.splitlines()[-1], 300) if plain else type(fault).__name__


async def _result(reference: ray.ObjectRef[Any]) -> Any:
    return await reference


def connect(address: str, terms: Terms) -> Cluster:
    """Connect to a Ray cluster and let a model play on it.

    Args:
        address: "auto" for the cluster that this machine belongs to, "local" for one that is
            started for this run, else HOST:PORT of the head.
        terms: How each actor plays.

    Raises:
        InvalidOption: An address of another form, or a model that plays in this process only.
        ClusterError: No cluster there, or it has no room.
        AgentGymError: The model cannot be loaded.
    """
    need = demand(terms.load.args[0], terms.load.keywords)
    if need.requests and not terms.load.keywords.get("concurrency"):
        terms = replace(terms, load=partial(terms.load, concurrency=need.requests))
    join(address)
    try:
        return Cluster(terms, need)
    except BaseException:
        ray.shutdown()
        raise
