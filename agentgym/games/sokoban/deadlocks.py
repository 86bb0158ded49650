"""Two tests that prove a box set lost without search: no assignment to targets, frozen boxes.

Both are sound for every state: they only ever call lost what no play can save. Dead squares are
part of both, since boxes stand on live cells only (see `rooms`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym.games.sokoban.box_sets import MAX_BOXES, at
from agentgym.games.sokoban.rooms import FAR
from agentgym.kernels import kernel

SUBSETS = 1 << MAX_BOXES
"""Length of the scratch array that `fewest_pushes` needs."""
_ONES = np.array([mask.bit_count() for mask in range(SUBSETS)], np.int64)


@kernel
def fewest_pushes(room: Any, boxes: Any, costs: Any) -> Any:
    """A lower bound of the pushes still needed: the cheapest one-to-one assignment to targets.

    Each box is as far from its target as if it were alone. Exact minimum over all assignments, by
    dynamic programming over the subsets of targets; `FAR` or more if there is none.
    """
    count = room.pushes.shape[0]
    full = (1 << count) - 1
    costs[: full + 1] = FAR
    costs[0] = 0
    for used in range(full):
        if costs[used] >= FAR:
            continue
        live = at(boxes, _ONES[used])
        for goal in range(count):
            with_goal = used | (1 << goal)
            cost = costs[used] + room.pushes[goal, live]
            if with_goal != used and cost < costs[with_goal]:
                costs[with_goal] = cost
    return costs[full]


@kernel
def frozen_away(room: Any, boxes: Any, box_at: Any) -> Any:
    """Whether a box away from the targets can never move again, or only onto dead squares.

    Starts from all boxes as frozen and frees, as long as there is one, a box with an axis on
    which neither neighbour is a wall or a frozen box, nor both are dead squares. What remains
    holds itself in place; four boxes in a square are the simplest case. `box_at` (int8, per floor
    cell) is scratch, all -1 before and after.
    """
    count = room.pushes.shape[0]
    for index in range(count):
        box_at[room.floor_of[at(boxes, index)]] = index
    frozen = (1 << count) - 1
    changed = True
    while changed:
        changed = False
        for index in range(count):
            if frozen & (1 << index) and _can_move(room, boxes, index, box_at, frozen):
                frozen ^= 1 << index
                changed = True
    away = False
    for index in range(count):
        away |= frozen & (1 << index) != 0 and not room.home[at(boxes, index)]
        box_at[room.floor_of[at(boxes, index)]] = -1
    return away


@kernel
def _can_move(room: Any, boxes: Any, index: Any, box_at: Any, frozen: Any) -> Any:
    """Whether a box has an axis that is not blocked by walls, frozen boxes or dead squares."""
    floor = room.floor_of[at(boxes, index)]
    for axis in range(2):
        one, other = room.around[floor, 2 * axis], room.around[floor, 2 * axis + 1]
        if one < 0 or other < 0:
            continue
        held = (box_at[one] >= 0 and frozen >> box_at[one] & 1) or (
            box_at[other] >= 0 and frozen >> box_at[other] & 1
        )
        if not held and (room.live_of[one] >= 0 or room.live_of[other] >= 0):
            return True
    return False
