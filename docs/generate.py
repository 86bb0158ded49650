"""Writes the generated pages of `docs/`; `tox -e docs` runs it and fails if one was stale.

Cards come from the games' package docstrings and the registration table, the other pages from the
docstrings and tables that the code itself reads. Exit status 1 says that a page has changed.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from agentgym import info
from agentgym.game import Game, load_game
from agentgym.registration import NAMESPACE, ROWS, game_module
from harness import models, record, run_folder, score, suites

HERE = Path(__file__).parent
HEADINGS = (
    "Description",
    "Actions",
    "Observation",
    "Start",
    "Reward",
    "End",
    "Info",
    "Oracle",
    "Milestones",
    "Variants",
    "Versions",
)
"""Of every card, in this order, each alone on its line; a line of hyphens below does not matter."""
_MARK = "<!-- Written by docs/generate.py; change the docstring or table that it comes from. -->"


class Card(NamedTuple):
    """A game's package docstring, taken apart.

    Attributes:
        summary: The text before the first heading.
        sections: The text under each heading, in the docstring's order.
    """

    summary: str
    sections: Mapping[str, str]


def games() -> tuple[Game, ...]:
    """Every registered game once, in the order of the table."""
    return tuple(load_game(game_module(name)) for name in dict.fromkeys(r.game for r in ROWS))


def card(game: Game) -> Card:
    """The card of a game."""
    text = inspect.getdoc(import_module(game.name)) or ""
    heading = re.compile(rf"^({'|'.join(HEADINGS)})\n(?:-+\n)?", re.MULTILINE)
    summary, *parts = heading.split(text)
    texts = (dedent(part).strip("\n") for part in parts[1::2])
    return Card(summary.strip(), dict(zip(parts[::2], texts, strict=True)))


def pages() -> dict[str, str]:
    """The text of every generated page, by its path below `docs/`."""
    found = {f"cards/{game.title}.md": _card_page(game) for game in games()}
    found["cards/index.md"] = _card_index()
    found["info.md"] = _info_page()
    found["reference.md"] = _reference_page()
    return {path: f"{_MARK}\n\n{text.strip()}\n" for path, text in found.items()}


def _card_page(game: Game) -> str:
    summary, sections = card(game)
    parts = [f"# {game.title}", summary]
    for heading, text in sections.items():
        parts += [f"## {heading}", _fenced(text)]
    return "\n\n".join(parts)


def _variants(game: Game) -> Iterator[tuple[str, ...]]:
    for row in ROWS:
        if game_module(row.game) == game.name:
            yield f"`{NAMESPACE}/{row.id}`", f"`{row.kwargs['level']}`", str(row.max_turns)


def _fenced(text: str) -> str:
    """Doctests become code blocks; all else is Markdown already."""
    return re.sub(r"^>>> .*?(?=\n\n|\Z)", r"```pycon\n\g<0>\n```", text, flags=re.M | re.S)


def _card_index() -> str:
    rows = (
        (f"[{game.title}]({game.title}.md)", _first_sentence(card(game)), *row)
        for game in games()
        for row in _variants(game)
    )
    return "# The games\n\n" + _table(("card", "what it is", "id", "level", "turn limit"), rows)


def _first_sentence(of: Card) -> str:
    """What the summary says after the game's name."""
    described = " ".join(of.summary.split()).partition(": ")[2]
    return re.split(r"(?<=[.!?;]) ", described)[0]


def _info_page() -> str:
    parts = [
        "# The info contract",
        "What `reset` and `step` return as `info`. Scalars and arrays have a constant type and "
        "shape, so that Gymnasium's vector environments stack them.",
    ]
    for schema in (info.Info, info.MilestoneInfo, info.OracleInfo):
        parts += [f"## {_summary(schema)}", _table(("key", "type", "meaning"), _keys(schema))]
    return "\n\n".join(parts)


def _reference_page() -> str:
    named = ((f"`{name}`", text) for name, text in models.describe().items())
    played = ((f"`{suite.name}`", suite.description) for suite in suites.SUITES.values())
    parts = [
        "# Reference of the harness",
        "## Models",
        _table(("`--model`", "who plays"), named),
        "## Suites",
        _table(("`--suite`", "what is played"), played),
        "## Metrics",
        _table(("metric", "meaning"), ((name, m.meaning) for name, m in score.METRICS.items())),
        "## How an episode ends",
        _table(("result", "meaning"), _members(record.Result)),
        f"## The record, schema {record.SCHEMA}",
        inspect.cleandoc(record.__doc__ or "").partition("\n\n")[2],
    ]
    kept = (record.Episode, record.Key, record.Start, record.Turn, record.Note)
    for schema in (*kept, run_folder.RunHeader, run_folder.Configuration, run_folder.Session):
        title = f"### `{schema.__name__}`: {_summary(schema)}"
        parts += [title, _table(("field", "type", "meaning"), _keys(schema))]
    return "\n\n".join(parts)


def _summary(schema: type) -> str:
    return inspect.cleandoc(schema.__doc__ or "").partition("\n")[0].rstrip(".")


def _keys(schema: type) -> Iterator[tuple[str, ...]]:
    """Name, type and meaning of each attribute of a documented class."""
    listed = inspect.cleandoc(schema.__doc__ or "").partition("Attributes:\n")[2]
    meanings = dict(re.findall(r"^(\w+): (.*(?:\n    .*)*)", dedent(listed), re.MULTILINE))
    for name, annotation in schema.__annotations__.items():
        kind = getattr(annotation, "__forward_arg__", annotation)
        kind = re.sub(r"^NotRequired\[(.*)\]$", r"\1", kind).replace("npt.NDArray", "array")
        yield f"`{name}`", f"`{kind.replace('np.', '')}`", " ".join(meanings[name].split())


def _members(enum: type) -> Iterator[tuple[str, ...]]:
    """Value and meaning of each member of an enum whose members have docstrings."""
    member = re.compile(r'^    [A-Z_]+ = "(\w+)"\n    """(.*?)"""', re.MULTILINE | re.DOTALL)
    return ((f"`{value}`", meaning) for value, meaning in member.findall(inspect.getsource(enum)))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Write what changed, remove what has no source any more; 1 if there was any of it."""
    current = pages()
    old = {str(path.relative_to(HERE)) for path in (HERE / "cards").glob("*.md")}
    stale = sorted(old - set(current))
    for path in stale:
        (HERE / path).unlink()
    for path, text in current.items():
        file = HERE / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            stale.append(path)
    if stale:
        sys.stderr.write(f"These pages were stale and are regenerated: {', '.join(stale)}.\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
