"""The generator in the state against published outputs, and its distribution."""

import numpy as np
import pytest
from scipy import stats

from agentgym.chance import COUNTER, HEADER, KEY, bits, draw_below, draw_unit, rekey


def test_bits_are_splitmix64s_published_outputs_for_seed_1234567():
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]

    assert [int(bits(1234567, k)) for k in range(5)] == expected


def test_a_draw_depends_on_key_and_counter_alone():
    one = np.array([99, 0], np.int64)
    two = np.array([99, 0], np.int64)
    other = np.array([7, 0], np.int64)

    draws = []
    for _ in range(5):
        draws.append(draw_below(one, 1000))
        draw_below(other, 1000)

    assert [draw_below(two, 1000) for _ in range(5)] == draws
    assert one[COUNTER] == two[COUNTER] == 5


@pytest.mark.parametrize("bound", [2, 3, 7, 16])
def test_draws_below_are_uniform(bound):
    state = np.array([2024, 0], np.int64)

    counts = np.bincount([draw_below(state, bound) for _ in range(20_000)], minlength=bound)

    assert len(counts) == bound
    assert stats.chisquare(counts).pvalue > 1e-4


def test_unit_draws_are_uniform_on_the_half_open_interval():
    state = np.array([5, 0], np.int64)

    draws = [draw_unit(state) for _ in range(20_000)]

    assert min(draws) >= 0.0
    assert max(draws) < 1.0
    assert stats.kstest(draws, "uniform").pvalue > 1e-4


def test_rekeyed_states_have_other_futures_and_the_same_rest():
    start = np.arange(10, 10 + HEADER + 3).astype(np.int64)
    futures = set()

    for branch in range(100):
        state = start.copy()
        rekey(state, branch)
        assert (state[HEADER:] == start[HEADER:]).all()
        assert state[COUNTER] == 0
        futures.add(int(state[KEY]))

    assert len(futures) == 100
