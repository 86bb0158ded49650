"""Milestones of Rush Hour: ever fewer pieces between the red car and the exit, then out."""

from __future__ import annotations

from functools import cache
from typing import Any

from agentgym.game import Layout, State
from agentgym.games.rush_hour.rules import RED_LENGTH, SIZE, blockers, success
from agentgym.kernels import kernel


@cache
def names(size: int) -> tuple[str, ...]:
    """Names of a board size's milestones, in order: `cleared_k` for falling k, then `out`.

    Between the red car and the exit there are at most `size` - 2 pieces, one per cell.
    """
    most = size - RED_LENGTH
    return (*(f"cleared_{k}" for k in range(most - 1, -1, -1)), "out")


@kernel
def reached(state: Any, start: Any, dead_end: Any, held: Any) -> None:
    """Set `cleared_k` for each k from the pieces left now to those at the start; `out` if won."""
    most = state[SIZE] - RED_LENGTH
    for left in range(blockers(state), blockers(start)):
        held[most - 1 - left] = True
    if success(state):
        held[most] = True


def total(start: State, layout: Layout) -> int:
    """Number of milestones that the instance has: one per piece in the way, and `out`."""
    return int(blockers(start)) + 1
