"""The memory that the oracle's kernels share: two flat arrays, and what stands where in them.

`work` (int64) and `ways` (float64) are made once in a process. The names are places in them; those
up to CHILD belong to `work`, those from AHEAD on to `ways`. Lists of up to eight stand at
index * 8. No kernel keeps anything there between two calls from Python, and a call holds the
interpreter's lock, so threads share it safely. What a position does not need is never touched.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.kernels import kernel

LIMIT = 900
"""Most cells of a layout: 30 rows of 30."""
MAX_NODES = 1 << 22
"""Most nodes of a position, see `layers`."""
MAX_EDGES = 3 * MAX_NODES
SLOTS = 2 * MAX_NODES
"""Size of the hash table of nodes."""
ROW = LIMIT + 1
"""Length of a row of BEFORE and BEYOND: 0 to LIMIT mines."""

# Single numbers.
CONSTRAINTS = 0
AREAS = 1
INTERIOR = 2
PROVEN = 3
"""Mines that single constraints settle."""
LAYERS = 4
COMPONENTS = 5
NODES = 6
EDGES = 7
HALF_FILLED = 8
TAKEN = 9
"""Bits of the key that are in use."""
BASE = 10
"""What the entries of the hash table are counted from."""
NODE_LIMIT = 11
TABLE_HEIGHT = 12
TABLE_WIDTH = 13
"""The layout that AROUND was made for."""

# Of the frontier.
AROUND = 16
"""Neighbours of each cell, 9 words a cell: how many, then which."""
AREA = AROUND + 9 * LIMIT
"""Area of each cell, or what `frontier` says in its place."""
BOUND_COUNT = AREA + LIMIT
BOUND = BOUND_COUNT + LIMIT
"""Constraints of each cell, ascending."""
NEED = BOUND + 8 * LIMIT
"""Mines of each constraint among its live cells."""
FREE = NEED + LIMIT
"""Live cells of each constraint."""
SCOPE_COUNT = FREE + LIMIT
SCOPE = SCOPE_COUNT + LIMIT
"""Hidden cells of each constraint, settled ones included."""
MEMBER_COUNT = SCOPE + 8 * LIMIT
MEMBER = MEMBER_COUNT + LIMIT
"""Areas of each constraint."""
AREA_CELL = MEMBER + 8 * LIMIT
"""One cell of each area, which stands for all."""
AREA_SIZE = AREA_CELL + LIMIT
"""Cells of each area."""

# Of the order in which areas are decided.
LEFT = AREA_SIZE + LIMIT
"""Areas of each constraint that are not decided yet."""
ROOM = LEFT + LIMIT
"""Cells of those areas."""
SHIFT = ROOM + LIMIT
"""Place of each constraint's need in the key; -1 before it is begun."""
DECIDED = SHIFT + LIMIT
"""Whether each area is decided."""
ORDER = DECIDED + LIMIT
"""Constraints that are half filled, oldest first."""
TERM = ORDER + LIMIT
"""Of each constraint of the area being decided: shift, mask and room, three words."""

# Of the fewest actions.
MARK = TERM + 24
"""0 for the safe cells that are still to be opened."""
STACK = MARK + LIMIT
"""Zeros whose surroundings are still to be marked."""

# Of the layers.
LAYER = STACK + LIMIT
"""First node of each layer; components follow one another."""
LAYER_AREA = LAYER + 2 * LIMIT
"""Area that each layer decides; -1 in a component's last layer."""
LAST = LAYER_AREA + 2 * LIMIT
"""Last layer of each component."""
LOW = LAST + LIMIT
"""Fewest mines in all components before each, and at the end in all."""
HIGH = LOW + LIMIT
"""Most mines in them."""
KEY = HIGH + LIMIT
"""Of each node: mines used and what the half filled constraints need."""
FIRST = KEY + MAX_NODES
"""Each node's first edge; the next node's ends them."""
LOWEST = FIRST + MAX_NODES + 1
"""Mines in the area along each node's first edge; one more along each further one."""
SLOT = LOWEST + MAX_NODES
"""The hash table of the layer being made."""
CHILD = SLOT + SLOTS
"""Node at the end of each edge."""
_WORK_END = CHILD + MAX_EDGES

AHEAD = 0
"""Placements that lead to each node."""
AFTER = MAX_NODES
"""Ways to go on from each node to a whole layout, later components and the interior included."""
BEFORE = 2 * MAX_NODES
"""Ways to get to each component by mines used so far."""
BEYOND = BEFORE + (LIMIT // 2 + 2) * ROW
"""Ways to go on from each component by mines used so far, up to a common factor."""
ODDS = BEYOND + (LIMIT // 2 + 2) * ROW
"""Mine probability of each area."""
INTERIOR_ODDS = ODDS + LIMIT
_WAYS_END = INTERIOR_ODDS + 1


class Workspace(NamedTuple):
    """The two arrays."""

    work: npt.NDArray[np.int64]
    ways: npt.NDArray[np.float64]


@cache
def workspace() -> Workspace:
    """The workspace of this process."""
    return Workspace(np.zeros(_WORK_END, np.int64), np.zeros(_WAYS_END))


@kernel
def find_neighbours(work: Any, height: Any, width: Any) -> None:
    """Fill AROUND for a layout, unless it is what stands there."""
    if work[TABLE_HEIGHT] == height and work[TABLE_WIDTH] == width:
        return
    work[TABLE_HEIGHT] = height
    work[TABLE_WIDTH] = width
    for row in range(height):
        for col in range(width):
            to = AROUND + 9 * (row * width + col)
            work[to] = 0
            for r in range(max(row - 1, 0), min(row + 2, height)):
                for near in range(r * width + max(col - 1, 0), r * width + min(col + 2, width)):
                    if near != row * width + col:
                        work[to] += 1
                        work[to + work[to]] = near
