"""Boards from JSON lines, and what is said of broken ones."""

import json

import gymnasium as gym
import pytest

from agentgym.errors import InvalidInstance
from agentgym.games.minesweeper import GAME, MinesweeperOptions, rules

GOOD = {"rows": 2, "cols": 4, "mines": [[0, 2], [1, 2]], "first_click": [0, 0]}


@pytest.fixture
def load(tmp_path):
    def load_lines(*lines):
        file = tmp_path / "boards.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        file.write_text("\n".join(texts), encoding="utf-8")
        return GAME.load(file, MinesweeperOptions())

    return load_lines


def shown(state):
    return [
        "".join(r[3:].split()) for r in GAME.render(state, MinesweeperOptions()).split("\n")[2:]
    ]


def test_a_board(load):
    (state,) = load({"uid": "whatever", **GOOD})

    assert shown(state) == ["02..", "02.."]
    assert state[rules.MINES] == 2


def test_blank_lines_are_skipped_and_sizes_mixed(load):
    tall = {"rows": 4, "cols": 2, "mines": [[2, 0], [2, 1]], "first_click": [0, 1]}
    states = load(GOOD, "", tall, "  ")

    assert [shown(state) for state in states] == [["02..", "02.."], ["00", "22", "..", ".."]]
    assert {state.size for state in states} == {rules.CELLS + 16}
    layout = GAME.layout(MinesweeperOptions(), states)
    assert (layout.rows, layout.cols, layout.state_size) == (4, 4, states[0].size)


@pytest.mark.parametrize("shape", [(30, 24), (24, 30), (16, 30), (30, 16)])
def test_the_largest_boards_either_way_round(load, shape):
    rows, cols = shape
    mines = [[0, 2], [1, 2], [2, 2]] + [[r, c] for r in range(3, rows) for c in range(2)]
    (state,) = load({"rows": rows, "cols": cols, "mines": mines, "first_click": [0, 0]})

    assert (state[rules.ROWS], state[rules.COLS]) == shape
    assert rules.legal(state, rows * cols - 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 31}, "rows is from 1 to 30, got 31"),
        ({"cols": 0}, "cols is from 1 to 30, got 0"),
        ({"rows": 2.0}, "rows is from 1 to 30, got 2.0"),
        ({"rows": True}, "rows is from 1 to 30, got True"),
        ({"rows": 30, "cols": 25}, "at most 720 cells (30x24), got 30x25"),
        ({"mines": 2}, "mines is a list of [row, col], got 2"),
        ({"mines": [[0, 2], [2, 0]]}, "a mine is outside of the 2x4 board, got [2, 0]"),
        ({"mines": [[0, 2], [0, -1]]}, "a mine is outside of the 2x4 board, got [0, -1]"),
        ({"mines": [[0, 2, 1]]}, "a mine is [row, col], got [0, 2, 1]"),
        ({"mines": [[0, "2"]]}, "a mine is [row, col], got [0, '2']"),
        ({"mines": ["02"]}, "a mine is [row, col], got '02'"),
        ({"mines": [[0, 2], [1, 2], [0, 2]]}, "the mine [0, 2] is there twice"),
        ({"first_click": [0, 4]}, "first_click is outside of the 2x4 board, got [0, 4]"),
        ({"first_click": None}, "first_click is [row, col], got None"),
        ({"first_click": [1, 2]}, "first_click [1, 2] is on a mine"),
        ({"mines": []}, "the first click [0, 0] wins at once"),
        ({"mines": [[0, 3], [1, 3]]}, "the first click [0, 0] wins at once"),
    ],
)
def test_a_broken_board_is_told_with_file_and_line(load, change, message):
    with pytest.raises(InvalidInstance) as caught:
        load(GOOD, "", {**GOOD, **change})

    assert str(caught.value).startswith("boards.jsonl:3: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "expected a JSON object, got Expecting"),
        ("[1, 2]", "expected a JSON object, got '[1, 2]'"),
        ('{"rows": 2}', "missing: cols, mines, first_click"),
    ],
)
def test_a_line_that_is_no_board_is_told_with_file_and_line(load, line, message):
    with pytest.raises(InvalidInstance, match=r"^boards\.jsonl:2: ") as caught:
        load(GOOD, line)

    assert message in str(caught.value)


def test_an_empty_file_is_told(load):
    with pytest.raises(
        InvalidInstance, match=r"boards\.jsonl: expected one board a line, got none"
    ):
        load("", " ")


def test_an_environment_plays_a_file(tmp_path):
    file = tmp_path / "boards.jsonl"
    file.write_text(json.dumps(GOOD), encoding="utf-8")
    env = gym.make("agentgym/Minesweeper-v0", instances=str(file))
    observation, info = env.reset(options={"index": 0})

    assert observation.startswith("Mines: 2, flags: 0\n")
    assert info["oracle"]["best_actions"] == ("reveal 0 3", "reveal 1 3")
    assert env.step("reveal 0 3")[4]["oracle"]["best_actions"] == ("reveal 1 3",)
    assert env.step("reveal 1 3")[4]["success"]


def test_boards_of_both_orientations_share_the_largest_layout(load):
    mines = [[0, 2], [1, 2], [2, 2], [2, 1], [2, 0]]
    wide = {"rows": 24, "cols": 30, "mines": mines, "first_click": [0, 0]}
    states = load(wide, {**wide, "rows": 30, "cols": 24})
    oracle = GAME.make_oracle(MinesweeperOptions(), 10**6)

    for state in states:
        assert (state[rules.HEIGHT], state[rules.WIDTH]) == (30, 30)
        plan = oracle.solve(state)
        assert len(plan) == oracle.note(state).cost_to_go
        for action in plan:
            rules.step(state, action)
        assert rules.success(state)
