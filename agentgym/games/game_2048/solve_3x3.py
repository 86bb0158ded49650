"""Solve 2048 on 3x3 exactly: `python -m agentgym.games.game_2048.solve_3x3`.

Every move keeps the sum of the tiles and every spawn raises it, so the boards fall into layers by
their sum. Forwards, each layer gives the boards of the next two; backwards, each layer's values
follow from theirs. Symmetric boards are one. It takes some minutes and 1 GB on one core.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.games.game_2048.board import move, put, same, space
from agentgym.games.game_2048.network import symmetries
from agentgym.kernels import inlined, kernel

Words = npt.NDArray[np.int64]


class Layer(NamedTuple):
    """The boards of one sum of tiles, before a move.

    Attributes:
        words: Packed boards, the smallest of each eight symmetries, ascending.
        values: Further points under best play, in units of the base.
    """

    words: Words
    values: npt.NDArray[np.float64]


class Solution(NamedTuple):
    """A solved board size.

    Attributes:
        points: Expected points of a whole game under best play, in units of the base.
        boards: How many boards there are before a move, up to symmetry.
    """

    points: float
    boards: int


@inlined
def _spread(word: Any) -> Any:
    """One row of nibbles as byte lanes."""
    row = word & 0xFFFF
    row = (row | row << 8) & 0xFF00FF
    return (row | row << 4) & 0xF0F0F0F


@inlined
def unpack(word: Any) -> Any:
    """A packed board as five rows."""
    return _spread(word), _spread(word >> 16), _spread(word >> 32), _spread(word >> 48), 0


@inlined
def smallest(board: Any, size: Any) -> Any:
    """The packed board that stands for all symmetries of a board."""
    return min(symmetries(board, size))


@kernel
def after_moves(words: Any, size: Any, found: Any) -> Any:
    """Collect the boards after every move of every board; how many there are."""
    count = 0
    for word in words:
        board = unpack(word)
        for action in range(4):
            after, _ = move(board, size, action)
            if not same(board, after):
                found[count] = smallest(after, size)
                count += 1
    return count


@kernel
def after_spawns(words: Any, size: Any, exponent: Any, found: Any) -> Any:
    """Collect the boards after every spawn of one tile on every board; how many there are."""
    count = 0
    for word in words:
        board = unpack(word)
        empty = space(board, size)
        for place in range(empty >> 32):
            found[count] = smallest(put(board, empty, place, exponent), size)
            count += 1
    return count


@kernel
def find(words: Any, word: Any) -> Any:
    """Where a word stands in an ascending array that holds it."""
    low, high = 0, words.shape[0]
    while high - low > 1:
        middle = (low + high) >> 1
        if words[middle] <= word:
            low = middle
        else:
            high = middle
    return low


@kernel
def mean_value(after: Any, size: Any, near: Any, far: Any) -> Any:
    """The mean value over the spawns on a board after a move.

    Args:
        after: The board.
        size: Its rows and columns.
        near: (words, values) of the layer that a spawned base leads to.
        far: The same for 2 * base.
    """
    empty = space(after, size)
    total = 0.0
    for place in range(empty >> 32):
        one = smallest(put(after, empty, place, 1), size)
        two = smallest(put(after, empty, place, 2), size)
        total += 0.9 * near[1][find(near[0], one)] + 0.1 * far[1][find(far[0], two)]
    return total / (empty >> 32)


@kernel
def fill(layer: Any, size: Any, near: Any, far: Any) -> None:
    """Fill a layer's values from those of the next two, see `mean_value`; 0 where no move is."""
    words, values = layer
    for index in range(words.shape[0]):
        board = unpack(words[index])
        values[index] = 0.0
        for action in range(4):
            after, gain = move(board, size, action)
            if not same(board, after):
                values[index] = max(values[index], gain + mean_value(after, size, near, far))


def _collected(collect: Any, words: Words, most: int, *how: int) -> Words:
    found = np.empty(most * len(words), np.int64)
    return np.unique(found[: collect(words, *how, found)])


def boards_by_sum(size: int) -> list[Words]:
    """All boards before a move that games can reach; entry s holds those of the sum s * base."""
    cells = size * size
    nothing = np.zeros(1, np.int64)
    # What the first spawn leaves, for the second: boards of one tile.
    opened = {s: _collected(after_spawns, nothing, cells, size, s) for s in (1, 2)}
    layers = [nothing[:0]] * 2
    before, last = nothing[:0], opened[1]
    while len(last) or len(before):
        spawned = [
            _collected(after_spawns, last, cells, size, 1),
            _collected(after_spawns, before, cells, size, 2),
        ]
        layers.append(np.unique(np.concatenate(spawned)))
        moved = _collected(after_moves, layers[-1], 4, size)
        opening = opened.get(len(layers) - 1, nothing[:0])
        before, last = last, np.unique(np.concatenate([moved, opening]))
        _show(f"sum {len(layers) - 1}: {len(layers[-1])} boards")
    return layers


def solve(size: int) -> Solution:
    """The exact value of a board's start under best play.

    Args:
        size: 2 or 3; 4 would take more memory than there is.
    """
    boards = boards_by_sum(size)
    nothing = Layer(boards[0], np.empty(0))
    above = [nothing, nothing]
    for s in range(len(boards) - 1, 1, -1):
        layer = Layer(boards[s], np.empty(len(boards[s])))
        fill(tuple(layer), size, *map(tuple, above[:2]))
        above = [layer, *above[:2]]
        _show(f"sum {s}: valued")
    return Solution(_start_value(size, above), sum(len(words) for words in boards))


def _start_value(size: int, layers: list[Layer]) -> float:
    """The mean over the first two spawns, from the layers of the sums 2, 3 and 4."""
    nothing = unpack(0)
    empty = space(nothing, size)
    total = 0.0
    for place in range(size * size):
        for exponent, chance in ((1, 0.9), (2, 0.1)):
            opened = put(nothing, empty, place, exponent)
            near, far = tuple(layers[exponent - 1]), tuple(layers[exponent])
            total += chance * mean_value(opened, size, near, far)
    return total / (size * size)


def _show(text: str) -> None:
    sys.stderr.write(f"\r{text:60}")


def main() -> None:
    """Solve a board and print the value of its start in points."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--size", type=int, default=3, choices=(2, 3))
    parser.add_argument("--base", type=int, default=2)
    given = parser.parse_args()
    found = solve(given.size)
    _show("")
    sys.stdout.write(
        f"\r{found.boards} boards up to symmetry; best play scores "
        f"{given.base * found.points:.4f} on average.\n"
    )


if __name__ == "__main__":
    main()
