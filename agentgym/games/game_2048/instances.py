"""Levels of 2048; instances, which are chance keys; boards from files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agentgym.chance import KEY
from agentgym.errors import InvalidInstance, InvalidOption, UnknownName
from agentgym.game import Accept, Instance, Layout, Options, State
from agentgym.games.game_2048 import milestones
from agentgym.games.game_2048.board import MAX_SIZE
from agentgym.games.game_2048.rules import (
    BASE,
    GOAL,
    OVER,
    ROWS,
    SCORE,
    SIZE,
    STATE_SIZE,
    begin,
    settle,
)

ACTIONS = ("Up", "Down", "Left", "Right")
_LOOKUP = {name.lower(): index for index, name in enumerate(ACTIONS)}
_LARGEST_BASE = 1000
_LAST_KEY = 2**63 - 1


class Shape(NamedTuple):
    """The numbers that make a level.

    Attributes:
        size: Rows and columns.
        base: The smallest tile.
        goal: Exponent of the target tile: target = base * 2^(goal-1).
    """

    size: int
    base: int
    goal: int


LEVELS = {"4x4": Shape(4, 2, 11), "3x3": Shape(3, 2, 8), "3072": Shape(4, 3, 11)}
_GOALS = {2: 4, 3: 8, 4: 11, 5: 11}


@dataclass(frozen=True, kw_only=True)
class BoardOptions(Options):
    """Keyword arguments of 2048.

    Attributes:
        level: "4x4", "3x3" or "3072".
        size: Rows and columns, 2 to 5; None takes the level's.
        base: The smallest tile, 1 to 1000; None takes the level's.
    """

    level: str = "4x4"
    size: int | None = None
    base: int | None = None

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            UnknownName: There is no such level.
            InvalidOption: A size or base out of range.
        """
        if self.level not in LEVELS:
            raise UnknownName.of("level of 2048", self.level, LEVELS)
        if self.size is not None and self.size not in _GOALS:
            raise InvalidOption(f"size is a whole number from 2 to 5, got {self.size!r}.")
        if self.base is not None and self.base not in range(1, _LARGEST_BASE + 1):
            raise InvalidOption(f"base is a whole number from 1 to 1000, got {self.base!r}.")

    @property
    def shape(self) -> Shape:
        """Size, base and target, whichever of the arguments they come from."""
        level = LEVELS[self.level]
        return shape_of(self.size or level.size, self.base or level.base)

    @property
    def instance_key(self) -> str:
        """The level's name, or size and base where no level has them."""
        for name, level in LEVELS.items():
            if level == self.shape:
                return name
        return f"{self.shape.size}x{self.shape.size}-base{self.shape.base}"


def shape_of(size: int, base: int) -> Shape:
    """A board with its target: 2048, 256 on 3x3 and 16 on 2x2, times base / 2."""
    return Shape(size, base, _GOALS[size])


def fresh(key: int, shape: Shape) -> State:
    """A state with an empty board."""
    state = np.zeros(STATE_SIZE, np.int64)
    state[KEY], state[SIZE], state[BASE], state[GOAL] = key, *shape
    return state


def generate(rng: np.random.Generator, options: BoardOptions, accept: Accept) -> Instance:
    """Draw chance keys until one is accepted; its own chance spawns the first two tiles."""
    while True:
        start = fresh(int(rng.integers(1, _LAST_KEY, endpoint=True)), options.shape)
        begin(start)
        form = canonical(start)
        if accept(form):
            return Instance(start, form)


def canonical(state: State) -> bytes:
    """Key, size, base and board of a start; a generated board follows from the rest.

    Mirrored boards of one key are kept apart: the same draw means another cell of them.
    """
    return state[[KEY, SIZE, BASE, *range(ROWS, STATE_SIZE)]].tobytes()


def layout(options: BoardOptions, starts: Sequence[State] | None) -> Layout:
    """The shapes of one environment; loaded boards bring their own size."""
    size, base, _ = options.shape
    if starts:
        size = int(starts[0][SIZE])
    return Layout(
        rows=size,
        cols=size,
        codes=size * size + 2,
        state_size=STATE_SIZE,
        actions=ACTIONS,
        lookup=_LOOKUP,
        milestones=milestones.names(size, base),
    )


def load(path: Path, options: BoardOptions) -> tuple[State, ...]:
    """Boards from a file of JSON lines: {"board": [[0, 2, ...], ...], "key": 7, "score": 0}.

    0 is an empty cell. `key`, the chance key, is the line's number where it is not given, and
    `score` is 0. All boards of a file have one size.

    Raises:
        InvalidInstance: A line that is no such board, with its number.
    """
    starts: list[State] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.strip():
            try:
                starts.append(_state_of(json.loads(line), number, options.shape.base))
                _check_size(starts)
            except (ValueError, TypeError) as fault:
                raise InvalidInstance(f"{path}:{number}: {fault}") from fault
    return tuple(starts)


def _state_of(entry: Any, number: int, base: int) -> State:
    if not isinstance(entry, dict) or "board" not in entry:
        raise ValueError(f'expected an object with a "board", got {str(entry)[:60]!r}.')
    board = entry["board"]
    rows = board if isinstance(board, list) else []
    size = len(rows)
    if size not in _GOALS or any(not isinstance(row, list) or len(row) != size for row in rows):
        raise ValueError(f"a board has 2 to {MAX_SIZE} rows of as many cells, got {board!r}.")
    state = fresh(_whole(entry, "key", number), shape_of(size, base))
    state[SCORE] = _whole(entry, "score", 0)
    for row, cells in enumerate(rows):
        lanes = [_exponent(cell, base, size * size + 1) for cell in cells]
        state[ROWS + row] = sum(lane << (8 * col) for col, lane in enumerate(lanes))
    settle(state)
    if state[OVER]:
        raise ValueError(f"no move is legal on this board: {board!r}.")
    return state


def _check_size(starts: list[State]) -> None:
    if starts[-1][SIZE] != starts[0][SIZE]:
        first, last = int(starts[0][SIZE]), int(starts[-1][SIZE])
        raise ValueError(f"all boards of a file have one size, {first} so far, got {last}.")


def _whole(entry: dict[str, Any], name: str, default: int) -> int:
    value = entry.get(name, default)
    if type(value) is not int or not 0 <= value <= _LAST_KEY:
        raise ValueError(f"{name} is a whole number from 0 to 2^63 - 1, got {value!r}.")
    return value


def _exponent(tile: Any, base: int, highest: int) -> int:
    """The exponent of a tile, 0 for an empty cell."""
    if type(tile) is int and tile == 0:
        return 0
    for exponent in range(1, highest + 1):
        if type(tile) is int and tile == base << (exponent - 1):
            return exponent
    largest = base << (highest - 1)
    raise ValueError(f"a cell is 0 or {base} * 2^k up to {largest}, got {tile!r}.")
