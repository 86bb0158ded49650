"""Mine probabilities as fractions: slow, plain, and independent of the compiled counting.

The constraints' mines are placed cell by cell; beginnings that leave the same to be placed are
counted together, in whole numbers. For each cell the count is made once more with a mine there.
Meant for tests and for positions one looks at by hand.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import comb
from typing import NamedTuple

from agentgym.game import State
from agentgym.games.minesweeper.instances import board_words
from agentgym.games.minesweeper.rules import MINE, MINES, NUMBER, OPEN

Cell = tuple[int, int]
Partial = Counter[tuple[tuple[int, ...], int]]
"""By what each constraint still needs and the mines used: how many beginnings leave that."""


class _Position(NamedTuple):
    """What the player sees: hidden cells, and the number and hidden neighbours of open ones."""

    hidden: list[Cell]
    numbers: list[int]
    scopes: list[list[Cell]]


def mine_probabilities_exact(state: State) -> dict[Cell, Fraction]:
    """The probability that each hidden cell is a mine, as a fraction.

    Args:
        state: Any state; flags are not taken for facts.

    Returns:
        By (row, col), for hidden cells only.
    """
    position = _read(state)
    mines = int(state[MINES])
    layouts = _count(position, mines, None)
    return {cell: Fraction(_count(position, mines, cell), layouts) for cell in position.hidden}


def count_layouts_exact(state: State) -> int:
    """How many layouts agree with what the player sees."""
    return _count(_read(state), int(state[MINES]), None)


def _read(state: State) -> _Position:
    words = board_words(state).tolist()
    cells = {(r, c): word for r, row in enumerate(words) for c, word in enumerate(row)}
    seen = [cell for cell, word in cells.items() if word & (OPEN | MINE) == OPEN]
    hidden = [cell for cell in cells if cell not in set(seen)]
    near = [[cell for cell in _around(*cell) if cell in cells and cell in hidden] for cell in seen]
    bound = [k for k, scope in enumerate(near) if scope]
    numbers = [cells[seen[k]] & NUMBER for k in bound]
    return _Position(hidden, numbers, [near[k] for k in bound])


def _around(row: int, col: int) -> list[Cell]:
    steps = (-1, 0, 1)
    return [(row + r, col + c) for r in steps for c in steps if r or c]


def _count(position: _Position, mines: int, mined: Cell | None) -> int:
    """Layouts with so many mines, one of them at `mined` if given."""
    frontier = list(dict.fromkeys(cell for scope in position.scopes for cell in scope))
    ends = [max(map(frontier.index, scope)) for scope in position.scopes]
    partial: Partial = Counter({(tuple(position.numbers), 0): 1})
    for place, cell in enumerate(frontier):
        partial = _lay(partial, position.scopes, cell, cell == mined)
        full = [k for k, end in enumerate(ends) if end == place]
        partial = Counter({s: n for s, n in partial.items() if not any(s[0][k] for k in full)})
    interior = len(position.hidden) - len(frontier)
    inside = mined is not None and mined not in frontier
    return sum(
        ways * comb(interior - inside, mines - used - inside)
        for (_, used), ways in partial.items()
        if mines - used - inside >= 0
    )


def _lay(partial: Partial, scopes: list[list[Cell]], cell: Cell, mined: bool) -> Partial:
    """Decide one cell more: safe, or a mine where its constraints allow one."""
    bound = [cell in scope for scope in scopes]
    following: Partial = Counter()
    for (needs, used), ways in partial.items():
        if not mined:
            following[needs, used] += ways
        left = tuple(need - here for need, here in zip(needs, bound, strict=True))
        if min(left) >= 0:
            following[left, used + 1] += ways
    return following
