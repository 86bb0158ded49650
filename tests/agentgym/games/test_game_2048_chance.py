"""Spawns and random play: the right probabilities, and the same bytes whatever else is drawn."""

import random

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import chisquare

import agentgym  # noqa: F401
from agentgym.chance import COUNTER, KEY, below, bits
from agentgym.games.game_2048.instances import fresh, shape_of
from agentgym.games.game_2048.rules import OVER, SCORE, begin, step
from agentgym.kernels import kernel
from agentgym.simulate import RandomPlay, play_randomly
from tests.agentgym.games import game_2048_plain as plain
from tests.agentgym.games.test_game_2048_rules import LEFT, board_of, state_of, without_spawn

CROWDED = [[1, 1, 2, 3], [2, 2, 3, 3], [1, 2, 1, 2], [2, 1, 2, 1]]
"""Left frees three cells where none was empty: (0, 3), (1, 2) and (1, 3)."""


def spawned(board, action, keys):
    """How often each cell, and each exponent, spawns after a move."""
    slid, _ = plain.slide(board, action)
    cells, tiles = np.zeros((len(board), len(board)), int), {1: 0, 2: 0}
    for key in keys:
        state = state_of(board, key=key)
        step(state, action)
        r, c, exponent = without_spawn(slid, board_of(state))
        cells[r, c] += 1
        tiles[exponent] += 1
    return cells, tiles


def test_spawns_are_uniform_over_the_cells_that_are_empty_after_the_move():
    cells, tiles = spawned(CROWDED, LEFT, range(1, 6001))

    assert cells.sum() == cells[0, 3] + cells[1, 2] + cells[1, 3] == 6000
    assert chisquare(cells[cells > 0]).pvalue > 0.01
    assert chisquare(list(tiles.values()), [5400, 600]).pvalue > 0.01


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_first_two_tiles_are_uniform(size):
    pairs, tiles = np.zeros((size, size), int), np.zeros(3, int)
    for key in range(1, 5001):
        state = fresh(key * 2**40, shape_of(size, 2))
        begin(state)
        board = np.array(board_of(state))
        pairs += board > 0
        tiles += np.bincount(board[board > 0], minlength=3)
    assert pairs.sum() == 10_000
    # Two of a game never share a cell, which narrows the spread; the bound only gets safer.
    assert chisquare(pairs.ravel()).pvalue > 0.01
    assert chisquare(tiles[1:], [9000, 1000]).pvalue > 0.01


@kernel
def random_games(state, patience, scores):
    """Games of uniformly random moves; one ends early after `patience` unchanged boards in a row.

    Drawing anew after an unchanged board is drawing uniformly from the legal moves.
    """
    for game in range(scores.shape[0]):
        state[SCORE:] = 0
        state[KEY], state[COUNTER] = game + 1, 0
        begin(state)
        stuck, draws = 0, 0
        while state[OVER] == 0 and stuck < patience:
            reward = step(state, below(bits(2**50 + game, draws), 4))
            stuck = stuck + 1 if np.isnan(reward) else 0
            draws += 1
        scores[game] = state[SCORE]


def scores_of(env_id, patience):
    """The scores of 40,000 games of random moves."""
    options = gym.make(f"agentgym/{env_id}", oracle=False).unwrapped.setup.options
    scores = np.empty(40_000)
    random_games(fresh(1, options.shape), patience, scores)
    return scores


PROACT = {"2048-v0": (1108, 534), "2048-3x3-v0": (177, 95), "3072-v0": (1620, 801)}
"""Mean score of ProAct's random agent (specs/cast_proact.md 6), and a game's standard deviation.

The agent draws from all four moves, and ten unchanged boards in a row end its game. How many games
they are the mean of is not told; of 1,000 the standard error would be 17, 3 and 25 points.
"""


@pytest.mark.parametrize("env_id", PROACT)
def test_random_play_scores_what_proact_measured(env_id):
    scores = scores_of(env_id, 10)
    theirs, spread = PROACT[env_id]

    assert scores.std() == pytest.approx(spread, rel=0.03)
    error = spread * np.sqrt(1 / len(scores) + 1 / 1000)
    assert abs(scores.mean() - theirs) < 2 * error


LEGAL = {"2048-v0": 1095.1, "2048-3x3-v0": 178.8, "3072-v0": 1642.6}
"""Mean score of uniformly random legal moves, over millions of games; see the card."""


@pytest.mark.parametrize("env_id", LEGAL)
def test_random_legal_moves_score_what_the_card_says(env_id):
    scores = scores_of(env_id, 2**60)
    error = scores.std() / np.sqrt(len(scores))

    assert abs(scores.mean() - LEGAL[env_id]) < 3 * error


@pytest.mark.parametrize("env_id", LEGAL)
def test_bulk_random_play_scores_the_same(env_id):
    env = gym.make(f"agentgym/{env_id}", oracle=False).unwrapped
    scores = np.empty((2000, 10))
    for seed in range(len(scores)):
        env.reset(seed=seed)
        how = RandomPlay(plays=10, turns=10_000, seed=seed)
        scores[seed] = play_randomly(env.setup, env.state, how).scores
    means = scores.mean(axis=1)

    assert abs(means.mean() - LEGAL[env_id]) < 3 * means.std() / np.sqrt(len(means))


@pytest.mark.parametrize(("size", "games"), [(4, 400), (3, 2000), (2, 4000)])
def test_random_legal_moves_score_as_in_plain_python(size, games):
    rng = random.Random(size)
    slow = np.array([2 * plain.random_score(size, rng) for _ in range(games)])
    env = gym.make("agentgym/2048-v0", size=size, oracle=False).unwrapped
    fast = np.zeros(0)
    for seed in range(40):
        env.reset(seed=seed)
        how = RandomPlay(plays=500, turns=10_000, seed=seed)
        fast = np.append(fast, play_randomly(env.setup, env.state, how).scores)
    error = np.sqrt(slow.var() / games + fast.var() / len(fast))

    assert abs(slow.mean() - fast.mean()) < 3 * error


def digest_of(env, seed, disturb):
    """All states of a game of fixed actions, with something in between each of them."""
    env.reset(seed=seed)
    states = [env.unwrapped.state.tobytes()]
    for turn in range(60):
        disturb(turn)
        *_, terminated, _, _ = env.step(turn * 7 % 4)
        states.append(env.unwrapped.state.tobytes())
        if terminated:
            break
    return states


def test_one_seed_and_one_list_of_actions_is_one_game_whatever_else_is_drawn():
    make = lambda: gym.make("agentgym/2048-v0", action="index", oracle=False)  # noqa: E731
    env, other = make(), make()
    alone = digest_of(env, 5, lambda turn: None)

    def disturb(turn):
        random.random()
        np.random.rand()  # noqa: NPY002
        if turn % 9 == 0:
            other.reset(seed=turn)
        other.step(turn % 4)

    assert digest_of(env, 5, disturb) == alone
    assert digest_of(make(), 5, lambda turn: None) == alone
    assert digest_of(env, 6, lambda turn: None) != alone


def test_two_batches_of_one_seed_are_one():
    grids = [gym.make_vec("agentgym/2048-v0", num_envs=8).reset(seed=0)[0] for _ in range(2)]

    assert (grids[0] == grids[1]).all()
    assert len({grid.tobytes() for grid in grids[0]}) > 1
