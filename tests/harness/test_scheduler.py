"""Many episodes at once: the same as one by one, refilled, and stopped without loss."""

import asyncio
import hashlib
import threading
import time
from typing import ClassVar

import gymnasium as gym
import pytest

from agentgym.env import TextGameEnv
from agentgym.errors import InvalidOption, UnknownName
from harness import scheduler
from harness.episode import play
from harness.models import FatalProviderError
from harness.prices import Metered, Price, Purse
from harness.record import RecordError, Result, Writer
from harness.request import Gauge, Reply
from harness.scheduler import Gates, Watch, play_all
from tests.harness.records import read_all, timeless


class Listener:
    """Answers from the prompt and the key alone, after a pause that has nothing to do with them."""

    name = "listener"

    def __init__(self, concurrency=1, pauses=(0.0,)):
        self.concurrency = concurrency
        self.settings = {"sampling": {"seed": 5}}
        self.gauge = Gauge()
        self._pauses = pauses
        self._asked = self.at_once = self.most_at_once = 0

    async def reply(self, request):
        self._asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self._pauses[self._asked % len(self._pauses)])
        self.at_once -= 1
        digest = hashlib.sha256(repr((request.key, request.messages)).encode()).digest()
        return Reply("```\n{}\n```".format(("Left", "Right", "Right", "Up")[digest[0] % 4]))

    async def close(self):
        pass


class Answer(Listener):
    """Answers what a function says."""

    def __init__(self, answer, concurrency=2):
        super().__init__(concurrency)
        self._answer = answer

    async def reply(self, request):
        return self._answer(request)


@pytest.fixture
def many(assignment):
    """Assignments of 6 instances, 2 rollouts each, where chance matters."""
    return [
        assignment(seed=seed, rollout=rollout, kwargs='{"slippery": true}')
        for seed in range(6)
        for rollout in range(2)
    ]


def run(assignments, model, **arguments):
    kept = []
    asyncio.run(play_all(assignments, model, keep=kept.append, **arguments))
    return kept


def test_playing_together_equals_playing_alone(many):
    alone = run(many, Listener())
    together = run(many, Listener(concurrency=7, pauses=(0.0, 0.004, 0.001, 0.009)))

    assert len(alone) == len(many)
    assert sorted(map(timeless, together)) == sorted(map(timeless, alone))
    # The pauses do mix the order, else nothing is shown.
    assert [each.key for each in together] != [each.key for each in alone]


def test_the_record_says_who_played(many):
    [played] = run(many[:1], Listener())

    assert (played.model, played.sampling) == ("listener", {"seed": 5})


def test_a_finished_episode_is_refilled_without_waiting_for_the_slowest(many):
    ended, all_others = [], asyncio.Event()

    class OneIsSlow(Listener):
        async def reply(self, request):
            if request.key[:2] == slow:
                await asyncio.wait_for(all_others.wait(), 20)
            return await super().reply(request)

    def note(episode):
        ended.append((episode.instance, episode.key.rollout))
        if len(ended) == len(many) - 1:
            all_others.set()

    slow = (run(many[:1], Listener())[0].instance, 0)
    run(many, OneIsSlow(concurrency=2), watch=Watch(on_episode=note))

    assert ended.index(slow) == len(many) - 1


def test_assignments_may_come_while_it_plays(many):
    class Trickle:
        """Gives the next assignment a while after it was asked for."""

        def __init__(self):
            self.rest = list(many)

        def __aiter__(self):
            return self

        async def __anext__(self):
            await asyncio.sleep(0.001)
            if not self.rest:
                raise StopAsyncIteration
            return self.rest.pop(0)

    came = run(Trickle(), Listener(concurrency=3))

    assert sorted(map(timeless, came)) == sorted(map(timeless, run(many, Listener())))


@pytest.mark.parametrize("requests", [1, 3])
def test_no_more_requests_are_in_flight_than_asked_for(many, requests):
    model = Listener(concurrency=9, pauses=(0.002,))

    run(many, model, gates=Gates(requests=requests))

    assert model.most_at_once == requests


@pytest.mark.parametrize(
    ("gates", "live"),
    [(None, 6), (Gates(requests=1), 2), (Gates(episodes=5), 5), (Gates(3, 1), 1)],
)
def test_more_episodes_are_live_than_requests_in_flight_unless_asked_for(many, gates, live):
    begun, ended, live_then = set(), [], []

    class Noting(Listener):
        async def reply(self, request):
            begun.add(request.key[:2])
            live_then.append(len(begun) - len(ended))
            return await super().reply(request)

    model = Noting(concurrency=3, pauses=(0.002,))
    asyncio.run(play_all(many, model, keep=ended.append, gates=gates))

    assert len(ended) == len(many)
    assert max(live_then) <= live
    assert (max(live_then) > model.most_at_once) == (live > model.most_at_once)


@pytest.mark.parametrize("gates", [{"requests": 0}, {"episodes": -1}])
def test_a_gate_lets_at_least_one_through(gates):
    with pytest.raises(InvalidOption, match="at once are at least 1, got"):
        Gates(**gates)


def test_who_waits_for_a_slot_is_shown_and_the_time_is_told(many):
    class Holding(Listener):
        async def reply(self, request):
            async with asyncio.timeout(30):
                while not self._asked and not self.gauge.waiting:
                    await asyncio.sleep(0.001)
            return await super().reply(request)

    model = Holding(pauses=(0.01,))
    kept = run(many[:2], model, gates=Gates(requests=1, episodes=2))

    assert model.gauge.waiting == 0

    waited = [turn.seconds_waiting for episode in kept for turn in episode.turns]
    assert max(waited) >= 0.009
    assert all(seconds >= 0 for seconds in waited)


def test_the_price_reaches_the_record(many):
    model = Answer(lambda request: Reply("```\nRight\n```", prompt_tokens=10, completion_tokens=2))

    [episode] = run(many[:1], model, price=Price(100_000, 1_000_000))

    assert {turn.cost for turn in episode.turns} == {3.0}


def test_when_the_money_is_spent_live_episodes_end_and_no_more_are_begun(many):
    purse = Purse(Price(1, 0), 5.0)
    model = Answer(
        lambda request: Reply("```\nRight\n```", prompt_tokens=10**6, completion_tokens=1)
    )

    kept = run(many, Metered(model, purse), gates=Gates(requests=1, episodes=2))

    ended = [episode.result for episode in kept]
    assert purse.spent == 5
    assert ended.count(Result.COST_LIMIT) in (1, 2)
    assert len(kept) < len(many)
    assert sum(len(episode.turns) for episode in kept) == 5
    spoilt = next(each for each in kept if each.result is Result.COST_LIMIT)
    assert spoilt.error == purse.sentence


class Watched(TextGameEnv):
    """Notes the threads in which it works."""

    threads: ClassVar = set()

    def step(self, action):
        self.threads.add(threading.current_thread())
        return super().step(action)

    def reset(self, **arguments):
        self.threads.add(threading.current_thread())
        return super().reset(**arguments)


@pytest.fixture
def watched():
    gym.register(
        "agentgym/HarnessWatched-v0",
        entry_point=Watched,
        kwargs={"game": "tests.agentgym.walk_game", "max_turns": 5},
    )
    yield "agentgym/HarnessWatched-v0"
    del gym.registry["agentgym/HarnessWatched-v0"]


def test_games_and_disk_run_off_the_event_loop(assignment, watched):
    threads = set()

    def keep(episode):
        threads.add(threading.current_thread())

    asyncio.run(play_all([assignment(watched)], Listener(), keep=keep))

    assert threads
    assert Watched.threads
    assert threading.main_thread() not in threads | Watched.threads


def test_a_slow_disk_does_not_hold_up_the_other_players(many):
    first, writing, others_play = threading.Lock(), threading.Event(), threading.Event()
    played_on = []
    watch = Watch(lambda key, reply: writing.is_set() and others_play.set())

    def keep(episode):
        if first.acquire(blocking=False):
            writing.set()
            played_on.append(others_play.wait(20))

    asyncio.run(play_all(many, Listener(concurrency=4), keep=keep, watch=watch))

    assert played_on == [True]


def test_the_watch_hears_of_every_reply_and_episode(many):
    replies, episodes = [], []
    watch = Watch(lambda key, reply: replies.append(key), episodes.append)

    kept = run(many, Listener(concurrency=3), watch=watch)

    assert len(replies) == sum(len(each.turns) for each in kept)
    assert episodes == kept


def test_a_fatal_fault_of_the_provider_ends_the_run_and_keeps_what_was_played(many, tmp_path):
    last = many[-1].key.seed
    model = Answer(lambda request: refuse() if f"/{last}/" in request.key[0] else right)
    right = Reply("```\nRight\n```")

    def refuse():
        raise FatalProviderError("The server says 401: wrong key; set OPENAI_API_KEY.")

    with (
        Writer(tmp_path / "e.jsonl") as writer,
        pytest.raises(FatalProviderError, match="401"),
    ):
        asyncio.run(play_all(many, model, keep=writer.append))

    kept = read_all(tmp_path / "e.jsonl")
    assert {each.key for each in kept} < {each.key for each in many}
    assert len(kept) >= len(many) - 4


def test_nobody_is_left_waiting_for_a_reply_when_the_run_has_ended(many):
    left = []

    class Hanging(Listener):
        async def reply(self, request):
            if request.key[1] == 0:
                raise FatalProviderError("No.")
            left.append(request.key)
            try:
                await asyncio.sleep(60)
            finally:
                left.remove(request.key)

    async def until_fatal():
        with pytest.raises(FatalProviderError):
            await play_all(many[::-1], Hanging(concurrency=2), keep=lambda episode: None)
        return list(left)

    assert asyncio.run(until_fatal()) == []


def test_a_provider_error_costs_one_episode_only(many):
    def answer(request):
        if request.key[1] == 1:
            return Reply("", stop_reason="provider_error", error="500 five times.")
        return Reply("```\nRight\n```")

    kept = run(many, Answer(answer))

    spoilt = [each for each in kept if each.result is Result.PROVIDER_ERROR]
    assert len(kept) == len(many)
    assert {each.key.rollout for each in spoilt} == {1}


def test_a_full_disk_ends_the_run(many):
    def full(episode):
        raise RecordError("Cannot write e.jsonl: No space left on device.")

    with pytest.raises(RecordError, match="No space left"):
        asyncio.run(play_all(many, Listener(concurrency=3), keep=full))


def test_an_environment_that_cannot_be_made_ends_the_run(assignment):
    with pytest.raises(UnknownName, match="Unknown keyword argument of Walk"):
        run([assignment(kwargs='{"wings": 2}')], Listener())


def test_an_interrupted_run_ends_at_once_and_keeps_whole_lines(many, tmp_path):
    async def interrupt():
        with Writer(tmp_path / "e.jsonl") as writer:
            heard = asyncio.Event()
            playing = asyncio.create_task(
                play_all(
                    many,
                    Listener(concurrency=3, pauses=(0.001, 0.003)),
                    keep=writer.append,
                    watch=Watch(on_episode=lambda episode: heard.set()),
                )
            )
            await heard.wait()
            playing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await playing

    asyncio.run(interrupt())

    kept = read_all(tmp_path / "e.jsonl")
    assert 1 <= len(kept) < len(many)
    assert (tmp_path / "e.jsonl").read_bytes().endswith(b"\n")
    assert [thread.name for thread in threading.enumerate() if "game" in thread.name] == []


def test_nothing_to_play_is_no_fault():
    assert run([], Listener()) == []


def test_an_episode_that_has_ended_is_kept_even_when_the_run_stops_at_that_moment(
    many, monkeypatch
):
    ended, kept = [], []

    def noted(*arguments, **named):
        episode = yield from play(*arguments, **named)
        ended.append(episode.key)
        return episode

    def keep(episode):
        time.sleep(0.05)
        kept.append(episode.key)

    async def stop_early():
        playing = asyncio.create_task(play_all(many, Listener(concurrency=6), keep=keep))
        while len(ended) < 4:
            await asyncio.sleep(0.001)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    monkeypatch.setattr(scheduler, "play", noted)
    asyncio.run(stop_early())

    assert sorted(map(repr, kept)) == sorted(map(repr, ended))
    assert 4 <= len(kept) < len(many)
