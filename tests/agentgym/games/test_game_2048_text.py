"""What a player of 2048 reads and may write."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentgym  # noqa: F401
from agentgym.game import ParseError
from agentgym.games.game_2048 import GAME
from tests.agentgym.games.test_game_2048_rules import boards, played, state_of

ACTIONS = ("Up", "Down", "Left", "Right")


def text_of(board, **how):
    return GAME.render(state_of(board, **how), GAME.options())


def test_cells_are_right_justified_in_real_lines():
    board = [[1, 0, 0, 11], [0, 7, 0, 0], [0, 0, 0, 0], [3, 0, 0, 2]]

    assert text_of(board) == (
        "   2    .    . 2048\n   .  128    .    .\n   .    .    .    .\n   8    .    .    4"
    )


def test_large_tiles_widen_the_columns():
    assert text_of([[17, 1], [0, 16]]) == "131072      2\n     .  65536"
    assert text_of([[11, 1], [0, 2]], base=3) == "3072    3\n   .    6"


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 5).flatmap(boards), st.sampled_from([2, 3]))
def test_the_text_holds_the_whole_board(board, base):
    lines = text_of(board, base=base).split("\n")
    tiles = [[0 if cell == "." else int(cell) for cell in line.split()] for line in lines]

    assert tiles == [[base << (k - 1) if k else 0 for k in row] for row in board]
    assert len({len(line) for line in lines}) == 1


def test_128_and_128_make_256():
    """A suite that computes tiles in uint8 scores 0 here and prints 0."""
    state, reward = played([[7, 7, 0, 0], [0] * 4, [0] * 4, [0] * 4], 2)

    assert reward == 256.0
    assert " 256 " in GAME.render(state, GAME.options())


def parse(text):
    return GAME.parse(text, GAME.layout(GAME.options(), None), GAME.options())


@pytest.mark.parametrize(
    ("text", "action"),
    [("Up", 0), ("down", 1), (" LEFT\n", 2), ("[right]", 3), ("`Up`", 0), ('"Down"', 1)],
)
def test_spellings_that_are_understood(text, action):
    assert parse(text) == action


@pytest.mark.parametrize("text", ["", "UpDown", "north", "up, down", "[[up]]", "move: up"])
def test_other_texts_say_what_is_accepted(text):
    error = parse(text)

    assert isinstance(error, ParseError)
    assert error.message.endswith("answer with one of: Up, Down, Left, Right.")


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_at_all_neither_raises_nor_changes_the_board(text):
    if text.strip().lower().strip("[](){}<>\"'` ") in ("up", "down", "left", "right"):
        return
    env = ENV
    before = env.unwrapped.state.tobytes()
    turn = env.unwrapped.set_state(env.unwrapped.state, turn=0)["turn"]
    _, reward, terminated, _, info = env.step(text)

    assert env.unwrapped.state.tobytes() == before
    assert (reward, terminated, info["valid"], info["turn"]) == (0.0, False, False, turn + 1)
    assert info["error"]


ENV = gym.make("agentgym/2048-v0", oracle=False, disable_env_checker=True)
ENV.reset(seed=0)


def test_garbage_for_a_whole_episode_scores_nothing_and_does_not_end_the_game():
    env = gym.make("agentgym/2048-v0", oracle=False)
    env.reset(seed=1)
    for _ in range(50):
        _, reward, terminated, truncated, info = env.step("I would rather not.")
        assert (reward, terminated, truncated, info["success"]) == (0.0, False, False, False)
    assert env.step("Left")[4]["turn"] == 51


def test_the_dense_reward_is_the_points_and_minus_one():
    env = gym.make("agentgym/2048-v0", oracle=False, reward="dense")
    env.reset(seed=0)
    env.unwrapped.set_state(state_of([[1, 1, 0, 0], [0] * 4, [0] * 4, [0] * 4]))

    assert env.step("Up")[1] == -1.0
    assert env.step("nowhere")[1] == -1.0
    assert env.step("Left")[1] == 4.0


def test_an_unchanged_board_is_explained():
    state = state_of([[1, 2, 1, 0], [0] * 4, [0] * 4, [0] * 4])
    layout, options = GAME.layout(GAME.options(), None), GAME.options()

    assert GAME.explain(state, 2, layout, options) == (
        "Left moves no tile and merges none; moves that change the board: Down, Right."
    )
    over = state_of([[1, 2], [2, 1]])
    assert "the game is over" in GAME.explain(over, 0, layout, options)


@pytest.mark.parametrize("env_id", ["2048-v0", "2048-3x3-v0", "3072-v0"])
def test_instructions_name_the_numbers_and_are_short(env_id):
    setup = gym.make(f"agentgym/{env_id}", oracle=False).unwrapped.setup
    told = setup.game.instructions(setup.options, setup.layout)
    base, target = {"2048-v0": (2, 2048), "2048-3x3-v0": (2, 256), "3072-v0": (3, 3072)}[env_id]

    assert f"new tile, {base} or sometimes {2 * base}," in told
    assert f"Reach a tile of {target} " in told
    assert len(told) < 1000


def test_grids_are_exponents():
    env = gym.make("agentgym/3072-v0", observation="grid", action="index", oracle=False)
    grid, info = env.reset(seed=3)

    assert grid.dtype == np.uint8
    assert grid.shape == (4, 4)
    assert env.observation_space.contains(grid)
    assert np.sort(grid.ravel())[-3] == 0
    assert info["progress"] == pytest.approx((grid.max() - 1) / 10)


def test_milestones_come_with_the_tiles_and_stay():
    env = gym.make("agentgym/2048-v0", oracle=False)
    env.reset(seed=0)
    names = env.unwrapped.setup.layout.milestones
    env.unwrapped.set_state(state_of([[5, 5, 0, 0], [4, 4, 0, 0], [0] * 4, [0] * 4]))
    info = env.step("Left")[4]["milestones"]

    assert [n for n, held in zip(names, info["reached"], strict=True) if held] == [
        "tile_32",
        "tile_64",
    ]
    assert info["new"].tolist() == [False, True] + [False] * 11
    assert (info["count"], info["total"]) == (2, 13)
