"""The rules of 2048 against literal boards, real data and a plain reference."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.chance import COUNTER, KEY
from agentgym.games.game_2048 import GAME
from agentgym.games.game_2048.board import moves
from agentgym.games.game_2048.instances import fresh, shape_of
from agentgym.games.game_2048.rules import BASE, OVER, ROWS, SCORE, SIZE, TOP, get_board, settle
from tests.agentgym.games import game_2048_plain as plain

UP, DOWN, LEFT, RIGHT = range(4)
DATA = Path(__file__).parents[4] / "shared" / "data" / "game_2048" / "merges.json"


def state_of(board, *, base=2, key=1):
    """A state from exponents."""
    state = fresh(key, shape_of(len(board), base))
    for r, row in enumerate(board):
        state[ROWS + r] = sum(int(k) << (8 * c) for c, k in enumerate(row))
    settle(state)
    return state


def board_of(state):
    """The exponents of a state, as lists."""
    size = state[SIZE]
    grid = np.full((size, size), 99, np.uint8)
    GAME.observe(state, grid)
    return grid.tolist()


def exponents(tiles):
    return [[t.bit_length() - 1 if t else 0 for t in row] for row in tiles]


def played(board, action, **how):
    """A state after an action, and the reward."""
    state = state_of(board, **how)
    return state, GAME.step(state, action)


def without_spawn(slid, after):
    """Check that `after` is `slid` and one new tile; where it is and its exponent."""
    new = [
        (r, c, after[r][c])
        for r in range(len(slid))
        for c in range(len(slid))
        if slid[r][c] != after[r][c]
    ]
    assert len(new) == 1
    ((r, c, exponent),) = new
    assert slid[r][c] == 0
    assert exponent in (1, 2)
    return r, c, exponent


def data():
    if not DATA.exists():
        pytest.skip("The sample data (../shared/data/game_2048/merges.json) is not here.")
    return json.loads(DATA.read_text())


@pytest.mark.parametrize("line", [0, 1, 2, 3])
@pytest.mark.parametrize("action", [UP, DOWN, LEFT, RIGHT])
def test_rows_of_the_sample_data_merge_as_they_say(line, action):
    for case in data()["rows"]:
        (row, left, right) = exponents([case["row"], case["left"], case["right"]])
        board, want = np.zeros((2, 4, 4), int)
        if action in (LEFT, RIGHT):
            board[line], want[line] = row, left if action == LEFT else right
        else:
            board[:, line], want[:, line] = row, left if action == UP else right
        state, reward = played(board, action)
        if (board == want).all():
            assert np.isnan(reward)
        else:
            assert reward == case["score"] == state[SCORE]
            without_spawn(want.tolist(), board_of(state))


def test_boards_of_the_sample_data():
    names = ["up", "down", "left", "right"]
    for case in data()["boards"]:
        state = state_of(exponents(case["board"]))
        legal = [name for action, name in enumerate(names) if GAME.legal(state, action)]
        assert legal == case.get("legal", legal)
        assert bool(GAME.terminal(state)) == (legal == [])
        if "reference_move" in case:
            assert case["reference_move"] in legal
        if case.get("spawns") is False:
            before = state.copy()
            assert np.isnan(GAME.step(state, names.index(case["move"])))
            assert (state == before).all()


def test_one_move_by_hand():
    state, reward = played([[1, 1, 2, 0], [0, 0, 0, 3], [3, 0, 3, 3], [1, 2, 1, 2]], LEFT)

    assert reward == 4 + 16
    assert state[SCORE] == 20
    assert state[COUNTER] == 1
    without_spawn([[2, 2, 0, 0], [3, 0, 0, 0], [4, 3, 0, 0], [1, 2, 1, 2]], board_of(state))


def test_tiles_beyond_65536_are_right():
    state, reward = played([[16, 16, 17, 17], [0] * 4, [0] * 4, [0] * 4], RIGHT, base=3)

    assert reward == 3 * 2**16 + 3 * 2**17
    assert state[TOP] == 18
    without_spawn([[0, 0, 17, 18], [0] * 4, [0] * 4, [0] * 4], board_of(state))


def test_the_highest_tile_of_5x5_is_right():
    full = [[26, 25, 24, 23, 22], [17, 18, 19, 20, 21], [16, 15, 14, 13, 12]]
    full += [[7, 8, 9, 10, 11], [6, 5, 4, 3, 3]]
    state, reward = played(full, LEFT)

    assert reward == 2**4
    assert not GAME.terminal(state)
    without_spawn([*full[:4], [6, 5, 4, 4, 0]], board_of(state))


def test_an_unchanged_board_is_not_legal_and_spawns_nothing():
    state = state_of([[1, 2, 3], [0, 0, 0], [0, 0, 0]])
    before = state.copy()

    for action in (UP, LEFT, RIGHT):
        assert not GAME.legal(state, action)
        assert np.isnan(GAME.step(state, action))
    assert state.tobytes() == before.tobytes()
    assert GAME.step(state, DOWN) == 0.0


def test_the_game_ends_when_the_spawn_fills_the_last_gap():
    blocked = [[1, 2, 1], [2, 1, 2], [3, 4, 0]]
    ends = set()
    for key in range(1, 60):
        state, _ = played(blocked, RIGHT, key=key)
        assert bool(GAME.terminal(state)) == (plain.legal(board_of(state)) == [])
        ends.add(bool(GAME.terminal(state)))
    assert ends == {True, False}


def test_success_and_progress_follow_the_largest_tile():
    at_goal, _ = played([[10, 10, 0, 0], [0] * 4, [0] * 4, [0] * 4], LEFT)
    below, _ = played([[9, 9, 0, 0], [0] * 4, [0] * 4, [0] * 4], LEFT)

    assert GAME.success(at_goal)
    assert not GAME.terminal(at_goal)
    assert GAME.progress(at_goal) == 1.0
    assert not GAME.success(below)
    assert GAME.progress(below) == 0.9


def boards(size):
    """Random boards; exponents far beyond what the smaller sizes reach."""
    cell = st.one_of(st.just(0), st.integers(1, 4), st.integers(1, 25))
    return st.lists(st.lists(cell, min_size=size, max_size=size), min_size=size, max_size=size)


@settings(max_examples=400, deadline=None)
@given(st.integers(2, 5).flatmap(boards), st.integers(0, 3), st.sampled_from([1, 2, 3, 10]))
def test_a_step_is_the_plain_rule(board, action, base):
    slid, merged = plain.slide(board, action)
    state, reward = played(board, action, base=base, key=action + 5)

    if slid == board:
        assert np.isnan(reward)
        assert state.tobytes() == state_of(board, base=base, key=action + 5).tobytes()
        return
    assert reward == state[SCORE] == sum(base << (k - 1) for k in merged)
    after = board_of(state)
    without_spawn(slid, after)
    again = state_of(after, base=base, key=state[KEY])
    assert (state[[TOP, OVER]] == again[[TOP, OVER]]).all()
    assert state[TOP] == max(map(max, after))


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 5).flatmap(boards))
def test_legal_moves_are_the_plain_ones(board):
    state = state_of(board)
    want = plain.legal(board)

    assert [a for a in range(4) if GAME.legal(state, a)] == want
    assert bool(GAME.terminal(state)) == (want == [])
    assert moves(get_board(state), state[SIZE]) == sum(1 << a for a in want)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**62), st.sampled_from([2, 3, 4, 5]), st.data())
def test_whole_games_keep_their_counters(key, size, data):
    state = GAME.generate(
        np.random.Generator(np.random.PCG64(key)), GAME.options(size=size), lambda form: True
    ).start
    actions = data.draw(st.lists(st.integers(0, 3), max_size=120))
    points = 0
    for action in actions:
        board = board_of(state)
        slid, merged = plain.slide(board, action)
        reward = GAME.step(state, action)
        assert np.isnan(reward) == (slid == board)
        points += sum(2 << (k - 1) for k in merged)
        assert GAME.score(state) == points
        assert state[TOP] == max(map(max, board_of(state)))
        assert bool(GAME.terminal(state)) == (plain.legal(board_of(state)) == [])


def test_base_only_scales_the_points():
    two, three = (fresh(99, shape_of(4, base)) for base in (2, 3))
    for state in (two, three):
        state[ROWS] = 1
    for turn in range(300):
        assert GAME.step(two, turn % 4) * 1.5 == pytest.approx(
            GAME.step(three, turn % 4), nan_ok=True
        )
    assert board_of(two) == board_of(three)
    assert 3 * two[SCORE] == 2 * three[SCORE] > 0
    assert three[BASE] == 3
