"""Milestones: a quarter, half, three quarters and all of the safe cells are open."""

from __future__ import annotations

from typing import Any

from agentgym.games.minesweeper.rules import OPENED, SAFE
from agentgym.kernels import kernel

NAMES = ("open_25", "open_50", "open_75", "open_100")


@kernel
def reached(state: Any, start: Any, dead_end: Any, done: Any) -> None:
    """Set True the milestones reached now; the first click's opening counts."""
    for quarter in range(4):
        if 4 * state[OPENED] >= (quarter + 1) * state[SAFE]:
            done[quarter] = True
