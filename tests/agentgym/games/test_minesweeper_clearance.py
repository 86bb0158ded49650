"""The fewest actions to a win: against breadth-first search, with flags and without."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.game import NoSolution
from agentgym.games.minesweeper import GAME, MinesweeperOptions, rules
from agentgym.games.minesweeper.instances import pad
from tests.agentgym.games.minesweeper_plain import board, fewest_actions, states

ORACLE = GAME.make_oracle(MinesweeperOptions(), 10**6)


def cost(state):
    return ORACLE.note(state).cost_to_go


def flagged(rows, *cells):
    state = board(rows)
    for row, col in cells:
        rules.step(state, state.size - rules.CELLS + row * len(rows[0]) + col)
    return state


def test_zeros_that_hang_together_take_one_reveal():
    assert cost(board(["o*...", "**...", ".....", "....."])) == 1


def test_numbers_without_a_zero_beside_them_take_one_each():
    assert cost(board(["o.*.", "..*."])) == 2


def test_one_opening_and_two_numbers_beside_a_mine():
    assert cost(board(["*o*", "...", "...", "*.."])) == 3


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], 1),
        ([(0, 1)], 1),
        ([(0, 4)], 2),
        ([(0, 4), (3, 4)], 3),
        ([(2, 0), (3, 0), (0, 1)], 3),
    ],
)
def test_a_flag_on_a_safe_cell_takes_one_action_more(flags, expected):
    state = flagged(["o*...", "**...", ".....", "....."], *flags)

    assert cost(state) == expected == fewest_actions(state)


def test_a_flagged_cell_is_not_counted_as_opened():
    """CAST's K plays without the player's flags, where the opening takes the cell for free (C7).

    Its numbers for this board are 2 and 2, as ours; but ours is a number of actions that win.
    """
    state = flagged(["*......", "o......", "*......"], (0, 6))
    assert cost(state) == 2
    plan = ORACLE.solve(state)
    assert plan[0] == 21 + 6

    revealed = state.copy()
    rules.step(revealed, 3)
    assert not rules.success(revealed)
    assert cost(revealed) == 2
    unflagged = state.copy()
    rules.step(unflagged, 21 + 6)
    assert cost(unflagged) == 1
    rules.step(unflagged, 3)
    assert rules.success(unflagged)


@given(states(cells=9, mines=3, turns=6))
@settings(max_examples=40, deadline=None)
def test_against_breadth_first_search(state):
    assert cost(state) == fewest_actions(state)


@given(states(), st.integers(0, 1))
@settings(max_examples=100, deadline=None)
def test_a_plan_wins_in_exactly_so_many_actions(state, wider):
    state = pad(state, int(state[rules.ROWS]) + wider, int(state[rules.COLS]) + wider)
    plan = ORACLE.solve(state)
    assert len(plan) == cost(state)
    for left, action in zip(range(len(plan) - 1, -1, -1), plan, strict=True):
        assert not np.isnan(rules.step(state, action))
        assert cost(state) == left

    assert rules.success(state)


@given(states(cells=24, mines=6))
@settings(max_examples=100, deadline=None)
def test_no_action_gains_more_than_one_and_some_action_gains_one(state):
    before, gains = cost(state), []
    for action in range(2 * (state.size - rules.CELLS)):
        after = state.copy()
        if np.isnan(rules.step(after, action)):
            continue
        gains.append(before - cost(after))

    assert max(gains) == 1


@pytest.mark.parametrize("level", ["6x6-7", "9x9-10", "16x30-99"])
def test_plans_win_on_the_levels(level):
    rng = np.random.default_rng(0)
    for _ in range(20):
        state = GAME.generate(rng, MinesweeperOptions(level=level), lambda form: True).start
        plan = ORACLE.solve(state)
        assert len(plan) == cost(state)
        for action in plan:
            rules.step(state, action)
        assert rules.success(state)


def test_after_a_mine_there_is_no_win():
    state = board(["o.*.", "..*."])
    rules.step(state, 2)
    note = ORACLE.note(state)

    assert note.cost_to_go == np.inf
    assert note.dead_end
    assert note.exact
    assert not note.best.any()
    with pytest.raises(NoSolution, match="A mine was hit"):
        ORACLE.solve(state)


def test_a_won_state_needs_nothing():
    state = board(["o.*.", "..*."])
    rules.step(state, 3)
    rules.step(state, 7)

    assert ORACLE.solve(state) == []
    assert cost(state) == 0
    assert not ORACLE.note(state).best.any()
