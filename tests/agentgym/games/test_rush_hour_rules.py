"""Rush Hour's rules: literal boards in and out, and random play against the plain telling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.games.rush_hour import GAME
from agentgym.games.rush_hour.boards import board_of, board_of_state, state_of, text_of
from agentgym.games.rush_hour.milestones import names
from agentgym.games.rush_hour.options import RushHourOptions
from agentgym.games.rush_hour.rules import RANK, place_all
from tests.agentgym.games import rush_hour_plain as plain

OPTIONS = RushHourOptions()
START = "".join(
    (
        "oooBoo",
        "oooBCC",
        "oAABoo",
        "DooooE",
        "DFFooE",
        "DoooGG",
    )
)


def made(text):
    return state_of(board_of(text))


def shown(state):
    return text_of(board_of_state(state))


def layout_of(state):
    return GAME.layout(OPTIONS, (state,))


def play(state, *texts):
    """Play in place; the rewards."""
    layout = layout_of(state)
    return [GAME.step(state, GAME.parse(text, layout, OPTIONS)) for text in texts]


def grid_of(state):
    layout = layout_of(state)
    grid = np.full((layout.rows, layout.cols), 255, np.uint8)
    GAME.observe(state, grid)
    return grid


@pytest.mark.parametrize(
    ("action", "row"),
    [
        ("F+1", "DoFFoE"),
        ("F+2", "DooFFE"),
        ("F+3", None),
        ("F-1", None),
        ("A+1", None),
        ("C+1", None),
    ],
)
def test_a_horizontal_slide(action, row):
    state = made(START)

    (reward,) = play(state, action)

    expected = START if row is None else START[:24] + row + START[30:]
    assert shown(state) == expected
    assert np.isnan(reward) == (row is None)


def test_a_vertical_slide_goes_its_whole_way_or_not_at_all():
    state = made(START)

    assert np.isnan(play(state, "E-2", "E+1", "B-1", "B+4")).all()
    assert shown(state) == START
    assert play(state, "E-1", "B+3") == pytest.approx([-1.1, 0.9])
    assert shown(state) == "oooooo" + "ooooCC" + "oAAooE" + "DooBoE" + "DFFBoo" + "DooBGG"


def test_a_long_slide_needs_every_cell_of_its_way():
    board = "oooooo" * 2 + "AAoBoo" + "oooBoo" + "oooooo" * 2

    state = made(board)

    assert np.isnan(play(state, "A+2", "A+3", "A+4")).all()
    assert shown(state) == board
    play(state, "B-2", "A+4")
    assert GAME.success(state)
    assert shown(state) == "oooBoo" * 2 + "ooooAA" + "oooooo" * 3


def test_walls_stop_pieces():
    state = made("oxoooo" + "oooBoo" + "AAoBox" + "oooooo" * 3)

    assert np.isnan(play(state, "A+1", "A+2", "B-2")).sum() == 2
    assert shown(state) == "oxoooo" + "oooBoo" + "oAABox" + "oooooo" * 3


def test_the_win_ends_the_game_and_nothing_is_legal_after_it():
    state = made("oooooo" * 2 + "AAoooo" + "Booooo" * 2 + "oooooo")
    actions = range(len(layout_of(state).actions))

    assert play(state, "A+4") == [pytest.approx(9.9)]
    assert GAME.terminal(state)
    assert GAME.success(state)
    assert not any(GAME.legal(state, action) for action in actions)
    assert np.isnan(play(state, "A-1", "B+1")).all()


def test_the_dense_reward_counts_the_pieces_in_the_way():
    state = made("ooooBo" + "oooCBo" + "AAoCBo" + "oooooo" * 3)

    rewards = play(state, "C+1", "C+1", "C-2", "C-1", "C+1", "B+3", "A+4")

    assert rewards == pytest.approx([-0.1, 0.9, -1.1, 0.9, -1.1, 0.9, np.nan], nan_ok=True)
    assert play(state, "C-1", "A+4") == pytest.approx([0.9, 9.9])


def test_score_and_progress():
    state = made("ooooBo" + "oooCBo" + "AAoCBo" + "oooooo" * 3)

    assert GAME.score(state) == -(4 + 2)
    assert GAME.progress(state) == 1 - 6 / 8
    play(state, "C+2", "B+3", "A+4")
    assert GAME.score(state) == 0
    assert GAME.progress(state) == 1


def test_pieces_and_walls_of_the_red_cars_row_are_counted_once():
    state = made("oooooo" * 2 + "AAxBBB" + "oooooo" * 3)
    behind = made("oooooo" * 2 + "BBAAoo" + "oooooo" * 3)

    assert GAME.score(state) == -(4 + 1)
    assert GAME.score(behind) == -2


def test_the_grid_shows_codes():
    state = made("xooBoo" + "oooBoo" + "oAABoo" + "oooooo" * 3)

    assert grid_of(state).tolist() == [
        [1, 0, 0, 3, 0, 0],
        [0, 0, 0, 3, 0, 0],
        [0, 2, 2, 3, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ]


def test_milestones_are_reached_as_the_way_clears():
    state = made("ooooBo" + "oooCBo" + "AAoCBo" + "oooooo" * 3)
    start, layout = state.copy(), layout_of(state)
    held = np.zeros(len(layout.milestones), bool)
    seen = []
    for action in ("C+1", "C+1", "C-1", "C+1", "B+3", "A+4"):
        play(state, action)
        GAME.reached(state, start, False, held)
        seen.append([name for name, on in zip(layout.milestones, held, strict=True) if on])

    assert layout.milestones == ("cleared_3", "cleared_2", "cleared_1", "cleared_0", "out")
    assert GAME.milestone_total(start, layout) == 3
    assert seen == [
        [],
        ["cleared_1"],
        ["cleared_1"],
        ["cleared_1"],
        ["cleared_1", "cleared_0"],
        ["cleared_1", "cleared_0", "out"],
    ]


def test_the_milestones_of_a_larger_board():
    assert names(8) == (*(f"cleared_{k}" for k in (5, 4, 3, 2, 1, 0)), "out")


@given(plain.boards(), st.data())
@settings(max_examples=60, deadline=None)
def test_random_play_is_the_plain_telling(board, data):
    state, size = made(board), round(len(board) ** 0.5)
    layout = layout_of(state)
    for _ in range(8):
        assert shown(state) == board
        assert GAME.success(state) == plain.won(board)
        possible = {f"{p}{'+' if s > 0 else '-'}{k}": b for p, s, k, b in plain.slides(board)}
        legal = {text for a, text in enumerate(layout.actions) if GAME.legal(state, a)}
        assert legal == possible.keys()
        gap = size - 1 - (board[2 * size : 3 * size].rindex("A"))
        assert GAME.score(state) == -(gap + plain.blockers(board))
        assert 0 <= GAME.progress(state) <= 1
        assert (GAME.progress(state) == 1) == plain.won(board)
        text = data.draw(st.sampled_from(layout.actions))
        before = state.copy()
        reward = GAME.step(state, layout.actions.index(text))
        if text not in possible:
            assert np.isnan(reward)
            assert (state == before).all()
            continue
        cleared = plain.blockers(board) - plain.blockers(possible[text])
        board = possible[text]
        assert reward == pytest.approx(-0.1 + cleared + 10 * plain.won(board))


@given(plain.boards(), st.data())
@settings(max_examples=60, deadline=None)
def test_what_a_step_keeps_up_to_date_is_what_a_fresh_state_has(board, data):
    state = made(board)
    layout = layout_of(state)
    for _ in range(6):
        GAME.step(state, data.draw(st.sampled_from(range(len(layout.actions)))))
    fresh = state.copy()
    place_all(fresh)

    assert (fresh == state).all()
    assert shown(made(shown(state))) == shown(state)


@given(plain.boards(sizes=(4, 5, 6), most=5))
@settings(max_examples=25, deadline=None)
def test_no_two_states_of_a_board_have_one_rank(board):
    reachable = plain.reachable(board)
    state = made(board)
    room = (len(state) - 7) // 3
    ranks = {int(state_of(board_of(other), room)[RANK]) for other in reachable}

    assert len(ranks) == len(reachable)


def test_every_rank_of_the_largest_board_is_below_two_to_the_64_less_one():
    # Of a lane with k pieces and F free cells there are at most (F + 1)^k ranks.
    lanes = {
        (k, (8 - 2 * k - trucks + 1) ** k)
        for k in range(5)
        for trucks in range(k + 1)
        if 2 * k + trucks <= 8
    }
    most = {0: 1}
    for _ in range(16):
        sums = [(a + k, x * y) for a, x in most.items() for k, y in lanes if a + k <= 26]
        most = {a: max(y for b, y in sums if b == a) for a, _ in sums}

    assert max(most.values()) == 7**6 * 25**10
    assert max(most.values()) < 2**64 - 1
