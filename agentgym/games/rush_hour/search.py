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
HEAT, CALM = 8, 3
"""A board whose farthest state is nearer to a win by k is kept with probability (HEAT / 16)^k on a
walk's way up, and one nearer by k than wanted with probability (CALM / 16)^k once it is there."""
PATIENCE, RESTLESS = 1500, 150
"""Moves that a walk tries before it begins again with another board: on its way up, and once it
is there and one more board is asked for."""
STILL = 32
"""One in so many moves only goes to another state of the same board."""


@kernel
def draw_piece(state: Any, piece: Any, trucks: Any) -> Any:
    """Give a piece a random length, way, lane and free place; False after `TRIES` failures.

    A truck has probability `trucks` / 12, a vertical piece 1 / 2.
    """
    for _ in range(TRIES):
        length = 3 if draw_below(state, 12) < trucks else 2
        vertical, lane = draw_below(state, 2), draw_below(state, state[SIZE])
        if _lay(state, piece, length + 4 * lane + 32 * vertical):
            return True
    return False


@kernel
def _lay(state: Any, piece: Any, shape: Any) -> Any:
    """Give a piece a shape and a random place; False if it is taken, or in the red car's row.

    Only SHAPE, the place and OCCUPIED are filled.
    """
    n, length, lane, vertical = state[SIZE], shape & 3, (shape >> 2) & 7, shape >> 5
    place = draw_below(state, n - length + 1)
    first = place * n + lane if vertical else lane * n + place
    bits = line(first, n if vertical else 1, length)
    if state[OCCUPIED] & bits or (lane == EXIT_ROW and not vertical):
        return False
    state[OCCUPIED] |= bits
    state[SHAPE + piece] = shape
    state[SHAPE + 2 * room(state) + piece] = place
    return True


@kernel
def draw_board(state: Any, count: Any, trucks: Any) -> None:
    """Draw boards with that many pieces until one has no column that shuts the red car in.

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
            drawn = drawn and draw_piece(state, piece, trucks)
        drawn = drawn and not shut_in(state)
    place_all(state)


@kernel
def redraw_piece(state: Any, count: Any, trucks: Any) -> Any:
    """Draw one piece anew, or move it to a lane beside its own; not the red car.

    False, the state being of no use then, if that makes no other board, or one that is dead.
    """
    piece = 1 + draw_below(state, count - 1)
    n, shape = state[SIZE], state[SHAPE + piece]
    length, lane, vertical = shape & 3, (shape >> 2) & 7, shape >> 5
    place = state[SHAPE + 2 * room(state) + piece]
    first = place * n + lane if vertical else lane * n + place
    state[OCCUPIED] ^= line(first, n if vertical else 1, length)
    if draw_below(state, 2):
        drawn = draw_piece(state, piece, trucks)
    else:
        lane += 2 * draw_below(state, 2) - 1
        drawn = 0 <= lane < n and _lay(state, piece, length + 4 * lane + 32 * vertical)
    if not drawn or state[SHAPE + piece] == shape or shut_in(state):
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
def draw_placement(state: Any, small: Any, graph: Any, trucks: Any, low: Any, high: Any) -> Any:
    """Draw boards until one is `low` to `high` slides from a win; returns its number of states.

    Args:
        state: Filled with the board.
        small: A graph for a first look: most boards have a shorter win, or none.
        graph: Filled with the board's component; boards with larger ones are not taken.
        trucks: Of twelve pieces.
        low: Fewest slides.
        high: Most slides.
    """
    while True:
        draw_board(state, graph.movers.shape[0], trucks)
        if near(state, small, low - 1) == low:
            states = depth(state, graph)
            if states and low <= graph.costs[0] <= high:
                return states


@kernel
def climb(state: Any, saved: Any, graph: Any, states: Any, trucks: Any, low: Any) -> Any:
    """Walk from board to board until the farthest state of one is `low` slides from a win.

    Simulated annealing at one temperature, see `HEAT`. In each turn a single piece is moved, from
    any state of the component. Returns the number of states.

    Args:
        state: Where the last walk ended; filled with some state of the board found.
        saved: Room for a state.
        graph: The component of `state`; filled with that of the board. Boards with larger ones
            than it has room for are not taken.
        states: Their number; 0 to begin with a drawn board.
        trucks: Of twelve pieces.
        low: See above.
    """
    count = graph.movers.shape[0]
    deepest = graph.costs[graph.order[states - 1]] if states else 0
    tries = RESTLESS if states else 0
    while True:
        saved[:] = state
        fresh, still = tries == 0 or deepest == 0, tries % STILL == 1
        if fresh:
            draw_board(state, count, trucks)
            deepest, tries = 0, PATIENCE
        moved = fresh or still or redraw_piece(state, count, trucks)
        states = depth(state, graph) if moved else 0
        now = graph.costs[graph.order[states - 1]] if states else 0
        tries -= 1
        heat = HEAT if deepest < low else CALM
        if states and now >= min(deepest, low) - _slack(state, heat):
            deepest = now
            put(state, graph, draw_below(state, states))
            if now >= low and not still:
                return states
        else:
            # The board is taken back, but not what it drew.
            saved[COUNTER] = state[COUNTER]
            state[:] = saved


@kernel
def _slack(state: Any, heat: Any) -> Any:
    """How much less deep a board may be than the last one."""
    slack = 0
    while draw_below(state, 16) < heat:
        slack += 1
    return slack
