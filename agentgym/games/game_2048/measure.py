"""Measure the oracle: `python -m agentgym.games.game_2048.measure --size 4 --games 1000`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.games.game_2048.instances import fresh, shape_of
from agentgym.games.game_2048.oracle import look, scales_of, weights_of
from agentgym.games.game_2048.rules import OVER, SCORE, TOP, begin, step
from agentgym.kernels import kernel


class Games(NamedTuple):
    """What came of games that the oracle played, each array of shape (games,).

    Attributes:
        scores: Points.
        tops: Exponents of the largest tiles.
        moves: Moves played.
        seconds: Of this process on one core, for all games together.
    """

    scores: npt.NDArray[np.int64]
    tops: npt.NDArray[np.int64]
    moves: npt.NDArray[np.int64]
    seconds: float


@kernel
def play(state: Any, weights: Any, scales: Any, values: Any, best: Any) -> Any:
    """Play the oracle's best moves from a fresh state to the end: how many they are."""
    begin(state)
    moves = 0
    while state[OVER] == 0:
        look(state, weights, scales, values, best)
        step(state, np.argmax(values))
        moves += 1
    return moves


def measure(size: int, base: int, games: int, seed: int) -> Games:
    """Let the oracle play games of its own keys, which training never uses."""
    played = np.empty((3, games), np.int64)
    weights, scales = weights_of(size), scales_of(size)
    values, best = np.empty(4), np.empty(4, np.bool_)
    began = time.process_time()
    for game in range(games):
        state = fresh(2**62 + (seed << 40) + game, shape_of(size, base))
        moves = play(state, weights, scales, values, best)
        played[:, game] = state[SCORE], state[TOP], moves
    scores, tops, moves = played
    return Games(scores, tops, moves, time.process_time() - began)


def main() -> None:
    """Let the oracle play, and print its scores and largest tiles."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--size", type=int, default=4, choices=range(2, 6))
    parser.add_argument("--base", type=int, default=2)
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = measure(given.size, given.base, given.games, given.seed)
    error = 1.96 * found.scores.std(ddof=1) / np.sqrt(given.games)
    sys.stdout.write(
        f"{given.games} games: mean score {found.scores.mean():.0f} +- {error:.0f} (95 %), "
        f"{found.moves.mean():.0f} moves, {1000 * found.seconds / found.moves.sum():.4f} ms each\n"
    )
    for exponent in range(shape_of(given.size, given.base).goal - 1, int(found.tops.max()) + 1):
        share = (found.tops >= exponent).mean()
        sys.stdout.write(f"{given.base << (exponent - 1)}: {share:.1%}\n")


if __name__ == "__main__":
    main()
