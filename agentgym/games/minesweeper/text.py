"""The board as text, the rules as told to a player, and what a player may answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from agentgym.game import Layout, ParseError, State, normalise
from agentgym.games.minesweeper import milestones, rules
from agentgym.games.minesweeper.instances import LEVELS, MinesweeperOptions

_ACTION = re.compile(r"(reveal|flag)\s+([0-9]+)\s+([0-9]+)")
_ACCEPTED = "'reveal R C' or 'flag R C', zero-indexed, for example 'reveal 0 3'"

_RULES = """\
You are playing Minesweeper on a board of at most {rows} rows and {cols} columns. Some cells hide \
a mine; the first line of the board says how many do. Reveal every cell without a mine to win; \
revealing a mine loses.
A revealed cell shows how many of its 8 neighbours hold a mine. Around a 0 all cells without a \
flag are revealed as well.
Symbols: . hidden, F flag, 0 to 8 revealed, * the mine that was hit. Rows and columns count from 0.
Actions, one per turn:
reveal R C: reveal the hidden cell in row R, column C; not while it carries a flag.
flag R C: put a flag on the hidden cell in row R, column C, or take it off."""


def instructions(options: MinesweeperOptions, layout: Layout) -> str:
    """The rules as told to a player."""
    return _RULES.format(rows=layout.rows, cols=layout.cols)


def layout(options: MinesweeperOptions, starts: Sequence[State] | None) -> Layout:
    """The shapes of the level, or of the largest board of a file."""
    if starts:
        return layout_of(int(starts[0][rules.HEIGHT]), int(starts[0][rules.WIDTH]))
    level = LEVELS[options.level]
    return layout_of(level.rows, level.cols)


@lru_cache(maxsize=64)
def layout_of(rows: int, cols: int) -> Layout:
    """The layout of a size: reveals row by row, then flags."""
    cells = [(row, col) for row in range(rows) for col in range(cols)]
    actions = tuple(f"{verb} {row} {col}" for verb in ("reveal", "flag") for row, col in cells)
    return Layout(
        rows=rows,
        cols=cols,
        codes=rules.CODES,
        state_size=rules.CELLS + rows * cols,
        actions=actions,
        lookup={name: index for index, name in enumerate(actions)},
        milestones=milestones.NAMES,
    )


def _symbol(word: int) -> str:
    """What the player sees of a cell, by its word."""
    if word & rules.OPEN:
        return "*" if word & rules.MINE else str(min(word & rules.NUMBER, 8))
    return "F" if word & rules.FLAG else "."


_SYMBOLS = "".join(map(_symbol, range(256))).encode()


@cache
def _margins(rows: int, cols: int) -> tuple[str, tuple[str, ...]]:
    """The header of column numbers, and the beginning of each row."""
    header = "   " + " ".join(f"{col:2}" for col in range(cols))
    return header, tuple(f"\n{row:2}  " for row in range(rows))


def render(state: State, options: MinesweeperOptions) -> str:
    """The number of mines and of flags, then CAST's board: column numbers, row numbers, cells.

    Each cell is its symbol between two blanks; only the cells of the board itself are shown.
    """
    rows, cols, _, width, mines, _, _, flags = state[rules.ROWS : rules.FLAGS + 1].tolist()
    cells = state[rules.CELLS :].astype(np.uint8).tobytes().translate(_SYMBOLS).decode()
    header, margins = _margins(rows, cols)
    parts = [f"Mines: {mines}, flags: {flags}\n{header}"]
    for row, margin in enumerate(margins):
        parts += margin, "  ".join(cells[row * width : row * width + cols]), " "
    return "".join(parts)


def parse(text: str, layout: Layout, options: MinesweeperOptions) -> int | ParseError:
    """The action that a text names; one action and nothing else, in any case, in brackets or not.

    CAST searches for the first action anywhere in the text; a text that weighs two moves against
    each other would play the first. Here it is no action.
    """
    action = layout.lookup.get(text)
    if action is not None:
        return action
    found = _ACTION.fullmatch(normalise(text))
    if found is None:
        shown = text if len(text) <= 60 else text[:57] + "..."
        return ParseError(f"{shown!r} is not an action; answer with {_ACCEPTED}.")
    verb, row, col = found[1], found[2].lstrip("0") or "0", found[3].lstrip("0") or "0"
    action = layout.lookup.get(f"{verb} {row} {col}")
    if action is None:
        return ParseError(_outside(row[:9], col[:9], layout.rows, layout.cols))
    return action


def _outside(row: int | str, col: int | str, rows: int, cols: int) -> str:
    return (
        f"Row {row}, column {col} is outside of the board; "
        f"rows are 0 to {rows - 1} and columns 0 to {cols - 1}."
    )


def explain(state: State, action: int, layout: Layout, options: MinesweeperOptions) -> str:
    """One sentence on why an action is not legal."""
    cells = layout.rows * layout.cols
    row, col = divmod(action % cells, layout.cols)
    word = int(state[rules.CELLS + action % cells])
    if rules.terminal(state):
        return "The game is over; no cell can be revealed or flagged."
    if word & rules.OUTSIDE:
        return _outside(row, col, int(state[rules.ROWS]), int(state[rules.COLS]))
    if word & rules.OPEN and action >= cells:
        return f"Cell ({row}, {col}) is already revealed; only a hidden cell can carry a flag."
    if word & rules.OPEN:
        return f"Cell ({row}, {col}) is already revealed; reveal a hidden cell, shown as '.'."
    return f"Cell ({row}, {col}) carries a flag; take it off with 'flag {row} {col}' first."
