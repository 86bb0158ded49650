"""K(s) of CAST (arXiv 2607.25308), for reproducing its training signal; it is not our oracle.

CAST's turn-level credit in Minesweeper is a difference of K: how many reveals a fixed greedy
solver needs to finish, each resolved on the true board. `greedy_reveals` says what is wrong
with it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from agentgym.game import State
from agentgym.games.minesweeper.odds import UNCOUNTED, fill_odds
from agentgym.games.minesweeper.rules import (
    CELLS,
    FLAG,
    FLAGS,
    HEIGHT,
    HIT,
    MINE,
    MINES,
    NUMBER,
    OPEN,
    OUTSIDE,
    WIDTH,
    open_cell,
    success,
)
from agentgym.games.minesweeper.workspace import MAX_NODES, workspace


def greedy_reveals(state: State) -> float:
    """CAST's K(s): reveals of its greedy solver to a win on the true board; inf if it fails.

    The solver reveals, of the cells that the open numbers prove safe, the one with the highest
    score (2 for each open number around it, 3 for each open zero, 1 for each hidden cell; the
    first in row order); where there is none, that of the least mine probability, then of the
    highest score. Its flags on proven mines are free. The player's flags are dropped, and each
    one on a safe cell adds 1.

    Faults, kept as they are:
        - It judges by hindsight: K is inf wherever the solver's guess happens to be a mine, on
          15.5% of CAST's 200 test boards already at the start. All play from there earns 0, the
          provably right included, and a lucky win earns the number of safe cells.
        - It is no minimum: of equal proofs it takes the highest score, not the shortest way, so
          a turn can gain more than one.
        - Cells that only the number of mines proves safe are not among the proofs; they are found
          as guesses of probability 0.
        - The player's flags are dropped from the simulation, where they stop no opening.

    One limit of CAST's code is not kept, since it says nothing of the board: it passes over
    components of more than 40 cells or 50,000 solutions.
    """
    if state[HIT]:
        return math.inf
    play = state.copy()
    words = play[CELLS:]
    flagged = np.count_nonzero(words & (FLAG | MINE) == FLAG)
    words &= ~FLAG
    play[FLAGS] = 0
    reveals = 0
    while not success(play):
        cell = _greedy_cell(play)
        if words[cell] & MINE:
            return math.inf
        open_cell(play, cell)
        reveals += 1
    return float(reveals + flagged)


def _greedy_cell(play: State) -> int:
    """The cell that CAST's solver reveals."""
    alone = _odds(play, UNCOUNTED)
    safe = np.flatnonzero(alone == 0.0).tolist()
    if safe:
        return max(safe, key=lambda cell: _score(play, cell))
    odds = _odds(play, int(play[MINES]))
    unknown = [c for c in _cast_order(play, alone) if odds[c] < 1.0]
    return min(unknown, key=lambda cell: (round(odds[cell], 12), -_score(play, cell)))


def _odds(play: State, mines: int) -> npt.NDArray[np.float64]:
    odds = np.empty(int(play[HEIGHT] * play[WIDTH]))
    fill_odds(play, mines, MAX_NODES, workspace(), odds)
    return odds


def _around(play: State, cell: int) -> list[int]:
    """Neighbours of a cell on its board."""
    height, width = int(play[HEIGHT]), int(play[WIDTH])
    row, col = divmod(cell, width)
    near = [
        r * width + c
        for r in range(max(row - 1, 0), min(row + 2, height))
        for c in range(max(col - 1, 0), min(col + 2, width))
    ]
    return [at for at in near if at != cell and not play[CELLS + at] & OUTSIDE]


def _score(play: State, cell: int) -> int:
    """CAST's measure of how much a reveal may tell."""
    score = 0
    for near in _around(play, cell):
        word = int(play[CELLS + near])
        score += 1 if not word & OPEN else 2 if word & NUMBER else 3
    return score


def _cast_order(play: State, alone: npt.NDArray[np.float64]) -> list[int]:
    """The cells that may be guessed in the order of CAST's tables, which decides between equals.

    Component after component, by its first constraint; in each, cells of equal constraints
    together, by the first of them; the cells without constraint at the end.
    """
    words = play[CELLS:]
    unknown = {c for c in range(alone.size) if not words[c] & (OPEN | OUTSIDE) and alone[c] != 1.0}
    scopes = [
        scope
        for cell in np.flatnonzero(words & OPEN).tolist()
        if (scope := unknown.intersection(_around(play, cell)))
    ]
    order: list[int] = []
    for scope in scopes:
        component = _connected(scope, scopes) if scope.isdisjoint(order) else set[int]()
        equal: dict[tuple[int, ...], list[int]] = {}
        for cell in sorted(component):
            equal.setdefault(tuple(k for k, s in enumerate(scopes) if cell in s), []).append(cell)
        order += [cell for cells in equal.values() for cell in cells]
    return order + sorted(unknown.difference(order))


def _connected(scope: set[int], scopes: list[set[int]]) -> set[int]:
    """The cells of all constraints that hang together with one."""
    grown = set[int].union(scope, *(other for other in scopes if not scope.isdisjoint(other)))
    return grown if grown == scope else _connected(grown, scopes)
