"""The fewest further actions to a win. This looks under the cells: it peeks, and says so.

Every safe cell that carries a flag must be unflagged, and that is best done first: a flag only
ever stops an opening. Then each group of touching hidden zeros opens with one reveal, together
with the numbers around it, and each other hidden safe cell takes a reveal of its own. With
nothing open and no flag this is the board's 3BV (Bechtel's Board Benchmark Value).
"""

from __future__ import annotations

import math
from typing import Any

from agentgym.game import NoSolution, State
from agentgym.games.minesweeper import workspace as at
from agentgym.games.minesweeper.rules import (
    CELLS,
    FLAG,
    HEIGHT,
    HIT,
    MINE,
    NUMBER,
    OPEN,
    OUTSIDE,
    WIDTH,
    step,
    terminal,
)
from agentgym.kernels import kernel


@kernel
def cost_to_go(state: Any, work: Any) -> Any:
    """Fewest further actions to a win, by the true mines; inf once a mine was hit."""
    if state[HIT]:
        return math.inf
    if terminal(state):
        return 0.0
    cells = state[HEIGHT] * state[WIDTH]
    at.find_neighbours(work, state[HEIGHT], state[WIDTH])
    actions = 0
    for cell in range(cells):
        word = state[CELLS + cell]
        work[at.MARK + cell] = word & (OPEN | MINE | OUTSIDE)
        if word & (FLAG | MINE) == FLAG:
            actions += 1
    for cell in range(cells):
        if work[at.MARK + cell] == 0 and state[CELLS + cell] & NUMBER == 0:
            actions += 1
            mark_opening(state, cell, work)
    for cell in range(cells):
        if work[at.MARK + cell] == 0:
            actions += 1
    return float(actions)


@kernel
def mark_opening(state: Any, cell: Any, work: Any) -> None:
    """Mark all that the reveal of a zero opens where no flag stops it."""
    work[at.MARK + cell] = 1
    work[at.STACK] = cell
    size = 1
    while size > 0:
        size -= 1
        around = at.AROUND + 9 * work[at.STACK + size]
        for k in range(around + 1, around + 1 + work[around]):
            near = work[k]
            if work[at.MARK + near] == 0:
                work[at.MARK + near] = 1
                if state[CELLS + near] & NUMBER == 0:
                    work[at.STACK + size] = near
                    size += 1


def solve(state: State) -> list[int]:
    """Action indices of a shortest win: flags off safe cells, then zeros, then the rest.

    Raises:
        NoSolution: A mine was hit.
    """
    if state[HIT]:
        raise NoSolution("A mine was hit; no win is possible from this state.")
    state = state.copy()
    cells = int(state[HEIGHT] * state[WIDTH])
    words = state[CELLS : CELLS + cells]
    actions = [cells + a for a in range(cells) if words[a] & (FLAG | MINE) == FLAG]
    for action in actions:
        step(state, action)
    zeros_first = sorted(range(cells), key=lambda cell: bool(words[cell] & NUMBER))
    for cell in zeros_first:
        if not words[cell] & (OPEN | MINE | OUTSIDE):
            actions.append(cell)
            step(state, cell)
    return actions
