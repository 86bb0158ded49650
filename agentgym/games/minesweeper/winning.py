"""The probability of winning under best play, exact, while few layouts are possible.

What a player knows is the set of layouts that agree with all that is open. Cells that are safe in
every layout of the set cost nothing to reveal, so they are revealed first and the set is split by
what they show; where none tells anything new, one cell must be guessed, and the best is that which
wins in the most layouts. The set alone decides: what is open beyond the start follows from it. So
the search remembers the wins of each set it meets. It is the plain recursion of the game's value
over information states; a guess is cut off once the layouts that are left to it cannot beat the
best one so far.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agentgym.games.minesweeper import workspace as at
from agentgym.games.minesweeper.frontier import IS_SEEN
from agentgym.games.minesweeper.layouts import (
    BASE,
    BUDGET,
    CELL_COUNT,
    GIVEN_UP,
    LAYOUT_COUNT,
    MAX_LAYOUTS,
    MAX_STATES,
    MINED,
    STATES,
    WORDS,
    count_layouts,
    list_layouts,
)
from agentgym.games.minesweeper.odds import read_odds
from agentgym.games.minesweeper.rules import MINES
from agentgym.kernels import kernel

_ROOT = 0
_SCRAMBLE = -7046029254386353131


@kernel
def win_probability(state: Any, limit: Any, space: Any, book: Any, values: Any) -> Any:
    """The probability of winning under best play; nan if there are too many layouts or states.

    Args:
        state: A state in play.
        limit: Most nodes of the layers, and most knowledge states of the search.
        space: The workspace.
        book: The search's memory.
        values: float64, one number per cell: filled with the probability of winning after its
            reveal under best play from there on; nan where nothing is hidden.
    """
    work, ways = space
    if not read_odds(state, state[MINES], limit, work, ways):
        return math.nan
    left = state[MINES] - work[at.PROVEN]
    if count_layouts(work, ways, left) > MAX_LAYOUTS + 0.5:
        return math.nan
    list_layouts(work, book, left)
    begin_search(book, limit)
    layouts = book.numbers[LAYOUT_COUNT]
    most = wins(book, _ROOT, layouts, layouts, 1)
    for cell in range(values.size):
        values[cell] = math.nan if work[at.AREA + cell] == IS_SEEN else 0.0
    for place in range(book.numbers[CELL_COUNT]):
        values[book.cells[place]] = reveal_wins(book, place, most) / layouts
    return most / layouts if not book.numbers[GIVEN_UP] else math.nan


@kernel
def begin_search(book: Any, limit: Any) -> None:
    """Forget the last search; the first subset is all layouts."""
    numbers = book.numbers
    numbers[BASE] += numbers[STATES] + 1
    numbers[STATES] = 0
    numbers[WORDS] = 0
    numbers[GIVEN_UP] = 0
    numbers[BUDGET] = limit
    for k in range(numbers[LAYOUT_COUNT]):
        book.subset[k] = k


@kernel
def reveal_wins(book: Any, place: Any, most: Any) -> Any:
    """In how many layouts best play wins after the reveal of a cell; `most` with any reveal."""
    layouts, count = book.numbers[LAYOUT_COUNT], book.numbers[CELL_COUNT]
    mined = 0
    for layout in range(layouts):
        mined += book.shows[layout * count + place] == MINED
    if mined == 0:
        return most
    top = split(book, _ROOT, layouts, layouts, place, 0)
    return split_wins(book, layouts, top, 0, -1)


@kernel
def wins(book: Any, start: Any, size: Any, top: Any, depth: Any) -> Any:
    """In how many layouts of a subset best play wins; all above `top` is free."""
    if size <= 1:
        return size
    known = recall(book, start, size)
    if known >= 0 or book.numbers[GIVEN_UP]:
        return max(known, 0)
    best = np.int64(0)
    guesses = rank_cells(book, start, size, depth)
    if guesses < 0:
        end = split(book, start, size, top, -1 - guesses, depth)
        best = split_wins(book, top, end, depth, -1)
    for k in range(guesses):
        at_rank = depth * at.LIMIT + k
        if size - book.mined[at_rank] <= best:
            break
        end = split(book, start, size, top, np.int64(book.risky[at_rank]), depth)
        best = max(best, split_wins(book, top, end, depth, best))
    remember(book, start, size, best)
    return best


@kernel
def split_wins(book: Any, start: Any, end: Any, depth: Any, beat: Any) -> Any:
    """The wins of all runs of a split; something not above `beat` if it can't be beaten."""
    total, rest, begin = np.int64(0), end - start, start
    for run in range(depth * 10, depth * 10 + MINED):
        size = book.ends[run] - begin
        if size > 0:
            rest -= size
            total += wins(book, begin, size, end, depth + 1)
            if total + rest <= beat:
                break
        begin = book.ends[run]
    return total


@kernel
def split(book: Any, start: Any, size: Any, top: Any, place: Any, depth: Any) -> Any:
    """Put a subset's layouts on top, in runs by what a cell shows, those with a mine left out."""
    count, ends = book.numbers[CELL_COUNT], depth * 10
    book.ends[ends : ends + 10] = 0
    for k in range(start, start + size):
        book.ends[ends + book.shows[book.subset[k] * count + place]] += 1
    to = top
    for run in range(ends, ends + MINED):
        to += book.ends[run]
        book.ends[run] = to - book.ends[run]
    for k in range(start, start + size):
        layout = book.subset[k]
        show = book.shows[layout * count + place]
        if show != MINED:
            book.subset[book.ends[ends + show]] = layout
            book.ends[ends + show] += 1
    return to


@kernel
def rank_cells(book: Any, start: Any, size: Any, depth: Any) -> Any:
    """List the cells worth a guess, safest first; returns how many.

    If a cell that is safe in all layouts tells them apart, returns -1 minus its place instead.
    """
    count, ranks = book.numbers[CELL_COUNT], depth * at.LIMIT
    first = book.subset[start] * count
    made = 0
    for place in range(count):
        mined, same = 0, True
        for k in range(start, start + size):
            show = book.shows[book.subset[k] * count + place]
            mined += show == MINED
            same &= show == book.shows[first + place]
        if same:
            continue
        if mined == 0:
            return -1 - place
        rank = ranks + made
        while rank > ranks and book.mined[rank - 1] > mined:
            book.mined[rank] = book.mined[rank - 1]
            book.risky[rank] = book.risky[rank - 1]
            rank -= 1
        book.mined[rank] = mined
        book.risky[rank] = place
        made += 1
    return made


@kernel
def find_slot(book: Any, start: Any, size: Any) -> Any:
    """The place in the hash table of a subset, or the free one where it would stand."""
    digest = np.int64(size)
    for k in range(start, start + size):
        digest = (digest ^ book.subset[k]) * _SCRAMBLE
    base = book.numbers[BASE]
    slot = (digest >> 20) & (book.slot.size - 1)
    while book.slot[slot] >= base:
        state = 3 * (book.slot[slot] - base)
        kept = book.state[state]
        same = book.state[state + 1] == size
        k = 0
        while same and k < size:
            same = book.kept[kept + k] == book.subset[start + k]
            k += 1
        if same:
            break
        slot = (slot + 1) & (book.slot.size - 1)
    return slot


@kernel
def recall(book: Any, start: Any, size: Any) -> Any:
    """The wins of a subset that was met before, else -1."""
    slot = find_slot(book, start, size)
    if book.slot[slot] < book.numbers[BASE]:
        return np.int64(-1)
    return book.state[3 * (book.slot[slot] - book.numbers[BASE]) + 2]


@kernel
def remember(book: Any, start: Any, size: Any, best: Any) -> None:
    """Keep a subset's wins; gives the search up when the budget or the memory is spent."""
    numbers = book.numbers
    if numbers[STATES] >= min(numbers[BUDGET], MAX_STATES) or (
        numbers[WORDS] + size > book.kept.size
    ):
        numbers[GIVEN_UP] = 1
    if numbers[GIVEN_UP]:
        return
    state = 3 * numbers[STATES]
    book.slot[find_slot(book, start, size)] = numbers[STATES] + numbers[BASE]
    book.state[state] = numbers[WORDS]
    book.state[state + 1] = size
    book.state[state + 2] = best
    for k in range(size):
        book.kept[numbers[WORDS] + k] = book.subset[start + k]
    numbers[WORDS] += size
    numbers[STATES] += 1
