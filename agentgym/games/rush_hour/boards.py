"""Boards as strings, one character per cell, as the Rush Hour databases write them.

`o` or `.` is an empty cell, `x` a wall, a capital letter a piece; rows follow one another. 36
characters are a board of 6 x 6 cells; 16, 25, 49 and 64 are the other sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agentgym.errors import InvalidInstance
from agentgym.game import State
from agentgym.games.rush_hour.rules import (
    EXIT_ROW,
    FIELDS,
    RED_LENGTH,
    SHAPE,
    SIZE,
    WALLS,
    place_all,
    success,
)

SIZES = (4, 5, 6, 7, 8)
"""Rows, and columns, that a board can have."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Labels of the pieces; the red car is the first."""
EMPTY, WALL = "o.", "x"


class Piece(NamedTuple):
    """A piece on a board.

    Attributes:
        length: In cells.
        lane: Its row, or its column if vertical.
        vertical: Which way it lies.
        place: Column of its left end, or row of its upper end.
    """

    length: int
    lane: int
    vertical: bool
    place: int

    def cells(self) -> list[tuple[int, int]]:
        """Row and column of each cell, from the left or upper end on."""
        along = range(self.place, self.place + self.length)
        return [(k, self.lane) if self.vertical else (self.lane, k) for k in along]


class Board(NamedTuple):
    """A board.

    Attributes:
        size: Rows and columns.
        walls: Row and column of each wall.
        pieces: By label.
    """

    size: int
    walls: tuple[tuple[int, int], ...]
    pieces: dict[str, Piece]


def board_of(text: str) -> Board:
    """Read a board.

    Raises:
        InvalidInstance: It has another number of cells, an unknown character, a piece that is no
            straight run of 2 or 3 cells, or no red car that lies in row 2 and has a way to go.
    """
    size = next((n for n in SIZES if n * n == len(text)), 0)
    if not size:
        wanted = ", ".join(f"{n * n} ({n}x{n})" for n in SIZES)
        raise InvalidInstance(f"a board has one character per cell: {wanted}, got {len(text)}")
    cells: dict[str, list[tuple[int, int]]] = {}
    for k, glyph in enumerate(text):
        if glyph not in EMPTY:
            cells.setdefault(glyph, []).append((k // size, k % size))
    walls = tuple(cells.pop(WALL, ()))
    board = Board(size, walls, {label: _piece_of(label, cells[label]) for label in sorted(cells)})
    _check_red(board)
    return board


def _piece_of(label: str, cells: list[tuple[int, int]]) -> Piece:
    """The piece on these cells, which are in reading order."""
    if label not in LETTERS:
        raise InvalidInstance(
            f"a cell is a capital letter (a piece), o or . (empty) or x (a wall), got {label!r}"
        )
    (row, col), length = cells[0], len(cells)
    for vertical in (False, True):
        lane, place = (col, row) if vertical else (row, col)
        piece = Piece(length, lane, vertical, place)
        if length in (2, 3) and piece.cells() == cells:
            return piece
    shown = ", ".join(f"({r},{c})" for r, c in cells[:6]) + (", ..." if length > 6 else "")
    raise InvalidInstance(f"piece {label} is no straight run of 2 or 3 cells, got {shown}")


def _check_red(board: Board) -> None:
    red = board.pieces.get(LETTERS[0])
    if red is None:
        raise InvalidInstance("there is no red car A")
    if red.vertical or red.lane != EXIT_ROW or red.length != RED_LENGTH:
        lies = "column" if red.vertical else "row"
        raise InvalidInstance(
            f"the red car A lies in row {EXIT_ROW} (from 0) and has {RED_LENGTH} cells, "
            f"got {red.length} cells in {lies} {red.lane}"
        )


def state_of(board: Board, room: int | None = None) -> State:
    """The state of a board.

    Args:
        board: With pieces at places that do not overlap.
        room: Number of pieces to make fields for; None makes those up to the board's last letter.
    """
    named = {LETTERS.index(label): piece for label, piece in board.pieces.items()}
    room = max(named) + 1 if room is None else room
    state = np.zeros(FIELDS + 3 * room, np.int64)
    state[SIZE] = board.size
    bits = sum(1 << (row * board.size + col) for row, col in board.walls)
    state[WALLS] = np.uint64(bits).astype(np.int64)
    for k, piece in named.items():
        state[SHAPE + k] = piece.length + 4 * piece.lane + 32 * piece.vertical
        state[SHAPE + 2 * room + k] = piece.place
    place_all(state)
    return state


def board_of_state(state: State) -> Board:
    """The board that a state shows."""
    size, room = int(state[SIZE]), (len(state) - FIELDS) // 3
    shapes, places = state[SHAPE : SHAPE + room].tolist(), state[SHAPE + 2 * room :].tolist()
    bits = int(state[WALLS])
    cells = [(row, col) for row in range(size) for col in range(size)]
    walls = tuple((row, col) for row, col in cells if bits >> (row * size + col) & 1)
    pieces = {
        LETTERS[k]: Piece(shape & 3, shape >> 2 & 7, bool(shape >> 5), place)
        for k, (shape, place) in enumerate(zip(shapes, places, strict=True))
        if shape
    }
    return Board(size, walls, pieces)


def text_of(board: Board) -> str:
    """A board as a string."""
    glyphs = ["o"] * board.size**2
    for row, col in board.walls:
        glyphs[row * board.size + col] = WALL
    for label, piece in board.pieces.items():
        for row, col in piece.cells():
            glyphs[row * board.size + col] = label
    return "".join(glyphs)


def is_won(state: State) -> bool:
    """The red car is out already."""
    return bool(success(state))
