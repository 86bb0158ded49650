"""Instances of Rush Hour: generated to a level's band, or loaded from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agentgym.chance import COUNTER, KEY
from agentgym.errors import InvalidInstance
from agentgym.game import Accept, Instance, State
from agentgym.games.rush_hour.boards import LETTERS, Board, board_of, state_of
from agentgym.games.rush_hour.component import form, room_of
from agentgym.games.rush_hour.graph import Graph, make_graph, put
from agentgym.games.rush_hour.options import LEVELS, SIZE_GENERATED, Level, RushHourOptions
from agentgym.games.rush_hour.rules import FIELDS, SIZE, action_count, legal, success
from agentgym.games.rush_hour.search import climb, draw_placement

LOOK, FULL, SEARCHED = 1 << 14, 1 << 17, 1 << 14
"""Most states of a first look, of a component of the placed and of the searched levels."""


class _Found(NamedTuple):
    """A board in its level's band, with its explored component.

    Attributes:
        state: The start.
        graph: Its component.
        size: Number of states.
    """

    state: State
    graph: Graph
    size: int


def generate(rng: np.random.Generator, options: RushHourOptions, accept: Accept) -> Instance:
    """The first board of the level's stream whose canonical form is accepted."""
    level = LEVELS[options.level]
    low, high = level.pieces
    count = int(rng.integers(low, high + 1))
    state = np.zeros(FIELDS + 3 * high, np.int64)
    state[KEY], state[SIZE] = rng.integers(2**63 - 1), SIZE_GENERATED
    stream = _searched if level.farthest else _placed
    found = stream(state, count, level)
    while not accept(canonical := form(*(board := next(found)))):
        pass
    start = board.state.copy()
    start[[KEY, COUNTER]] = 0
    return Instance(start, canonical)


def _placed(state: State, count: int, level: Level) -> Iterator[_Found]:
    """Random placements whose distance from a win is in the band."""
    small, graph = make_graph(count, LOOK, linked=False), make_graph(count, FULL)
    while True:
        size = int(draw_placement(state, small, graph, level.trucks, *level.slides))
        yield _Found(state, graph, size)


def _searched(state: State, count: int, level: Level) -> Iterator[_Found]:
    """Farthest states of the boards that a walk comes to."""
    low, high = level.slides
    graph, saved, size = make_graph(count, SEARCHED), np.empty_like(state), 0
    while True:
        size = int(climb(state, saved, graph, size, level.trucks, low))
        costs = graph.costs[graph.order[:size]]
        start = state.copy()
        put(start, graph, graph.order[int(np.searchsorted(costs, high, side="right")) - 1])
        yield _Found(start, graph, size)


def load(path: Path, options: RushHourOptions) -> tuple[State, ...]:
    """The boards of a file, one a line: the board alone, or `moves board states`.

    The second is a line of the Rush Hour database (github.com/fogleman/rush); its numbers are not
    used. Blank lines and lines that begin with # are skipped.

    Raises:
        InvalidInstance: A line that is no board, with the file and the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInstance(f"{path} is no text file of boards, one a line: {fault}") from fault
    boards: dict[str, Board] = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            boards[f"{path}:{number}"] = _board_of_line(line, f"{path}:{number}")
    return _starts(boards)


def _board_of_line(line: str, where: str) -> Board:
    words = line.split()
    if len(words) == 3 and words[0].isdecimal() and words[2].isdecimal():
        words = words[1:2]
    try:
        if len(words) != 1:
            raise InvalidInstance("a line is a board, or `moves board states`, got " + repr(line))
        return board_of(words[0])
    except InvalidInstance as fault:
        raise InvalidInstance(f"{where}: {fault}.") from None


def _starts(boards: Mapping[str, Board]) -> tuple[State, ...]:
    """The boards' states, all of one length; the keys say where each stood."""
    letters = max((max(board.pieces) for board in boards.values()), default="A")
    size = next((board.size for board in boards.values()), SIZE_GENERATED)
    for where, board in boards.items():
        if board.size != size:
            raise InvalidInstance(
                f"{where}: the boards of a file have one size, got {board.size}x{board.size} "
                f"after {size}x{size}; give it a file of its own."
            )
    states = {where: state_of(b, LETTERS.index(letters) + 1) for where, b in boards.items()}
    for where, state in states.items():
        if success(state):
            raise InvalidInstance(f"{where}: the red car A is at the exit already.")
        if not any(legal(state, action) for action in range(action_count(size, room_of(state)))):
            raise InvalidInstance(f"{where}: no piece can move.")
    return tuple(states.values())
