"""Sets of boxes: up to eight live cells in one uint64, and their rank in a table.

A set holds its live cells' numbers rising, 8 bits each from the lowest byte on. Its rank is that
of the combinatorial number system (Knuth, The Art of Computer Programming 4A, 7.2.1.3, theorem L):
the sum of C(cell_j, j) over j = 1, 2, ..., which counts the sets of equal size from 0 on.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from agentgym.kernels import kernel

MAX_BOXES = 8
"""Boxes that fit into a set."""
_CHOOSE = np.array([[comb(n, j) for j in range(MAX_BOXES + 1)] for n in range(256)], np.int64)


@kernel
def at(boxes: Any, index: Any) -> Any:
    """The index-th live cell of a set."""
    return np.int64((boxes >> np.uint64(8 * index)) & np.uint64(255))


@kernel
def put(boxes: Any, index: Any, cell: Any) -> Any:
    """The set with `cell` in its empty index-th byte."""
    return boxes | (np.uint64(cell) << np.uint64(8 * index))


@kernel
def rank_of(boxes: Any, count: Any) -> Any:
    """Number of the set among the sets of `count` boxes."""
    rank = 0
    for index in range(count):
        rank += _CHOOSE[at(boxes, index), index + 1]
    return rank


@kernel
def moved(boxes: Any, count: Any, old: Any, new: Any) -> Any:
    """The set with the box on live cell `old` brought to the free live cell `new`."""
    result = np.uint64(0)
    filled = 0
    placed = False
    for index in range(count):
        cell = at(boxes, index)
        if not placed and new < cell:
            result = put(result, filled, new)
            filled += 1
            placed = True
        if cell != old:
            result = put(result, filled, cell)
            filled += 1
    return result if placed else put(result, filled, new)


@kernel
def first(count: Any) -> Any:
    """The set of rank 0: live cells 0 to count - 1."""
    boxes = np.uint64(0)
    for index in range(count):
        boxes = put(boxes, index, index)
    return boxes


@kernel
def following(boxes: Any, count: Any) -> Any:
    """The set of the next rank: the lowest box that can steps on, those below start afresh."""
    index = 0
    while index + 1 < count and at(boxes, index) + 1 == at(boxes, index + 1):
        index += 1
    kept = boxes >> np.uint64(8 * index) << np.uint64(8 * index)
    return (kept + (np.uint64(1) << np.uint64(8 * index))) | first(index)
