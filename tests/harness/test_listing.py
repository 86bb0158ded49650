"""`--list`: everything that can be named, a line each."""

import io

from rich.console import Console

from agentgym.registration import ROWS
from harness import eval as evaluation
from harness import listing, models, suites


def test_every_name_has_one_line(capsys):
    assert evaluation.main(["--list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    firsts = [line.split()[0] for line in lines if line.strip()]
    for name in (*suites.SUITES, *(f"agentgym/{row.id}" for row in ROWS)):
        assert firsts.count(name) == 1, name
    for name in models.TABLE:
        assert name in firsts
    text = "\n".join(lines)
    assert "level 6x6-2box, at most 30 turns" in text
    assert "Sokoban: push all boxes onto targets" in text
    assert "2048: slide and merge tiles" in text
    assert "3,200 episodes." in text


def test_a_narrow_terminal_cuts_lines_and_breaks_none():
    console = Console(file=io.StringIO(), force_terminal=True, width=40, color_system=None)

    listing.show(console)

    named = [line for line in console.file.getvalue().splitlines() if line.startswith("  ")]
    assert max(map(len, named)) == 40
    (small,) = (line for line in named if line.startswith("  smollm2-135m "))
    assert small.split()[1].startswith("SmolLM2")
    assert small[-1] == "…"
