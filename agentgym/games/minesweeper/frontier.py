"""What the open numbers say: constraints over areas of hidden cells.

A constraint is an open cell with hidden neighbours: its number of mines lies among them. The flags
of the player are no facts: a flagged cell is a hidden cell like any other. Cells that a single
constraint settles, given the cells settled before, are taken out at once. An area is a set of the
other cells that lie in the very same constraints; only the number of mines in it matters, since
each placement within it is equally likely. Hidden cells without constraint are the interior.

The names in capitals are places in the workspace.
"""

from __future__ import annotations

from typing import Any

from agentgym.games.minesweeper import workspace as at
from agentgym.games.minesweeper.rules import (
    CELLS,
    HEIGHT,
    MINE,
    NUMBER,
    OPEN,
    OUTSIDE,
    WIDTH,
)
from agentgym.kernels import kernel

IN_INTERIOR = -1
"""In place of an area: a hidden cell without constraint."""
IS_SAFE = -2
"""A cell that a single constraint settles as safe."""
IS_MINE = -3
"""One that it settles as a mine."""
IS_SEEN = -4
"""One that is open, or outside of the board."""
_LIVE = 1 << 20


@kernel
def read_frontier(state: Any, work: Any) -> None:
    """Fill the workspace with the constraints and areas of a state."""
    cells = state[HEIGHT] * state[WIDTH]
    at.find_neighbours(work, state[HEIGHT], state[WIDTH])
    find_constraints(state, work, cells)
    work[at.PROVEN] = 0
    while settle_cells(work):
        pass
    work[at.AREAS] = 0
    for constraint in range(work[at.CONSTRAINTS]):
        if work[at.FREE + constraint] > 0:
            begin_areas(work, constraint)


@kernel
def find_constraints(state: Any, work: Any, cells: Any) -> None:
    """Fill in each constraint's number and scope, and each hidden cell's constraints."""
    interior = 0
    for cell in range(cells):
        word = state[CELLS + cell]
        seen = word & OUTSIDE or word & (OPEN | MINE) == OPEN
        work[at.AREA + cell] = IS_SEEN if seen else IN_INTERIOR
        work[at.BOUND_COUNT + cell] = 0
        interior += 0 if seen else 1
    made = 0
    for cell in range(cells):
        if work[at.AREA + cell] != IS_SEEN or state[CELLS + cell] & OUTSIDE:
            continue
        hidden = 0
        around = at.AROUND + 9 * cell
        for k in range(around + 1, around + 1 + work[around]):
            near = work[k]
            if work[at.AREA + near] == IS_SEEN:
                continue
            interior -= 1 if work[at.AREA + near] == IN_INTERIOR else 0
            work[at.AREA + near] = _LIVE
            work[at.SCOPE + 8 * made + hidden] = near
            work[at.BOUND + 8 * near + work[at.BOUND_COUNT + near]] = made
            work[at.BOUND_COUNT + near] += 1
            hidden += 1
        if hidden > 0:
            work[at.NEED + made] = state[CELLS + cell] & NUMBER
            work[at.FREE + made] = work[at.SCOPE_COUNT + made] = hidden
            work[at.MEMBER_COUNT + made] = 0
            made += 1
    work[at.CONSTRAINTS] = made
    work[at.INTERIOR] = interior


@kernel
def settle_cells(work: Any) -> Any:
    """Take out the cells of constraints that are all mines or all safe; whether there were any."""
    found = False
    for constraint in range(work[at.CONSTRAINTS]):
        free, need = work[at.FREE + constraint], work[at.NEED + constraint]
        if free == 0 or (need != 0 and need != free):
            continue
        found = True
        mine = 1 if need > 0 else 0
        scope = at.SCOPE + 8 * constraint
        for k in range(scope, scope + work[at.SCOPE_COUNT + constraint]):
            cell = work[k]
            if work[at.AREA + cell] != _LIVE:
                continue
            work[at.AREA + cell] = IS_MINE if mine else IS_SAFE
            work[at.PROVEN] += mine
            bound = at.BOUND + 8 * cell
            for b in range(bound, bound + work[at.BOUND_COUNT + cell]):
                work[at.NEED + work[b]] -= mine
                work[at.FREE + work[b]] -= 1
    return found


@kernel
def begin_areas(work: Any, constraint: Any) -> None:
    """Put the live cells whose first constraint this is into areas."""
    first = work[at.AREAS]
    scope = at.SCOPE + 8 * constraint
    for k in range(scope, scope + work[at.SCOPE_COUNT + constraint]):
        cell = work[k]
        if work[at.AREA + cell] != _LIVE:
            continue
        area = first
        while area < work[at.AREAS] and not same_constraints(work, work[at.AREA_CELL + area], cell):
            area += 1
        if area == work[at.AREAS]:
            work[at.AREAS] += 1
            work[at.AREA_CELL + area] = cell
            work[at.AREA_SIZE + area] = 0
            bound = at.BOUND + 8 * cell
            for b in range(bound, bound + work[at.BOUND_COUNT + cell]):
                other = work[b]
                work[at.MEMBER + 8 * other + work[at.MEMBER_COUNT + other]] = area
                work[at.MEMBER_COUNT + other] += 1
        work[at.AREA + cell] = area
        work[at.AREA_SIZE + area] += 1


@kernel
def same_constraints(work: Any, one: Any, other: Any) -> Any:
    """Whether two cells are in the very same constraints."""
    if work[at.BOUND_COUNT + one] != work[at.BOUND_COUNT + other]:
        return False
    for k in range(work[at.BOUND_COUNT + one]):
        if work[at.BOUND + 8 * one + k] != work[at.BOUND + 8 * other + k]:
            return False
    return True
