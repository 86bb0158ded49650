"""A board's component: all states that can be reached from one of them, and its canonical form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agentgym.game import State
from agentgym.games.rush_hour.boards import Board, Piece, board_of_state, state_of
from agentgym.games.rush_hour.graph import (
    BODY,
    LINKED,
    PIECE,
    STRIDE,
    Graph,
    explore,
    make_graph,
    moved,
    smallest,
)
from agentgym.games.rush_hour.rules import EXIT_ROW, FIELDS, SHAPE, SIZE, WALLS

NAMED = 1 << 20
"""Most states of a component that is named by all of them."""
_FIRST = 1 << 14


class Component(NamedTuple):
    """The states that were reached from one of them.

    Attributes:
        graph: The states.
        size: How many.
        complete: There are no more.
    """

    graph: Graph
    size: int
    complete: bool


def component_of(state: State, most: int) -> Component:
    """Explore a state's component up to `most` states, in arrays that grow by need."""
    pieces = int(np.count_nonzero(state[SHAPE : SHAPE + room_of(state)]))
    capacity = min(_FIRST, most)
    while True:
        graph = make_graph(pieces, capacity, linked=capacity <= LINKED)
        count = int(explore(state, graph))
        if count >= 0 or capacity == most:
            return Component(graph, capacity if count < 0 else count, count >= 0)
        capacity = min(4 * capacity, most)


def room_of(state: State) -> int:
    """Number of pieces that a state has fields for."""
    return (len(state) - FIELDS) // 3


def canonical(state: State) -> bytes:
    """The canonical form of a state: equal for all states of its component, and only for them.

    It is the component's smallest state, where pieces that never move are walls and labels are
    dropped: pieces of a lane keep their order. A board that its exit row halves (5 x 5) and its
    mirror image have the same form. A component of more than `NAMED` states, which only a loaded
    board can have, is named by the state itself.
    """
    forms = [_form_of(state)]
    if state[SIZE] == 2 * EXIT_ROW + 1:
        forms.append(_form_of(state_of(mirrored(board_of_state(state)))))
    return min(forms)


def mirrored(board: Board) -> Board:
    """The board upside down."""
    last = board.size - 1
    walls = tuple((last - row, col) for row, col in board.walls)
    pieces = {
        label: piece._replace(place=board.size - piece.place - piece.length)
        if piece.vertical
        else piece._replace(lane=last - piece.lane)
        for label, piece in board.pieces.items()
    }
    return Board(board.size, walls, pieces)


def _form_of(state: State) -> bytes:
    component = component_of(state, NAMED)
    if component.complete:
        return form(state, component.graph, component.size)
    board = board_of_state(state)
    return b"%d %a %a" % (board.size, board.walls, sorted(_anonymous(board)))


def _anonymous(board: Board) -> list[tuple[Piece, bool]]:
    return [(piece, label == "A") for label, piece in board.pieces.items()]


def form(state: State, graph: Graph, count: int) -> bytes:
    """The form of an explored component: size, walls, and the pieces of the smallest state.

    Args:
        state: Any state of it.
        graph: Its states.
        count: Their number.
    """
    moves = np.empty(len(graph.movers), np.bool_)
    moved(graph, count, moves)
    moves[0] = True
    places = graph.places[smallest(graph, count)]
    walls = int(state[WALLS])
    pieces: list[bytes] = []
    for k, (mover, place) in enumerate(zip(graph.movers.tolist(), places.tolist(), strict=True)):
        if moves[k]:
            shape = int(state[SHAPE + mover[PIECE]])
            pieces.append(bytes((shape >> 5, shape >> 2 & 7, place, shape & 3, k == 0)))
        else:
            walls |= mover[BODY] << place * mover[STRIDE]
    walls_bytes = (walls & (1 << 64) - 1).to_bytes(8, "big")
    return bytes([int(state[SIZE])]) + walls_bytes + b"".join(sorted(pieces))
