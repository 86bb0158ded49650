"""Calibrate the oracle: `python -m agentgym.games.game_2048.calibrate --size 4`.

The network's values are those of its own play in training, which searches less and was worse for
long; and a sum over tables can hardly tell how late in the game a board is. So the oracle plays,
and for each sum of tiles the points that then came are set in proportion to the network's values.
Those ratios multiply the network's values from then on.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.games.game_2048.board import move
from agentgym.games.game_2048.instances import fresh, shape_of
from agentgym.games.game_2048.network import evaluate
from agentgym.games.game_2048.oracle import (
    KNOTS,
    SCALES_FILE,
    Scales,
    look,
    scale_of,
    scales_of,
    weights_of,
)
from agentgym.games.game_2048.rules import OVER, SCORE, SIZE, begin, get_board, step
from agentgym.kernels import kernel

GAMES = {3: 2000, 4: 500}
"""Games of each round for the shipped scales, by the board's size."""
ROUNDS = 2
"""How often the scales are found anew, each time from play by the last ones."""
_LONGEST = 200_000
_FEWEST = 1000


@kernel
def play(state: Any, weights: Any, scales: Any, knots: Any, into: Any) -> Any:
    """Play a game: how many moves; and tell of the board after each.

    Args:
        state: A fresh state with base 1.
        weights: The network's.
        scales: By which the oracle plays.
        knots: The numbers 0, 1, ..., by which `scale_of` tells where a sum of tiles lies.
        into: Room for Q (4), the best moves (4) and, of each board (longest game, 3), its place
            among the knots, its value by the network, and the score.
    """
    begin(state)
    values, best, found = into
    moves = 0
    while state[OVER] == 0:
        look(state, weights, scales, values, best)
        action = np.argmax(values)
        board, _ = move(get_board(state), state[SIZE], action)
        step(state, action)
        found[moves, 0] = scale_of(board, knots)
        found[moves, 1] = evaluate(board, state[SIZE], weights)
        found[moves, 2] = state[SCORE]
        moves += 1
    return moves


def ratios(size: int, games: int, scales: Scales, seed: int) -> Scales:
    """Points that came over the network's value of the boards after each move, by sum of tiles.

    Sums of which there are too few boards take the ratio of the next smaller sum.
    """
    totals = np.zeros((2, KNOTS))
    counts = np.zeros(KNOTS, np.int64)
    found: npt.NDArray[np.float64] = np.empty((_LONGEST, 3))
    into = np.empty(4), np.empty(4, np.bool_), found
    weights, knots = weights_of(size), np.arange(KNOTS, dtype=np.float64)
    for game in range(games):
        state = fresh(2**61 + (seed << 40) + game, shape_of(size, 1))
        moves = play(state, weights, scales, knots, into)
        places, values, scores = found[:moves].T
        near = np.rint(places).astype(np.int64)
        totals[0] += np.bincount(near, state[SCORE] - scores, KNOTS)
        totals[1] += np.bincount(near, values, KNOTS)
        counts += np.bincount(near, minlength=KNOTS)
    last = np.maximum.accumulate(np.where(counts >= _FEWEST, np.arange(KNOTS), -1))
    last[last < 0] = last[last >= 0].min(initial=int(counts.argmax()))
    return totals[0][last] / totals[1][last]


def calibrate(size: int, games: int, seed: int) -> Scales:
    """Find a board's scales, and then those of the play by them."""
    scales = np.ones(KNOTS)
    for turn in range(ROUNDS):
        scales = ratios(size, games, scales, seed + turn)
        sys.stdout.write(f"round {turn + 1}: {np.round(scales, 2).tolist()}\n")
        sys.stdout.flush()
    return scales


def main() -> None:
    """Calibrate the oracle for a board's size, and keep the scales."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--size", type=int, default=4, choices=sorted(GAMES))
    parser.add_argument("--games", type=int, help="default: as many as for the shipped scales")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = calibrate(given.size, given.games or GAMES[given.size], given.seed)
    kept = json.loads(SCALES_FILE.read_text())
    kept[str(given.size)] = [round(float(scale), 4) for scale in found]
    SCALES_FILE.write_text(json.dumps(kept, sort_keys=True) + "\n")
    scales_of.cache_clear()


if __name__ == "__main__":
    main()
