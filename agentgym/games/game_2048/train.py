"""Train the network by self-play: `python -m agentgym.games.game_2048.train --size 4`.

Temporal differences on the boards after a move, each weight at the rate of its own temporal
coherence: TC(0) of Jaskowski 2016, "Mastering 2048 with delayed temporal coherence learning,
multi-stage weight promotion, redundant encoding and carousel shaping". One seed, one network, to
the bit. What is kept are int16 steps; a table's widest weight is 32767 of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.games.game_2048.instances import fresh, shape_of
from agentgym.games.game_2048.network import (
    BITS,
    LOOKUPS,
    TABLES,
    choose,
    evaluate,
    indices,
    symmetries,
)
from agentgym.games.game_2048.oracle import network_file
from agentgym.games.game_2048.rules import SCORE, SIZE, begin, get_board, spawn
from agentgym.kernels import kernel

Tables = npt.NDArray[np.float32]
WEIGHTS, SUMS, SIZES = range(3)
"""Rows of the tables in training: weights, sums of errors, sums of their absolute values."""
GAMES = {2: 20_000, 3: 500_000, 4: 100_000}
"""Games that the shipped networks learned from, by the board's size."""
_STEPS = 32767
_REPORT = 2000


@kernel
def learn(board: Any, size: Any, target: Any, tables: Any) -> None:
    """Move the value of a board towards a target, in units of the base."""
    share = np.float32((target - evaluate(board, size, tables[WEIGHTS])) / LOOKUPS)
    for word in symmetries(board, size):
        for index in indices(word):
            rate = np.float32(1.0)
            if tables[SIZES, index] > 0.0:
                rate = abs(tables[SUMS, index]) / tables[SIZES, index]
            tables[WEIGHTS, index] += rate * share
            tables[SUMS, index] += share
            tables[SIZES, index] += abs(share)


@kernel
def play(state: Any, tables: Any) -> None:
    """Play one game by the network from a fresh state, and learn from each move of it."""
    begin(state)
    size = state[SIZE]
    after, gain, _, found = choose(get_board(state), size, tables[WEIGHTS], 1.0)
    while found:
        last = after
        state[SCORE] += gain
        spawn(state, last)
        after, gain, value, found = choose(get_board(state), size, tables[WEIGHTS], 1.0)
        learn(last, size, gain + value if found else 0.0, tables)


def train(size: int, games: int, seed: int) -> Iterator[tuple[int, float, Tables]]:
    """Train a network from nothing.

    Args:
        size: Rows and columns of the board, 2 to 4.
        games: How many games to learn from.
        seed: Of the games' chance keys.

    Yields:
        Now and then, and at the end: games played, the mean score of those since the last time in
        units of the base, and the tables (3, weights), which go on changing.
    """
    tables = np.zeros((3, TABLES << BITS), np.float32)
    scores: list[int] = []
    for game in range(1, games + 1):
        state = fresh((seed << 40) + game, shape_of(size, 1))
        play(state, tables)
        scores.append(int(state[SCORE]))
        if len(scores) == _REPORT or game == games:
            yield game, float(np.mean(scores)), tables
            scores.clear()


def keep(path: Path, tables: Tables) -> None:
    """Write a network's weights as int16 steps, with each table's width of a step."""
    weights = tables[WEIGHTS].reshape(TABLES, -1)
    width = np.maximum(np.abs(weights).max(axis=1), 1e-9) / _STEPS
    steps = np.round(weights / width[:, None]).astype(np.int16)
    np.savez_compressed(path, steps=steps, width=width.astype(np.float32))


def main() -> None:
    """Train a network, show how it fares, and keep it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--size", type=int, default=4, choices=sorted(GAMES))
    parser.add_argument("--games", type=int, help="default: as many as the shipped network's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="default: in place of the shipped network")
    given = parser.parse_args()
    games, out = given.games or GAMES[given.size], given.out or network_file(given.size)
    began = time.perf_counter()
    for done, mean, tables in train(given.size, games, given.seed):
        seconds = time.perf_counter() - began
        sys.stdout.write(f"{done} of {games} games, {seconds:.0f} s, mean score {2 * mean:.0f}\n")
        sys.stdout.flush()
        if done % 20_000 == 0 or done == games:
            keep(out, tables)


if __name__ == "__main__":
    main()
