"""The one table of ids: id, game, keyword arguments, turn limit.

Gymnasium loads `register_all` through the entry-point group `gymnasium.envs`, so that
`gym.make("agentgym/Sokoban-v0")` works after `import gymnasium` alone. This module imports no game
and no numba: it must cost a bare `import gymnasium` next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
from gymnasium.envs import registration

NAMESPACE = "agentgym"


@dataclass(frozen=True)
class Row:
    """One id.

    Attributes:
        id: Without the namespace.
        game: The package below `agentgym.games` that holds the game.
        max_turns: Turn limit; at least the optimum of every instance.
        kwargs: Keyword arguments that the id stands for.
    """

    id: str
    game: str
    max_turns: int
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _level(game: str, title: str, level: str, max_turns: int) -> Row:
    return Row(f"{title}-{level}-v0", game, max_turns, {"level": level})


ROWS = (
    Row("Sokoban-v0", "sokoban", 30, {"level": "6x6-2box"}),
    _level("sokoban", "Sokoban", "6x6-2box", 30),
    _level("sokoban", "Sokoban", "7x7-3box", 40),
    _level("sokoban", "Sokoban", "8x8-3box", 75),
    _level("sokoban", "Sokoban", "10x10-4box", 120),
    Row("2048-v0", "game_2048", 10_000, {"level": "4x4"}),
    Row("2048-3x3-v0", "game_2048", 10_000, {"level": "3x3"}),
    Row("3072-v0", "game_2048", 10_000, {"level": "3072"}),
    Row("Minesweeper-v0", "minesweeper", 30, {"level": "6x6-7"}),
    _level("minesweeper", "Minesweeper", "6x6-7", 30),
    _level("minesweeper", "Minesweeper", "7x7-10", 40),
    _level("minesweeper", "Minesweeper", "9x9-10", 100),
    _level("minesweeper", "Minesweeper", "16x16-40", 350),
    _level("minesweeper", "Minesweeper", "16x30-99", 600),
    Row("RushHour-v0", "rush_hour", 20, {"level": "7car"}),
    _level("rush_hour", "RushHour", "7car", 20),
    _level("rush_hour", "RushHour", "9car", 20),
    _level("rush_hour", "RushHour", "expert", 60),
    _level("rush_hour", "RushHour", "grandmaster", 100),
)


def game_module(game: str) -> str:
    """Import path of a game's package; a dotted name is a third party's own."""
    return game if "." in game else f"agentgym.games.{game}"


def max_turns(game: str, level: str) -> int | None:
    """The turn limit of a game's level, the game's longest for a level without a row of its own.

    None for a game that has no row at all.
    """
    limits = [row.max_turns for row in ROWS if row.game == game]
    own = [r.max_turns for r in ROWS if r.game == game and r.kwargs.get("level") == level]
    return max(own or limits, default=None)


def register_all() -> None:
    """Register every row with Gymnasium; does nothing for an id that is there already."""
    # Gymnasium's plugin loader sets the namespace itself and warns about one in the id.
    inside_plugin = registration.current_namespace is not None
    for row in ROWS:
        if f"{NAMESPACE}/{row.id}" not in gym.registry:
            gym.register(
                id=row.id if inside_plugin else f"{NAMESPACE}/{row.id}",
                entry_point="agentgym.env:TextGameEnv",
                vector_entry_point="agentgym.vector:TextGameVectorEnv",
                kwargs={"game": row.game, **row.kwargs},
            )
