"""Minesweeper's rules: what opens, what ends the game, what is not legal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.games.minesweeper import GAME, MinesweeperOptions, rules
from agentgym.games.minesweeper.instances import pad
from tests.agentgym.games.minesweeper_plain import board, boards, near, position, states

OPTIONS = MinesweeperOptions()
WALL = ["o.*.", "..*."]
"""The first click opens the left half; two mines stand before the last column."""


def shown(state):
    """The board as the player sees it, without margins and blanks."""
    rows = GAME.render(state, OPTIONS).split("\n")[2:]
    return ["".join(row[3:].split()) for row in rows]


def reveal(state, row, col):
    return rules.step(state, row * int(state[rules.WIDTH]) + col)


def flag(state, row, col):
    height, width = int(state[rules.HEIGHT]), int(state[rules.WIDTH])
    return rules.step(state, height * width + row * width + col)


def test_the_first_click_opens_its_zeros_and_the_numbers_around():
    assert shown(board(["o....", ".....", "..*..", ".....", "...*."])) == [
        "00000",
        "01110",
        "01.10",
        "01221",
        "001..",
    ]


def test_a_first_click_on_a_number_opens_one_cell():
    assert shown(board(["o*", ".."])) == ["1.", ".."]


def test_a_zero_opens_what_hangs_together_with_it():
    state = board(["o*...", "**...", ".....", "....."])
    assert shown(state) == ["3....", ".....", ".....", "....."]

    reveal(state, 3, 4)

    assert shown(state) == ["3.200", "..200", "22100", "00000"]
    assert rules.success(state)


def test_numbers_count_the_eight_neighbours():
    state = board(["***", "*o*", "***"])

    assert state[rules.CELLS + 4] & rules.NUMBER == 8
    assert rules.success(state)


def test_a_mine_ends_the_game_at_once():
    """TextArena lets a player click every mine and play on."""
    state = board(WALL)

    assert reveal(state, 0, 2) == -1.0
    assert rules.terminal(state)
    assert not rules.success(state)
    assert shown(state) == ["02*.", "02.."]
    for action in range(16):
        before = state.copy()
        assert not rules.legal(state, action)
        assert np.isnan(rules.step(state, action))
        assert (state == before).all()


def test_all_safe_cells_open_is_a_win_and_flags_are_not_needed():
    state = board(WALL)

    assert reveal(state, 0, 3) == pytest.approx(1 / 6)
    assert not rules.terminal(state)
    assert reveal(state, 1, 3) == pytest.approx(1 / 6 + 1)
    assert rules.success(state)
    assert rules.terminal(state)
    assert rules.progress(state) == 1.0


def test_a_flag_toggles_and_is_worth_nothing():
    state = board(WALL)
    before = state.copy()

    assert flag(state, 1, 3) == 0.0
    assert state[rules.FLAGS] == 1
    assert shown(state) == ["02..", "02.F"]
    assert flag(state, 1, 3) == 0.0
    assert (state == before).all()


@pytest.mark.parametrize("mine", [True, False])
def test_a_flag_cannot_be_revealed_not_even_on_a_mine(mine):
    """GEM looks for the mine first, and a flagged mine kills."""
    state = board(WALL)
    col = 2 if mine else 3
    flag(state, 0, col)
    before = state.copy()

    assert np.isnan(reveal(state, 0, col))
    assert (state == before).all()


def test_what_is_open_is_neither_revealed_nor_flagged():
    state = board(WALL)
    before = state.copy()

    assert np.isnan(reveal(state, 0, 0))
    assert np.isnan(flag(state, 0, 0))
    assert (state == before).all()


@pytest.mark.parametrize("action", [-1, 16, 1000])
def test_an_action_out_of_range_is_not_legal(action):
    state = board(WALL)

    assert not rules.legal(state, action)
    assert np.isnan(rules.step(state, action))


def test_a_flag_stops_an_opening():
    state = board(["*......", "o......", "*......"])
    flag(state, 0, 2)
    flag(state, 1, 2)
    flag(state, 2, 2)
    reveal(state, 1, 6)

    assert shown(state) == ["..F0000", "2.F0000", "..F0000"]


def test_what_a_flag_held_back_opens_later():
    state = board(["*......", "o......", "*......"])
    for row in range(3):
        flag(state, row, 2)
    reveal(state, 1, 6)
    for row in range(3):
        flag(state, row, 2)
    reveal(state, 0, 2)

    assert shown(state) == [".100000", "2200000", ".100000"]
    assert rules.success(state)


def test_the_dense_reward_is_the_share_of_safe_cells_opened():
    state = board(["o*....", "......"])

    assert reveal(state, 0, 5) == pytest.approx(8 / 11)


def test_observe_shows_what_the_player_sees():
    state = board(WALL)
    flag(state, 0, 2)
    grid = np.zeros((2, 4), np.uint8)
    rules.observe(state, grid)
    assert grid.tolist() == [[0, 2, 10, 9], [0, 2, 9, 9]]

    reveal(state, 1, 2)
    rules.observe(state, grid)
    assert grid.tolist() == [[0, 2, 10, 9], [0, 2, 11, 9]]


def test_cells_outside_of_a_smaller_board_cannot_be_played():
    state = pad(board(WALL), 3, 6)
    grid = np.zeros((3, 6), np.uint8)
    rules.observe(state, grid)

    assert grid.tolist() == [[0, 2, 9, 9, 12, 12], [0, 2, 9, 9, 12, 12], [12] * 6]
    legal = [action for action in range(36) if rules.legal(state, action)]
    assert legal == [2, 3, 8, 9, 20, 21, 26, 27]
    assert shown(state) == ["02..", "02.."]
    assert reveal(state, 0, 2) == -1.0


@given(boards(), st.integers(0, 30))
@settings(max_examples=100, deadline=None)
def test_a_padded_board_plays_as_the_board_itself(state, seed):
    rows, cols = int(state[rules.ROWS]), int(state[rules.COLS])
    wide = pad(state, rows + 2, cols + 3)
    rng = np.random.Generator(np.random.PCG64(seed))
    while not rules.terminal(state):
        action = int(rng.integers(2 * rows * cols))
        kind, cell = divmod(action, rows * cols)
        row, col = divmod(cell, cols)
        there = kind * (rows + 2) * (cols + 3) + row * (cols + 3) + col
        gain = rules.step(state, action)
        assert np.array_equal(rules.step(wide, there), gain, equal_nan=True)
        assert shown(wide) == shown(state)


@given(states())
@settings(max_examples=150, deadline=None)
def test_the_counters_are_what_the_board_says(state):
    words = state[rules.CELLS :]

    assert (words >> 8 == 0).all()
    assert state[rules.OPENED] == np.count_nonzero(words & rules.OPEN)
    assert state[rules.FLAGS] == np.count_nonzero(words & rules.FLAG)
    assert state[rules.MINES] == np.count_nonzero(words & rules.MINE)
    assert state[rules.SAFE] == words.size - state[rules.MINES]
    shape = (int(state[rules.ROWS]), int(state[rules.COLS]))
    for cell, word in enumerate(words.tolist()):
        mines = sum(bool(words[at] & rules.MINE) for at in near(cell, shape))
        assert word & rules.NUMBER == mines


@given(boards(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_reveal_opens_what_a_plain_flood_opens(state, data):
    shape = (int(state[rules.ROWS]), int(state[rules.COLS]))
    words = state[rules.CELLS :]
    hidden = [c for c in range(words.size) if not words[c] & (rules.OPEN | rules.MINE)]
    for cell in data.draw(st.lists(st.sampled_from(hidden), max_size=2)):
        rules.step(state, words.size + cell)
    free = [c for c in hidden if not words[c] & rules.FLAG]
    if not free:
        return
    cell = data.draw(st.sampled_from(free))
    expected = {c for c in range(words.size) if words[c] & rules.OPEN} | {cell}
    queue = [cell]
    while queue:
        at = queue.pop()
        if words[at] & rules.NUMBER == 0:
            new = [n for n in near(at, shape) if n not in expected and not words[n] & rules.FLAG]
            expected.update(new)
            queue += new
    rules.step(state, cell)

    assert {c for c in range(words.size) if words[c] & rules.OPEN} == expected


def test_the_state_of_a_position_looks_like_it():
    assert shown(position(["_F_", "121"], 2)) == [".F.", "121"]
