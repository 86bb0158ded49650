"""Boards from XSB and SOK files, and what is said of broken ones."""

import gymnasium as gym
import pytest

from agentgym.errors import InvalidInstance
from agentgym.games.sokoban import GAME, SokobanOptions
from agentgym.games.sokoban.rules import CELLS, EXPLICIT, WALL

GRID = SokobanOptions(layout="grid")


@pytest.fixture
def load(tmp_path):
    def load_text(text, **options):
        file = tmp_path / "boards.xsb"
        file.write_text(text, encoding="utf-8")
        return GAME.load(file, SokobanOptions(**options))

    return load_text


def shown(state):
    return GAME.render(state, GRID).split("\n")


def test_a_board_with_comments_and_title(load):
    (state,) = load("; by nobody\n\n#####\n#@$.#\n#####\nTitle: first\nAuthor: N. #1\n")

    assert shown(state) == ["#####", "#PXO#", "#####"]


def test_many_boards_parted_by_empty_lines_comments_and_titles(load):
    board = "#####\n#@$.#\n#####\n"
    other = "######\n#@ $.#\n######\n"

    states = load(
        f"{board}\n{other}; 2\n{board}Title: three\n{other}12\n{board}\nSolution:\nlurR\n"
    )

    assert [len(shown(s)[0]) for s in states] == [5, 6, 5, 6, 5]
    assert {len(s) for s in states} == {CELLS + 18}


def test_all_glyphs_and_the_three_kinds_of_floor(load):
    (state,) = load("########\n#@$.* -#\n#_     #\n########\n")

    assert shown(state) == ["########", "#PXO*__#", "#______#", "########"]


def test_the_player_on_a_target(load):
    (state,) = load("#####\n#+$ #\n#####\n")

    assert shown(state)[1] == "#SX_#"


def test_run_length_encoding(load):
    (state,) = load("7#|#@2-$.#|7#\n")

    assert shown(state) == ["#######", "#P__XO#", "#######"]
    assert shown(load("7#|\n#@2-$.#\n7#")[0]) == ["#######", "#P__XO#", "#######"]


def test_what_is_outside_the_walls_becomes_wall_and_empty_margins_go(load):
    (state,) = load("\n    ####\n  ###@.#\n  #  $ #\n  ######\n")

    assert shown(state) == ["######", "###PO#", "#__X_#", "######"]


def test_windows_line_ends_and_a_missing_last_line_end(load):
    assert len(load("#####\r\n#@$.#\r\n#####\r\n\r\n#####\r\n#@$.#\r\n#####")) == 2


def test_explicit_moves_apply_to_loaded_boards(load):
    assert load("#####\n#@$.#\n#####\n", moves="explicit")[0][EXPLICIT] == 1


def test_smaller_boards_are_padded_with_walls(load):
    small, large = load("#####\n#@$.#\n#####\n\n########\n#@   $.#\n########\n")

    assert len(small) == len(large) == CELLS + 24
    assert (small[CELLS + 15 :] == WALL).all()


def test_a_box_at_home_in_a_room_of_its_own_is_allowed(load):
    assert shown(load("#######\n#@$.#*#\n#######\n")[0])[1] == "#PXO#*#"


GOOD = "#####\n#@$.#\n#####\n\n"


@pytest.mark.parametrize(
    ("board", "says"),
    [
        (
            "#####\n#@$. \n#####\n",
            r"line 5: the walls are not closed: the player in row 2, column 2",
        ),
        ("#####\n @$.#\n#####\n", "row 2, column 2 can be reached from outside"),
        ("#####\n#@$$.#\n######\n", "as many boxes .* as targets .*, got 2 boxes and 1 targets"),
        ("######\n#@$..#\n######\n", "got 1 boxes and 2 targets"),
        ("#####\n# $.#\n#####\n", r"one player \(@ or \+\), got 0"),
        ("######\n#@@$.#\n######\n", "one player .* got 2"),
        ("######\n#@+$ #\n######\n", "one player .* got 2"),
        ("#####\n#@x$.#\n#####\n", r"row 2 has the unknown glyph 'x'; the glyphs are # @ \+"),
        ("#####\nx@$.#\n#####\n", "unknown glyph 'x'"),
        ("####\n#@ #\n####\n", "1 to 8 boxes, got 0"),
        ("#" * 12 + "\n#@$$$$$$$$$#\n#  ......... #\n" + "#" * 12, "1 to 8 boxes, got 9"),
        ("####\n#@*#\n####\n", "all boxes stand on targets already"),
        ("#####\n#@$.#\n#####\n   .$\n#####\n", "a box or target in row 4"),
        (
            f"{'#' * 17}\n#@$.{' ' * 12}#\n{'#' * 17}\n",
            "3 rows and 17 columns; the largest is 16x16",
        ),
    ],
)
def test_a_broken_board_is_named_with_file_and_line(load, board, says):
    with pytest.raises(InvalidInstance, match=says) as caught:
        load(GOOD + board)

    assert str(caught.value).startswith("boards.xsb, board at line 5: ")


def test_a_missing_or_empty_file_is_refused(tmp_path):
    empty = tmp_path / "empty.xsb"
    empty.write_text("; nothing\n")

    with pytest.raises(InvalidInstance, match="no such file"):
        gym.make("agentgym/Sokoban-v0", instances=str(tmp_path / "none.xsb"))
    with pytest.raises(InvalidInstance, match="is a folder"):
        gym.make("agentgym/Sokoban-v0", instances=str(tmp_path))
    with pytest.raises(InvalidInstance, match="holds no instance"):
        gym.make("agentgym/Sokoban-v0", instances=str(empty))


def test_the_environment_plays_the_kth_board_of_a_file(tmp_path):
    file = tmp_path / "two.xsb"
    file.write_text("#####\n#@$.#\n#####\n\n########\n#@ $  .#\n#  $  .#\n########\n")
    env = gym.make("agentgym/Sokoban-v0", instances=str(file), layout="grid")

    observation, info = env.reset(options={"index": 0})
    assert observation == "#####\n#PXO#\n#####"
    assert (info["milestones"]["total"], info["oracle"]["cost_to_go"]) == (1, 1)
    assert len(info["milestones"]["reached"]) == 2
    *_, terminated, _, info = env.step("Right")
    assert terminated
    assert info["success"]
    observation, info = env.reset(options={"index": 1})
    assert observation.startswith("########\n#P_X__O#")
    assert info["milestones"]["total"] == 2
    assert info["instance"].startswith("Sokoban-v0/6x6-2box/two.xsb/1/")


def test_a_grid_of_loaded_boards_has_the_largest_boards_shape(tmp_path):
    file = tmp_path / "two.xsb"
    file.write_text("#####\n#@$.#\n#####\n\n########\n#@ $  .#\n#  $  .#\n########\n")
    env = gym.make("agentgym/Sokoban-v0", instances=str(file), observation="grid", action="index")

    grid, _ = env.reset(options={"index": 0})

    assert grid.shape == (4, 8)
    assert (grid[3] == WALL).all()
