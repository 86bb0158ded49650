"""Rules of Sokoban: literal positions in, literal positions out."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.games.sokoban import GAME, SokobanOptions
from agentgym.games.sokoban.boards import make_state
from agentgym.games.sokoban.rules import BOXES, CELLS, COLS, ON_TARGET, PLAYER, ROWS, WALL
from tests.agentgym.games.sokoban_plain import MOVES, boards, draw, plain, play, state_of

UP, DOWN, LEFT, RIGHT = range(4)
PUSH = 4
GRID = SokobanOptions(layout="grid")


def shown(state):
    return GAME.render(state, GRID).split("\n")


def after(rows, *actions, explicit=False):
    state = state_of(rows, explicit=explicit)
    rewards = [GAME.step(state, action) for action in actions]
    return shown(state), rewards


@pytest.mark.parametrize(
    ("action", "row"),
    [(LEFT, "#_P__X_O#"), (RIGHT, "#___PX_O#")],
)
def test_a_walk_moves_the_player_only(action, row):
    rows, rewards = after(["#########", "#__P_X_O#", "#########"], action)

    assert rows[1] == row
    assert rewards == [-0.1]


def test_walking_into_a_box_pushes_it():
    rows, rewards = after(["######", "#PX_O#", "######"], RIGHT)

    assert rows[1] == "#_PXO#"
    assert rewards == [-0.1]


def test_a_push_in_every_direction():
    board = ["#######", "#_____#", "#__X__#", "#_XPX_#", "#__X__#", "#OOOO_#", "#######"]

    assert after(board, UP)[0][1:4] == ["#__X__#", "#__P__#", "#_X_X_#"]
    assert after(board, DOWN)[0][3:6] == ["#_X_X_#", "#__P__#", "#OO*O_#"]
    assert after(board, LEFT)[0][3] == "#XP_X_#"
    assert after(board, RIGHT)[0][3] == "#_X_PX#"


@pytest.mark.parametrize("row", ["#PX#_O#", "#PXX_OO#", "#P*XO_#", "#PX*_O#"])
def test_a_blocked_push_is_legal_changes_nothing_and_costs_a_step(row):
    board = ["#" * len(row), row, "#" * len(row)]

    rows, rewards = after(board, RIGHT)

    assert rows == board
    assert rewards == [-0.1]


def test_walking_into_a_wall_changes_nothing():
    board = ["#####", "#PXO#", "#####"]

    for action in (UP, DOWN, LEFT):
        assert after(board, action) == (board, [-0.1])


def test_boxes_are_never_pulled():
    assert after(["#######", "#_XP_O#", "#######"], RIGHT)[0][1] == "#_X_PO#"


def test_the_dense_reward_of_each_event_is_gym_sokobans():
    board = ["########", "#PXO_XO#", "########"]

    rows, rewards = after(board, RIGHT, RIGHT)
    assert rows[1] == "#__SXXO#"
    assert rewards == pytest.approx([0.9, -1.1])
    assert after(["#####", "#PXO#", "#####"], RIGHT)[1] == pytest.approx([10.9])


def test_pushing_a_box_from_target_to_target_neither_pays_nor_costs():
    rows, rewards = after(["########", "#P*O_XO#", "########"], RIGHT)

    assert rows[1] == "#_S*_XO#"
    assert rewards == [-0.1]


def test_the_win_needs_every_box_and_pays_once():
    state = state_of(["########", "#PX_O_*#", "########"])

    assert not GAME.success(state)
    assert GAME.score(state) == 1
    assert GAME.step(state, RIGHT) == -0.1
    assert GAME.step(state, RIGHT) == pytest.approx(10.9)
    assert GAME.success(state)
    assert GAME.terminal(state)
    assert (GAME.score(state), GAME.progress(state)) == (2, 1)


@pytest.mark.parametrize(
    ("row", "action", "result"),
    [
        ("#PX_O#", RIGHT, "#PX_O#"),
        ("#PX_O#", PUSH + RIGHT, "#_PXO#"),
        ("#P_XO#", RIGHT, "#_PXO#"),
        ("#P_XO#", PUSH + RIGHT, "#P_XO#"),
        ("#PX#O#", PUSH + RIGHT, "#PX#O#"),
        ("#PXXOO#", PUSH + RIGHT, "#PXXOO#"),
        ("#P_XO#", PUSH + LEFT, "#P_XO#"),
    ],
)
def test_explicit_actions_walk_or_push_never_both(row, action, result):
    board = ["#" * len(row), row, "#" * len(row)]

    rows, rewards = after(board, action, explicit=True)

    assert rows[1] == result
    assert rewards == [-0.1]


def test_the_action_set_says_which_actions_are_legal():
    four = state_of(["#####", "#PXO#", "#####"])
    eight = state_of(["#####", "#PXO#", "#####"], explicit=True)

    assert [GAME.legal(four, a) for a in range(-1, 9)] == [False] + [True] * 4 + [False] * 5
    assert [GAME.legal(eight, a) for a in range(-1, 9)] == [False] + [True] * 8 + [False]


@pytest.mark.parametrize("action", [-1, 4, 7, 99])
def test_an_unknown_action_gives_nan_and_changes_nothing(action):
    state = state_of(["#####", "#PXO#", "#####"])
    before = state.copy()

    assert np.isnan(GAME.step(state, action))
    assert (state == before).all()


def test_the_fields_of_a_state():
    state = state_of(["######", "#S_X_#", "#*___#", "######"], cells=40)

    assert (state[ROWS], state[COLS], state[BOXES], state[ON_TARGET]) == (4, 6, 2, 1)
    assert state[PLAYER] == 7
    assert len(state) == CELLS + 40
    assert (state[CELLS + 24 :] == WALL).all()


@given(boards(), st.lists(st.sampled_from(list(MOVES)), max_size=40))
@settings(max_examples=150, deadline=None)
def test_random_play_agrees_with_the_plain_rules(rows, names):
    state, position = state_of(rows), plain(rows)
    for name in names:
        GAME.step(state, list(MOVES).index(name))
        position = play(position, name)
        assert shown(state) == draw(position, (len(rows), len(rows[0])))
        assert state[ON_TARGET] == len(position.boxes & position.targets)
        assert GAME.success(state) == (position.boxes == position.targets)


@given(boards(), st.lists(st.integers(0, 7), max_size=40))
@settings(max_examples=100, deadline=None)
def test_random_explicit_play_agrees_with_the_plain_rules(rows, actions):
    state, position = state_of(rows, explicit=True), plain(rows)
    for action in actions:
        GAME.step(state, action)
        position = play(position, ("walk " if action < 4 else "push ") + list(MOVES)[action % 4])
        assert shown(state) == draw(position, (len(rows), len(rows[0])))


@given(boards(), st.lists(st.integers(0, 3), max_size=30))
@settings(max_examples=50, deadline=None)
def test_the_counters_are_those_of_a_board_made_anew(rows, actions):
    state = state_of(rows)
    for action in actions:
        GAME.step(state, action)

    assert (state == state_of(shown(state))).all()


def test_the_grid_shows_codes_and_fills_what_is_beyond_the_board_with_walls():
    state = state_of(["######", "#S_X_#", "#*_O_#", "######"], cells=56)
    grid = np.full((7, 8), 99, np.uint8)

    GAME.observe(state, grid)

    assert grid[1, :6].tolist() == [6, 5, 0, 2, 0, 6]
    assert grid[2, :6].tolist() == [6, 3, 0, 1, 0, 6]
    assert (grid[4:] == 6).all()
    assert (grid[:, 6:] == 6).all()


def test_the_grid_of_the_boards_own_shape():
    state = state_of(["#####", "#PXO#", "#####"])
    grid = np.full((3, 5), 99, np.uint8)

    GAME.observe(state, grid)

    assert grid.tolist() == [[6] * 5, [6, 4, 2, 1, 6], [6] * 5]


def test_milestones_count_boxes_unless_the_state_is_proven_lost():
    state = state_of(["########", "#*_P*XO#", "########"])
    held = np.zeros(3, bool)

    GAME.reached(state, state, True, held)
    assert held.tolist() == [False] * 3
    GAME.reached(state, state, False, held)
    assert held.tolist() == [True, True, False]


def test_a_milestone_is_kept_when_the_box_leaves_the_target():
    state = state_of(["#######", "#_PXO_#", "#_X__O#", "#######"])
    held = np.zeros(2, bool)

    for action in (RIGHT, RIGHT):
        GAME.step(state, action)
        GAME.reached(state, state, False, held)

    assert state[ON_TARGET] == 0
    assert held.tolist() == [True, False]


def test_a_box_parked_in_a_lost_position_earns_no_milestone():
    """ProAct's score counts it (P15); the milestone asks the oracle."""
    env = gym.make("agentgym/Sokoban-v0", observation="grid", action="index")
    env.reset(seed=0)
    lost = state_of(["######", "#X___#", "#_PXO#", "#___O#", "#____#", "######"])

    env.unwrapped.set_state(lost)
    *_, info = env.step(RIGHT)

    assert info["score"] == 1
    assert info["oracle"]["dead_end"]
    assert not info["milestones"]["reached"].any()


def test_reset_forgets_boxes_on_target_of_the_episode_before():
    """ProAct's counter survives reset (P5): an invalid first action then scores."""
    env = gym.make("agentgym/Sokoban-v0", reward="dense")
    env.reset(seed=1)
    for action in env.unwrapped.oracle.solve(env.unwrapped.state):
        *_, info = env.step(env.unwrapped.setup.layout.actions[action])
    assert info["score"] == 2

    _, info = env.reset(seed=2)
    assert info["score"] == 0
    _, reward, *_, info = env.step("nonsense")
    assert (reward, info["score"], info["valid"]) == (-0.1, 0, False)
    _, reward, *_, info = env.step("Up")
    assert (reward, info["score"]) == (-0.1, 0)


def test_an_invalid_reply_is_never_worth_more_than_a_legal_action():
    """ProAct pays -2 for it, which its critic's values undercut (P3)."""
    env = gym.make("agentgym/Sokoban-v0", reward="dense")
    env.reset(seed=3)

    assert env.step("nonsense")[1] == env.step("Up")[1] == -0.1


def test_states_of_a_split_room_keep_to_the_players_part():
    state = state_of(["#######", "#PXO#*#", "#######"])

    assert GAME.step(state, RIGHT) == pytest.approx(10.9)
    assert GAME.success(state)


def test_make_state_takes_any_board_up_to_16x16_with_8_boxes():
    codes = np.zeros((16, 16), np.int64)
    codes[[0, -1]] = codes[:, [0, -1]] = WALL
    codes[2, 2:10], codes[3, 2:10], codes[8, 8] = 1, 2, 4

    state = make_state(codes, explicit=False)

    assert (state[BOXES], state[PLAYER], len(state)) == (8, 8 * 16 + 8, CELLS + 256)
