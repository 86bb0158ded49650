"""The n-tuple network: the value of a board after a move and before the spawn, by table look-up.

Each table is indexed by five cells of four bits; the board's value is the sum over the tables and
over the board's eight symmetries (Szubert and Jaskowski 2014, "Temporal difference learning of
n-tuple networks for the game 2048"). Values are further merged points in units of the base. Boards
of size 2 and 3 stand in the upper left corner of one of size 4. Exponents above 15 read as 15.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym.games.game_2048.board import ALL, ONE, move, same, transpose
from agentgym.kernels import inlined, kernel

TABLES = 8
"""Tables of the network."""
BITS = 20
"""Bits of an index: five cells of four bits."""
LOOKUPS = 8 * TABLES
"""Weights that one value adds up."""

LARGEST_SIZE = 4
"""Largest board that the network covers; beyond it `evaluate` is a heuristic."""

_ROW = 0xFFFF
_SCALE = 1 << 20


@inlined
def _narrow(row: Any) -> Any:
    """Four byte lanes as four nibbles, exponents above 15 as 15."""
    large = (row >> 4) & ONE
    row = (row | (large * 15)) & (ALL ^ (15 * (ONE << 4)))
    row = (row | (row >> 4)) & 0xFF00FF
    return (row | (row >> 8)) & _ROW


@inlined
def pack(board: Any) -> Any:
    """A board of up to four rows in one word, cell (r, c) at bit 16r + 4c."""
    a, b, c, d, _ = board
    return _narrow(a) | _narrow(b) << 16 | _narrow(c) << 32 | _narrow(d) << 48


@inlined
def upside_down(word: Any, size: Any) -> Any:
    """Reverse the rows of a packed board."""
    a, b = word & _ROW, (word >> 16) & _ROW
    c, d = (word >> 32) & _ROW, (word >> 48) & _ROW
    if size == 4:
        return d | c << 16 | b << 32 | a << 48
    if size == 3:
        return c | b << 16 | a << 32
    return b | a << 16


@inlined
def mirrored(word: Any, size: Any) -> Any:
    """Reverse the columns of a packed board."""
    nibble = 0x000F_000F_000F_000F
    a, b = word & nibble, (word >> 4) & nibble
    c, d = (word >> 8) & nibble, (word >> 12) & nibble
    if size == 4:
        return d | c << 4 | b << 8 | a << 12
    if size == 3:
        return c | b << 4 | a << 8
    return b | a << 4


@inlined
def symmetries(board: Any, size: Any) -> Any:
    """The eight symmetries of a board of up to four rows, packed."""
    a, b = pack(board), pack(transpose(board))
    c, d = upside_down(a, size), upside_down(b, size)
    e, f = mirrored(a, size), mirrored(b, size)
    return a, b, c, d, e, f, mirrored(c, size), mirrored(d, size)


@inlined
def indices(word: Any) -> Any:
    """Where a packed board reads each of the tables, which lie one after another."""
    down = word >> 16
    return (
        word & 0xFFFFF,
        (1 << BITS) + (down & 0xFFFFF),
        (2 << BITS) + ((word & 0xFFF) | ((word >> 4) & 0xFF000)),
        (3 << BITS) + ((down & 0xFFF) | ((down >> 4) & 0xFF000)),
        (4 << BITS) + (((word >> 4) & 0xFF) | ((word >> 12) & 0xFF00) | ((word >> 20) & 0xF0000)),
        (5 << BITS) + ((word & 0xFFFF) | ((word >> 4) & 0xF0000)),
        (6 << BITS) + ((down & 0xFFFF) | ((down >> 4) & 0xF0000)),
        (7 << BITS) + ((word & 0xFF) | ((word >> 12) & 0xFF00) | ((word >> 24) & 0xF0000)),
    )


@kernel
def smoothness(board: Any) -> Any:
    """A heuristic for boards of size 5: empty cells, and neighbours that are alike.

    4 for each empty cell, less the differences of the exponents of all neighbours, above a level
    that keeps it positive; on a scale by which the points gained on the way hardly count.
    """
    total = 40 * 26
    above = board[0]
    for row in board:
        for lane in range(0, 40, 8):
            here = (row >> lane) & 0xFF
            total += 4 * (here == 0) - abs(here - ((above >> lane) & 0xFF))
            if lane < 32:
                total -= abs(here - ((row >> (lane + 8)) & 0xFF))
        above = row
    return total * _SCALE


@inlined
def evaluate(board: Any, size: Any, weights: Any) -> Any:
    """Expected further points of a board after a move, in units of the base."""
    if size > LARGEST_SIZE:
        return np.float64(smoothness(board))
    total = 0.0
    for word in symmetries(board, size):
        for index in indices(word):
            total += weights[index]
    return total


@kernel
def choose(board: Any, size: Any, weights: Any, scale: Any) -> Any:
    """The move of the highest gain and value: (board after it, gain, value, whether there is one).

    Gain and value are in units of the base; the network's value counts `scale` times.
    """
    chosen, chosen_gain, chosen_value, found = board, 0, 0.0, False
    for action in range(4):
        after, gain = move(board, size, action)
        if same(board, after):
            continue
        value = scale * evaluate(after, size, weights)
        if not found or gain + value > chosen_gain + chosen_value:
            chosen, chosen_gain, chosen_value, found = after, gain, value, True
    return chosen, chosen_gain, chosen_value, found
