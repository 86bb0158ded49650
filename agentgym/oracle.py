"""The oracle of games whose truth is one flat table per instance.

A game gives two things: `table(state)`, which builds (or finds) the array that covers a state, and
the kernel `read(state, table, values, best, out)`, which fills the action values (float64), the
optimal actions (bool) and `out` = [cost to go, value, dead end, exact]. The same kernel answers
for one state and for a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.game import NoSolution, Note, Oracle, State
from agentgym.kernels import Kernel, specialise


class TableCache:
    """Tables by key, the oldest dropped beyond a number of bytes; thread-safe."""

    def __init__(self, max_bytes: int = 1 << 30) -> None:
        """Keep at most `max_bytes` of tables, and always the newest."""
        self._max_bytes = max_bytes
        self._tables: dict[Hashable, npt.NDArray[Any]] = {}
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable, build: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The table of a key, built at the first call."""
        table = self._tables.get(key)
        if table is None:
            with self._lock:
                table = self._tables.get(key)
                if table is None:
                    table = self._keep(key, build())
        return table

    def _keep(self, key: Hashable, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        self._tables[key] = table
        self._bytes += table.nbytes
        while self._bytes > self._max_bytes and len(self._tables) > 1:
            oldest = next(iter(self._tables))
            self._bytes -= self._tables.pop(oldest).nbytes
        return table


@dataclass(frozen=True)
class TableOracle:
    """Looks states up in tables.

    Attributes:
        table: (state) -> the array that covers it.
        read: The lookup kernel, see the module.
        actions: Number of action indices.
        step: The game's kernels, for playing solutions out.
        success: Likewise.
    """

    table: Callable[[State], npt.NDArray[Any]]
    read: Kernel
    actions: int
    step: Kernel
    success: Kernel

    def note(self, state: State) -> Note:
        """What is known about a state; one lookup."""
        values = np.empty(self.actions)
        best = np.empty(self.actions, np.bool_)
        out = np.empty(4)
        self.read(state, self.table(state), values, best, out)
        cost_to_go, value, dead_end, exact = out.tolist()
        return Note(cost_to_go, value, values, best, dead_end != 0.0, exact != 0.0)

    def solve(self, state: State) -> list[int]:
        """Follow the first optimal action until the game is won.

        Raises:
            NoSolution: The state is a dead end.
        """
        state = state.copy()
        actions: list[int] = []
        note = self.note(state)
        while not self.success(state):
            if note.dead_end or not note.best.any():
                raise NoSolution("No win is possible from this state.")
            actions.append(int(note.best.argmax()))
            self.step(state, actions[-1])
            note = self.note(state)
        return actions


class Notes(NamedTuple):
    """What the oracle knows about n states, one array per field of `Note`.

    Attributes:
        cost_to_go: float64 (n,).
        value: float64 (n,).
        action_values: float64 (n, actions), nan where undetermined.
        best: bool (n, actions).
        dead_end: bool (n,).
        exact: bool (n,).
    """

    cost_to_go: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]
    action_values: npt.NDArray[np.float64]
    best: npt.NDArray[np.bool_]
    dead_end: npt.NDArray[np.bool_]
    exact: npt.NDArray[np.bool_]


class PoolOracle:
    """An oracle for the states of many games whose instances are known beforehand.

    With a `TableOracle` all tables lie one after the other in memory and one compiled loop reads
    them; it is asked state by state only where its table gives no cost (nan), as any other is.
    """

    def __init__(self, oracle: Oracle, pool: npt.NDArray[np.int64], actions: int) -> None:
        """Prepare for the instances `pool` (instances, state size)."""
        self._oracle = oracle
        self._actions = actions
        if isinstance(oracle, TableOracle):
            tables = [oracle.table(start) for start in pool]
            self._tables = np.concatenate(tables)
            self._bounds = np.cumsum([0, *(len(table) for table in tables)])
            self._read_all = _read_all_of(oracle.read)

    def notes(self, states: npt.NDArray[np.int64], which: npt.NDArray[np.int64]) -> Notes:
        """Notes of states (n, state size), the i-th of which began as `pool[which[i]]`."""
        n = len(states)
        values, best = np.empty((n, self._actions)), np.empty((n, self._actions), np.bool_)
        out = np.empty((n, 4))
        if isinstance(self._oracle, TableOracle):
            self._read_all(states, self._tables, self._bounds, which, (values, best, out))
            # What a table leaves open, its oracle may find out in another way.
            unknown = np.flatnonzero(np.isnan(out[:, 0]))
        else:
            unknown = np.arange(n)
        for i in unknown:
            note = self._oracle.note(states[i])
            values[i] = np.nan if note.action_values is None else note.action_values
            best[i] = note.best
            out[i] = note.cost_to_go, note.value, note.dead_end, note.exact
        return Notes(out[:, 0], out[:, 1], values, best, out[:, 2] != 0.0, out[:, 3] != 0.0)


@cache
def _read_all_of(read: Kernel) -> Kernel:
    return specialise(_read_all, read.__module__.replace(".", "_"), read=read)


read: Any = None  # Bound to a game's kernel by `specialise`.


def _read_all(states: Any, tables: Any, bounds: Any, which: Any, into: Any) -> None:
    values, best, out = into
    for i in range(states.shape[0]):
        table = tables[bounds[which[i]] : bounds[which[i] + 1]]
        read(states[i], table, values[i], best[i], out[i])
