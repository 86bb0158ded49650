"""The exact table of a room: the fewest moves to a win from every (box set, player cell).

One backward breadth-first search from all won states. A table is one flat uint16 array: counts and
flags, the floor number and the live number of every cell of the board, then, per box set in the
order of its rank, the distance from each floor cell of the player. Boxes are ranked over live
cells only: with a box anywhere else the state is lost. A table without distances (the room has
more states than the budget) still knows the live cells.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.games.sokoban.box_sets import at, first, following, moved, put, rank_of
from agentgym.games.sokoban.rooms import FAR, MAX_CELLS, Room
from agentgym.games.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    CELLS,
    COLS,
    EXPLICIT,
    PLAYER,
    ROWS,
    TARGET,
    offset,
)
from agentgym.kernels import kernel

BOX_COUNT, FLOOR_COUNT, LIVE_COUNT, FILLED, COMPLETE = range(5)
"""Fields of a table: boxes in the room, floor and live cells, distances are there, none is cut."""
FLOOR_OF = 8
"""First of 256 fields: the floor number of each cell, `FAR` if it is none."""
LIVE_OF = FLOOR_OF + MAX_CELLS
"""First of 256 fields: the live number of each cell, `FAR` if it is none."""
DISTANCES = LIVE_OF + MAX_CELLS
"""First distance."""


class _Work(NamedTuple):
    """Scratch memory of the search.

    Attributes:
        distances: The table's distances.
        sets: The box set of each rank.
        fresh: Per side (this level, the next) and rank: the set has states at that level.
        taken: Per floor cell: a box of the set at hand stands there; the last is always taken, so
            that the neighbour -1, a wall, is too.
    """

    distances: npt.NDArray[np.uint16]
    sets: npt.NDArray[np.uint64]
    fresh: npt.NDArray[np.bool_]
    taken: npt.NDArray[np.bool_]


def size_of(room: Room) -> int:
    """Number of (box set, player cell) pairs, those where the player stands on a box included."""
    return comb(len(room.floor_of), len(room.pushes)) * len(room.cells)


def build(room: Room, budget: int) -> npt.NDArray[np.uint16]:
    """The table of a room; without distances if it has more than `budget` states."""
    size = size_of(room)
    filled = size <= budget
    table = np.full(DISTANCES + (size if filled else 0), FAR, np.uint16)
    table[: COMPLETE + 1] = len(room.pushes), len(room.cells), len(room.floor_of), filled, filled
    table[FLOOR_OF + room.cells] = np.arange(len(room.cells))
    table[LIVE_OF + room.cells[room.floor_of]] = np.arange(len(room.floor_of))
    if filled:
        table[COMPLETE] = _search(room, _work(room, table[DISTANCES:]))
    return table


def _work(room: Room, distances: npt.NDArray[np.uint16]) -> _Work:
    sets = len(distances) // len(room.cells)
    taken = np.zeros(len(room.cells) + 1, np.bool_)
    taken[-1] = True
    return _Work(distances, np.empty(sets, np.uint64), np.zeros((2, sets), np.bool_), taken)


@kernel
def _search(room: Any, work: Any) -> Any:
    """Fill in the distances, level by level; False if the last level that fits was not the end."""
    floors, count = room.cells.shape[0], room.pushes.shape[0]
    boxes = first(count)
    for rank in range(work.sets.shape[0]):
        work.sets[rank] = boxes
        boxes = following(boxes, count)
    won = _won_set(room)
    row = rank_of(won, count) * floors
    work.distances[row : row + floors] = 0
    for index in range(count):
        work.distances[row + room.floor_of[at(won, index)]] = FAR
    work.fresh[0, rank_of(won, count)] = True
    level, more = 0, True
    while more and level < FAR - 1:
        more = _go_back(room, work, level)
        level += 1
    return not more


@kernel
def _won_set(room: Any) -> Any:
    """The box set that covers all targets."""
    won = np.uint64(0)
    filled = 0
    for live in range(room.home.shape[0]):
        if room.home[live]:
            won = put(won, filled, live)
            filled += 1
    return won


@kernel
def _go_back(room: Any, work: Any, level: Any) -> Any:
    """Find all states one move before those of a level; returns whether there are any."""
    around, live_of, sets = room.around, room.live_of, work.sets
    distances, taken = work.distances, work.taken
    now, then = work.fresh[level & 1], work.fresh[1 - (level & 1)]
    count, floors, more = room.pushes.shape[0], around.shape[0], False
    for rank in range(sets.shape[0]):
        if not now[rank]:
            continue
        now[rank] = False
        _mark(taken, room.floor_of, sets[rank], count, True)
        for player in range(floors):
            if distances[rank * floors + player] != level:
                continue
            for direction in range(4):
                origin, box = around[player, direction ^ 1], around[player, direction]
                if taken[origin]:
                    continue
                if distances[rank * floors + origin] == FAR:
                    distances[rank * floors + origin] = level + 1
                    then[rank] = more = True
                if box >= 0 and taken[box]:
                    # With room behind it to pull, the player stands on a live cell.
                    pulled = rank_of(moved(sets[rank], count, live_of[box], live_of[player]), count)
                    if distances[pulled * floors + origin] == FAR:
                        distances[pulled * floors + origin] = level + 1
                        then[pulled] = more = True
        _mark(taken, room.floor_of, sets[rank], count, False)
    return more


@kernel
def _mark(taken: Any, floor_of: Any, boxes: Any, count: Any, value: Any) -> None:
    """Mark the floor under the boxes of a set as taken or free."""
    for index in range(count):
        taken[floor_of[at(boxes, index)]] = value


@kernel
def boxes_of(state: Any, table: Any) -> Any:
    """The set of the boxes in the player's room, how many, and whether one is lost for good."""
    boxes = np.uint64(0)
    count = 0
    lost = False
    for cell in range(state[ROWS] * state[COLS]):
        code = state[CELLS + cell]
        if code | 1 == BOX_ON_TARGET:
            live = table[LIVE_OF + cell]
            if live != FAR:
                boxes = put(boxes, count, live)
                count += 1
            elif code == BOX:
                lost = True
    return boxes, count, lost or count != table[BOX_COUNT]


@kernel
def distance(table: Any, boxes: Any, count: Any, floor: Any) -> Any:
    """N of a state as float64; inf if proven lost, nan if the table does not say."""
    if not table[FILLED]:
        return np.nan
    found = table[DISTANCES + rank_of(boxes, count) * table[FLOOR_COUNT] + floor]
    if found != FAR:
        return float(found)
    return np.inf if table[COMPLETE] else np.nan


@kernel
def read(state: Any, table: Any, values: Any, best: Any, out: Any) -> None:
    """Fill action values, optimal actions and [cost to go, value, dead end, exact]."""
    boxes, count, lost = boxes_of(state, table)
    cost = np.inf if lost else distance(table, boxes, count, table[FLOOR_OF + state[PLAYER]])
    exact = not np.isnan(cost)
    for action in range(values.shape[0]):
        after = cost
        if not lost:
            after = _cost_after(state, table, boxes, count, action)
        values[action] = -1.0 - after
        best[action] = after < cost
        exact = exact and not np.isnan(after)
    out[0], out[1], out[2], out[3] = cost, -cost, cost == np.inf, exact


@kernel
def _cost_after(state: Any, table: Any, boxes: Any, count: Any, action: Any) -> Any:
    """N of the state that an action leads to, from one that is not lost."""
    player = state[PLAYER]
    move = offset(action & 3, state[COLS])
    there = CELLS + player + move
    pushes = state[there] | 1 == BOX_ON_TARGET and (action > 3 or not state[EXPLICIT])
    if state[there] <= TARGET and action < 4:
        player += move
    elif pushes and state[there + move] <= TARGET:
        player += move
        live = table[LIVE_OF + player + move]
        if live == FAR:
            return np.inf
        boxes = moved(boxes, count, table[LIVE_OF + player], live)
    return distance(table, boxes, count, table[FLOOR_OF + player])
