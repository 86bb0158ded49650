"""The oracle of games whose truth is one flat table per instance.

A game gives two things: `table(state)`, which builds (or finds) the array that covers a state, and
the kernel `read(state, table, values, best, out)`, which fills the action values (float64), the
optimal actions (bool) and `out` = [cost to go, value, dead end, exact]. The same kernel answers
for one state and for a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.game import NoSolution, Note, State
from agentgym.kernels import Kernel


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
