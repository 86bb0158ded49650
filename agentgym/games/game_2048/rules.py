"""The rules of 2048. A state's fields: chance key and counter, then those named here.

| field | meaning |
|---|---|
| SIZE | rows and columns of the board, 2 to 5 |
| BASE | the smallest tile |
| GOAL | exponent of the target tile: target = BASE * 2^(GOAL-1) |
| SCORE | merged points so far |
| TOP | exponent of the largest tile |
| OVER | 1 where no action changes the board |
| ROWS | five rows of byte lanes (see `board`), those beyond SIZE are 0 |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym.chance import COUNTER, HEADER, KEY, below, bits
from agentgym.games.game_2048.board import MAX_SIZE, move, moves, put, same, space
from agentgym.kernels import inlined, kernel

SIZE, BASE, GOAL, SCORE, TOP, OVER, ROWS = range(HEADER, HEADER + 7)
STATE_SIZE = ROWS + MAX_SIZE
"""Length of every state."""

_LOW_HALF = np.uint64(32)


@inlined
def get_board(state: Any) -> Any:
    """The five rows of a state's board."""
    return state[ROWS], state[ROWS + 1], state[ROWS + 2], state[ROWS + 3], state[ROWS + 4]


@inlined
def set_board(state: Any, board: Any) -> None:
    """Write the five rows, and nothing that follows from them."""
    state[ROWS], state[ROWS + 1], state[ROWS + 2], state[ROWS + 3], state[ROWS + 4] = board


@kernel
def largest(board: Any) -> Any:
    """Exponent of the largest tile."""
    top = np.int64(0)
    for row in board:
        for lane in range(MAX_SIZE):
            top = max(top, (row >> (8 * lane)) & 0xFF)
    return top


@kernel
def settle(state: Any) -> None:
    """Work out what follows from the board: the largest tile, and whether the game is over."""
    board = get_board(state)
    state[TOP] = largest(board)
    state[OVER] = moves(board, state[SIZE]) == 0


@inlined
def spawn(state: Any, board: Any) -> None:
    """Write the board with a new tile: base (9 in 10) or 2 * base, uniform over the empty cells.

    One draw of 64 bits decides both: its upper half the cell, its lower half the tile.
    """
    size = state[SIZE]
    empty = space(board, size)
    count = empty >> 32
    word = bits(state[KEY], state[COUNTER])
    state[COUNTER] += 1
    exponent = 2 if below(word << _LOW_HALF, 10) == 0 else 1
    state[TOP] = max(state[TOP], exponent)
    board = put(board, empty, below(word, count), exponent)
    set_board(state, board)
    if count == 1:
        state[OVER] = moves(board, size) == 0


@kernel
def begin(state: Any) -> None:
    """Spawn the two tiles that a game begins with on the empty board of a fresh state."""
    spawn(state, get_board(state))
    spawn(state, get_board(state))


@kernel
def step(state: Any, action: Any) -> Any:
    """Slide, merge and spawn in place: the merged points, or nan where nothing would move."""
    before = get_board(state)
    board, gain = move(before, state[SIZE], action)
    if same(before, board):
        return np.nan
    # Only a merge of two largest tiles makes a larger one, and that alone gains this much.
    if gain >= 1 << state[TOP]:
        state[TOP] = largest(board)
    gain *= state[BASE]
    state[SCORE] += gain
    spawn(state, board)
    return np.float64(gain)


@kernel
def legal(state: Any, action: Any) -> Any:
    """Whether the action changes the board."""
    return (moves(get_board(state), state[SIZE]) >> action) & 1 != 0


@kernel
def terminal(state: Any) -> Any:
    """Whether no action changes the board."""
    return state[OVER] != 0


@kernel
def success(state: Any) -> Any:
    """Whether the target tile was reached; play goes on."""
    return state[TOP] >= state[GOAL]


@kernel
def score(state: Any) -> Any:
    """Merged points so far."""
    return np.float64(state[SCORE])


@kernel
def progress(state: Any) -> Any:
    """Doublings from the base to the largest tile, as a share of those to the target."""
    return min(1.0, (state[TOP] - 1.0) / (state[GOAL] - 1.0))


@kernel
def observe(state: Any, grid: Any) -> None:
    """Write the exponents: 0 for an empty cell, k for the tile base * 2^(k-1)."""
    for row in range(grid.shape[0]):
        lanes = state[ROWS + row]
        for col in range(grid.shape[1]):
            grid[row, col] = lanes & 0xFF
            lanes >>= 8
