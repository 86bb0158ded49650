"""The oracle: what is proven, what is safest, what wins most often, and how far the win is.

Best actions and values see only what the player sees. `cost_to_go` and `solve` peek, see
`clearance`. A flag changes nothing that is known and can be taken off, so it neither helps nor
hurts: with `value=True` a flag action is worth what the state is worth, but only reveals are best.
Where the cell to reveal carries a flag, taking the flag off is best in its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.game import Note, State
from agentgym.games.minesweeper import clearance
from agentgym.games.minesweeper.clearance import cost_to_go
from agentgym.games.minesweeper.instances import MinesweeperOptions
from agentgym.games.minesweeper.layouts import book
from agentgym.games.minesweeper.odds import odds_of, read_odds
from agentgym.games.minesweeper.rules import (
    CELLS,
    FLAG,
    HEIGHT,
    MINES,
    WIDTH,
    legal,
    terminal,
)
from agentgym.games.minesweeper.sampling import TIE, deck, estimate_wins
from agentgym.games.minesweeper.winning import win_probability
from agentgym.games.minesweeper.workspace import workspace
from agentgym.kernels import kernel

_COST, _LEAST, _EXACT = range(3)


@dataclass(frozen=True)
class MinesweeperOracle:
    """Answers for any state; keeps nothing between two calls.

    Attributes:
        value: Look for the probability of winning as well.
        budget: Most nodes of the odds' layers, and most knowledge states of the search.
    """

    value: bool
    budget: int

    def note(self, state: State) -> Note:
        """What is known about a state.

        Without `value`, best are the cells that are proven safe (`exact` True), or else those of
        least mine probability (`exact` False). With it, best are the reveals that win most often,
        and `exact` says whether that is proven or an estimate.
        """
        # Kernels would be compiled once more for read-only arrays.
        state = state if state.flags.writeable else state.copy()
        cells = int(state[HEIGHT] * state[WIDTH])
        best = np.empty(2 * cells, np.bool_)
        out = np.empty(3)
        read_note(state, self.budget, workspace(), best, out)
        cost, least, exact = out.tolist()
        if not self.value:
            return Note(cost, math.nan, None, best, cost == math.inf, exact != 0.0)
        values = np.full(2 * cells, -math.inf)
        if terminal(state):
            return Note(cost, float(cost == 0.0), values, best, cost == math.inf, True)
        worth, proven = self._reveals(state, values[:cells])
        spread_values(state, worth, least == 0.0 and not proven, values, best)
        return Note(cost, worth, values, best, False, proven)

    def _reveals(self, state: State, values: npt.NDArray[np.float64]) -> tuple[float, bool]:
        """Fill in what each reveal is worth; what the state is worth, and whether proven."""
        worth = float(win_probability(state, self.budget, workspace(), book(), values))
        if worth == worth:
            return worth, True
        key = state_key(state)
        return float(estimate_wins(state, key, self.budget, workspace(), deck(), values)), False

    def solve(self, state: State) -> list[int]:
        """Action indices of a shortest win by the true mines: this peeks.

        Raises:
            NoSolution: A mine was hit.
        """
        return clearance.solve(state)


def make_oracle(options: MinesweeperOptions, budget: int) -> MinesweeperOracle:
    """The oracle of an environment."""
    return MinesweeperOracle(options.value, budget)


def state_key(state: State) -> int:
    """A key for random draws that depends on nothing but the state's bytes."""
    return int.from_bytes(blake2b(state.tobytes(), digest_size=8).digest(), signed=True)


@kernel
def read_note(state: Any, limit: Any, space: Any, best: Any, out: Any) -> None:
    """Fill `best` with the safest reveals, `out` with the cost to go, their odds and exactness."""
    work, ways = space
    best[:] = False
    out[_COST] = cost_to_go(state, work)
    out[_LEAST] = math.nan
    out[_EXACT] = 1.0
    if terminal(state):
        return
    cells = best.size // 2
    exact = read_odds(state, state[MINES], limit, work, ways)
    least = 2.0
    for cell in range(cells):
        odds = odds_of(cell, work, ways)
        least = min(least, odds) if odds == odds else least
    for cell in range(cells):
        odds = odds_of(cell, work, ways)
        if odds == least or (least > 0.0 and odds <= least + TIE):
            best[cell + cells if state[CELLS + cell] & FLAG else cell] = True
    out[_LEAST] = least
    out[_EXACT] = 1.0 if exact and least == 0.0 else 0.0


@kernel
def spread_values(state: Any, worth: Any, proven_safe: Any, values: Any, best: Any) -> None:
    """From what the reveals are worth to action values, and the best of them.

    Args:
        state: The state.
        worth: What it is worth, and so each flag action.
        proven_safe: `best` holds proven safe cells already, while `values` are only estimates.
        values: float64 by action; the reveals' part holds nan where nothing is hidden.
        best: Bool by action.
    """
    cells = best.size // 2
    most = -1.0
    for cell in range(cells):
        most = max(most, values[cell]) if values[cell] == values[cell] else most
    for cell in range(cells):
        best_here = values[cell] >= most - TIE
        flagged = state[CELLS + cell] & FLAG != 0
        if not proven_safe and most >= 0.0:
            best[cell] = best_here and not flagged
            best[cells + cell] = best_here and flagged
        if not legal(state, cell):
            values[cell] = -math.inf
        if legal(state, cells + cell):
            values[cells + cell] = worth
