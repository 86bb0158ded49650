"""The search for boards: random placements, and walks from board to board.

A board under search draws from its own chance fields; they are set back to 0 when it is done.
"""

from __future__ import annotations

from typing import Any

from agentgym.chance import COUNTER, draw_below
from agentgym.games.rush_hour.graph import explore, measure, near, put
from agentgym.games.rush_hour.rules import (
    EXIT_ROW,
    OCCUPIED,
    RED_LENGTH,
    SHAPE,
    SIZE,
    line,
    place_all,
    red,
    room,
)
from agentgym.kernels import kernel

TRIES = 30
"""Places that are drawn for a piece before the board is given up."""


@kernel
def draw_piece(state: Any, piece: Any) -> Any:
    """Give a piece a random length, way, lane and free place; False after `TRIES` failures.

    A truck has probability 1/3, a vertical piece 1/2; no piece but the red car lies in its row.
    Only SHAPE, the place and OCCUPIED are filled.
    """
    n, pieces = state[SIZE], room(state)
    for _ in range(TRIES):
        length = 3 if draw_below(state, 3) == 0 else 2
        vertical, lane = draw_below(state, 2), draw_below(state, n)
        place = draw_below(state, n - length + 1)
        first = place * n + lane if vertical else lane * n + place
        bits = line(first, n if vertical else 1, length)
        if (vertical or lane != EXIT_ROW) and not state[OCCUPIED] & bits:
            state[OCCUPIED] |= bits
            state[SHAPE + piece] = length + 4 * lane + 32 * vertical
            state[SHAPE + 2 * pieces + piece] = place
            return True
    return False


@kernel
def draw_board(state: Any, count: Any) -> None:
    """Draw a board with that many pieces until one has no column that shuts the red car in.

    The red car begins in any column but the last two, as in CAST's generator.
    """
    n, pieces = state[SIZE], room(state)
    drawn = False
    while not drawn:
        state[SHAPE:] = 0
        state[SHAPE] = RED_LENGTH + 4 * EXIT_ROW
        state[SHAPE + 2 * pieces] = draw_below(state, n - RED_LENGTH)
        state[OCCUPIED] = line(EXIT_ROW * n + red(state), 1, RED_LENGTH)
        drawn = True
        for piece in range(1, count):
            drawn = drawn and draw_piece(state, piece)
        drawn = drawn and not shut_in(state)
    place_all(state)


@kernel
def redraw_piece(state: Any) -> Any:
    """Draw one piece, not the red car, anew; False if that makes no other board that may be won."""
    pieces, count = room(state), 0
    while count < pieces and state[SHAPE + count] != 0:
        count += 1
    piece = 1 + draw_below(state, count - 1)
    n, shape = state[SIZE], state[SHAPE + piece]
    place, lane = state[SHAPE + 2 * pieces + piece], (shape >> 2) & 7
    first = place * n + lane if shape >> 5 else lane * n + place
    state[OCCUPIED] ^= line(first, n if shape >> 5 else 1, shape & 3)
    if not draw_piece(state, piece) or state[SHAPE + piece] == shape or shut_in(state):
        return False
    place_all(state)
    return True


@kernel
def shut_in(state: Any) -> Any:
    """Whether some column ahead of the red car cannot clear its row, whatever else moves.

    On a board without walls only a car fits above that row, and n - 3 cells below it. Then no win
    is possible; half of all boards without one are found so, with no search.
    """
    n, pieces = state[SIZE], room(state)
    for column in range(red(state) + RED_LENGTH, n):
        total, top, highest = 0, 0, n
        for piece in range(1, pieces):
            shape, place = state[SHAPE + piece], state[SHAPE + 2 * pieces + piece]
            if shape >> 5 and (shape >> 2) & 7 == column:
                total += shape & 3
                if place < highest:
                    highest, top = place, shape & 3
        below = n - EXIT_ROW - 1
        if total > below and (top > EXIT_ROW or total - top > below):
            return True
    return False


@kernel
def depth(state: Any, graph: Any) -> Any:
    """Explore and measure; returns the number of states, 0 if no win is possible or too many."""
    count = explore(state, graph)
    return 0 if count < 0 else measure(state, graph, count, False)


@kernel
def restore(state: Any, saved: Any) -> None:
    """Take a board back, but not what it drew."""
    drawn = state[COUNTER]
    state[:] = saved
    state[COUNTER] = drawn


@kernel
def draw_placement(state: Any, small: Any, graph: Any, count: Any, low: Any, high: Any) -> Any:
    """Draw boards until one is `low` to `high` slides from a win; returns its number of states.

    Args:
        state: Filled with the board.
        small: A graph for a first look: most boards have a shorter win, or none.
        graph: Filled with the board's component; boards with larger ones are not taken.
        count: Number of pieces.
        low: Fewest slides.
        high: Most slides.
    """
    while True:
        draw_board(state, count)
        if near(state, small, low - 1) == low:
            states = depth(state, graph)
            if states and low <= graph.costs[0] <= high:
                return states


@kernel
def draw_winnable(state: Any, graph: Any, count: Any) -> Any:
    """Draw boards until one can be won; returns its number of states."""
    while True:
        draw_board(state, count)
        states = depth(state, graph)
        if states:
            return states


@kernel
def climb(state: Any, saved: Any, graph: Any, deepest: Any, low: Any, heat: Any) -> Any:
    """Walk from board to board until the farthest state of one is `low` slides from a win.

    Simulated annealing at one temperature: a single piece is drawn anew, from any state of the
    component; a board whose farthest state is nearer by k is kept with probability (heat / 16)^k.
    Past `low` nothing below it is kept. Returns the number of states.

    Args:
        state: A board, or the one that the last walk ended at.
        saved: Room for a state.
        graph: Filled with the component; boards with larger ones are not taken.
        deepest: Slides from the board's farthest state to a win.
        low: See above.
        heat: 0 to 15.
    """
    while True:
        saved[:] = state
        states = depth(state, graph) if redraw_piece(state) else 0
        if states:
            now = graph.costs[graph.order[states - 1]]
            allowed = min(deepest, low)
            while deepest < low and now < allowed and draw_below(state, 16) < heat:
                allowed -= 1
            if now >= allowed:
                deepest = now
                put(state, graph, draw_below(state, states))
                if now >= low:
                    return states
                continue
        restore(state, saved)
