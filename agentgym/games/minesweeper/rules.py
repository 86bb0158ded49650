"""The rules: opening, flagging, and the end.

State, after the two chance fields (always 0: there is no chance after generation):

| field   | meaning                                                                          |
|---------|----------------------------------------------------------------------------------|
| ROWS    | rows of the board                                                                |
| COLS    | columns of the board                                                             |
| HEIGHT  | rows of the layout: of the tallest board of the environment                      |
| WIDTH   | columns of the layout: of the widest board                                       |
| MINES   | mines on the board                                                               |
| SAFE    | cells without a mine                                                             |
| OPENED  | safe cells that are open                                                         |
| FLAGS   | flags on the board                                                               |
| HIT     | 1 + cell of the mine that was revealed; 0 while the player lives                 |
| CLICK   | cell of the first click                                                          |
| CELLS   | one word a cell, row by row, HEIGHT x WIDTH of them                              |

A cell's word holds the number of mines around it (bits 0 to 3; of a mine too) and the bits MINE,
OPEN, FLAG and OUTSIDE (no cell of this board, only of the layout). The bits above are 0 between
steps: while cells open they chain the zeros whose surroundings are still to be opened.
"""

from __future__ import annotations

import math
from typing import Any

from agentgym.chance import HEADER
from agentgym.kernels import kernel

ROWS = HEADER
COLS = HEADER + 1
HEIGHT = HEADER + 2
WIDTH = HEADER + 3
MINES = HEADER + 4
SAFE = HEADER + 5
OPENED = HEADER + 6
FLAGS = HEADER + 7
HIT = HEADER + 8
CLICK = HEADER + 9
CELLS = HEADER + 10

NUMBER = 15
"""Mask of a cell's number."""
MINE = 16
OPEN = 32
FLAG = 64
OUTSIDE = 128
_WORD = 255
_CHAIN = 8

HIDDEN_CODE = 9
"""Cell code of the grid observation; an open cell's code is its number."""
FLAG_CODE = 10
MINE_CODE = 11
OUTSIDE_CODE = 12
CODES = 13


@kernel
def open_cell(state: Any, cell: Any) -> None:
    """Open a safe, hidden cell; around a zero open all that is hidden and carries no flag.

    A flag stops the opening as in CAST: a flagged cell stays hidden, and what lies behind it is
    opened only if a path of zeros around it leads there.
    """
    height, width = state[HEIGHT], state[WIDTH]
    state[CELLS + cell] |= OPEN
    state[OPENED] += 1
    top = cell if state[CELLS + cell] & NUMBER == 0 else -1
    while top >= 0:
        row, col = top // width, top % width
        below = (state[CELLS + top] >> _CHAIN) - 1
        state[CELLS + top] &= _WORD
        top = below
        for r in range(max(row - 1, 0), min(row + 2, height)):
            for at in range(r * width + max(col - 1, 0), r * width + min(col + 2, width)):
                word = state[CELLS + at]
                if word & (OPEN | FLAG | OUTSIDE) == 0:
                    state[CELLS + at] = word | OPEN
                    state[OPENED] += 1
                    if word & NUMBER == 0:
                        state[CELLS + at] |= (top + 1) << _CHAIN
                        top = at


@kernel
def legal(state: Any, action: Any) -> Any:
    """Whether the game goes on and the cell is hidden, of this board, and has no flag to reveal."""
    cells = state[HEIGHT] * state[WIDTH]
    if action < 0 or action >= 2 * cells or terminal(state):
        return False
    if action < cells:
        return state[CELLS + action] & (OPEN | FLAG | OUTSIDE) == 0
    return state[CELLS + action - cells] & (OPEN | OUTSIDE) == 0


@kernel
def step(state: Any, action: Any) -> Any:
    """Reveal a cell or toggle its flag; the reward is the share of the safe cells newly opened.

    A win adds 1, a mine gives -1, a flag 0. Action a < cells of the layout reveals cell a, action
    cells + a toggles the flag of cell a.
    """
    if not legal(state, action):
        return math.nan
    cells = state[HEIGHT] * state[WIDTH]
    if action >= cells:
        state[CELLS + action - cells] ^= FLAG
        state[FLAGS] += 1 if state[CELLS + action - cells] & FLAG else -1
        return 0.0
    if state[CELLS + action] & MINE:
        state[CELLS + action] |= OPEN
        state[HIT] = action + 1
        return -1.0
    before = state[OPENED]
    open_cell(state, action)
    return (state[OPENED] - before) / state[SAFE] + (1.0 if success(state) else 0.0)


@kernel
def terminal(state: Any) -> Any:
    """A mine was hit, or every safe cell is open."""
    return state[HIT] != 0 or state[OPENED] == state[SAFE]


@kernel
def success(state: Any) -> Any:
    """Every safe cell is open."""
    return state[OPENED] == state[SAFE]


@kernel
def score(state: Any) -> Any:
    """Safe cells that are open, those of the first click included."""
    return float(state[OPENED])


@kernel
def progress(state: Any) -> Any:
    """Share of the safe cells that are open."""
    return state[OPENED] / state[SAFE]


@kernel
def observe(state: Any, grid: Any) -> None:
    """Fill the grid with cell codes: number, hidden, flag, the mine that was hit, outside."""
    at = CELLS
    for row in range(grid.shape[0]):
        for col in range(grid.shape[1]):
            word = state[at]
            code = HIDDEN_CODE
            if word & OPEN:
                code = MINE_CODE if word & MINE else word & NUMBER
            elif word & FLAG:
                code = FLAG_CODE
            elif word & OUTSIDE:
                code = OUTSIDE_CODE
            grid[row, col] = code
            at += 1


@kernel
def found(state: Any) -> None:
    """Finish a new board: count the numbers and the safe cells, make the first click.

    Expects the sizes, CLICK and the MINE and OUTSIDE bits; all else zero.
    """
    height, width = state[HEIGHT], state[WIDTH]
    for row in range(height):
        for col in range(width):
            cell = CELLS + row * width + col
            if state[cell] & (OUTSIDE | MINE) == 0:
                state[SAFE] += 1
            state[MINES] += (state[cell] & MINE) // MINE
            for r in range(max(row - 1, 0), min(row + 2, height)):
                for at in range(r * width + max(col - 1, 0), r * width + min(col + 2, width)):
                    if state[CELLS + at] & MINE and CELLS + at != cell:
                        state[cell] += 1
    open_cell(state, state[CLICK])
