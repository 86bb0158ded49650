"""What a run shows while it goes on."""

import asyncio
import io

from rich.console import Console

from harness import progress
from harness.progress import Counts, Display
from harness.record import Result
from harness.request import Gauge, Reply


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def plain():
    return Console(file=io.StringIO(), width=200)


def test_without_a_terminal_there_is_a_plain_line_now_and_then(played):
    console, clock = plain(), Clock()
    reply = Reply("x", completion_tokens=30)
    with Display(console, Counts(total=4), clock=clock) as display:
        watch = display.watch()
        for _ in range(6):
            watch.on_reply(played[0].key, reply)
            display.show()
        assert console.file.getvalue() == ""
        clock.now += 10
        display.show()
        display.show()
        watch.on_episode(played[0])
        watch.on_episode(played[1])
        clock.now += 10
        display.show()
        clock.now += 5
        watch.on_episode(played[1].model_copy(update={"result": Result.PROVIDER_ERROR}))
        watch.on_episode(played[1].model_copy(update={"result": Result.COST_LIMIT}))
        display.show()

    assert console.file.getvalue().splitlines() == [
        "0/4 episodes, success -, 6 turns, 0.6/s, 18 tokens/s",
        "2/4 episodes, success 0.50, 6 turns, 0.3/s, 9 tokens/s, 20 s left",
        "2/4 episodes, success 0.50, 6 turns, 0.2/s, 7 tokens/s, 1 provider errors, 1 unpaid, "
        "25 s left",
    ]


def test_the_line_comes_by_itself_when_nothing_happens(monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LOOKS", 0.001)
    console, clock = plain(), Clock()

    async def hang():
        with Display(console, Counts(total=1), clock=clock) as display:
            ticking = asyncio.create_task(display.tick())
            while console.file.getvalue().count("\n") < 3:
                clock.now += 10
                await asyncio.sleep(0.002)
            ticking.cancel()

    asyncio.run(asyncio.wait_for(hang(), 30))


def test_requests_are_shown_as_they_stand(played):
    gauge = Gauge()
    display = Display(plain(), Counts(total=4), gauge=gauge, clock=Clock())
    assert display.line() == "0/4 episodes, success -, 0 turns, 0.0/s"

    gauge.in_flight, gauge.waiting, gauge.retries = 12, 3, 4

    assert display.line().endswith("0.0/s, 12 in flight, 3 waiting, 4 retries")


def test_success_has_wilsons_interval_where_episodes_are_independent(played):
    display = Display(plain(), Counts(total=9, done=1, won=0, independent=True), clock=Clock())

    display.watch().on_episode(played[0])

    assert "success 0.50 [0.09, 0.91]" in display.status()
    for done in range(1, 400):
        none_won = Counts(total=999, done=done, independent=True)
        assert "success 0.00 [0.00, " in Display(plain(), none_won, clock=Clock()).status()


def test_replies_that_cost_nothing_are_not_speed(played):
    display = Display(plain(), Counts(total=9), clock=Clock())
    watch = display.watch()

    watch.on_reply(played[0].key, Reply("x", completion_tokens=5, cached=True))
    watch.on_reply(played[0].key, Reply("", stop_reason="provider_error"))

    assert " 1 turns" in display.line()
    assert "tokens" not in display.line()


def test_a_resumed_run_counts_what_was_played_before_but_not_as_speed(played):
    clock = Clock()
    display = Display(plain(), Counts(total=10, done=2, won=1), clock=clock)

    clock.now += 600
    display.watch().on_episode(played[0])

    assert display.line() == "3/10 episodes, success 0.67, 0 turns, 0.0/s, about 70 min left"


def test_in_a_terminal_there_is_a_bar(played):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with Display(console, Counts(total=2)) as display:
        display.watch().on_reply(played[0].key, Reply("x"))
        for each in played:
            display.watch().on_episode(each)
        display.show()

    text = console.file.getvalue()
    assert "2/2" in text
    assert "success 0.50, 1 turns" in text


def test_where_a_human_plays_nothing_is_shown_until_the_end(played):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    clock = Clock()
    with Display(console, Counts(total=2), live=False, clock=clock) as display:
        clock.now += 100
        display.watch().on_reply(played[0].key, Reply("x"))
        display.show()
        assert console.file.getvalue() == ""

    assert console.file.getvalue() == "0/2 episodes, success -, 1 turns, 0.0/s\n"
