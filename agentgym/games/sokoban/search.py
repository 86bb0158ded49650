"""A* for rooms too large for a table: fewest moves, or fewest pushes, to a win.

A node is a box set and the player's cell right after a push (for pushes: the area the player can
walk to, named by its smallest floor cell). An edge walks to a box and pushes it once; it costs the
walk plus one, or one. The bound is the cheapest assignment of boxes to targets in pushes, which no
edge lowers by more than its own cost: the first won node taken up is optimal (Hart, Nilsson and
Raphael 1968). Lost box sets are left out by the tests of `deadlocks`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.chance import mix
from agentgym.games.sokoban.box_sets import at, moved
from agentgym.games.sokoban.deadlocks import SUBSETS, fewest_pushes, frozen_away
from agentgym.games.sokoban.rooms import FAR, Room
from agentgym.kernels import kernel

LOST, OUT_OF_BUDGET = -1, -2
"""What a search returns in place of a won node: proven lost, or not determined."""

_BUCKETS = 1 << 14
COUNT, ENTRIES, LOWEST, FULL = range(4)
"""Fields of `Nodes.counts`: nodes, entries of the queue, first bucket in use, out of memory."""


class Nodes(NamedTuple):
    """Nodes, a hash table over them, a bucket queue, and scratch memory.

    Attributes:
        boxes: Box set of each node.
        player: Floor cell of the player, of each node.
        area: What stands for the player when nodes are compared.
        cost: Cost so far.
        bound: Lower bound of the cost to come.
        parent: The node before, -1 at the start.
        push: Direction of the push that led to it.
        slots: Hash table: node + 1, 0 where empty; its length is a power of two.
        entries: Queue entries (node, cost when queued, next entry).
        heads: First entry + 1 of each bucket, 0 where empty.
        counts: See `COUNT`.
        steps: Scratch: walking distance of each floor cell, at the node and after the push.
        queue: Scratch: floor cells.
        box_at: Scratch for `frozen_away`.
        costs: Scratch for `fewest_pushes`.
    """

    boxes: npt.NDArray[np.uint64]
    player: npt.NDArray[np.int16]
    area: npt.NDArray[np.int16]
    cost: npt.NDArray[np.int32]
    bound: npt.NDArray[np.int32]
    parent: npt.NDArray[np.int32]
    push: npt.NDArray[np.int8]
    slots: npt.NDArray[np.int32]
    entries: npt.NDArray[np.int32]
    heads: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    steps: npt.NDArray[np.uint16]
    queue: npt.NDArray[np.int16]
    box_at: npt.NDArray[np.int8]
    costs: npt.NDArray[np.int64]


class Aim(NamedTuple):
    """What a search looks for.

    Attributes:
        walks: 1: the cost counts moves; 0: pushes only.
        weight: Factor of the bound; the result is proven optimal with 1 only.
    """

    walks: int
    weight: int


def make_nodes(room: Room, limit: int) -> Nodes:
    """Memory for a search that keeps at most `limit` nodes."""
    floors = len(room.cells)
    return Nodes(
        boxes=np.empty(limit, np.uint64),
        player=np.empty(limit, np.int16),
        area=np.empty(limit, np.int16),
        cost=np.empty(limit, np.int32),
        bound=np.empty(limit, np.int32),
        parent=np.empty(limit, np.int32),
        push=np.empty(limit, np.int8),
        slots=np.zeros(1 << (2 * limit).bit_length(), np.int32),
        entries=np.empty((2 * limit, 3), np.int32),
        heads=np.zeros(_BUCKETS, np.int32),
        counts=np.zeros(4, np.int64),
        steps=np.empty((2, floors), np.uint16),
        queue=np.empty(floors, np.int16),
        box_at=np.full(floors, -1, np.int8),
        costs=np.empty(SUBSETS, np.int64),
    )


@kernel
def search(room: Any, nodes: Any, aim: Any, boxes: Any, player: Any) -> Any:
    """The won node reached first from a box set and a player's floor cell, or `LOST` and so on."""
    _add(room, nodes, aim, boxes, (player, 0, -1, 0))
    while nodes.counts[FULL] == 0:
        node = _take(nodes)
        if node < 0:
            return LOST
        if nodes.bound[node] == 0:
            return node
        _expand(room, nodes, aim, node)
    return OUT_OF_BUDGET


@kernel
def _take(nodes: Any) -> Any:
    """Take the newest node of the lowest bucket off the queue; -1 if the queue is empty."""
    while nodes.counts[LOWEST] < nodes.heads.shape[0]:
        entry = nodes.heads[nodes.counts[LOWEST]] - 1
        if entry < 0:
            nodes.counts[LOWEST] += 1
            continue
        nodes.heads[nodes.counts[LOWEST]] = nodes.entries[entry, 2]
        node = nodes.entries[entry, 0]
        if nodes.cost[node] == nodes.entries[entry, 1]:
            return node
    return -1


@kernel
def _expand(room: Any, nodes: Any, aim: Any, node: Any) -> None:
    """Add what each possible push leads to."""
    boxes, cost = nodes.boxes[node], nodes.cost[node]
    count = room.pushes.shape[0]
    _walk(room, nodes, 0, boxes, nodes.player[node])
    for index in range(count):
        live = at(boxes, index)
        floor = room.floor_of[live]
        for direction in range(4):
            stand, goal = room.around[floor, direction ^ 1], room.around[floor, direction]
            if stand < 0 or goal < 0 or nodes.steps[0, stand] == FAR:
                continue
            new = room.live_of[goal]
            if new >= 0 and not _holds(boxes, count, new):
                walked = nodes.steps[0, stand] if aim.walks else 0
                pushed = moved(boxes, count, live, new)
                _add(room, nodes, aim, pushed, (floor, cost + walked + 1, node, direction))


@kernel
def _holds(boxes: Any, count: Any, live: Any) -> Any:
    """Whether a box of the set stands on a live cell."""
    found = False
    for index in range(count):
        found = found or at(boxes, index) == live
    return found


@kernel
def _walk(room: Any, nodes: Any, side: Any, boxes: Any, start: Any) -> Any:
    """Fill in the walking distance of every floor cell; returns the smallest that is reached."""
    around, box_at, queue, steps = room.around, nodes.box_at, nodes.queue, nodes.steps[side]
    count = room.pushes.shape[0]
    for index in range(count):
        box_at[room.floor_of[at(boxes, index)]] = index
    steps[:] = FAR
    steps[start] = 0
    queue[0] = start
    head, tail, smallest = 0, 1, start
    while head < tail:
        floor = queue[head]
        head += 1
        smallest = min(smallest, floor)
        for direction in range(4):
            near = around[floor, direction]
            if near >= 0 and box_at[near] < 0 and steps[near] == FAR:
                steps[near] = steps[floor] + 1
                queue[tail] = near
                tail += 1
    for index in range(count):
        box_at[room.floor_of[at(boxes, index)]] = -1
    return smallest


@kernel
def _add(room: Any, nodes: Any, aim: Any, boxes: Any, arrival: Any) -> None:
    """Queue a node that is new or now cheaper; `arrival` = player, cost, parent, push."""
    player, cost, parent, push = arrival
    area = player
    if not aim.walks:
        area = _walk(room, nodes, 1, boxes, player)
    slot = _slot(nodes, boxes, area)
    node = nodes.slots[slot] - 1
    if node >= 0:
        if cost >= nodes.cost[node]:
            return
    else:
        bound = fewest_pushes(room, boxes, nodes.costs)
        if bound >= FAR or frozen_away(room, boxes, nodes.box_at):
            return
        node = nodes.counts[COUNT]
        if node == nodes.boxes.shape[0]:
            nodes.counts[FULL] = 1
            return
        nodes.counts[COUNT] = node + 1
        nodes.slots[slot] = node + 1
        nodes.boxes[node], nodes.area[node], nodes.bound[node] = boxes, area, bound
    nodes.player[node], nodes.cost[node] = player, cost
    nodes.parent[node], nodes.push[node] = parent, push
    _enqueue(nodes, node, cost + aim.weight * nodes.bound[node])


@kernel
def _slot(nodes: Any, boxes: Any, area: Any) -> Any:
    """Where in the hash table a node stands, or would stand."""
    last = nodes.slots.shape[0] - 1
    slot = np.int64(mix(boxes + mix(area))) & last
    while nodes.slots[slot] > 0:
        node = nodes.slots[slot] - 1
        if nodes.boxes[node] == boxes and nodes.area[node] == area:
            break
        slot = (slot + 1) & last
    return slot


@kernel
def _enqueue(nodes: Any, node: Any, bucket: Any) -> None:
    """Put a node in front of a bucket."""
    entry = nodes.counts[ENTRIES]
    if entry == nodes.entries.shape[0] or bucket >= nodes.heads.shape[0]:
        nodes.counts[FULL] = 1
        return
    nodes.counts[ENTRIES] = entry + 1
    nodes.entries[entry, 0] = node
    nodes.entries[entry, 1] = nodes.cost[node]
    nodes.entries[entry, 2] = nodes.heads[bucket]
    nodes.heads[bucket] = entry + 1
    nodes.counts[LOWEST] = min(nodes.counts[LOWEST], bucket)
