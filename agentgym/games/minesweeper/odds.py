"""Exact mine probabilities from all constraints and the number of mines on the board.

Forward, `layers` counts the placements that lead to each node; backward, this module counts the
ways to go on from each to a whole layout. Their products along an area's edges are the layouts
with so many mines in it. No term of a sum is negative, so a probability of 0 or 1 comes out as
exactly that. Counts are at most binomial(720, 360) < 1e216 and fit a float64.

Components are coupled through the mines they leave to the interior, whose n cells hold m mines in
binomial(n, m) ways. Only ratios enter: binomial(n, m - 1) / binomial(n, m) = m / (n - m + 1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.errors import InvalidState
from agentgym.game import State
from agentgym.games.minesweeper import workspace as at
from agentgym.games.minesweeper.frontier import IN_INTERIOR, IS_MINE, IS_SEEN, read_frontier
from agentgym.games.minesweeper.layers import CHOOSE, KEY_BITS, draw
from agentgym.games.minesweeper.rules import CELLS, HEIGHT, MINES, OPEN, WIDTH, open_cell, terminal
from agentgym.games.minesweeper.workspace import workspace
from agentgym.kernels import kernel

UNCOUNTED = -1
"""In place of the board's mines: reason without their number, from the open numbers alone."""


def mine_probabilities(state: State) -> npt.NDArray[np.float64]:
    """The exact probability that each hidden cell is a mine, given what the player can see.

    Args:
        state: Any state. Flags are not taken for facts; of a lost game it is what was known
            before the mine.

    Returns:
        float64, shape (rows, cols) of the layout; nan where a cell is open or outside the board.

    Raises:
        InvalidState: The position is too wide for `MAX_NODES` nodes, so nothing exact is known.
    """
    odds = np.empty((int(state[HEIGHT]), int(state[WIDTH])))
    state = state if state.flags.writeable else state.copy()
    if not fill_odds(state, state[MINES], at.MAX_NODES, workspace(), odds.reshape(-1)):
        raise InvalidState(
            f"The open numbers of this position hang together too widely: its exact mine "
            f"probabilities need more than {at.MAX_NODES} nodes; reveal more cells first."
        )
    return odds


@kernel
def fill_odds(state: Any, mines: Any, limit: Any, space: Any, odds: Any) -> Any:
    """Mine probability of each cell, nan where nothing is hidden; whether they are exact.

    Args:
        state: The state.
        mines: Mines on the board, or UNCOUNTED.
        limit: Most nodes.
        space: The workspace.
        odds: float64, one number per cell, to be filled.
    """
    work, ways = space
    exact = read_odds(state, mines, limit, work, ways)
    for cell in range(odds.size):
        odds[cell] = odds_of(cell, work, ways)
    return exact


@kernel
def odds_of(cell: Any, work: Any, ways: Any) -> Any:
    """Mine probability of a cell by what the workspace says; nan where nothing is hidden."""
    area = work[at.AREA + cell]
    if area >= 0:
        return ways[at.ODDS + area]
    if area == IS_SEEN:
        return math.nan
    if area == IN_INTERIOR:
        return ways[at.INTERIOR_ODDS]
    return 1.0 if area == IS_MINE else 0.0


@kernel
def read_odds(state: Any, mines: Any, limit: Any, work: Any, ways: Any) -> Any:
    """Fill ODDS and INTERIOR_ODDS of the workspace; False where they are only estimates."""
    read_frontier(state, work)
    work[at.NODE_LIMIT] = min(limit, at.MAX_NODES)
    left = mines - work[at.PROVEN]
    if not draw(work, ways):
        estimate(work, ways, left)
        return False
    couple(work, ways, mines if mines == UNCOUNTED else left)
    for component in range(work[at.COMPONENTS]):
        settle(work, ways, component)
    return True


@kernel
def estimate(work: Any, ways: Any, mines: Any) -> None:
    """Odds from each constraint alone, averaged; neither 0 nor 1, for nothing is proven."""
    left = float(mines)
    for area in range(work[at.AREAS]):
        cell = work[at.AREA_CELL + area]
        bound = at.BOUND + 8 * cell
        odds = 0.0
        for b in range(bound, bound + work[at.BOUND_COUNT + cell]):
            odds += work[at.NEED + work[b]] / work[at.FREE + work[b]]
        ways[at.ODDS + area] = odds / work[at.BOUND_COUNT + cell]
        left -= ways[at.ODDS + area] * work[at.AREA_SIZE + area]
    ways[at.INTERIOR_ODDS] = min(max(left / max(work[at.INTERIOR], 1), 0.01), 0.99)


@kernel
def couple(work: Any, ways: Any, mines: Any) -> None:
    """Fill BEFORE, BEYOND, the odds of the interior, and AFTER of each component's last layer."""
    ways[at.BEFORE] = 1.0
    work[at.LOW] = 0
    work[at.HIGH] = 0
    for component in range(work[at.COMPONENTS]):
        pass_mines(work, ways, component)
    weigh_interior(work, ways, mines)
    for component in range(work[at.COMPONENTS] - 1, -1, -1):
        pass_back(work, ways, component)


@kernel
def pass_mines(work: Any, ways: Any, k: Any) -> None:
    """Ways to get past component k by mines used, from the ways to get to it."""
    start, end = work[at.LAYER + work[at.LAST + k]], work[at.LAYER + work[at.LAST + k] + 1]
    fewest, most = np.int64(at.LIMIT), np.int64(0)
    for node in range(start, end):
        fewest = min(fewest, work[at.KEY + node] >> KEY_BITS)
        most = max(most, work[at.KEY + node] >> KEY_BITS)
    low, high = work[at.LOW + k], work[at.HIGH + k]
    work[at.LOW + k + 1] = low + fewest
    work[at.HIGH + k + 1] = high + most
    here, there = at.BEFORE + k * at.ROW, at.BEFORE + (k + 1) * at.ROW
    for used in range(low + fewest, high + most + 1):
        ways[there + used] = 0.0
    for node in range(start, end):
        into = there + (work[at.KEY + node] >> KEY_BITS)
        for used in range(low, high + 1):
            ways[into + used] += ways[here + used] * ways[at.AHEAD + node]


@kernel
def weigh_interior(work: Any, ways: Any, mines: Any) -> None:
    """Ways of the interior by mines used outside of it, up to a factor, and its odds."""
    components, cells = work[at.COMPONENTS], work[at.INTERIOR]
    weight, mined, clear = 0.0, 0.0, 0.0
    for used in range(work[at.LOW + components], work[at.HIGH + components] + 1):
        left = mines - used
        if mines == UNCOUNTED:
            weight = 1.0
        elif 0 <= left <= cells:
            weight = weight * (left + 1) / (cells - left) if weight > 0.0 else 1.0
        else:
            weight = 0.0
        ways[at.BEYOND + components * at.ROW + used] = weight
        weight_here = ways[at.BEFORE + components * at.ROW + used] * weight
        mined += weight_here * left
        clear += weight_here * (cells - left)
    if cells > 0 and mines != UNCOUNTED:
        ways[at.INTERIOR_ODDS] = mined / (mined + clear)
    else:
        ways[at.INTERIOR_ODDS] = math.nan


@kernel
def pass_back(work: Any, ways: Any, k: Any) -> None:
    """Ways to go on from component k by mines used, and from each node of its last layer."""
    here, there = at.BEYOND + k * at.ROW, at.BEYOND + (k + 1) * at.ROW
    low, high = work[at.LOW + k], work[at.HIGH + k]
    for used in range(low, high + 1):
        ways[here + used] = 0.0
    for node in range(work[at.LAYER + work[at.LAST + k]], work[at.LAYER + work[at.LAST + k] + 1]):
        into = there + (work[at.KEY + node] >> KEY_BITS)
        after = 0.0
        for used in range(low, high + 1):
            ways[here + used] += ways[at.AHEAD + node] * ways[into + used]
            after += ways[at.BEFORE + k * at.ROW + used] * ways[into + used]
        ways[at.AFTER + node] = after


@kernel
def settle(work: Any, ways: Any, component: Any) -> None:
    """Go back through a component's layers: AFTER of all nodes, the odds of all areas."""
    layer = work[at.LAST + component] - 1
    while layer >= 0 and work[at.LAYER_AREA + layer] >= 0:
        area = work[at.LAYER_AREA + layer]
        size = work[at.AREA_SIZE + area]
        mined, clear = 0.0, 0.0
        for node in range(work[at.LAYER + layer], work[at.LAYER + layer + 1]):
            after, mine, safe = 0.0, 0.0, 0.0
            mines = work[at.LOWEST + node]
            for edge in range(work[at.FIRST + node], work[at.FIRST + node + 1]):
                onward = ways[at.AFTER + work[at.CHILD + edge]]
                after += CHOOSE[size, mines] * onward
                safe += CHOOSE[size - 1, mines] * onward
                if mines > 0:
                    mine += CHOOSE[size - 1, mines - 1] * onward
                mines += 1
            ways[at.AFTER + node] = after
            mined += ways[at.AHEAD + node] * mine
            clear += ways[at.AHEAD + node] * safe
        ways[at.ODDS + area] = mined / (mined + clear)
        layer -= 1


@kernel
def deducible(state: Any, limit: Any, work: Any, ways: Any) -> Any:
    """Whether proofs alone open every safe cell; plays the state on as far as they go."""
    progress = True
    while progress and not terminal(state):
        progress = False
        if not read_odds(state, state[MINES], limit, work, ways):
            return False
        for cell in range(state[HEIGHT] * state[WIDTH]):
            if odds_of(cell, work, ways) == 0.0:
                progress = True
                if state[CELLS + cell] & OPEN == 0:
                    open_cell(state, cell)
    return terminal(state)
