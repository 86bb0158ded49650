"""Keyword arguments of Rush Hour, and what its levels are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from agentgym.errors import UnknownName
from agentgym.game import Options


class Level(NamedTuple):
    """What the instances of a level have in common; all are 6 x 6 without walls.

    Attributes:
        pieces: Fewest and most pieces, the red car among them.
        slides: Fewest and most slides from the start to a win.
        trucks: Of twelve pieces that are drawn.
        farthest: The start is a state of its graph that is farthest from a win (or at the most
            slides), on a board that was searched for; else it is a random placement.
    """

    pieces: tuple[int, int]
    slides: tuple[int, int]
    trucks: int
    farthest: bool


LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        "7car": Level((7, 7), (6, 8), 4, farthest=False),
        "9car": Level((9, 9), (7, 9), 4, farthest=False),
        "expert": Level((11, 13), (20, 34), 5, farthest=True),
        "grandmaster": Level((12, 13), (35, 51), 5, farthest=True),
    }
)
"""CAST's two levels (arXiv 2607.25308; windows of its released data), and two harder ones."""
METRICS = ("slides", "cells")
LAYOUTS = ("grid_coord", "grid", "coord")
SIZE_GENERATED = 6
"""Rows, and columns, of generated boards."""


@dataclass(frozen=True, kw_only=True)
class RushHourOptions(Options):
    """Rush Hour's own keyword arguments.

    Attributes:
        level: A name in `LEVELS`.
        metric: What the oracle counts: "slides", or the "cells" that the slides cover.
        layout: What the text shows: "grid", "coord" (a list of the pieces) or "grid_coord".
    """

    level: str = "7car"
    metric: str = "slides"
    layout: str = "grid_coord"

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            UnknownName: A word that is not among the choices.
        """
        for name, known in (("level", LEVELS), ("metric", METRICS), ("layout", LAYOUTS)):
            if getattr(self, name) not in known:
                raise UnknownName.of(f"{name} of RushHour", getattr(self, name), known)
