"""What the player reads and writes: instructions, observation, actions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from agentgym.game import Layout, ParseError, State, normalise
from agentgym.games.rush_hour.boards import LETTERS, Piece, board_of_state
from agentgym.games.rush_hour.component import room_of
from agentgym.games.rush_hour.milestones import names
from agentgym.games.rush_hour.options import LEVELS, SIZE_GENERATED, RushHourOptions
from agentgym.games.rush_hour.rules import (
    EXIT_ROW,
    FIELDS,
    RED_LENGTH,
    SHAPE,
    SIZE,
    WALLS,
    legal,
    success,
)

_INSTRUCTIONS = """\
You play Rush Hour. Slide the pieces so that the red car A gets out at the right end of row {row}.
Letters are pieces, cars of 2 cells and trucks of 3. A dot is an empty cell, x a wall that never \
moves, > the exit. (r,c) is row r, column c, counted from 0 at the upper left.
A horizontal piece moves only left and right, a vertical one only up and down. No piece passes \
through another, a wall or the border.
An action is a label, a direction and a number of cells, from 1 to {reach}: + is right or down, \
- is left or up. B-2 moves B two cells left if B is horizontal, up if it is vertical; B- moves it \
one cell. If a cell on the way is taken, nothing moves.
You win when the right end of A is in column {last} of row {row}."""
_ACTION = re.compile(r"([a-z])\s*([+-])\s*([0-9]*)")
_EXAMPLE = "a label, + or -, and a number of cells, for example B-2"
_SIDES = {(False, 1): "right", (False, -1): "left", (True, 1): "down", (True, -1): "up"}


def layout(options: RushHourOptions, starts: Sequence[State] | None) -> Layout:
    """The shapes of a level, or of loaded boards."""
    if starts:
        return _layout(int(starts[0][SIZE]), room_of(starts[0]))
    return _layout(SIZE_GENERATED, LEVELS[options.level].pieces[1])


@cache
def _layout(size: int, room: int) -> Layout:
    cells = range(1, size - RED_LENGTH + 1)
    actions = tuple(f"{label}{s}{k}" for label in LETTERS[:room] for s in "+-" for k in cells)
    return Layout(
        rows=size,
        cols=size,
        codes=room + 2,
        state_size=FIELDS + 3 * room,
        actions=actions,
        lookup={text.lower(): index for index, text in enumerate(actions)},
        milestones=names(size),
    )


def instructions(options: RushHourOptions, layout: Layout) -> str:
    """The rules as told to a player."""
    return _INSTRUCTIONS.format(row=EXIT_ROW, reach=layout.rows - RED_LENGTH, last=layout.rows - 1)


class _Frame(NamedTuple):
    """What of a board's text never changes, and the parts that do, by piece and place.

    Attributes:
        grid: The grid's text without pieces.
        marks: Of each piece on the board, its label's byte and, by place, where that stands.
        head: First line of the list of pieces.
        lines: Of each piece on the board, its line by place.
        tail: The walls' line, or nothing.
        present: Index of each piece on the board.
    """

    grid: bytes
    marks: list[tuple[int, list[tuple[int, ...]]]]
    head: str
    lines: list[list[str]]
    tail: str
    present: list[int]


def render(state: State, options: RushHourOptions) -> str:
    """The board as text: a grid, a list of the pieces' cells, or both."""
    size, room = state.item(SIZE), room_of(state)
    frame = _frame(size, state.item(WALLS), state[SHAPE : SHAPE + room].tobytes())
    all_places = state[SHAPE + 2 * room :].tolist()
    places = [all_places[k] for k in frame.present]
    parts: list[str] = []
    if options.layout != "coord":
        grid = bytearray(frame.grid)
        for (label, spots), place in zip(frame.marks, places, strict=True):
            for spot in spots[place]:
                grid[spot] = label
        parts.append(grid.decode("ascii"))
    if options.layout != "grid":
        lines = [line[place] for line, place in zip(frame.lines, places, strict=True)]
        parts.append(frame.head + "\n".join(lines) + frame.tail)
    return "\n\n".join(parts)


@lru_cache(maxsize=4096)
def _frame(size: int, walls: int, shapes: bytes) -> _Frame:
    rows = [b"x" if walls >> cell & 1 else b"." for cell in range(size**2)]
    lines = [b" ".join(rows[r * size : (r + 1) * size]) for r in range(size)]
    lines[EXIT_ROW] += b" >"
    grid = b"Grid:\n" + b"\n".join(lines)
    glyphs = [m.start() for m in re.finditer(rb"[.x]", grid)]
    numbers: list[int] = np.frombuffer(shapes, np.int64).tolist()
    fixed = [(s & 3, s >> 2 & 7, bool(s >> 5)) for s in numbers]
    present = [k for k, shape in enumerate(fixed) if shape[0]]
    everywhere = [
        [Piece(*fixed[k], place) for place in range(size - fixed[k][0] + 1)] for k in present
    ]
    marks = [
        (ord(LETTERS[k]), [tuple(glyphs[r * size + c] for r, c in p.cells()) for p in pieces])
        for k, pieces in zip(present, everywhere, strict=True)
    ]
    listed = [
        [_line(LETTERS[k], piece) for piece in pieces]
        for k, pieces in zip(present, everywhere, strict=True)
    ]
    head = (
        f"Coordinates:\nBoard size: {size} rows x {size} cols (zero-indexed). "
        f"Exit: right end of row {EXIT_ROW}.\n"
    )
    cells = [f"({k // size},{k % size})" for k in range(size**2) if walls >> k & 1]
    tail = f"\nWalls: {', '.join(cells)}" if cells else ""
    return _Frame(grid, marks, head, listed, tail, present)


def _line(label: str, piece: Piece) -> str:
    cells = ", ".join(f"({row},{col})" for row, col in piece.cells())
    red = " (red car)" if label == LETTERS[0] else ""
    return f"{label}{red}: {'vertical' if piece.vertical else 'horizontal'}, {cells}"


def parse(text: str, layout: Layout, options: RushHourOptions) -> int | ParseError:
    """The action that a text means; blanks within and a missing 1 are no matter."""
    action = layout.lookup.get(text.lower())
    return _parse(text, layout) if action is None else action


def _parse(text: str, layout: Layout) -> int | ParseError:
    found = _ACTION.fullmatch(normalise(text))
    if found is None:
        shown = text if len(text) <= 60 else text[:57] + "..."
        return ParseError(f"{shown!r} is not an action; answer with {_EXAMPLE}.")
    label, sign, digits = found.groups()
    reach, room = layout.rows - RED_LENGTH, len(layout.actions) // (2 * (layout.rows - RED_LENGTH))
    if label.upper() not in LETTERS[:room]:
        last = LETTERS[room - 1]
        return ParseError(f"There is no piece {label.upper()}; the labels here are A to {last}.")
    cells = (digits.lstrip("0") or "0") if digits else "1"
    action = layout.lookup.get(f"{label}{sign}{cells}")
    if action is None:
        shown = cells if len(cells) <= 20 else cells[:17] + "..."
        return ParseError(f"A piece moves by 1 to {reach} cells on this board, got {shown}.")
    return action


def explain(state: State, action: int, layout: Layout, options: RushHourOptions) -> str:
    """Why an action is not legal: no such piece, the way is not free, or A is out already."""
    text, reach = layout.actions[action], layout.rows - RED_LENGTH
    if success(state):
        return "The red car A is out already; there is nothing left to do."
    pieces = board_of_state(state).pieces
    piece = pieces.get(text[0])
    if piece is None:
        return f"There is no piece {text[0]} on this board; its pieces are {', '.join(pieces)}."
    first = action - action % reach
    free = sum(bool(legal(state, other)) for other in range(first, first + reach))
    side = _SIDES[piece.vertical, 1 if text[1] == "+" else -1]
    lies = "vertical" if piece.vertical else "horizontal"
    can = f"can go {side} by at most {free} cell{'s' * (free != 1)}"
    return f"{text} is blocked: {text[0]} is {lies} and {can if free else 'cannot go ' + side}."
