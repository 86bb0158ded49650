"""Exact mine probabilities: against counting, against fractions, against public positions."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.games.minesweeper import (
    GAME,
    MinesweeperOptions,
    make_board,
    mine_probabilities,
    mine_probabilities_exact,
    odds,
    rules,
    workspace,
)
from agentgym.games.minesweeper.exact import count_layouts_exact
from agentgym.games.minesweeper.instances import pad
from tests.agentgym.games.minesweeper_plain import layouts, mine_odds, position, states, view

DATA = Path(__file__).parents[4] / "shared" / "data" / "minesweeper" / "positions.json"
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def public_positions():
    if not DATA.exists():
        pytest.skip("The shared data folder with public positions is not here.")
    return json.loads(DATA.read_text())


def check(state, expected):
    """The compiled probabilities equal fractions to rounding, and 0 and 1 are exactly that."""
    found = mine_probabilities(state)
    rows, cols = int(state[rules.ROWS]), int(state[rules.COLS])
    for row in range(found.shape[0]):
        for col in range(found.shape[1]):
            fraction = expected.get((row, col)) if row < rows and col < cols else None
            if fraction is None:
                assert math.isnan(found[row, col])
            else:
                assert found[row, col] == pytest.approx(float(fraction), rel=1e-12, abs=1e-15)
                assert (found[row, col] == 0.0) == (fraction == 0)
                assert (found[row, col] == 1.0) == (fraction == 1)


def played(level, seed, turns):
    """A state of a level after some random safe reveals."""
    rng = np.random.default_rng(seed)
    state = GAME.generate(rng, MinesweeperOptions(level=level), lambda form: True).start
    words = state[rules.CELLS :]
    for _ in range(turns):
        safe = np.flatnonzero((words & (rules.OPEN | rules.MINE)) == 0)
        after = state.copy()
        rules.step(after, int(rng.choice(safe)))
        if rules.terminal(after):
            break
        state[:] = after
    return state


@pytest.mark.parametrize("name", ["cg34276-b", "pattern-121", "fifty-fifty"])
def test_public_positions(name):
    (given_,) = [p for p in public_positions() if p["id"] == name]
    state = position(given_["rows"], given_["mines"])
    expected = {
        tuple(map(int, cell.split(","))): Fraction(odds_)
        for cell, odds_ in given_["mine_prob"].items()
    }

    assert mine_probabilities_exact(state) == expected
    assert count_layouts_exact(state) == given_["n_configs"]
    check(state, expected)


def test_every_public_position_is_tested():
    assert {p["id"] for p in public_positions()} == {"cg34276-b", "pattern-121", "fifty-fifty"}


@pytest.mark.parametrize(
    ("rows", "mines", "expected"),
    [
        (["___", "111"], 1, {(0, 1): 1, (0, 0): 0, (0, 2): 0}),
        (["_1_"], 1, {(0, 0): Fraction(1, 2), (0, 2): Fraction(1, 2)}),
        (["_1___1_"], 2, {(0, 3): 0, **{(0, c): HALF for c in (0, 2, 4, 6)}}),
        (["_1___1_"], 3, {(0, 3): 1, **{(0, c): HALF for c in (0, 2, 4, 6)}}),
        (["_1_1__"], 2, {(0, c): HALF for c in (0, 2, 4, 5)}),
        (["_1_1___"], 2, {**{(0, c): THIRD for c in (0, 4, 5, 6)}, (0, 2): 2 * THIRD}),
        (["1_____"], 2, {(0, 1): 1, **{(0, c): Fraction(1, 4) for c in range(2, 6)}}),
        (["1_____"], 5, dict.fromkeys([(0, c) for c in range(1, 6)], 1)),
        (["1F____"], 1, {(0, 1): 1, **{(0, c): 0 for c in range(2, 6)}}),
        (["F_", "11"], 1, {(0, 0): Fraction(1, 2), (0, 1): Fraction(1, 2)}),
        (["0F_"], 1, {(0, 1): 0, (0, 2): 1}),
    ],
)
def test_small_positions(rows, mines, expected):
    state = position(rows, mines)

    assert mine_probabilities_exact(state) == expected
    check(state, expected)


def test_the_number_of_mines_proves_cells_that_no_open_number_does():
    """CAST leaves these to be found as guesses, on 11 of its 200 boards at the start (C8)."""
    state = position(["_1___1_"], 2)
    alone = np.empty(7)
    odds.fill_odds(state, odds.UNCOUNTED, workspace.MAX_NODES, workspace.workspace(), alone)

    assert np.isnan(alone[3])
    assert mine_probabilities(state)[0, 3] == 0.0
    note = GAME.make_oracle(MinesweeperOptions(), 10**6).note(state)
    assert np.flatnonzero(note.best).tolist() == [3]
    assert note.exact


def test_flags_are_no_facts():
    bare, flagged = position(["___", "121"], 2), position(["_F_", "121"], 2)

    assert np.array_equal(mine_probabilities(bare), mine_probabilities(flagged), equal_nan=True)


@given(states())
@settings(max_examples=150, deadline=None)
def test_against_counting_every_layout(state):
    expected = {divmod(c, int(state[rules.COLS])): p for c, p in mine_odds(state).items()}

    assert mine_probabilities_exact(state) == expected
    assert count_layouts_exact(state) == len(layouts(state))
    check(state, expected)


@pytest.mark.parametrize(
    ("level", "turns"), [("6x6-7", 3), ("7x7-10", 5), ("9x9-10", 6), ("16x16-40", 2)]
)
def test_against_fractions_on_the_levels(level, turns):
    for seed in range(3):
        state = played(level, seed, turns)
        check(state, mine_probabilities_exact(state))


@pytest.mark.slow
@pytest.mark.parametrize("turns", [0, 10])
def test_against_fractions_on_expert_boards(turns):
    for seed in range(3):
        state = played("16x30-99", seed, turns)
        check(state, mine_probabilities_exact(state))


@given(st.integers(0, 10_000), st.integers(0, 30), st.sampled_from(["9x9-10", "16x16-40"]))
@settings(max_examples=60, deadline=None)
def test_the_probabilities_add_up_to_the_mines(seed, turns, level):
    state = played(level, seed, turns)

    assert np.nansum(mine_probabilities(state)) == pytest.approx(int(state[rules.MINES]))


@given(st.integers(0, 10_000), st.integers(0, 150))
@settings(max_examples=40, deadline=None)
def test_what_is_proven_is_true_on_expert_boards(seed, turns):
    """JSMinesweeper once called a mine certainly safe."""
    state = played("16x30-99", seed, turns)
    found = mine_probabilities(state).ravel()
    mines = (state[rules.CELLS :] & rules.MINE) != 0

    assert not mines[found == 0.0].any()
    assert mines[found == 1.0].all()


@given(states(cells=12))
@settings(max_examples=40, deadline=None)
def test_a_padded_board_has_the_same_odds(state):
    wide = pad(state, int(state[rules.ROWS]) + 1, int(state[rules.COLS]) + 2)
    found = mine_probabilities(wide)

    assert np.isnan(found[-1]).all()
    assert np.isnan(found[:, -2:]).all()
    assert np.array_equal(found[:-1, :-2], mine_probabilities(state), equal_nan=True)


def test_of_a_lost_game_it_is_what_was_known_before():
    state = position(["_1_"], 1)
    before = mine_probabilities(state)
    mine = int(np.flatnonzero(state[rules.CELLS :] & rules.MINE)[0])
    rules.step(state, mine)

    assert rules.terminal(state)
    assert np.array_equal(mine_probabilities(state), before, equal_nan=True)


def scattered():
    """A board whose open numbers all hang together, more widely than any board of a level."""
    rng = np.random.default_rng(0)
    rows, cols = 24, 30
    mines = sorted(rng.choice(np.arange(1, rows * cols), 300, replace=False).tolist())
    state = make_board((rows, cols), mines, 0)
    words = state[rules.CELLS :]
    for cell in range(0, rows * cols, 2):
        if not words[cell] & (rules.OPEN | rules.MINE) and rng.random() < 0.8:
            rules.open_cell(state, cell)
    return state


def test_a_position_too_wide_is_estimated_and_said_to_be():
    state = scattered()
    found = np.empty(720)
    limit = 1000
    exact = odds.fill_odds(state, state[rules.MINES], limit, workspace.workspace(), found)
    hidden = view(state)[1]
    mines = (state[rules.CELLS :] & rules.MINE) != 0

    assert not exact
    assert ((found[hidden] >= 0) & (found[hidden] <= 1)).all()
    assert not mines[found == 0.0].any()
    assert mines[found == 1.0].all()
    note = GAME.make_oracle(MinesweeperOptions(), limit).note(state)
    assert note.best.any()
    assert not note.exact
