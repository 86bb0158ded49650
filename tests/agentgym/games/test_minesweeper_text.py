"""Minesweeper as text: the board, what may be answered, and what is said of the rest."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.game import ParseError
from agentgym.games.minesweeper import GAME, MinesweeperOptions, rules
from agentgym.games.minesweeper.instances import LEVELS, pad
from agentgym.games.minesweeper.text import layout_of
from tests.agentgym.games.minesweeper_plain import board, position, states

OPTIONS = MinesweeperOptions()
SIX = layout_of(6, 6)


def parse(text, layout=SIX):
    return GAME.parse(text, layout, OPTIONS)


def refusal(text, layout=SIX):
    parsed = parse(text, layout)
    assert isinstance(parsed, ParseError)
    return parsed.message


def test_the_board_is_drawn_as_cast_draws_it():
    state = board(["o.*.", "..*."])
    rules.step(state, 8 + 2)

    assert GAME.render(state, OPTIONS) == (
        "Mines: 2, flags: 1\n    0  1  2  3\n 0  0  2  F  . \n 1  0  2  .  . "
    )


def test_the_mine_that_was_hit_is_shown_and_no_other():
    state = board(["o.*.", "..*."])
    rules.step(state, 4 + 2)

    assert GAME.render(state, OPTIONS).split("\n")[2:] == [" 0  0  2  .  . ", " 1  0  2  *  . "]


def test_columns_and_rows_of_two_digits_stay_in_line():
    start, _ = GAME.generate(
        np.random.default_rng(0), MinesweeperOptions(level="16x30-99"), lambda form: True
    )
    lines = GAME.render(start, OPTIONS).split("\n")[1:]

    assert lines[0] == "   " + " ".join(f"{c:2}" for c in range(30))
    assert [line[:3] for line in lines[1:]] == [f"{r:2} " for r in range(16)]
    assert {len(line) for line in lines[1:]} == {3 + 3 * 30}
    assert set("".join(line[3:] for line in lines[1:])) <= set(" .012345678")


def test_a_smaller_board_of_a_file_is_drawn_alone():
    state = board(["o.*.", "..*."])

    assert GAME.render(pad(state, 9, 9), OPTIONS) == GAME.render(state, OPTIONS)


def test_what_an_action_reveals_is_all_that_the_text_tells_of_the_mines():
    state = position(["__1", "111"], 1)
    other = position(["__1", "111"], 1)
    words = other[rules.CELLS :]
    words[[0, 1]] = words[[1, 0]]

    assert GAME.render(state, OPTIONS) == GAME.render(other, OPTIONS)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("reveal 0 0", "reveal 0 0"),
        ("reveal 5 3", "reveal 5 3"),
        ("flag 0 5", "flag 0 5"),
        ("  REVEAL   2\t4 ", "reveal 2 4"),
        ("`Flag 1 1`", "flag 1 1"),
        ("[reveal 3 2]", "reveal 3 2"),
        ("( flag 3 2 )", "flag 3 2"),
        ("reveal 02 000", "reveal 2 0"),
    ],
)
def test_an_action_is_understood_in_any_dress(text, action):
    assert SIX.actions[parse(text)] == action


@pytest.mark.parametrize(
    "text",
    [
        "",
        "reveal",
        "reveal 1",
        "reveal 1 2 3",
        "reveal (1, 2)",
        "reveal 1,2",
        "reveal -1 2",
        "reveal 1.0 2",
        "reveal1 2",
        "open 1 2",
        "unflag 1 2",
        "reveal ٣ ٤",
        "reveal 1 2 or reveal 2 3",
        "I think reveal 1 2",
        "reveal 1 2.",
        "reveal 1 2; flag 3 3",
    ],
)
def test_anything_else_is_no_action(text):
    """CAST plays the first action found anywhere in the text (C14)."""
    assert "is not an action; answer with 'reveal R C' or 'flag R C'" in refusal(text)


@pytest.mark.parametrize("text", ["reveal 6 0", "flag 0 6", "reveal 99 99", "flag 0 " + "9" * 5000])
def test_a_cell_out_of_range_has_its_own_sentence(text):
    message = refusal(text)

    assert message.startswith("Row ")
    assert message.endswith("outside of the board; rows are 0 to 5 and columns 0 to 5.")
    assert len(message) < 120


def test_a_long_text_is_cut_in_the_sentence():
    assert len(refusal("reveal " * 1000)) < 200


@given(st.text() | st.from_regex(r"(?i)(reveal|flag)?[ \d.,()\[\]-]*", fullmatch=True))
@settings(max_examples=300, deadline=None)
def test_no_text_raises(text):
    parsed = parse(text)

    assert isinstance(parsed, ParseError) or 0 <= parsed < 72


@pytest.mark.parametrize("level", LEVELS)
def test_names_and_indices_are_inverse(level):
    layout = GAME.layout(MinesweeperOptions(level=level), None)

    assert [parse(name, layout) for name in layout.actions] == list(range(len(layout.actions)))
    assert len(layout.actions) == 2 * layout.rows * layout.cols
    assert layout.actions[layout.cols] == "reveal 1 0"
    assert layout.actions[layout.rows * layout.cols + 1] == "flag 0 1"


def explained(state, text):
    layout = layout_of(int(state[rules.HEIGHT]), int(state[rules.WIDTH]))
    action = parse(text, layout)
    assert not rules.legal(state, action)
    return GAME.explain(state, action, layout, OPTIONS)


def test_each_fault_has_its_own_sentence():
    state = pad(position(["0F_", "011"], 1), 2, 4)

    assert explained(state, "reveal 0 0") == (
        "Cell (0, 0) is already revealed; reveal a hidden cell, shown as '.'."
    )
    assert explained(state, "reveal 0 1") == (
        "Cell (0, 1) carries a flag; take it off with 'flag 0 1' first."
    )
    assert explained(state, "flag 1 2") == (
        "Cell (1, 2) is already revealed; only a hidden cell can carry a flag."
    )
    assert explained(state, "flag 0 3") == (
        "Row 0, column 3 is outside of the board; rows are 0 to 1 and columns 0 to 2."
    )
    assert explained(state, "reveal 1 3") == explained(state, "flag 1 3")
    rules.step(state, 2)
    assert rules.terminal(state)
    assert explained(state, "flag 0 2") == "The game is over; no cell can be revealed or flagged."


@given(states())
@settings(max_examples=60, deadline=None)
def test_what_is_not_legal_is_explained(state):
    cells = state.size - rules.CELLS
    layout = layout_of(int(state[rules.HEIGHT]), int(state[rules.WIDTH]))
    for action in range(2 * cells):
        if not rules.legal(state, action):
            assert GAME.explain(state, action, layout, OPTIONS).endswith(".")


@given(st.text(max_size=30))
@settings(max_examples=50, deadline=None)
def test_a_reply_that_is_no_action_costs_a_turn_and_changes_nothing(text):
    env = gym.make("agentgym/Minesweeper-v0", oracle=False)
    env.reset(seed=1)
    before = env.unwrapped.state.tobytes()
    _, reward, terminated, truncated, info = env.step(text)

    assert env.unwrapped.state.tobytes() == before
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert not info["valid"]
    assert info["error"]
    assert info["turn"] == 1


def test_the_instructions_are_short_and_name_the_size():
    text = GAME.instructions(OPTIONS, SIX)

    assert "at most 6 rows and 6 columns" in text
    assert len(text) < 1000
