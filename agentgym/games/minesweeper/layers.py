"""Layers of partial placements: counting layouts without listing them.

The areas of a component are decided one after another, in an order that keeps few constraints half
filled. A node is what the areas decided so far leave to be filled in those constraints, together
with the mines used. Placements that leave the same are one node, so work grows with the width of
the frontier and not with the number of solutions. A layer's edges lead to the next layer: one for
each number of mines that the area decided there can have.

The names in capitals are places in the workspace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym.games.minesweeper import workspace as at
from agentgym.kernels import kernel

KEY_BITS = 52
"""Bits of a node's key below the mines used: what the half filled constraints still need."""
_SCRAMBLE = -7046029254386353131

CHOOSE = np.array(
    [
        [1, 0, 0, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0, 0, 0],
        [1, 2, 1, 0, 0, 0, 0, 0, 0],
        [1, 3, 3, 1, 0, 0, 0, 0, 0],
        [1, 4, 6, 4, 1, 0, 0, 0, 0],
        [1, 5, 10, 10, 5, 1, 0, 0, 0],
        [1, 6, 15, 20, 15, 6, 1, 0, 0],
        [1, 7, 21, 35, 35, 21, 7, 1, 0],
        [1, 8, 28, 56, 70, 56, 28, 8, 1],
    ],
    np.float64,
)
"""Placements in an area by its cells and mines."""


@kernel
def draw(work: Any, ways: Any) -> Any:
    """Make all layers, component after component; False if the workspace is too small."""
    for constraint in range(work[at.CONSTRAINTS]):
        work[at.LEFT + constraint] = work[at.MEMBER_COUNT + constraint]
        work[at.ROOM + constraint] = work[at.FREE + constraint]
        work[at.SHIFT + constraint] = -1
    work[at.DECIDED : at.DECIDED + work[at.AREAS]] = 0
    work[at.BASE] += work[at.NODES] + 1
    work[at.NODES] = 0
    work[at.EDGES] = 0
    work[at.LAYERS] = 0
    work[at.COMPONENTS] = 0
    work[at.TAKEN] = 0
    for start in range(work[at.CONSTRAINTS]):
        if work[at.LEFT + start] > 0 and not draw_component(work, ways, start):
            return False
    work[at.LAYER + work[at.LAYERS]] = work[at.NODES]
    return True


@kernel
def draw_component(work: Any, ways: Any, start: Any) -> Any:
    """Make the layers of all areas that hang together with one constraint."""
    root = work[at.NODES]
    if root + 1 >= work[at.NODE_LIMIT]:
        return False
    work[at.KEY + root] = 0
    ways[at.AHEAD + root] = 1.0
    work[at.LAYER + work[at.LAYERS]] = root
    work[at.NODES] += 1
    work[at.HALF_FILLED] = 0
    constraint = start
    while constraint >= 0:
        members = at.MEMBER + 8 * constraint
        for k in range(members, members + work[at.MEMBER_COUNT + constraint]):
            if not work[at.DECIDED + work[k]] and not decide(work, ways, work[k]):
                return False
        constraint = next_constraint(work)
    last = work[at.LAYERS]
    work[at.FIRST + work[at.LAYER + last]] = work[at.EDGES]
    work[at.LAYER_AREA + last] = -1
    work[at.LAST + work[at.COMPONENTS]] = last
    work[at.COMPONENTS] += 1
    work[at.LAYERS] += 1
    return True


@kernel
def next_constraint(work: Any) -> Any:
    """Forget the constraints that are full; of the others, that with the fewest areas left."""
    kept, best = 0, -1
    for k in range(work[at.HALF_FILLED]):
        constraint = work[at.ORDER + k]
        if work[at.LEFT + constraint] > 0:
            work[at.ORDER + kept] = constraint
            kept += 1
            if best < 0 or work[at.LEFT + constraint] < work[at.LEFT + best]:
                best = constraint
    work[at.HALF_FILLED] = kept
    return best


@kernel
def decide(work: Any, ways: Any, area: Any) -> Any:
    """Add the layer behind an area: begin its constraints, follow all edges, end the full ones."""
    cell, size = work[at.AREA_CELL + area], work[at.AREA_SIZE + area]
    begun, unit, ended = np.int64(0), np.int64(1) << KEY_BITS, np.int64(0)
    for k in range(work[at.BOUND_COUNT + cell]):
        constraint = work[at.BOUND + 8 * cell + k]
        need = work[at.NEED + constraint]
        mask = (np.int64(1) << bit_width(need)) - 1
        if work[at.SHIFT + constraint] < 0:
            if not begin(work, constraint, mask):
                return False
            begun += need << work[at.SHIFT + constraint]
        shift = work[at.SHIFT + constraint]
        unit -= np.int64(1) << shift
        work[at.LEFT + constraint] -= 1
        work[at.ROOM + constraint] -= size
        if work[at.LEFT + constraint] == 0:
            ended |= mask << shift
        work[at.TERM + 3 * k] = shift
        work[at.TERM + 3 * k + 1] = mask
        work[at.TERM + 3 * k + 2] = work[at.ROOM + constraint]
    work[at.TAKEN] &= ~ended
    work[at.DECIDED + area] = 1
    work[at.LAYER_AREA + work[at.LAYERS]] = area
    return expand(work, ways, area, begun, unit)


@kernel
def begin(work: Any, constraint: Any, mask: Any) -> Any:
    """Give a constraint a place in the key; False if there is none."""
    shift = np.int64(0)
    while (work[at.TAKEN] >> shift) & mask:
        shift += 1
    if mask << shift >= np.int64(1) << KEY_BITS:
        return False
    work[at.SHIFT + constraint] = shift
    work[at.TAKEN] |= mask << shift
    work[at.ORDER + work[at.HALF_FILLED]] = constraint
    work[at.HALF_FILLED] += 1
    return True


@kernel
def bit_width(number: Any) -> Any:
    """Bits of a number from 0 to 8."""
    return np.int64(number > 0) + (number > 1) + (number > 3) + (number > 7)


@kernel
def expand(work: Any, ways: Any, area: Any, begun: Any, unit: Any) -> Any:
    """Follow every edge out of the newest layer, merging equal ends; False if out of space."""
    start, end, edge = work[at.LAYER + work[at.LAYERS]], work[at.NODES], work[at.EDGES]
    size = work[at.AREA_SIZE + area]
    terms = at.TERM + 3 * work[at.BOUND_COUNT + work[at.AREA_CELL + area]]
    mask = slot_mask((end - start) * (size + 1))
    for node in range(start, end):
        if edge + size >= at.MAX_EDGES or work[at.NODES] + size + 1 >= work[at.NODE_LIMIT]:
            return False
        key = work[at.KEY + node] + begun
        low, high = np.int64(0), size
        for k in range(at.TERM, terms, 3):
            need = (key >> work[k]) & work[k + 1]
            low = max(low, need - work[k + 2])
            high = min(high, need)
        work[at.FIRST + node] = edge
        work[at.LOWEST + node] = low
        key += low * unit
        for mines in range(low, high + 1):
            to = find_node(work, ways, key, end, mask)
            ways[at.AHEAD + to] += ways[at.AHEAD + node] * CHOOSE[size, mines]
            work[at.CHILD + edge] = to
            edge += 1
            key += unit
    work[at.EDGES] = edge
    work[at.LAYERS] += 1
    work[at.LAYER + work[at.LAYERS]] = end
    return True


@kernel
def slot_mask(most: Any) -> Any:
    """Mask of the part of the hash table to use for so many nodes."""
    mask = np.int64(8)
    while mask < 2 * most and mask < at.SLOTS:
        mask *= 2
    return mask - 1


@kernel
def find_node(work: Any, ways: Any, key: Any, start: Any, mask: Any) -> Any:
    """The node of a key in the layer that begins at `start`; made if there is none.

    An entry of the hash table is a node plus a base that grows with every position, so that
    entries of other layers and positions are below the layer's start and count as empty.
    """
    base = work[at.BASE]
    slot = (key * _SCRAMBLE >> 24) & mask
    while work[at.SLOT + slot] - base >= start:
        node = work[at.SLOT + slot] - base
        if work[at.KEY + node] == key:
            return node
        slot = (slot + 1) & mask
    node = work[at.NODES]
    work[at.SLOT + slot] = node + base
    work[at.KEY + node] = key
    ways[at.AHEAD + node] = 0.0
    work[at.NODES] += 1
    return node
