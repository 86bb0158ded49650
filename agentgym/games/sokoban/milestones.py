"""The milestones of Sokoban: box_1 to box_n."""

from __future__ import annotations

from typing import Any

from agentgym.games.sokoban.rules import ON_TARGET
from agentgym.kernels import kernel


def names(boxes: int) -> tuple[str, ...]:
    """Names of the milestones of a board with so many boxes: box_1, box_2, ..."""
    return tuple(f"box_{count}" for count in range(1, boxes + 1))


@kernel
def reached(state: Any, start: Any, dead_end: Any, held: Any) -> None:
    """box_k: k boxes stand on targets, in a state that is not proven lost."""
    if not dead_end:
        for count in range(state[ON_TARGET]):
            held[count] = True
