"""The rules of Sokoban, and the layout of its state.

| field | meaning |
|---|---|
| `ROWS` | rows of the board |
| `BOXES` | boxes, equal to the number of targets |
| `ON_TARGET` | boxes that stand on targets |
| `PLAYER` | the player's cell; cell = row x cols + column |
| `EXPLICIT` | 1: eight actions, walking and pushing apart; 0: four, walking into a box pushes it |
| `COLS` | columns of the board |
| `FLOOR`, four fields | 256 bits: the cells the player could reach if no box stood in the way |
| `TARGETS`, four fields | 256 bits: the target cells |
| `CELLS`, all others | the code of each cell; those beyond rows x cols are `WALL` |

A cell's code has bit 0 set on a target; the other bits say what is there: nothing, a box, the
player or a wall. The board's border is wall all round. Actions 0 to 3 are up, down, left, right;
4 to 7 push in the same directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym.chance import HEADER
from agentgym.kernels import kernel

ROWS = HEADER
BOXES = HEADER + 1
ON_TARGET = HEADER + 2
PLAYER = HEADER + 3
EXPLICIT = HEADER + 4
COLS = HEADER + 5
FLOOR = HEADER + 6
TARGETS = HEADER + 10
CELLS = HEADER + 14

EMPTY, TARGET, BOX, BOX_ON_TARGET, MAN, MAN_ON_TARGET, WALL = range(7)
"""Cell codes."""
CODES = 7
"""Number of cell codes."""

STEP_REWARD = -0.1
BOX_REWARD = 1.0
WIN_REWARD = 10.0


@kernel
def offset(direction: Any, cols: Any) -> Any:
    """Difference of cell numbers of one step up, down, left or right (0 to 3)."""
    distance = cols if direction < 2 else 1
    return distance if direction & 1 else -distance


@kernel
def legal(state: Any, action: Any) -> Any:
    """Every action of the chosen action set; a blocked one is legal and changes nothing."""
    return 0 <= action < (8 if state[EXPLICIT] else 4)


@kernel
def step(state: Any, action: Any) -> Any:
    """Play an action in place; returns gym-sokoban's reward, nan for an unknown action.

    -0.1 per action, +1 for a box onto a target, -1 for one off it, +10 for the last box.
    """
    if not legal(state, action):
        return np.nan
    move = offset(action & 3, state[COLS])
    there = CELLS + state[PLAYER] + move
    gain = 0
    what = state[there] | 1  # Whether on a target or not.
    if what == BOX_ON_TARGET:
        if (state[EXPLICIT] and action < 4) or state[there + move] > TARGET:
            return STEP_REWARD
        gain = (state[there + move] & 1) - (state[there] & 1)
        state[there + move] += BOX
        state[there] -= BOX
        state[ON_TARGET] += gain
    elif what != TARGET or action > 3:
        return STEP_REWARD
    state[there - move] -= MAN
    state[there] += MAN
    state[PLAYER] += move
    if gain > 0 and state[ON_TARGET] == state[BOXES]:
        return STEP_REWARD + BOX_REWARD + WIN_REWARD
    return STEP_REWARD + BOX_REWARD * gain


@kernel
def success(state: Any) -> Any:
    """All boxes stand on targets."""
    return state[ON_TARGET] == state[BOXES]


@kernel
def score(state: Any) -> Any:
    """Boxes on targets."""
    return float(state[ON_TARGET])


@kernel
def progress(state: Any) -> Any:
    """Share of the boxes that stand on targets."""
    return state[ON_TARGET] / state[BOXES]


@kernel
def observe(state: Any, grid: Any) -> None:
    """Fill the grid with the cell codes; rows and columns beyond the board are `WALL`."""
    rows, cols = state[ROWS], state[COLS]
    if rows == grid.shape[0] and cols == grid.shape[1]:
        for row in range(grid.shape[0]):
            for col in range(grid.shape[1]):
                grid[row, col] = state[CELLS + row * grid.shape[1] + col]
        return
    for row in range(grid.shape[0]):
        for col in range(grid.shape[1]):
            inside = row < rows and col < cols
            grid[row, col] = state[CELLS + row * cols + col] if inside else WALL
