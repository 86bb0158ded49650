"""All layouts that agree with what the player can see, one by one, while they are few.

A layout is listed as what each hidden cell would show: its number, or MINED. Cells that single
constraints settle as mines show the same in all and are left out.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.games.minesweeper import workspace as at
from agentgym.games.minesweeper.frontier import IN_INTERIOR, IS_MINE, IS_SEEN
from agentgym.kernels import kernel

MAX_LAYOUTS = 5000
"""Most layouts that are listed, and searched for the best play."""
MINED = 9
"""In place of the number of a cell that holds a mine."""
MAX_STATES = 1 << 21
"""Most knowledge states of a search."""

CELL_COUNT = 0
"""Places in `numbers`: how many cells, layouts, remembered states and words of `kept`."""
LAYOUT_COUNT = 1
STATES = 2
WORDS = 3
GIVEN_UP = 4
"""The budget was spent."""
BUDGET = 5
FRAME = 12
"""Words of a frame of the search, see `winning`."""
BASE = 6
"""What the entries of `slot` are counted from."""


class Book(NamedTuple):
    """Memory of the search for the best play.

    Attributes:
        numbers: See CELL_COUNT and the names that follow it.
        cells: The hidden cells that are listed.
        choice: While listing: of each undecided cell, 0 safe, 1 mine, -1 not tried yet.
        shows: What each cell shows in each layout: layout * CELL_COUNT + place in `cells`.
        subset: Subsets of layouts, each an ascending run; a stack.
        frame: The search's frames, FRAME words a depth.
        ends: Where the runs of a split end, 10 words a depth.
        risky: Places of the cells worth a guess, safest first, LIMIT a depth.
        mined: In how many of the subset's layouts each of them is a mine.
        kept: The subsets whose wins are known.
        state: Of each of them: where it begins in `kept`, its size, its wins.
        slot: Hash table of them: index + BASE; smaller entries are stale.
    """

    numbers: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64]
    choice: npt.NDArray[np.int64]
    shows: npt.NDArray[np.uint8]
    subset: npt.NDArray[np.int16]
    frame: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    risky: npt.NDArray[np.int16]
    mined: npt.NDArray[np.int16]
    kept: npt.NDArray[np.int16]
    state: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int64]


@cache
def book() -> Book:
    """The search's memory in this process; what is not used is never touched."""
    depths = at.LIMIT + 1
    return Book(
        numbers=np.ones(7, np.int64),
        cells=np.zeros(at.LIMIT, np.int64),
        choice=np.zeros(depths, np.int64),
        shows=np.empty(MAX_LAYOUTS * at.LIMIT, np.uint8),
        subset=np.empty(MAX_LAYOUTS * (MAX_LAYOUTS + 1) // 2 + MAX_LAYOUTS, np.int16),
        frame=np.zeros(depths * FRAME, np.int64),
        ends=np.empty(depths * 10, np.int64),
        risky=np.empty(depths * at.LIMIT, np.int16),
        mined=np.empty(depths * at.LIMIT, np.int16),
        kept=np.empty(MAX_STATES * 32, np.int16),
        state=np.empty(MAX_STATES * 3, np.int64),
        slot=np.zeros(MAX_STATES * 2, np.int64),
    )


@kernel
def count_layouts(work: Any, ways: Any, mines: Any) -> Any:
    """How many layouts agree with the odds just read, up to rounding; `mines` not yet settled."""
    components, cells = work[at.COMPONENTS], work[at.INTERIOR]
    total = 0.0
    for used in range(work[at.LOW + components], work[at.HIGH + components] + 1):
        left = mines - used
        if 0 <= left <= cells:
            choose = 1.0
            for k in range(left):
                choose = choose * (cells - k) / (k + 1)
            total += ways[at.BEFORE + components * at.ROW + used] * choose
    return total


@kernel
def list_layouts(work: Any, book: Any, mines: Any) -> None:
    """List every layout: all ways to lay the mines that are not settled yet.

    The undecided cells come in the order of the layers, in which few constraints are half filled,
    and the interior last, so that few beginnings lead nowhere.
    """
    undecided = order_cells(work, book)
    book.numbers[LAYOUT_COUNT] = 0
    book.choice[0] = -1
    depth, left = 0, mines
    while depth >= 0:
        if depth == undecided:
            add_layout(work, book)
            depth -= 1
            continue
        cell, choice = book.cells[depth], book.choice[depth]
        if choice >= 0:
            lay(work, cell, choice, -1)
            left += choice
        book.choice[depth] += 1
        if choice == 1:
            depth -= 1
            continue
        left -= choice + 1
        fits = lay(work, cell, choice + 1, 1)
        if fits and 0 <= left < undecided - depth:
            depth += 1
            book.choice[depth] = -1


@kernel
def order_cells(work: Any, book: Any) -> Any:
    """Fill `cells`: first those that single constraints leave open; returns how many these are."""
    made = 0
    cells = work[at.TABLE_HEIGHT] * work[at.TABLE_WIDTH]
    for layer in range(work[at.LAYERS]):
        area = work[at.LAYER_AREA + layer]
        for cell in range(cells):
            if area >= 0 and work[at.AREA + cell] == area:
                book.cells[made] = cell
                made += 1
    for cell in range(cells):
        work[at.MARK + cell] = 1 if work[at.AREA + cell] == IS_MINE else 0
        if work[at.AREA + cell] == IN_INTERIOR:
            book.cells[made] = cell
            made += 1
    undecided = made
    for cell in range(cells):
        area = work[at.AREA + cell]
        if area < 0 and area != IN_INTERIOR and area != IS_SEEN and area != IS_MINE:
            book.cells[made] = cell
            made += 1
    book.numbers[CELL_COUNT] = made
    return undecided


@kernel
def lay(work: Any, cell: Any, mine: Any, times: Any) -> Any:
    """Decide a cell (times 1) or undo that (-1); whether its constraints can still be met."""
    work[at.MARK + cell] = mine if times > 0 else 0
    fits = True
    bound = at.BOUND + 8 * cell
    for b in range(bound, bound + work[at.BOUND_COUNT + cell]):
        work[at.NEED + work[b]] -= mine * times
        work[at.FREE + work[b]] -= times
        fits &= 0 <= work[at.NEED + work[b]] <= work[at.FREE + work[b]]
    return fits


@kernel
def add_layout(work: Any, book: Any) -> None:
    """List the mines of MARK as one layout more."""
    count = book.numbers[CELL_COUNT]
    to = book.numbers[LAYOUT_COUNT] * count
    for k in range(count):
        cell = book.cells[k]
        number = 0
        around = at.AROUND + 9 * cell
        for near in range(around + 1, around + 1 + work[around]):
            number += work[at.MARK + work[near]]
        book.shows[to + k] = MINED if work[at.MARK + cell] else number
    book.numbers[LAYOUT_COUNT] += 1
