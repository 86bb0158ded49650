"""The instances of Sokoban: levels, options, generator and loader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.chance import below, bits, mix
from agentgym.errors import UnknownName
from agentgym.game import Accept, Instance, Options, State
from agentgym.games.sokoban.boards import Codes, canonical, make_state
from agentgym.games.sokoban.box_sets import at, first, following
from agentgym.games.sokoban.glyphs import PARTS, Symbols, glyphs_of
from agentgym.games.sokoban.oracle import TABLE_STATES, share_table
from agentgym.games.sokoban.rooms import survey
from agentgym.games.sokoban.rules import BOX, EMPTY, MAN, TARGET, WALL
from agentgym.games.sokoban.table import DISTANCES, build
from agentgym.games.sokoban.xsb import read_boards
from agentgym.kernels import kernel


@dataclass(frozen=True)
class Level:
    """What the boards of a level are like.

    Attributes:
        size: Rows and columns, the border of walls included.
        boxes: Boxes, and targets.
        floor: Fewest and most floor cells.
        band: Least and greatest optimal length, in moves.
    """

    size: int
    boxes: int
    floor: tuple[int, int]
    band: tuple[int, int]


LEVELS = {
    "6x6-2box": Level(6, 2, (10, 15), (3, 20)),
    "7x7-3box": Level(7, 3, (16, 23), (6, 36)),
    "8x8-3box": Level(8, 3, (22, 34), (20, 50)),
    "10x10-4box": Level(10, 4, (34, 54), (40, 80)),
}
"""The levels; the first two have the sizes of CAST's in-distribution and unseen sets, and lengths
spread like theirs (means 8.75 and 16.4 there)."""

_glyphs = lru_cache(maxsize=64)(glyphs_of)
_CHOICES = {"moves": ("push", "explicit"), "layout": ("grid_coord", "grid", "coord")}
_TRIES = 8
"""Starts tried in one room before another is made."""


@dataclass(frozen=True, kw_only=True)
class SokobanOptions(Options):
    """The keyword arguments of Sokoban.

    Attributes:
        level: A name in `LEVELS`.
        moves: "push": four actions, walking into a box pushes it; "explicit": eight actions.
        symbols: A name in `glyphs.SYMBOLS`, or a glyph per part; kept as pairs in fixed order.
        layout: "grid_coord", "grid" or "coord".
    """

    level: str = "6x6-2box"
    moves: str = "push"
    symbols: Symbols = "cast"
    layout: str = "grid_coord"

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            UnknownName: A word that is not among the choices.
            InvalidOption: Glyphs that cannot be told apart.
        """
        if self.level not in LEVELS:
            raise UnknownName.of("level of Sokoban", self.level, LEVELS)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UnknownName.of(name, getattr(self, name), choices)
        glyphs = glyphs_of(self.symbols)
        if not isinstance(self.symbols, str):
            object.__setattr__(self, "symbols", tuple(zip(PARTS, glyphs, strict=True)))

    @property
    def glyphs(self) -> str:
        """The glyphs by cell code."""
        return _glyphs(self.symbols if isinstance(self.symbols, str) else tuple(self.symbols))

    @property
    def explicit(self) -> bool:
        """Walking and pushing are different actions."""
        return self.moves == "explicit"


def load(path: Path, options: SokobanOptions) -> tuple[State, ...]:
    """The boards of an XSB or SOK file as start states.

    Raises:
        InvalidInstance: A board that breaks the rules; names the file, the line and the fault.
    """
    boards = read_boards(path)
    cells = max((board.size for board in boards), default=0)
    return tuple(make_state(b, explicit=options.explicit, cells=cells) for b in boards)


def generate(rng: np.random.Generator, options: SokobanOptions, accept: Accept) -> Instance:
    """An instance whose optimal length is drawn first, and then met exactly.

    Random rooms with random targets are made until one has a state, all boxes off the targets,
    from which the fewest moves are as many as drawn; the room's exact table says so. The start is
    drawn uniformly from all such states of the room. The length is the smaller of two uniform
    draws from the level's band, so that short ones are more frequent, as they are in CAST's sets.
    """
    level = LEVELS[options.level]
    length = int(rng.integers(level.band[0], level.band[1] + 1, size=2).min())
    while True:
        board = _draw_room(rng, level)
        for start, table in _starts(rng, board, length, explicit=options.explicit):
            form = canonical(start)
            if accept(form):
                share_table(start, table)
                return Instance(start, form)


def _draw_room(rng: np.random.Generator, level: Level) -> Codes:
    """A room with its targets, no box, and the player somewhere."""
    board = np.full((level.size, level.size), WALL, np.int64)
    floor = int(rng.integers(level.floor[0], level.floor[1] + 1))
    _dig(int(rng.integers(2**63 - 1)), floor, level.boxes, board)
    return board


def _starts(
    rng: np.random.Generator, board: Codes, length: int, *, explicit: bool
) -> Iterator[tuple[State, npt.NDArray[Any]]]:
    """Some starts in a room that are so many moves from a win, each with the room's table."""
    room = survey(make_state(board, explicit=explicit))
    table = build(room, TABLE_STATES)
    found = _nth_start(room, table, length, -1)[0]
    for _ in range(min(found, _TRIES)):
        _, boxes, player = _nth_start(room, table, length, int(rng.integers(found)))
        start = board.ravel() & np.where(board.ravel() == WALL, WALL, TARGET)
        live = [at(boxes, index) for index in range(len(room.pushes))]
        start[room.cells[room.floor_of[live]]] += BOX
        start[room.cells[player]] += MAN
        yield make_state(start.reshape(board.shape), explicit=explicit), table


@kernel
def _dig(key: Any, floor: Any, targets: Any, board: Any) -> None:
    """Dig cells next to the floor at random, then put targets and player on it; `key` fixes all."""
    span = board.shape[0] - 2
    draws, dug, placed = 0, 0, 0
    while placed <= targets:
        word = bits(key, draws)
        draws += 1
        row, col = 1 + below(word, span), 1 + below(mix(word), span)
        if dug < floor:
            open_beside = (
                board[row - 1, col] == EMPTY
                or board[row + 1, col] == EMPTY
                or board[row, col - 1] == EMPTY
                or board[row, col + 1] == EMPTY
            )
            if board[row, col] == WALL and (open_beside or dug == 0):
                board[row, col] = EMPTY
                dug += 1
        elif board[row, col] == EMPTY:
            board[row, col] = TARGET if placed < targets else MAN
            placed += 1


@kernel
def _nth_start(room: Any, table: Any, length: Any, nth: Any) -> Any:
    """The nth state, boxes all off the targets, that is `length` moves from a win.

    Returns how many come before it, its box set and the player's floor cell; with nth = -1 how
    many there are.
    """
    count, floors = room.pushes.shape[0], room.cells.shape[0]
    boxes = first(count)
    seen = 0
    for row in range(DISTANCES, table.shape[0], floors):
        away = True
        for index in range(count):
            away = away and not room.home[at(boxes, index)]
        if away:
            for floor in range(floors):
                if table[row + floor] == length:
                    if seen == nth:
                        return seen, boxes, floor
                    seen += 1
        boxes = following(boxes, count)
    return seen, boxes, 0
