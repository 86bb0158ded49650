"""The truth about any state: exact tables, and A* where a table would be too large."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.game import NoSolution, Note, State
from agentgym.games.sokoban.rooms import room_key, survey
from agentgym.games.sokoban.rules import step, success
from agentgym.games.sokoban.table import build, read
from agentgym.games.sokoban.wins import Win, fewest_moves, fewest_pushes
from agentgym.oracle import TableCache, TableOracle

TABLE_STATES = 20_000_000
"""Default budget: the largest room, in (box set, player cell) pairs, that gets a table."""
_SEARCH_SHARE = 20
_LEAST_NODES = 20_000
_MAX_WINS = 20_000

_TABLES = TableCache()
_WINS: OrderedDict[tuple[bytes, int], Win] = OrderedDict()


def table_of(state: State, budget: int = TABLE_STATES) -> npt.NDArray[Any]:
    """The table of a state's room, shared within the process; see `table`."""
    return _TABLES.get((room_key(state), budget), lambda: build(survey(state), budget))


def share_table(state: State, table: npt.NDArray[Any]) -> None:
    """Give the process a table of a state's room that was built with the default budget."""
    _TABLES.get((room_key(state), TABLE_STATES), lambda: table)


def push_optimal(state: State, budget: int = TABLE_STATES) -> float:
    """Fewest pushes to a win, however long the walks between them; inf if none is possible.

    Args:
        state: Any state.
        budget: As for `SokobanOracle`.

    Returns:
        The exact number, or nan if the search did not end within the budget.
    """
    return fewest_pushes(state, survey(state), _nodes_of(budget)).cost


@dataclass(frozen=True)
class SokobanOracle(TableOracle):
    """Knows every state of a room within the budget; searches in larger rooms.

    Attributes:
        budget: States that a table may have. A search keeps a twentieth as many, at least 20,000,
            which take about as much memory.
    """

    budget: int = TABLE_STATES

    def note(self, state: State) -> Note:
        """What is known: exact from a table, else proven, bounded or undetermined by search.

        A bound from above stands in `cost_to_go` with `exact` False; action values are then nan.
        """
        note = super().note(state)
        return note if note.exact else self._searched(state, note)

    def solve(self, state: State) -> list[int]:
        """Action indices of a win, the shortest where the note is exact.

        Raises:
            NoSolution: No win is possible, or none was found within the budget.
        """
        if super().note(state).exact:
            return super().solve(state)
        win = self._win(state)
        if math.isfinite(win.cost):
            return list(win.actions)
        why = "is possible from this state" if win.exact else "was found within the budget"
        raise NoSolution(f"No win {why}.")

    def _searched(self, state: State, note: Note) -> Note:
        """The note of a state that no table covers."""
        win = self._win(state)
        cost = win.cost
        if not win.exact:
            return note._replace(cost_to_go=cost, value=-cost)
        if cost == np.inf:
            nothing = np.full(self.actions, -np.inf)
            return Note(cost, -cost, nothing, note.best, dead_end=True, exact=True)
        wins = [self._after(state, action) for action in range(self.actions)]
        values = np.array([-1.0 - w.cost if w.exact else np.nan for w in wins])
        best = (values == -cost) & (cost > 0.0)
        return Note(cost, -cost, values, best, dead_end=False, exact=not np.isnan(values).any())

    def _after(self, state: State, action: int) -> Win:
        after = state.copy()
        self.step(after, action)
        return self._win(after)

    def _win(self, state: State) -> Win:
        found = _WINS.get((state.tobytes(), self.budget))
        if found is None:
            found = fewest_moves(state, survey(state), _nodes_of(self.budget))
            self._remember(state, found)
        return found

    def _remember(self, state: State, win: Win) -> None:
        """Keep what is known of a state and, of a shortest win, of all the states on its way."""
        state = state.copy()
        _WINS[state.tobytes(), self.budget] = win
        for turn, action in enumerate(win.actions if win.exact else (), start=1):
            self.step(state, action)
            left = win.actions[turn:]
            _WINS[state.tobytes(), self.budget] = Win(float(len(left)), True, left)
        while len(_WINS) > _MAX_WINS:
            _WINS.popitem(last=False)


def make_oracle(options: Any, budget: int) -> SokobanOracle:
    """The oracle of an environment; its tables and wins are shared within the process."""
    count = 8 if options.explicit else 4
    return SokobanOracle(lambda state: table_of(state, budget), read, count, step, success, budget)


def _nodes_of(budget: int) -> int:
    return max(_LEAST_NODES, budget // _SEARCH_SHARE)
