"""The oracle of 2048: the trained network, looked up one move and one spawn ahead.

Boards of size 5 have no network; there a plain heuristic finds the best move, and no value is
given.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.game import NoSolution, Note, State
from agentgym.games.game_2048.board import move, points, put, same, space
from agentgym.games.game_2048.instances import ACTIONS, BoardOptions
from agentgym.games.game_2048.network import LARGEST_SIZE, choose
from agentgym.games.game_2048.rules import BASE, GOAL, OVER, SIZE, TOP, get_board, step, success
from agentgym.kernels import kernel

Weights = npt.NDArray[np.float32]
Scales = npt.NDArray[np.float64]
KNOTS = 73
"""Sums of tiles for which `scales_of` has an entry, see `scale_of`."""
_FOLDER = Path(__file__).parent
SCALES_FILE = _FOLDER / "scales.json"


@kernel
def scale_of(board: Any, scales: Any) -> Any:
    """What one point of the network's value is worth on a board, by the sum of its tiles.

    Args:
        board: The board.
        scales: At the sums base * 2^(k / 4), k = 0, 1, ...; linear in between.
    """
    total = 0
    for row in board:
        total += points(row)
    place = min(4.0 * np.log2(total), scales.shape[0] - 1.001) if total else 0.0
    knot = int(place)
    return scales[knot] + (place - knot) * (scales[knot + 1] - scales[knot])


@kernel
def expected_points(after: Any, size: Any, weights: Any, scale: Any, ahead: Any) -> Any:
    """Expected further points of a board after a move, in units of the base.

    The mean over all spawns of the best gain and further points of the move after it. Those are the
    network's where it is the last of `ahead` moves, else again the mean over the spawns.
    """
    empty = space(after, size)
    total = 0.0
    for place in range(empty >> 32):
        for exponent in range(1, 3):
            spawned = put(after, empty, place, exponent)
            best = 0.0
            if ahead == 1:
                _, gain, value, found = choose(spawned, size, weights, scale)
                if found:
                    best = gain + value
            else:
                for action in range(4):
                    then, gain = move(spawned, size, action)
                    if not same(spawned, then):
                        further = expected_points(then, size, weights, scale, ahead - 1)
                        best = max(best, gain + further)
            total += (0.9 if exponent == 1 else 0.1) * best
    return total / (empty >> 32)


@kernel
def look(state: Any, weights: Any, scales: Any, values: Any, best: Any) -> Any:
    """Fill Q and the best moves of a state; its value, 0 where the game is over."""
    board, size = get_board(state), state[SIZE]
    scale = scale_of(board, scales)
    ahead = 2 if size == 3 else 1
    highest = -np.inf
    for action in range(values.shape[0]):
        after, gain = move(board, size, action)
        values[action] = -np.inf
        if not same(board, after):
            further = expected_points(after, size, weights, scale, ahead)
            values[action] = state[BASE] * (gain + further)
        highest = max(highest, values[action])
    if highest == -np.inf:
        best[:] = False
        return 0.0
    for action in range(values.shape[0]):
        # Moves that mirror each other add up the same weights in another order.
        best[action] = values[action] >= highest - 1e-9 * abs(highest)
        if best[action]:
            values[action] = highest
    return highest


def network_file(size: int) -> Path:
    """Where the trained network of a board's size is kept."""
    return _FOLDER / f"network_{size}x{size}.npz"


@cache
def weights_of(size: int) -> Weights:
    """The weights for a board's size, float32 and read-only; none for the sizes without a network.

    The file holds them as int16 steps of each table's own width.
    """
    weights = np.empty(0, np.float32)
    if size <= LARGEST_SIZE:
        with np.load(network_file(size)) as kept:
            weights = (kept["steps"] * kept["width"][:, None]).ravel()
    weights.flags.writeable = False
    return weights


@cache
def scales_of(size: int) -> Scales:
    """What `calibrate` found for a board's size, float64 and read-only; 1 where it was not run."""
    found = json.loads(SCALES_FILE.read_text())
    scales = np.array(found.get(str(size), [1.0] * KNOTS))
    scales.flags.writeable = False
    return scales


@dataclass(frozen=True)
class NetworkOracle:
    """Knows expected points, as the network and a search of one move and one spawn tell them."""

    def note(self, state: State) -> Note:
        """Estimated value, action values and best moves of a state; see the card."""
        values, best = np.empty(len(ACTIONS)), np.empty(len(ACTIONS), np.bool_)
        fields = state.tolist()
        size, over = fields[SIZE], fields[OVER] != 0
        # A copy can be written to, as all states of an environment: one compiled kernel for both.
        value = look(state.copy(), weights_of(size), scales_of(size), values, best)
        dead_end = over and fields[TOP] < fields[GOAL]
        if size > LARGEST_SIZE and not over:
            return Note(np.nan, np.nan, None, best, dead_end, False)
        return Note(np.nan, value, values, best, dead_end, False)

    def solve(self, state: State) -> list[int]:
        """The best moves from a state, with the state's own chance, until the target is reached.

        Raises:
            NoSolution: This play ends before the target tile is reached; another might not.
        """
        state = state.copy()
        actions: list[int] = []
        while not success(state):
            if state[OVER]:
                raise NoSolution(
                    f"The oracle's own play ends after {len(actions)} moves without the target "
                    "tile; that does not prove that no play reaches it."
                )
            actions.append(int(self.note(state).best.argmax()))
            step(state, actions[-1])
        return actions


def make_oracle(options: BoardOptions, budget: int) -> NetworkOracle:
    """The oracle; the depth of its search is fixed, so the budget changes nothing."""
    return NetworkOracle()
