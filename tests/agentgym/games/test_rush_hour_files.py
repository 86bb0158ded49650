"""Rush Hour boards from files, and what is said of broken ones."""

import gymnasium as gym
import pytest

from agentgym.errors import InvalidInstance
from agentgym.games.rush_hour import GAME
from agentgym.games.rush_hour.boards import board_of_state, text_of
from agentgym.games.rush_hour.options import RushHourOptions
from tests.agentgym.games.test_rush_hour_oracle import data

OPTIONS = RushHourOptions()
BOARD = "oooBoo" + "oooBCC" + "oAABoo" + "DooooE" + "DFFooE" + "DoooGG"
EMPTY = "oooooo"


@pytest.fixture
def load(tmp_path):
    def load_text(text):
        file = tmp_path / "boards.txt"
        file.write_text(text, encoding="utf-8")
        return GAME.load(file, OPTIONS)

    return load_text


def shown(states):
    return [text_of(board_of_state(state)) for state in states]


def test_boards_blank_lines_and_comments(load):
    other = BOARD.replace("F", "o")

    states = load(f"# two boards\n\n{BOARD}\n  {other.replace('o', '.')}  \n\n")

    assert shown(states) == [BOARD, other]


def test_lines_of_the_database(load):
    assert shown(load(f"51 {BOARD} 4780\n1 {BOARD} 5")) == [BOARD, BOARD]


def test_the_whole_database_sample_loads(load):
    boards = [row.split()[1] for row in data("fogleman_sample.tsv") if row[0].isdecimal()]

    states = load("\n".join(boards))

    assert shown(states) == boards
    assert len({len(state) for state in states}) == 1


def test_boards_of_fewer_letters_have_room_for_as_many_as_the_others(load):
    few = EMPTY * 2 + "AAoBoo" + "oooBoo" + EMPTY * 2
    many = few.replace("B", "M")

    states = load(f"{few}\n{many}")

    assert shown(states) == [few, many]
    layout = GAME.layout(OPTIONS, states)
    assert layout.state_size == len(states[0]) == len(states[1])
    assert layout.actions[-1] == "M-4"
    assert len(layout.actions) == 13 * 2 * 4


@pytest.mark.parametrize("size", [4, 5, 7, 8])
def test_other_sizes(load, size):
    text = "o" * (2 * size) + "AA" + "o" * (size - 2) + "x" + "o" * (size * (size - 3) - 1)

    (state,) = load(text)

    assert shown([state]) == [text]
    assert GAME.layout(OPTIONS, (state,)).rows == size


def test_a_wall_in_the_last_cell_of_the_largest_board(load):
    text = "o" * 16 + "AAoooooo" + "o" * 39 + "x"

    assert shown(load(text)) == [text]
    assert GAME.render(load(text)[0], OPTIONS).endswith("Walls: (7,7)")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (BOARD[:-1], "one character per cell: 16 (4x4), 25 (5x5), 36 (6x6), 49 (7x7), 64 (8x8), "
         "got 35"),
        (BOARD + "o", "got 37"),
        (BOARD.replace("DFF", "DFo"), "piece F is no straight run of 2 or 3 cells, got (4,1)"),
        (BOARD.replace("oooBoo", "BoooBo", 1), "piece B is no straight run"),
        (BOARD.replace("C", "B"), "piece B is no straight run of 2 or 3 cells, got (0,3), (1,3), "
         "(1,4), (1,5), (2,3)"),
        ("BBBBoo" + EMPTY + "AAoooo" + EMPTY * 3, "piece B is no straight run"),
        ("BBoooo" + "BBoooo" + "AAoooo" + EMPTY * 3, "piece B is no straight run"),
        ("oooooB" + "Booooo" + "AAoooo" + EMPTY * 3, "piece B is no straight run of 2 or 3 cells, "
         "got (0,5), (1,0)"),
        ("Booooo" + "oBoooo" + "AAoooo" + EMPTY * 3, "piece B is no straight run"),
        (BOARD.replace("A", "H"), "there is no red car A"),
        (EMPTY + "AAoooo" + EMPTY * 4, "the red car A lies in row 2 (from 0) and has 2 cells, "
         "got 2 cells in row 1"),
        ("Aooooo" * 2 + EMPTY * 4, "got 2 cells in column 0"),
        (EMPTY * 2 + "AAAooo" + EMPTY * 3, "got 3 cells in row 2"),
        (EMPTY * 2 + "ooooAA" + EMPTY * 3, "the red car A is at the exit already"),
        (BOARD.replace("B", "b"), "a capital letter (a piece), o or . (empty) or x (a wall), "
         "got 'b'"),
        (BOARD.replace("B", "7"), "got '7'"),
        (BOARD.replace("o", "é"), "got 'é'"),
        ("xxxxxx" * 2 + "xAAxxx" + "xxxxxx" * 3, "no piece can move"),
        (f"{BOARD} 5", "a line is a board, or `moves board states`, got"),
        (f"x {BOARD} 5", "a line is a board"),
    ],
)  # fmt: skip
def test_a_broken_board_is_named_with_file_and_line(load, tmp_path, line, fault):
    with pytest.raises(InvalidInstance) as error:
        load(f"{BOARD}\n# and now\n{line}\n")

    assert str(error.value).startswith(f"{tmp_path / 'boards.txt'}:3: ")
    assert fault in str(error.value)


def test_boards_of_two_sizes_need_two_files(load, tmp_path):
    with pytest.raises(InvalidInstance) as error:
        load(f"{BOARD}\n" + "o" * 10 + "AAooo" + "o" * 10)

    assert f"{tmp_path / 'boards.txt'}:2: the boards of a file have one size" in str(error.value)


def test_a_folder_and_a_file_that_is_no_text_are_refused(tmp_path):
    with pytest.raises(InvalidInstance, match="no text file of boards"):
        GAME.load(tmp_path, OPTIONS)
    (tmp_path / "boards").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInstance, match="no text file of boards"):
        GAME.load(tmp_path / "boards", OPTIONS)


def test_a_file_without_boards_has_none(load):
    assert load("# nothing\n") == ()


def test_loaded_boards_are_played_through_gym_make(tmp_path):
    file = tmp_path / "boards.txt"
    file.write_text(f"{BOARD}\n" + EMPTY * 2 + "AAoooo" + EMPTY * 3)

    env = gym.make("agentgym/RushHour-v0", instances=str(file))

    _, info = env.reset(options={"index": 1})
    assert info["oracle"]["best_actions"] == ("A+4",)
    assert info["oracle"]["action_values"].shape == (7 * 2 * 4,)
    _, reward, terminated, _, info = env.step("A+4")
    assert (reward, terminated, info["success"]) == (1.0, True, True)
    assert info["milestones"]["total"] == 1
    _, first = env.reset(options={"index": 0})
    assert first["instance"].startswith("RushHour-v0/7car/boards.txt/0/")


def test_a_board_that_cannot_be_won_is_a_dead_end(tmp_path):
    file = tmp_path / "boards.txt"
    file.write_text("oooBoo" * 2 + "AAoBoo" + "oooCoo" * 2 + EMPTY)
    env = gym.make("agentgym/RushHour-v0", instances=str(file), end_on_dead_end=True)

    _, info = env.reset()
    assert info["oracle"]["dead_end"]
    assert info["oracle"]["cost_to_go"] == float("inf")
    _, reward, terminated, truncated, info = env.step("A+1")
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)
