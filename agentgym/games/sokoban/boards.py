"""Boards as states, and their canonical form."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.game import State
from agentgym.games.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    BOXES,
    CELLS,
    COLS,
    EXPLICIT,
    FLOOR,
    MAN,
    ON_TARGET,
    PLAYER,
    ROWS,
    TARGET,
    TARGETS,
    WALL,
)
from agentgym.kernels import kernel

Codes = npt.NDArray[np.int64]
"""A board as cell codes, shape (rows, cols), with walls all round and one player."""


def make_state(codes: Codes, *, explicit: bool, cells: int | None = None) -> State:
    """The state of a board.

    Args:
        codes: The board; every cell of its border is a wall.
        explicit: The action set is the explicit one.
        cells: Cells that the state has room for; the board's own number if None.
    """
    rows, cols = codes.shape
    state = np.zeros(CELLS + (cells or codes.size), np.int64)
    state[ROWS], state[COLS], state[EXPLICIT] = rows, cols, explicit
    state[CELLS:] = WALL
    state[CELLS : CELLS + codes.size] = codes.ravel()
    _complete(state, np.empty(codes.size, np.bool_))
    return state


def canonical(state: State) -> bytes:
    """The smallest of the board's eight mirrorings and turnings, without what does not matter.

    The player stands on all cells that it can walk to at once; cells it could never reach are
    walls, unless something there keeps the board from being won; outer walls are cut off.
    """
    rows, cols = int(state[ROWS]), int(state[COLS])
    form = np.empty(rows * cols, np.uint8)
    _normalise(state, np.empty(rows * cols, np.bool_), form)
    board = form.reshape(rows, cols)
    inside = board != WALL
    height, width = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    board = board[height[0] : height[-1] + 1, width[0] : width[-1] + 1]
    turned = (board, board[::-1], board[:, ::-1], board[::-1, ::-1])
    return min(bytes(form.shape) + form.tobytes() for b in turned for form in (b, b.T))


@kernel
def reach(state: Any, through_boxes: Any, area: Any) -> None:
    """Mark in `area` (bool, one per cell) where the player can walk to, through boxes or not."""
    cols = state[COLS]
    area[:] = False
    area[state[PLAYER]] = True
    grown = True
    while grown:
        grown = False
        for cell in range(area.shape[0]):
            code = state[CELLS + cell]
            if area[cell] or code == WALL or (code | 1 == BOX_ON_TARGET and not through_boxes):
                continue
            if area[cell - 1] or area[cell + 1] or area[cell - cols] or area[cell + cols]:
                area[cell] = True
                grown = True


@kernel
def _complete(state: Any, area: Any) -> None:
    """Fill in all fields that follow from the cells."""
    for cell in range(area.shape[0]):
        code = state[CELLS + cell]
        if code != WALL:
            bit = np.int64(1) << (cell & 63)
            state[TARGETS + (cell >> 6)] |= bit * (code & 1)
            state[BOXES] += code | 1 == BOX_ON_TARGET
            state[ON_TARGET] += code == BOX_ON_TARGET
            if code >= MAN:
                state[PLAYER] = cell
    reach(state, True, area)
    for cell in range(area.shape[0]):
        if area[cell]:
            state[FLOOR + (cell >> 6)] |= np.int64(1) << (cell & 63)


@kernel
def _normalise(state: Any, area: Any, form: Any) -> None:
    """Fill `form` with the cell codes of the canonical form, before mirroring and turning."""
    reach(state, True, area)
    for cell in range(area.shape[0]):
        code = state[CELLS + cell]
        if code != WALL:
            code = code & 1 if code >= MAN else code
            if not area[cell] and code != TARGET and code != BOX:
                code = WALL
        form[cell] = code
    reach(state, False, area)
    for cell in range(area.shape[0]):
        if area[cell]:
            form[cell] += MAN
