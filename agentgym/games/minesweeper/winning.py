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
    FRAME,
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

# What stands in a frame: a subset, the guesses ranked for it, and the split by one of them.
_START, _SIZE, _TOP, _GUESSES, _GUESS, _BEST = range(6)
_END, _RUN, _RUN_START, _RUN_SIZE, _TOTAL, _REST = range(6, FRAME)


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
    end = split(book, _ROOT, layouts, layouts, place, 0)
    total, begin = np.int64(0), layouts
    for run in range(MINED):
        total += wins(book, begin, book.ends[run] - begin, end, 1)
        begin = book.ends[run]
    return total


@kernel
def wins(book: Any, start: Any, size: Any, top: Any, depth: Any) -> Any:
    """In how many layouts of a subset best play wins; all above `top` is free.

    A loop over frames of one depth each, since compiled recursion cannot be cached on disk.
    """
    first = depth
    known = open_frame(book, depth, start, size, top)
    if known >= 0:
        return known
    while True:
        frame = depth * FRAME
        if next_run(book, depth):
            run, length = book.frame[frame + _RUN_START], book.frame[frame + _RUN_SIZE]
            known = open_frame(book, depth + 1, run, length, book.frame[frame + _END])
            if known >= 0:
                book.frame[frame + _TOTAL] += known
            else:
                depth += 1
        else:
            best = book.frame[frame + _BEST]
            remember(book, book.frame[frame + _START], book.frame[frame + _SIZE], best)
            if depth == first:
                return best
            depth -= 1
            book.frame[depth * FRAME + _TOTAL] += best


@kernel
def open_frame(book: Any, depth: Any, start: Any, size: Any, top: Any) -> Any:
    """The wins of a subset if they are known, else -1 and a frame for the search."""
    if size <= 1:
        return np.int64(size)
    known = recall(book, start, size)
    if known >= 0 or book.numbers[GIVEN_UP]:
        return max(known, np.int64(0))
    frame = depth * FRAME
    book.frame[frame + _START] = start
    book.frame[frame + _SIZE] = size
    book.frame[frame + _TOP] = top
    book.frame[frame + _GUESSES] = rank_cells(book, start, size, depth)
    book.frame[frame + _GUESS] = -1
    book.frame[frame + _BEST] = 0
    book.frame[frame + _RUN] = MINED
    book.frame[frame + _TOTAL] = 0
    book.frame[frame + _REST] = 0
    return np.int64(-1)


@kernel
def next_run(book: Any, depth: Any) -> Any:
    """Turn a frame to its next run of layouts to search; False if its best is found."""
    frame = depth * FRAME
    while True:
        best, total = book.frame[frame + _BEST], book.frame[frame + _TOTAL]
        while book.frame[frame + _RUN] < MINED and total + book.frame[frame + _REST] > best:
            begin = book.frame[frame + _RUN_START] + book.frame[frame + _RUN_SIZE]
            size = book.ends[depth * 10 + book.frame[frame + _RUN]] - begin
            book.frame[frame + _RUN] += 1
            book.frame[frame + _RUN_START] = begin
            book.frame[frame + _RUN_SIZE] = size
            book.frame[frame + _REST] -= size
            if size > 0:
                return True
        book.frame[frame + _BEST] = max(best, total)
        if not next_guess(book, depth):
            return False


@kernel
def next_guess(book: Any, depth: Any) -> Any:
    """Split a frame's subset by the next cell that may beat the best; False if there is none."""
    frame = depth * FRAME
    book.frame[frame + _GUESS] += 1
    rank = book.frame[frame + _GUESS]
    if rank >= book.frame[frame + _GUESSES]:
        return False
    size, place = book.frame[frame + _SIZE], np.int64(book.risky[depth * at.LIMIT + rank])
    if size - book.mined[depth * at.LIMIT + rank] <= book.frame[frame + _BEST]:
        return False
    top = book.frame[frame + _TOP]
    end = split(book, book.frame[frame + _START], size, top, place, depth)
    book.frame[frame + _END] = end
    book.frame[frame + _RUN] = 0
    book.frame[frame + _RUN_START] = top
    book.frame[frame + _RUN_SIZE] = 0
    book.frame[frame + _TOTAL] = 0
    book.frame[frame + _REST] = end - top
    return True


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

    A cell that is safe in all layouts and tells them apart is the only one worth it.
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
            book.mined[ranks] = 0
            book.risky[ranks] = place
            return 1
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
