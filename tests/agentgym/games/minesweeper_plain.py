"""Minesweeper written a second time, plainly and slowly, to hold the fast code against."""

from __future__ import annotations

from collections import defaultdict, deque
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from agentgym.games.minesweeper import make_board, rules


def board(rows):
    """The start of a drawn board: `*` a mine, `o` the first click, anything else a safe cell."""
    cells = "".join(rows)
    mines = [i for i, glyph in enumerate(cells) if glyph == "*"]
    return make_board((len(rows), len(rows[0])), mines, cells.index("o"))


def near(cell, shape):
    """Neighbours of a cell of a board."""
    (r, c), (rows, cols) = divmod(cell, shape[1]), shape
    around = [(r + i, c + j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    return [y * cols + x for y, x in around if 0 <= y < rows and 0 <= x < cols]


def position(rows, mines):
    """Any state that looks like the rows: `_` hidden, `F` flag, digits open; so many mines."""
    shape, cells = (len(rows), len(rows[0])), "".join(rows)
    seen = {i: int(glyph) for i, glyph in enumerate(cells) if glyph.isdigit()}
    hidden = [i for i in range(len(cells)) if i not in seen]
    laid = next(iter(agreeing(seen, hidden, mines, shape)))
    state = make_board(shape, sorted(laid), min(seen))
    words = state[rules.CELLS :]
    words &= ~rules.OPEN
    words[list(seen)] |= rules.OPEN
    flags = [i for i, glyph in enumerate(cells) if glyph == "F"]
    words[flags] |= rules.FLAG
    state[rules.OPENED], state[rules.FLAGS] = len(seen), len(flags)
    return state


def agreeing(seen, hidden, mines, shape):
    """Every set of so many mines among the hidden cells that agrees with the numbers seen."""
    scopes = [(number, frozenset(near(cell, shape))) for cell, number in seen.items()]
    for laid in combinations(hidden, mines):
        if all(len(scope.intersection(laid)) == number for number, scope in scopes):
            yield frozenset(laid)


def view(state):
    """What the player knows: numbers seen by cell, hidden cells, mines, shape."""
    words = state[rules.CELLS :].tolist()
    seen = {i: word & rules.NUMBER for i, word in enumerate(words) if word & rules.OPEN}
    hidden = [i for i in range(len(words)) if i not in seen]
    return seen, hidden, int(state[rules.MINES]), (int(state[rules.ROWS]), int(state[rules.COLS]))


def layouts(state):
    """Every layout that agrees with what the player knows."""
    return list(agreeing(*view(state)))


def mine_odds(state):
    """Mine probability of each hidden cell, by counting layouts."""
    possible = layouts(state)
    return {
        cell: Fraction(sum(cell in laid for laid in possible), len(possible))
        for cell in view(state)[1]
    }


def win_odds(state):
    """Best play's probability of winning from here, and after the reveal of each hidden cell."""
    _, hidden, _, shape = view(state)
    everything = frozenset(range(shape[0] * shape[1]))
    shown = frozenset(everything.difference(hidden))
    possible = frozenset(layouts(state))

    def opened(laid, opened_before, cell):
        grown, queue = set(opened_before) | {cell}, [cell]
        while queue:
            at = queue.pop()
            if not laid.intersection(near(at, shape)):
                new = [n for n in near(at, shape) if n not in grown]
                grown.update(new)
                queue += new
        return frozenset(grown)

    @cache
    def wins(laids, shown):
        if len(shown) == len(everything) - len(next(iter(laids))):
            return len(laids)
        return max(after(laids, shown, cell) for cell in everything - shown)

    @cache
    def after(laids, shown, cell):
        told = defaultdict(set)
        for laid in laids:
            if cell not in laid:
                now = opened(laid, shown, cell)
                seen = tuple((at, len(laid.intersection(near(at, shape)))) for at in sorted(now))
                told[now, seen].add(laid)
        return sum(wins(frozenset(group), now) for (now, _), group in told.items())

    best = wins(possible, shown)
    return (
        Fraction(best, len(possible)),
        {cell: Fraction(after(possible, shown, cell), len(possible)) for cell in hidden},
    )


def fewest_actions(state):
    """Length of a shortest win by breadth-first search over the game's own steps."""
    if rules.success(state):
        return 0
    actions = 2 * (state.size - rules.CELLS)
    queue, seen = deque([(state.copy(), 0)]), {state.tobytes()}
    while queue:
        at, turns = queue.popleft()
        for action in range(actions):
            there = at.copy()
            if np.isnan(rules.step(there, action)) or there[rules.HIT]:
                continue
            if rules.success(there):
                return turns + 1
            if there.tobytes() not in seen:
                seen.add(there.tobytes())
                queue.append((there, turns + 1))
    return float("inf")


@st.composite
def boards(draw, cells=16, mines=4):
    """Start states of at most so many cells and mines that the first click does not win."""
    rows = draw(st.integers(1, 4))
    cols = draw(st.integers(-(-4 // rows), cells // rows))
    order = draw(st.permutations(range(rows * cols)))
    count = draw(st.integers(1, min(mines, rows * cols - 2)))
    state = make_board((rows, cols), sorted(order[:count]), order[-1])
    assume(not rules.terminal(state))
    return state


@st.composite
def states(draw, cells=16, mines=4, turns=8):
    """States in play: of a board, after some safe reveals and flags."""
    state = draw(boards(cells, mines))
    for choice in draw(st.lists(st.integers(0, 10_000), max_size=turns)):
        legal = [a for a in range(2 * (state.size - rules.CELLS)) if rules.legal(state, a)]
        after = state.copy()
        rules.step(after, legal[choice % len(legal)])
        if not rules.terminal(after):
            state = after
    return state
