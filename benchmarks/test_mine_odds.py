"""Exact mine probabilities beside ms_toollib's (Rust), on the same positions in one run."""

import time

import gymnasium as gym
import numpy as np
import pytest

import agentgym  # noqa: F401 (registers the ids)
from agentgym.games.minesweeper.odds import mine_probabilities
from agentgym.games.minesweeper.rules import HIDDEN_CODE

COVERED = 10
LEVELS = [("Minesweeper-9x9-10-v0", 10), ("Minesweeper-16x16-40-v0", 40)]
LEVELS.append(("Minesweeper-16x30-99-v0", 99))


def positions(env_id, count):
    """Positions met in random play: state and the peer's form of the board."""
    env = gym.make(f"agentgym/{env_id}", oracle=False, observation="grid", action="index")
    rng = np.random.Generator(np.random.PCG64(0))
    met, seed = [], 0
    while len(met) < count:
        grid, _ = env.reset(seed=seed)
        seed, over = seed + 1, False
        while not over and len(met) < count:
            board = np.where(grid == HIDDEN_CODE, COVERED, grid)
            met.append((np.array(env.unwrapped.state), board.tolist()))
            hidden = np.flatnonzero(grid == HIDDEN_CODE)
            grid, _, over, _, _ = env.step(int(rng.choice(hidden)))
    return met


def seconds(function, rounds=5):
    """Wall time of a call in the fastest round."""
    function()
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begin)
    return min(taken)


@pytest.mark.parametrize(("env_id", "mines"), LEVELS)
def test_mine_probabilities(benchmark, board, env_id, mines):
    peer = pytest.importorskip("ms_toollib", reason="ms_toollib is in the extra 'bench'")
    met = positions(env_id, 1_000)
    for state, shown in met[:100]:
        theirs = np.array(peer.cal_probability_onboard(shown, mines)[0])
        ours = mine_probabilities(state)
        hidden = ~np.isnan(ours)
        assert np.abs(ours[hidden] - theirs[hidden]).max() < 1e-6

    theirs = seconds(lambda: [peer.cal_probability_onboard(shown, mines) for _, shown in met])
    benchmark.pedantic(
        lambda: [mine_probabilities(state) for state, _ in met], rounds=5, warmup_rounds=1
    )

    ours = benchmark.stats.stats.min / len(met)
    board.add(f"{env_id}: mine odds", ours, theirs / len(met), "seconds", "ms_toollib")
