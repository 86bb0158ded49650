"""Milestones of 2048: each doubling of the largest tile, from 16 * base on."""

from __future__ import annotations

from typing import Any

from agentgym.games.game_2048.rules import TOP
from agentgym.kernels import kernel

FIRST = 5
"""Exponent of 16 * base, the first milestone's tile."""


def names(size: int, base: int) -> tuple[str, ...]:
    """The milestones of a board, for example "tile_32", up to the highest tile that fits.

    On n cells it has the exponent n + 1: with 2 * base, 4 * base and so on, each once, on all
    cells but one, a spawned 2 * base lets them merge one after another.
    """
    return tuple(f"tile_{base << (exponent - 1)}" for exponent in range(FIRST, size * size + 2))


@kernel
def reached(state: Any, start: Any, dead_end: Any, held: Any) -> None:
    """Set the milestones of the largest tile and of all smaller ones."""
    for index in range(min(held.shape[0], state[TOP] - FIRST + 1)):
        held[index] = True
