"""The rules of Rush Hour. The only copy.

A state with room for P pieces on a board of n x n cells is an int64 array of length 7 + 3 P:

| field | meaning |
|---|---|
| KEY, COUNTER | 0: there is no chance |
| OCCUPIED | one bit per cell, row r and column c at r n + c: a piece or a wall is there |
| RANK | the pieces' places as one number, see `place_all`; the state's name within its board |
| SIZE | n, 4 to 8 |
| WALLS | one bit per cell |
| SURPLUS | cells minus pieces of the horizontal pieces and walls ahead of A in its row |
| SHAPE + i | of piece i: length + 4 lane + 32 (1 if vertical); 0 if the board has no such piece |
| SHAPE + P + i | its weight: what one cell further right or down adds to RANK |
| SHAPE + 2 P + i | its place: column (row if vertical) of its left (upper) end |

Piece i has the i-th letter; piece 0 is the red car. A piece's lane, its row (column if vertical),
never changes, nor does the order of pieces within a lane. The action piece x 2 (n - 2) + sign x
(n - 2) + cells - 1 slides a piece right or down (sign 0), or left or up (sign 1), by 1 to n - 2
cells, all or nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym.chance import HEADER
from agentgym.kernels import kernel

OCCUPIED, RANK, SIZE, WALLS, SURPLUS, SHAPE = range(HEADER, HEADER + 6)
"""Indices of a state's fields; the pieces' own follow from SHAPE on."""
FIELDS = SHAPE
"""Number of fields that are not a piece's own."""
EXIT_ROW = 2
"""The red car's row."""
RED_LENGTH = 2
"""The red car's length in cells."""
TURN_REWARD, CLEAR_REWARD, WIN_REWARD = -0.1, 1.0, 10.0
"""The dense reward: of every turn, of each piece less between A and the exit, of the win."""


def action_count(size: int, pieces: int) -> int:
    """Number of action indices on a board of that size with fields for that many pieces."""
    return pieces * 2 * (size - RED_LENGTH)


@kernel
def room(state: Any) -> Any:
    """Number of pieces that the state has fields for."""
    return (state.shape[0] - FIELDS) // 3


@kernel
def line(first: Any, stride: Any, cells: Any) -> Any:
    """Bits of `cells` cells from `first` on, `stride` apart."""
    bits = 0
    for k in range(cells):
        bits |= 1 << (first + k * stride)
    return bits


@kernel
def slide(state: Any, action: Any) -> Any:
    """The signed number of cells that an action moves its piece by; 0 where it is not legal."""
    n = state[SIZE]
    reach, pieces = n - 2, room(state)
    piece, rest = action // (2 * reach), action % (2 * reach)
    if piece >= pieces or state[SHAPE + piece] == 0 or success(state):
        return 0
    shape, place = state[SHAPE + piece], state[SHAPE + 2 * pieces + piece]
    length, lane, vertical = shape & 3, (shape >> 2) & 7, shape >> 5
    cells = rest % reach + 1
    first = place + length if rest < reach else place - cells
    if first < 0 or first + cells > n:
        return 0
    stride = n if vertical else 1
    origin = lane if vertical else lane * n
    if state[OCCUPIED] & line(origin + first * stride, stride, cells):
        return 0
    return cells if rest < reach else -cells


@kernel
def legal(state: Any, action: Any) -> Any:
    """The piece exists and its whole way is free; nothing is legal once A is out."""
    return slide(state, action) != 0


@kernel
def step(state: Any, action: Any) -> Any:
    """Slide a piece; returns the dense reward, nan where the action is not legal."""
    move = slide(state, action)
    if move == 0:
        return np.nan
    n, pieces = state[SIZE], room(state)
    piece = action // (2 * (n - 2))
    shape, at = state[SHAPE + piece], SHAPE + 2 * pieces + piece
    length, lane, vertical = shape & 3, (shape >> 2) & 7, shape >> 5
    stride = n if vertical else 1
    origin = (lane if vertical else lane * n) + state[at] * stride
    before = blockers(state)
    moved = line(origin, stride, length) ^ line(origin + move * stride, stride, length)
    state[OCCUPIED] ^= moved
    state[RANK] += move * state[SHAPE + pieces + piece]
    state[at] += move
    reward = TURN_REWARD + CLEAR_REWARD * (before - blockers(state))
    return reward + WIN_REWARD if success(state) else reward


@kernel
def blockers(state: Any) -> Any:
    """Number of pieces between the red car and the exit."""
    n = state[SIZE]
    row = ((state[OCCUPIED] >> (EXIT_ROW * n)) & ((1 << n) - 1)) >> (red(state) + RED_LENGTH)
    count = -state[SURPLUS]
    while row:
        row &= row - 1
        count += 1
    return count


@kernel
def red(state: Any) -> Any:
    """The column of the red car's left end."""
    return state[SHAPE + 2 * room(state)]


@kernel
def success(state: Any) -> Any:
    """The red car's right end is in the last column."""
    return red(state) == state[SIZE] - RED_LENGTH


@kernel
def terminal(state: Any) -> Any:
    """The game ends only with a win."""
    return success(state)


@kernel
def score(state: Any) -> Any:
    """Minus the cells and the pieces between the red car and the exit: 0 when it is out."""
    return float(red(state) + RED_LENGTH - state[SIZE] - blockers(state))


@kernel
def progress(state: Any) -> Any:
    """1 + score / (twice the longest way), from 0 to 1."""
    return 1.0 + score(state) / (2.0 * (state[SIZE] - RED_LENGTH))


@kernel
def observe(state: Any, grid: Any) -> None:
    """Fill the cell codes: 0 empty, 1 wall, 2 + i piece i."""
    n, pieces = state[SIZE], room(state)
    for r in range(n):
        for c in range(n):
            grid[r, c] = (state[WALLS] >> (r * n + c)) & 1
    for piece in range(pieces):
        shape, place = state[SHAPE + piece], state[SHAPE + 2 * pieces + piece]
        lane = (shape >> 2) & 7
        for k in range(place, place + (shape & 3)):
            if shape >> 5:
                grid[k, lane] = 2 + piece
            else:
                grid[lane, k] = 2 + piece


@kernel
def place_all(state: Any) -> None:
    """Fill OCCUPIED, RANK, SURPLUS and the weights from the other fields.

    A lane is cut by its walls into segments. Within one, the free cells before each piece make
    the digits of a number in the base of one more than all the segment's free cells; RANK is the
    number of all segments' digits, rows first, then columns. It is linear in the places, differs
    for any two states of a board, and for at most 26 pieces on 8 x 8 cells stays below 2^64 - 1
    (16 lanes with a car each, 10 of them with a second: 7^6 x 25^10; it is kept modulo 2^64).
    """
    n, pieces = state[SIZE], room(state)
    state[OCCUPIED], state[RANK], state[SURPLUS] = state[WALLS], 0, 0
    for piece in range(pieces):
        shape, place = state[SHAPE + piece], state[SHAPE + 2 * pieces + piece]
        lane, vertical = (shape >> 2) & 7, shape >> 5
        first = place * n + lane if vertical else lane * n + place
        state[OCCUPIED] |= line(first, n if vertical else 1, shape & 3)
        if not vertical and lane == EXIT_ROW and place > red(state):
            state[SURPLUS] += (shape & 3) - 1
    weight = 1
    for lane in range(2 * n):
        begin = 0
        for end in range(n + 1):
            if end == n or _wall(state, lane, end):
                weight = _weigh(state, lane, begin, end, weight)
                begin = end + 1
    for column in range(red(state) + RED_LENGTH, n):
        state[SURPLUS] += (state[WALLS] >> (EXIT_ROW * n + column)) & 1


@kernel
def _wall(state: Any, lane: Any, k: Any) -> Any:
    """Whether the k-th cell of a lane (rows 0 to n - 1, then columns) is a wall."""
    n = state[SIZE]
    cell = lane * n + k if lane < n else k * n + lane - n
    return (state[WALLS] >> cell) & 1


@kernel
def _weigh(state: Any, lane: Any, begin: Any, end: Any, weight: Any) -> Any:
    """Weigh the pieces of one segment, from `weight` on; returns the next segment's weight."""
    pieces, free = room(state), end - begin
    for piece in range(pieces):
        if _inside(state, piece, lane, begin, end):
            free -= state[SHAPE + piece] & 3
    at, taken = begin, begin
    while at < end:
        nearest, place = -1, end
        for piece in range(pieces):
            own = state[SHAPE + 2 * pieces + piece]
            if own < place and _inside(state, piece, lane, at, end):
                nearest, place = piece, own
        if nearest < 0:
            break
        state[SHAPE + pieces + nearest] = weight
        state[RANK] += (place - taken) * weight
        taken += state[SHAPE + nearest] & 3
        weight *= free + 1
        at = place + 1
    return weight


@kernel
def _inside(state: Any, piece: Any, lane: Any, begin: Any, end: Any) -> Any:
    """Whether a piece begins in the cells [begin, end) of a lane."""
    n, shape = state[SIZE], state[SHAPE + piece]
    own = ((shape >> 2) & 7) + (n if shape >> 5 else 0)
    return shape != 0 and own == lane and begin <= state[SHAPE + 2 * room(state) + piece] < end
