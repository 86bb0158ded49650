"""What the oracle knows of a room before any box moves: floor cells, live cells, push distances.

Floor cells are those the player could reach if no box stood in the way; they are numbered in
order, and so are the live cells among them, from which a box alone in the room could be pushed
onto some target. A box on any other floor cell never reaches a target.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.game import State
from agentgym.games.sokoban.rules import CELLS, COLS, FLOOR, TARGETS, offset
from agentgym.kernels import kernel

FAR = 0xFFFF
"""In place of a distance, where there is no way."""
MAX_CELLS = 256
"""Cells of the largest board."""


class Room(NamedTuple):
    """The geometry of a room with n floor cells, m live ones and k targets.

    Attributes:
        cells: int16 (n,): the board's cell under each floor cell.
        around: int16 (n, 4): the floor cell one step up, down, left, right; -1 at a wall.
        live_of: int16 (n,): the live cell on each floor cell; -1 where a box would be lost.
        floor_of: int16 (m,): the floor cell under each live cell.
        home: bool (m,): whether each live cell is a target.
        pushes: uint16 (k, m): pushes from each live cell to each target, were there one box only.
    """

    cells: npt.NDArray[np.int16]
    around: npt.NDArray[np.int16]
    live_of: npt.NDArray[np.int16]
    floor_of: npt.NDArray[np.int16]
    home: npt.NDArray[np.bool_]
    pushes: npt.NDArray[np.uint16]


def room_key(state: State) -> bytes:
    """What tells rooms apart: the board's width, its floor and its targets."""
    return state[COLS:CELLS].tobytes()


def survey(state: State) -> Room:
    """The room that a state is in."""
    cells = np.empty(MAX_CELLS, np.int16)
    goals = np.empty(MAX_CELLS, np.int16)
    floor_count, goal_count = _number_cells(state, cells, goals)
    cells = cells[:floor_count].copy()
    around = np.empty((floor_count, 4), np.int16)
    _link(cells, state[COLS], around)
    pushes = np.empty((goal_count, floor_count), np.uint16)
    _measure(around, goals, pushes, np.empty(floor_count, np.int16))
    live = np.flatnonzero((pushes != FAR).any(axis=0))
    live_of = np.full(floor_count, -1, np.int16)
    live_of[live] = np.arange(len(live))
    pushes = np.ascontiguousarray(pushes[:, live])
    return Room(cells, around, live_of, live.astype(np.int16), (pushes == 0).any(axis=0), pushes)


@kernel
def has(state: Any, field: Any, cell: Any) -> Any:
    """Whether a cell is in one of the two 256-bit sets, `FLOOR` or `TARGETS`."""
    return (state[field + (cell >> 6)] >> (cell & 63)) & 1 != 0


@kernel
def _number_cells(state: Any, cells: Any, goals: Any) -> Any:
    """List the floor cells, and the floor numbers of the targets among them."""
    floors, targets = 0, 0
    for cell in range(MAX_CELLS):
        if has(state, FLOOR, cell):
            cells[floors] = cell
            if has(state, TARGETS, cell):
                goals[targets] = floors
                targets += 1
            floors += 1
    return floors, targets


@kernel
def _link(cells: Any, cols: Any, around: Any) -> None:
    """Fill in the neighbours of every floor cell."""
    for floor in range(cells.shape[0]):
        for direction in range(4):
            wanted = cells[floor] + offset(direction, cols)
            place = np.searchsorted(cells, wanted)
            found = place < cells.shape[0] and cells[place] == wanted
            around[floor, direction] = place if found else -1


@kernel
def _measure(around: Any, goals: Any, pushes: Any, queue: Any) -> None:
    """Fill in the pushes to each target by pulling a box away from it, breadth first."""
    for goal in range(pushes.shape[0]):
        distance = pushes[goal]
        distance[:] = FAR
        distance[goals[goal]] = 0
        queue[0] = goals[goal]
        head, tail = 0, 1
        while head < tail:
            box = queue[head]
            head += 1
            for direction in range(4):
                source = around[box, direction]
                if source >= 0 and around[source, direction] >= 0 and distance[source] == FAR:
                    distance[source] = distance[box] + 1
                    queue[tail] = source
                    tail += 1
