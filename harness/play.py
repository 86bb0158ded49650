"""`python -m harness.play`: you play one instance in this terminal, with hints from the oracle."""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from agentgym.errors import InvalidOption
from harness import commands, episode, record, run_folder, scheduler, suites
from harness.models.human import HINT, Human
from harness.record import Episode, Result
from harness.settings import Assignment
from harness.suites import Suite
from harness.verdicts import MISTAKES, judged

_ABOUT = f"""Play a game in this terminal. You see what a model sees; {HINT} asks the oracle for \
the best actions and the distance to a win, quit, Ctrl-C or Ctrl-D stop.

Each episode that you play to the end is recorded as a model's is, the hints that you asked for \
too, and the same command again plays the next instance."""

_ENDINGS = {
    Result.WON: "Won",
    Result.LOST: "Lost",
    Result.STEP_LIMIT: "Out of turns",
}


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The command line."""

    env_id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(name="id")]
    """What is played, such as agentgym/Sokoban-v0; harness.eval --list has them all."""
    level: str | None = None
    """Level in place of the id's own."""
    option: tuple[str, ...] = ()
    """More keyword arguments of gym.make, as NAME=VALUE with a JSON value or plain text."""
    split: Literal["train", "validation", "test"] = "test"
    """Which instances."""
    seed: int | None = None
    """Which instance; the first that you have not played yet if not given."""
    max_turns: int | None = None
    """Turn limit, in place of the environment's own."""
    out: Path | None = None
    """Folder of the run; runs/human-ID with what differs from the id's own if not given."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status.

    0: played to the end. 1: it cannot be played. 2: the arguments are wrong. 130: stopped.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    arguments = tyro.cli(
        Arguments,
        prog="python -m harness.play",
        description=_ABOUT,
        args=given,
        config=(tyro.conf.DisallowNone,),
    )
    stopped = "Stopped; an episode that is not played to its end is not recorded."
    return commands.run(partial(_play_one, arguments, given, Console()), stopped=stopped)


def _play_one(arguments: Arguments, given: Sequence[str], console: Console) -> int:
    played, path = _play(arguments, given, console)
    _show_end(played, path, console)
    return 0


def _play(arguments: Arguments, given: Sequence[str], console: Console) -> tuple[Episode, Path]:
    """Play one episode; it, and the path of the record."""
    suite = _suite(arguments)
    [first] = suites.assignments(suite)
    episode.make(first).close()  # What cannot be made is said before a folder is.
    human = Human(console=console, hints=True)
    folder = arguments.out or Path("runs") / _folder_name(arguments)
    path = run_folder.enter(folder, _configuration(suite, human), given)
    with record.Writer(path) as writer:
        assignment = _next(first, arguments.seed, record.read(path))
        said = f"Instance {assignment.key.seed} of {first.key.env_id}, {first.key.split}"
        console.print(said, markup=False, highlight=False, soft_wrap=True)
        played: list[Episode] = []

        def keep(finished: Episode) -> None:
            writer.append(finished)
            played.append(finished)

        asyncio.run(scheduler.play_all([assignment], human, keep=keep))
    return played[0], path


def _suite(arguments: Arguments) -> Suite:
    """What the command line asks for, as a suite of one instance.

    Raises:
        UnknownName: The id; the message offers the nearest.
        InvalidOption: An option without a value.
    """
    changes = suites.Changes(instances=1, split=arguments.split, max_turns=arguments.max_turns)
    [row] = suites.changed(suites.custom([arguments.env_id]), changes).rows
    options = dict(_option(text) for text in arguments.option)
    level = {"level": arguments.level} if arguments.level else {}
    # A person who types nonsense ten times is no model that is stuck.
    settings = replace(row.settings, max_invalid=None)
    row = replace(row, kwargs=options | level, settings=settings)
    return Suite(name="play", description="", rows=(row,))


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InvalidOption(f"--option takes NAME=VALUE, such as symbols=proact, got {text!r}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _configuration(suite: Suite, human: Human) -> run_folder.Configuration:
    """What must be equal for two episodes to belong to one run; any seed may be added to it."""
    made = run_folder.configuration_of(suite, human.name, human.settings)
    for row in made.suite["rows"]:
        del row["instances"], row["rollouts"]
    return made


def _folder_name(arguments: Arguments) -> str:
    short = arguments.env_id.rpartition("/")[2]
    split = "" if arguments.split == "test" else arguments.split
    turns = f"{arguments.max_turns}-turns" if arguments.max_turns else ""
    parts = ("human", short, arguments.level, *arguments.option, split, turns)
    return re.sub(r"[^\w.+=-]+", "-", "-".join(part for part in parts if part))


def _next(first: Assignment, seed: int | None, played: Iterable[Episode]) -> Assignment:
    """The instance of that seed, once more if it was played; without a seed the first one new."""
    seeds = Counter(each.key.seed for each in played)
    chosen = next(new for new in count() if new not in seeds) if seed is None else seed
    key = first.key.model_copy(update={"seed": chosen, "rollout": seeds[chosen]})
    return Assignment(key, first.settings)


def _show_end(played: Episode, path: Path, console: Console) -> None:
    board = Panel(Text(played.final_observation), title="End", title_align="left", expand=False)
    console.print(board)
    for line in (*summary(played), f"Record: {path}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def summary(played: Episode) -> list[str]:
    """How an episode went, against the optimum, one sentence a line."""
    hints = sum(bool(turn.reasoning) for turn in played.turns)
    lines = [f"{_result(played)} {_optimum(played)}".strip(), _first_blunder(played)]
    return [*lines, f"Hints on {hints} of {_turns(len(played.turns))}."]


def _result(played: Episode) -> str:
    ending = _ENDINGS.get(played.result, f"Ended by {played.result}")
    won = ", won on the way" if played.success and played.result is not Result.WON else ""
    return f"{ending} after {_turns(len(played.turns))}{won}; score {played.score:g}."


def _optimum(played: Episode) -> str:
    note = played.start.note
    if note is None or not math.isfinite(note.cost_to_go):
        return ""
    about = "" if note.exact else "about "
    return f"The optimum is {about}{_turns(round(note.cost_to_go))}."


def _first_blunder(played: Episode) -> str:
    for number, each in enumerate(judged(played), 1):
        if each.verdict in MISTAKES:
            best = ", ".join(each.before.best_actions) if each.before else ""
            dead = ", and no win is possible any more" if each.loss == math.inf else ""
            return f"First blunder: turn {number}, {each.turn.action}; best was {best}{dead}."
    return "No blunder."


def _turns(number: int) -> str:
    return f"{number} turn" if number == 1 else f"{number} turns"


if __name__ == "__main__":
    sys.exit(main())
