"""What a run shows while it goes on and when it is over."""

import io

import pytest
from rich.console import Console

from harness import report
from harness.progress import Counts, Display
from harness.record import Result
from harness.request import Reply
from harness.score import score


@pytest.fixture
def played(assignment, finish, fenced):
    """Two episodes, one won."""
    won, _ = finish(assignment(), lambda request: fenced("Right"))
    limited, _ = finish(assignment(seed=1), lambda request: "no action in these many words")
    return [won, limited]


def shown(found, width=80):
    console = Console(file=io.StringIO(), width=width)
    report.show(found, console)
    return console.file.getvalue()


def test_the_table_says_means_intervals_endings_and_what_they_mean(played):
    text = shown(score(played))

    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "HarnessWalk-v0" in text
    assert "episodes 2" in lines
    assert "instances 2" in lines
    assert "success 0.500" in lines
    # Wilson's interval of one success in two.
    assert "[0.095, 0.905]" in lines
    assert "regret 0.000" in lines
    assert "invalid 0.500" in lines
    assert "ended 1 step_limit" in lines
    assert "1 won" in lines
    assert any(line.startswith("regret: turns beyond the fewest possible") for line in lines)
    assert "95 % interval" in text
    assert "tokens" not in text


def test_the_table_fits_a_narrow_terminal_with_many_environments(played):
    many = [
        each.model_copy(update={"key": each.key.model_copy(update={"kwargs": f'{{"k": {k}}}'})})
        for each in played
        for k in range(7)
    ]

    text = shown(score(many))

    assert max(map(len, text.splitlines())) <= 80
    assert text.count("instances  ") == 3
    assert "(k=6)" in text
    assert "all: shares averaged" in text


def test_an_empty_record_makes_no_table():
    assert shown(score([])) == "No episode was played.\n"


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_without_a_terminal_there_is_a_plain_line_now_and_then(played):
    console = Console(file=io.StringIO(), width=200)
    clock = Clock()
    reply = Reply("x", completion_tokens=30)
    with Display(console, Counts(total=4), clock=clock) as display:
        watch = display.watch()
        for _ in range(5):
            watch.on_reply(played[0].key, reply)
        assert console.file.getvalue() == ""
        clock.now += 10
        watch.on_reply(played[0].key, reply)
        watch.on_episode(played[0])
        clock.now += 10
        watch.on_episode(played[1])
        clock.now += 5
        spoilt = played[1].model_copy(update={"result": Result.PROVIDER_ERROR})
        watch.on_episode(spoilt)

    assert console.file.getvalue().splitlines() == [
        "0/4 episodes, success -, 6 turns, 0.6/s, 18 tokens/s",
        "2/4 episodes, success 0.50, 6 turns, 0.3/s, 9 tokens/s, 20 s left",
        "2/4 episodes, success 0.50, 6 turns, 0.2/s, 7 tokens/s, 1 provider errors, 25 s left",
    ]


def test_a_resumed_run_counts_what_was_played_before_but_not_as_speed(played):
    clock = Clock()
    display = Display(Console(file=io.StringIO()), Counts(total=10, done=2, won=1), clock=clock)

    clock.now += 600
    display.watch().on_episode(played[0])

    assert display.line() == "3/10 episodes, success 0.67, 0 turns, 0.0/s, about 70 min left"


def test_in_a_terminal_there_is_a_bar(played):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with Display(console, Counts(total=2)) as display:
        display.watch().on_reply(played[0].key, Reply("x"))
        for each in played:
            display.watch().on_episode(each)

    text = console.file.getvalue()
    assert "2/2" in text
    assert "success 0.50, 1 turns" in text


def test_where_a_human_plays_nothing_is_shown_until_the_end(played):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    clock = Clock()
    with Display(console, Counts(total=2), live=False, clock=clock) as display:
        clock.now += 100
        display.watch().on_reply(played[0].key, Reply("x"))
        assert console.file.getvalue() == ""

    assert console.file.getvalue() == "0/2 episodes, success -, 1 turns, 0.0/s\n"
