"""What a run shows when it is over."""

import io

from rich.console import Console

from harness import report
from harness.score import score


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
