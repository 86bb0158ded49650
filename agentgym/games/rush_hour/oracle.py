"""The oracle of Rush Hour: the exact distance of every state that can be reached.

A component's table is one int64 array: `HEAD` numbers, the ranks of all its states by open
addressing, then their costs, two to a word. Whether the cost counts slides or cells stands in it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.game import Note, State
from agentgym.games.rush_hour.component import component_of, room_of
from agentgym.games.rush_hour.graph import DEAD, FREE, find, measure
from agentgym.games.rush_hour.options import LEVELS, SIZE_GENERATED, RushHourOptions
from agentgym.games.rush_hour.rules import (
    OCCUPIED,
    RANK,
    SHAPE,
    SIZE,
    action_count,
    room,
    step,
    success,
)
from agentgym.kernels import kernel
from agentgym.oracle import TableCache, TableOracle

SLOTS, CELLS, COMPLETE, HEAD = range(4)
"""Fields at a table's head: number of slots; cost in cells; all of the component is there."""
MISSING = -1
"""In place of a cost: the state is not in the table."""

Table = npt.NDArray[np.int64]

_TABLES = TableCache()


def table_of(state: State, budget: int, *, cells: bool) -> Table:
    """Build the table of a state's component.

    Args:
        state: Any state of it.
        budget: Most states; of a larger component the table only says so.
        cells: Count cells, not slides.
    """
    component = component_of(state, budget)
    if component.complete:
        measure(state, component.graph, component.size, cells)
    slots = 1 << (2 * component.size - 1).bit_length()
    table = np.full(HEAD + slots + slots // 2, FREE, np.int64)
    table[:HEAD] = slots, cells, component.complete
    _pack(component.graph, component.size, table)
    return table


@kernel
def _pack(graph: Any, count: Any, table: Any) -> None:
    """Enter the ranks and costs of `count` states in an empty table."""
    slots = table[SLOTS]
    keys, words = table[HEAD : HEAD + slots], table[HEAD + slots :]
    for name in range(count):
        slot = find(keys, graph.ranks[name])
        keys[slot] = graph.ranks[name]
        shift = 32 * (slot & 1)
        kept = words[slot >> 1] & ~(0xFFFFFFFF << shift)
        words[slot >> 1] = kept | (np.int64(graph.costs[name]) << shift)


@kernel
def cost_of(table: Any, rank: Any) -> Any:
    """The cost of the state with that rank, DEAD if it cannot win, MISSING if it is not there."""
    slots = table[SLOTS]
    keys = table[HEAD : HEAD + slots]
    slot = find(keys, rank)
    if keys[slot] != rank:
        return MISSING
    return (table[HEAD + slots + (slot >> 1)] >> (32 * (slot & 1))) & 0xFFFFFFFF


@kernel
def covers(state: Any, table: Any) -> Any:
    """Whether the table is that of the state's component (or, too large, has seen the state)."""
    return cost_of(table, state[RANK]) != MISSING


@kernel
def read(state: Any, table: Any, values: Any, best: Any, out: Any) -> Any:
    """Fill the action values, the optimal actions and [N, V, dead end, exact] of a state.

    Q(s, a) = -(c + N(s')), where c is 1, or the cells of the slide if cells are counted. Returns
    whether the table covers the state; nothing is known where it does not.
    """
    values[:] = -np.inf
    best[:] = False
    own = cost_of(table, state[RANK])
    known = own != MISSING and table[COMPLETE] != 0
    out[0] = np.nan if not known else np.inf if own == DEAD else float(own)
    out[1] = 0.0 - out[0]
    out[2], out[3] = known and own == DEAD, known
    if success(state):
        return own != MISSING
    n, pieces = state[SIZE], room(state)
    for piece in range(pieces):
        for sign in (1, -1):
            base = piece * 2 * (n - 2) + (0 if sign > 0 else n - 2) - 1
            for k in range(1, _way(state, piece, sign) + 1):
                if not known:
                    values[base + k] = np.nan
                    continue
                rank = state[RANK] + k * sign * state[SHAPE + pieces + piece]
                cost, own_cost = cost_of(table, rank), k if table[CELLS] else 1
                if cost != DEAD:
                    values[base + k] = -float(cost + own_cost)
                    best[base + k] = cost + own_cost == own
    return own != MISSING


@kernel
def _way(state: Any, piece: Any, sign: Any) -> Any:
    """How many cells a piece can go right or down (`sign` 1), left or up (-1)."""
    n, shape = state[SIZE], state[SHAPE + piece]
    if shape == 0:
        return 0
    stride, lane = n if shape >> 5 else 1, (shape >> 2) & 7
    origin = lane if shape >> 5 else lane * n
    place = state[SHAPE + 2 * room(state) + piece]
    at, cells = place + (shape & 3) if sign > 0 else place - 1, 0
    while 0 <= at < n and not (state[OCCUPIED] >> (origin + at * stride)) & 1:
        cells += 1
        at += sign
    return cells


def find_table(state: State, budget: int, *, cells: bool) -> Table:
    """The table that covers a state, built at the first question about its component.

    The places that a board's pieces can have fall into components; each has a table of its own.
    """
    board, component = state[SIZE : SHAPE + 2 * room_of(state)].tobytes(), 0
    while True:
        key = (board, component, budget, cells)
        table = _TABLES.get(key, lambda: table_of(state, budget, cells=cells))
        if covers(state, table):
            return table
        component += 1


class RushHourOracle(TableOracle):
    """Looks states up in the tables of their components.

    The number of actions is the state's own: that of loaded boards follows from their letters.
    """

    def note(self, state: State) -> Note:
        """What is known about a state; one lookup."""
        actions = action_count(state.item(SIZE), room_of(state))
        values, best, out = np.empty(actions), np.empty(actions, np.bool_), np.empty(4)
        read(state, self.table(state), values, best, out)
        cost_to_go, value, dead_end, exact = out.tolist()
        return Note(cost_to_go, value, values, best, dead_end != 0.0, exact != 0.0)


def make_oracle(options: RushHourOptions, budget: int) -> RushHourOracle:
    """An oracle that counts as `options.metric` says.

    Args:
        options: The game's arguments.
        budget: Most states of a component; nothing is known about the states of larger ones.
    """
    table = partial(find_table, budget=budget, cells=options.metric == "cells")
    actions = action_count(SIZE_GENERATED, LEVELS[options.level].pieces[1])
    return RushHourOracle(table, read, actions, step, success)
