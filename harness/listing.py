"""`python -m harness.eval --list`: suites, games with their ids and levels, and models."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import import_module

from rich.console import Console

from agentgym.registration import NAMESPACE, ROWS, game_module
from harness import models, suites


def show(console: Console) -> None:
    """Print the lists; a line that a terminal is too narrow for is cut, never broken."""
    _table(console, "suites (--suite)", _suites())
    for game in dict.fromkeys(row.game for row in ROWS):
        _table(console, f"{_about(game)} (--env)", _ids(game))
    _table(console, "models (--model)", models.describe().items())


def _table(console: Console, title: str, rows: Iterable[tuple[str, str]]) -> None:
    console.print(title, style="bold", markup=False, highlight=False, soft_wrap=True)
    listed = list(rows)
    width = max(len(name) for name, _ in listed)
    for name, text in listed:
        line = f"  {name:<{width}}  {text}"
        if console.is_terminal:
            line = shorten(line, console.width)
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print()


def shorten(line: str, width: int) -> str:
    """The line, cut to a number of characters, with a sign that it was."""
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _suites() -> Iterator[tuple[str, str]]:
    for suite in suites.SUITES.values():
        episodes = sum(row.instances * row.rollouts for row in suite.rows)
        yield suite.name, f"{episodes:,} episodes. {suite.description}"


def _ids(game: str) -> Iterator[tuple[str, str]]:
    for row in ROWS:
        if row.game == game:
            level = row.kwargs.get("level", "")
            yield f"{NAMESPACE}/{row.id}", f"level {level}, at most {row.max_turns:,} turns"


def _about(game: str) -> str:
    """The first line of the game's card; its first sentence where that is the name alone."""
    card = inspect.getdoc(import_module(game_module(game))) or game
    name, *described = card.partition("\n")[0].rstrip(".").split(": ", 1)
    if described:
        return f"{name}: {described[0]}"
    text = re.search(r"^Description\n(?:-+\n)?\s*(.*?)\n\n", card, re.DOTALL | re.MULTILINE)
    return f"{name}: {_sentence(text[1]).rstrip('.')}" if text else name


def _sentence(text: str) -> str:
    return re.split(r"(?<=[.:;]) ", " ".join(text.split()))[0].rstrip(":;")
