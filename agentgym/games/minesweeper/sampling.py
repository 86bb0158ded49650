"""The probability of winning where too many layouts are possible: an estimate by play.

Layouts are drawn uniformly from all that agree with what the player can see, and on each the game
is played to its end by the safest-cell policy: reveal all that is proven safe, else the cell of
least mine probability, the first of several. All draws come from one key, so a state always gets
the same estimate. A reveal's value is the share of the same layouts on which that reveal is safe
and the policy wins from there.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.chance import below, bits
from agentgym.games.minesweeper import workspace as at
from agentgym.games.minesweeper.frontier import IN_INTERIOR, IS_MINE
from agentgym.games.minesweeper.layers import CHOOSE, KEY_BITS
from agentgym.games.minesweeper.odds import odds_of, read_odds
from agentgym.games.minesweeper.rules import (
    CELLS,
    FLAGS,
    HEIGHT,
    MINE,
    MINES,
    OPEN,
    OUTSIDE,
    WIDTH,
    open_cell,
    terminal,
)
from agentgym.kernels import kernel

SAMPLES = 200
"""Layouts drawn for one estimate; its standard error is at most 0.036."""
GUESSED_CELLS = 6400
"""Of so many cells over those of the board the values are estimated, the least risky ones."""
TIE = 1e-9
"""Probabilities nearer than this are equal; they are exact up to about 1e-13."""


class Deck(NamedTuple):
    """Memory of the estimate.

    Attributes:
        starts: Of each drawn layout a state of the position, without flags.
        play: The state that is played on.
        odds: Mine probability of each cell of the position.
        draws: How many random words were drawn, and the key they are drawn from.
    """

    starts: npt.NDArray[np.int64]
    play: npt.NDArray[np.int64]
    odds: npt.NDArray[np.float64]
    draws: npt.NDArray[np.int64]


@cache
def deck() -> Deck:
    """The estimate's memory in this process."""
    size = CELLS + at.LIMIT
    return Deck(
        np.empty((SAMPLES, size), np.int64),
        np.empty(size, np.int64),
        np.empty(at.LIMIT),
        np.zeros(2, np.int64),
    )


@kernel
def estimate_wins(state: Any, key: Any, limit: Any, space: Any, deck: Any, values: Any) -> Any:
    """The probability of winning with the safest-cell policy; nan if no layout can be drawn.

    Args:
        state: A state in play.
        key: Of the random draws.
        limit: Most nodes of the layers.
        space: The workspace.
        deck: The estimate's memory.
        values: float64, one number per cell: filled with the estimates after its reveal; nan
            where nothing is hidden, or where too many cells are less risky.
    """
    work, ways = space
    cells = values.size
    values[:] = math.nan
    deck.draws[0] = 0
    deck.draws[1] = key
    if not read_odds(state, state[MINES], limit, work, ways):
        return math.nan
    for cell in range(cells):
        deck.odds[cell] = odds_of(cell, work, ways)
    for sample in range(SAMPLES):
        draw_layout(state, deck.starts[sample], space, deck)
    value = share_won(-1, cells, limit, space, deck)
    for cell in range(cells):
        if deck.odds[cell] == 0.0 or deck.odds[cell] == 1.0:
            values[cell] = value * (1.0 - deck.odds[cell])
    for _ in range(GUESSED_CELLS // cells):
        cell = least_risky(deck, cells, values)
        if cell >= 0:
            values[cell] = share_won(cell, cells, limit, space, deck)
    return value


@kernel
def least_risky(deck: Any, cells: Any, values: Any) -> Any:
    """The hidden cell of least mine probability whose value is not known yet; -1 if none."""
    least = -1
    for cell in range(cells):
        odds = deck.odds[cell]
        known = odds != odds or values[cell] == values[cell]
        if not known and (least < 0 or odds < deck.odds[least] - TIE):
            least = cell
    return least


@kernel
def share_won(first: Any, cells: Any, limit: Any, space: Any, deck: Any) -> Any:
    """Share of the drawn layouts that the policy wins after the reveal of a cell (-1: of none)."""
    won = 0
    for sample in range(SAMPLES):
        play = deck.play
        play[: CELLS + cells] = deck.starts[sample, : CELLS + cells]
        if first >= 0:
            if play[CELLS + first] & MINE:
                continue
            open_cell(play, first)
        won += play_safest(play, cells, limit, space)
    return won / SAMPLES


@kernel
def play_safest(play: Any, cells: Any, limit: Any, space: Any) -> Any:
    """Play the safest-cell policy to the end; 1 if it wins, else 0."""
    work, ways = space
    while not terminal(play):
        read_odds(play, play[MINES], limit, work, ways)
        least, safest = 2.0, -1
        for cell in range(cells):
            odds = odds_of(cell, work, ways)
            if odds == 0.0:
                least = 0.0
                if play[CELLS + cell] & OPEN == 0:
                    open_cell(play, cell)
            elif odds < least - TIE:
                least, safest = odds, cell
        if least > 0.0:
            if play[CELLS + safest] & MINE:
                return 0
            open_cell(play, safest)
    return 1


@kernel
def draw_layout(state: Any, start: Any, space: Any, deck: Any) -> None:
    """Draw one of the layouts that agree with the odds just read; `start` becomes its state."""
    work = space[0]
    cells = state[HEIGHT] * state[WIDTH]
    start[:CELLS] = state[:CELLS]
    start[FLAGS] = 0
    for cell in range(cells):
        word = state[CELLS + cell] & (OPEN | OUTSIDE)
        start[CELLS + cell] = word | MINE if work[at.AREA + cell] == IS_MINE else word
    left = state[MINES] - work[at.PROVEN]
    for component in range(work[at.COMPONENTS]):
        node = draw_end(component, state[MINES] - work[at.PROVEN] - left, space, deck)
        left -= work[at.KEY + node] >> KEY_BITS
        draw_areas(start, component, node, space, deck)
    deal(start, IN_INTERIOR, work[at.INTERIOR], left, work, deck)
    for cell in range(cells):
        around = at.AROUND + 9 * cell
        for k in range(around + 1, around + 1 + work[around]):
            start[CELLS + cell] += (start[CELLS + work[k]] & MINE) // MINE


@kernel
def draw_unit(deck: Any) -> Any:
    """The next number of the key, uniform in [0, 1)."""
    word = bits(deck.draws[1], deck.draws[0])
    deck.draws[0] += 1
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def draw_end(component: Any, used: Any, space: Any, deck: Any) -> Any:
    """Draw a node of a component's last layer by the layouts that go through it."""
    work, ways = space
    layer = work[at.LAST + component]
    start, end = work[at.LAYER + layer], work[at.LAYER + layer + 1]
    beyond = at.BEYOND + (component + 1) * at.ROW + used
    total = 0.0
    for node in range(start, end):
        total += ways[at.AHEAD + node] * ways[beyond + (work[at.KEY + node] >> KEY_BITS)]
    left = draw_unit(deck) * total
    drawn = start
    for node in range(start, end):
        weight = ways[at.AHEAD + node] * ways[beyond + (work[at.KEY + node] >> KEY_BITS)]
        if weight > 0.0 and left >= 0.0:
            drawn = node
            left -= weight
    return drawn


@kernel
def draw_areas(start: Any, component: Any, node: Any, space: Any, deck: Any) -> None:
    """Draw the mines of a component's areas, from its last layer back to its first."""
    work, ways = space
    layer = work[at.LAST + component] - 1
    while layer >= 0 and work[at.LAYER_AREA + layer] >= 0:
        area = work[at.LAYER_AREA + layer]
        size = work[at.AREA_SIZE + area]
        left = draw_unit(deck) * ways[at.AHEAD + node]
        drawn, mines = node, np.int64(0)
        for before in range(work[at.LAYER + layer], work[at.LAYER + layer + 1]):
            for edge in range(work[at.FIRST + before], work[at.FIRST + before + 1]):
                if work[at.CHILD + edge] == node and left >= 0.0:
                    drawn = before
                    mines = work[at.LOWEST + before] + edge - work[at.FIRST + before]
                    left -= ways[at.AHEAD + before] * CHOOSE[size, mines]
        node = drawn
        deal(start, area, size, mines, work, deck)
        layer -= 1


@kernel
def deal(start: Any, area: Any, size: Any, mines: Any, work: Any, deck: Any) -> None:
    """Lay mines on cells of an area, or of the interior, each choice equally likely."""
    for cell in range(start[HEIGHT] * start[WIDTH]):
        if work[at.AREA + cell] == area:
            word = bits(deck.draws[1], deck.draws[0])
            deck.draws[0] += 1
            if below(word, size) < mines:
                start[CELLS + cell] |= MINE
                mines -= 1
            size -= 1
