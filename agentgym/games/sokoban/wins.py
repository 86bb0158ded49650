"""Wins that the search finds, as actions of the game."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from agentgym.game import State
from agentgym.games.sokoban.rooms import MAX_CELLS, Room
from agentgym.games.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    CELLS,
    COLS,
    EXPLICIT,
    PLAYER,
    TARGET,
    offset,
    step,
)
from agentgym.games.sokoban.search import LOST, OUT_OF_BUDGET, Aim, Nodes, make_nodes, search

_HASTE = 4
"""Weight of the search for any win, once that for the shortest is out of budget."""


class Win(NamedTuple):
    """How a state is won.

    Attributes:
        cost: Moves, or pushes; inf if no win is possible, nan if none was found.
        exact: Proven the fewest, or proven lost; else a bound from above, or nothing.
        actions: Action indices that win; empty where there is none or only pushes count.
    """

    cost: float
    exact: bool
    actions: tuple[int, ...] = ()


LOST_FOR_GOOD = Win(math.inf, True)
NOT_FOUND = Win(math.nan, False)


def fewest_moves(state: State, room: Room, limit: int) -> Win:
    """The shortest win; failing that within `limit` nodes, some win within as many.

    Args:
        state: Any state.
        room: Its room.
        limit: Nodes to keep.
    """
    boxes = box_set(state, room)
    if boxes is None:
        return LOST_FOR_GOOD
    for weight in (1, _HASTE):
        nodes = make_nodes(room, limit)
        node = search(room, nodes, Aim(walks=1, weight=weight), boxes, _floor(state, room))
        if node == LOST:
            return LOST_FOR_GOOD
        if node != OUT_OF_BUDGET:
            actions = _actions(state, room, nodes, node)
            return Win(float(len(actions)), weight == 1, tuple(actions))
    return NOT_FOUND


def fewest_pushes(state: State, room: Room, limit: int) -> Win:
    """The win with the fewest pushes, without its actions; arguments as for `fewest_moves`."""
    boxes = box_set(state, room)
    if boxes is None:
        return LOST_FOR_GOOD
    nodes = make_nodes(room, limit)
    node = search(room, nodes, Aim(walks=0, weight=1), boxes, _floor(state, room))
    if node == OUT_OF_BUDGET:
        return NOT_FOUND
    return LOST_FOR_GOOD if node == LOST else Win(float(nodes.cost[node]), True)


def box_set(state: State, room: Room) -> np.uint64 | None:
    """The boxes in the player's room as a set, see `box_sets`; None if one is lost for good."""
    codes = state[CELLS : CELLS + MAX_CELLS]
    cells = np.flatnonzero((codes == BOX) | (codes == BOX_ON_TARGET))
    inside = np.isin(cells, room.cells)
    live = room.live_of[np.searchsorted(room.cells, cells[inside])]
    stranded = (codes[cells[~inside]] == BOX).any()
    if stranded or (live < 0).any() or len(live) != len(room.pushes):
        return None
    return np.uint64(sum(int(cell) << (8 * index) for index, cell in enumerate(live)))


def _floor(state: State, room: Room) -> int:
    return int(np.searchsorted(room.cells, state[PLAYER]))


def _actions(state: State, room: Room, nodes: Nodes, node: int) -> list[int]:
    """The walks and pushes that lead from a state to a node."""
    pushes: list[tuple[int, int]] = []
    while nodes.parent[node] >= 0:
        pushes.append((int(room.cells[nodes.player[node]]), int(nodes.push[node])))
        node = int(nodes.parent[node])
    state = state.copy()
    actions: list[int] = []
    for box, direction in reversed(pushes):
        walk = _walk(state, box - offset(direction, int(state[COLS])))
        push = direction + 4 if state[EXPLICIT] else direction
        for action in (*walk, push):
            step(state, action)
        actions += *walk, push
    return actions


def _walk(state: State, goal: int) -> list[int]:
    """The shortest walk to a cell, around the boxes."""
    cols, start = int(state[COLS]), int(state[PLAYER])
    came: dict[int, int] = {start: -1}
    queue = [start]
    for cell in queue:
        for direction in range(4):
            near = cell + offset(direction, cols)
            if near not in came and state[CELLS + near] <= TARGET:
                came[near] = direction
                queue.append(near)
    walk: list[int] = []
    while goal != start:
        walk.append(came[goal])
        goal -= offset(came[goal], cols)
    return walk[::-1]
