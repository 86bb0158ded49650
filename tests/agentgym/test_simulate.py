"""Bulk random play against plain loops and closed forms."""

import math

import numpy as np
import pytest

from agentgym.errors import InvalidOption, InvalidState
from agentgym.setup import make_setup
from agentgym.simulate import RandomPlay, action_values, play_randomly, state_value

GAME = "tests.agentgym.walk_game"


@pytest.fixture
def setup():
    return make_setup(GAME, {"max_turns": 50})


@pytest.fixture
def start(setup):
    return setup.instance(0)[1].start


def test_the_mean_walk_takes_the_time_of_a_reflected_random_walk(setup, start):
    # From 0, always right; else left or right by halves: the mean time to reach n is n^2.
    plays = play_randomly(setup, start, RandomPlay(plays=20_000, turns=10_000))

    error = plays.turns.std() / math.sqrt(20_000)
    assert plays.successes.all()
    assert abs(plays.turns.mean() - 16) < 4 * error


def test_the_mth_play_is_the_same_whatever_their_number(setup, start):
    few = play_randomly(setup, start, RandomPlay(plays=10))
    many = play_randomly(setup, start, RandomPlay(plays=100))

    assert (many.turns[:10] == few.turns).all()
    assert len(set(many.turns.tolist())) > 5


def test_another_seed_plays_otherwise_and_the_state_stays(setup, start):
    kept = start.copy()

    one = play_randomly(setup, start, RandomPlay(plays=50, seed=1))
    two = play_randomly(setup, start, RandomPlay(plays=50, seed=2))

    assert (one.turns != two.turns).any()
    assert (start == kept).all()


def test_returns_are_discounted_from_the_first_reward_on(setup, start):
    plays = play_randomly(setup, start, RandomPlay(plays=200, discount=0.9))

    assert plays.returns == pytest.approx(0.9 ** (plays.turns - 1.0))


def test_dense_returns_count_every_turn_and_the_limit_cuts(setup, start):
    plays = play_randomly(setup, start, RandomPlay(plays=200, turns=6, dense=True))

    assert plays.turns.max() == 6
    assert plays.returns == pytest.approx(-0.1 * plays.turns)


def test_illegal_actions_cost_turns_when_they_are_drawn_too(setup, start):
    legal = play_randomly(setup, start, RandomPlay(plays=5_000, turns=10_000))
    drawn = play_randomly(setup, start, RandomPlay(plays=5_000, turns=10_000, any_action=True))

    # A lazy walk at 0 adds one half turn per visit on average: n^2 + n in all.
    error = drawn.turns.std() / math.sqrt(5_000)
    assert abs(drawn.turns.mean() - 20) < 4 * error
    assert legal.turns.mean() < drawn.turns.mean()


def test_action_values_take_the_given_first_action(setup, start):
    how = RandomPlay(plays=4_000, discount=0.9)
    state = start.copy()
    setup.game.step(state, 1)

    values = action_values(setup, state, how)
    at_start = action_values(setup, start, how)
    value = state_value(setup, state, how)

    assert values.mean[0] < values.mean[1]
    assert value.mean == pytest.approx(values.mean.mean(), abs=4 * value.error.item())
    assert math.isnan(at_start.mean[0])
    assert at_start.mean[1] == pytest.approx(0.9 * value.mean, abs=4 * value.error.item())


def test_slippery_futures_differ_although_the_state_holds_its_chance():
    setup = make_setup(GAME, {"max_turns": 50, "slippery": True})
    start = setup.instance(0)[1].start

    plays = play_randomly(setup, start, RandomPlay(plays=2_000), first=1)

    # The first step right slips half of the time.
    assert len(set(plays.turns.tolist())) > 20


def test_bad_arguments_get_one_clear_sentence(setup, start):
    with pytest.raises(InvalidOption, match="plays is at least 1, got 0"):
        RandomPlay(plays=0)
    with pytest.raises(InvalidOption, match=r"from 0 to 1, got 1\.5"):
        RandomPlay(discount=1.5)
    with pytest.raises(InvalidOption, match="action index below 2, got 2"):
        play_randomly(setup, start, RandomPlay(), first=2)
    with pytest.raises(InvalidState, match="got float64"):
        play_randomly(setup, np.zeros(5), RandomPlay())
