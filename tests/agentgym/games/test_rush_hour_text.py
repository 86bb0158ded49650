"""What a Rush Hour player reads and writes."""

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.errors import UnknownName
from agentgym.game import ParseError
from agentgym.games import rush_hour
from agentgym.games.rush_hour import GAME
from agentgym.games.rush_hour.boards import board_of, state_of
from agentgym.games.rush_hour.options import RushHourOptions
from tests.agentgym.games import rush_hour_plain as plain

OPTIONS = RushHourOptions()
LAYOUT = GAME.layout(OPTIONS, None)
BOARD = "xooBoo" + "oooBCC" + "oAABoo" + "DooooE" + "DFFooE" + "DoooGG"
GRID = """\
Grid:
x . . B . .
. . . B C C
. A A B . . >
D . . . . E
D F F . . E
D . . . G G"""
LIST = """\
Coordinates:
Board size: 6 rows x 6 cols (zero-indexed). Exit: right end of row 2.
A (red car): horizontal, (2,1), (2,2)
B: vertical, (0,3), (1,3), (2,3)
C: horizontal, (1,4), (1,5)
D: vertical, (3,0), (4,0), (5,0)
E: vertical, (3,5), (4,5)
F: horizontal, (4,1), (4,2)
G: horizontal, (5,4), (5,5)
Walls: (0,0)"""


def made(text):
    return state_of(board_of(text))


def parse(text):
    return GAME.parse(text, LAYOUT, OPTIONS)


@pytest.mark.parametrize(
    ("layout", "text"),
    [("grid", GRID), ("coord", LIST), ("grid_coord", GRID + "\n\n" + LIST)],
)
def test_the_observation(layout, text):
    assert GAME.render(made(BOARD), RushHourOptions(layout=layout)) == text


def test_the_observation_follows_the_play():
    state = made(BOARD)
    for text in ("B+2", "B+1", "E-1", "E+1", "F+2"):
        GAME.step(state, parse(text))

    now = "xooooo" + "ooooCC" + "oAAooo" + "DooBoE" + "DFFBoE" + "DooBGG"
    assert GAME.render(state, OPTIONS) == GAME.render(made(now), OPTIONS)


def test_a_board_without_walls_lists_none():
    text = GAME.render(made(BOARD.replace("x", "o")), OPTIONS)

    assert "Walls" not in text
    assert text.split("\n")[1] == ". . . B . ."


@given(plain.boards())
@settings(max_examples=40, deadline=None)
def test_the_grid_and_the_list_say_what_is_on_the_board(board):
    size = round(len(board) ** 0.5)
    grid, listed = GAME.render(made(board), OPTIONS).split("\n\n")

    glyphs = [row.removesuffix(" >").split(" ") for row in grid.split("\n")[1:]]
    assert "".join("".join(row) for row in glyphs) == board.replace("o", ".")
    assert [row.endswith(" >") for row in grid.split("\n")[1:]] == [r == 2 for r in range(size)]
    lines = listed.split("\n")[2:]
    lines = lines[:-1] if "x" in board else lines
    for line, (label, cells) in zip(lines, sorted(plain.pieces(board).items()), strict=True):
        shown = ", ".join(f"({r},{c})" for r, c in cells)
        assert line.startswith(label)
        assert line.endswith(shown)
        assert ("horizontal" in line) == (cells[0][0] == cells[1][0])


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("A+2", "A+2"),
        ("a+2", "A+2"),
        ("B-1", "B-1"),
        ("C+", "C+1"),
        ("g-", "G-1"),
        ("[A+2]", "A+2"),
        (" [ a + 2 ] ", "A+2"),
        ("`B-3`", "B-3"),
        ('"D+4"', "D+4"),
        ("\nE\t-  1\n", "E-1"),
        ("F+03", "F+3"),
    ],
)
def test_spellings(text, action):
    assert LAYOUT.actions[parse(text)] == action


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hello",
            "'hello' is not an action; answer with a label, + or -, and a number of cells, "
            "for example B-2.",
        ),
        ("H+1", "There is no piece H; the labels here are A to G."),
        ("[z-]", "There is no piece Z; the labels here are A to G."),
        ("A+0", "A piece moves by 1 to 4 cells on this board, got 0."),
        ("A+00", "A piece moves by 1 to 4 cells on this board, got 0."),
        ("A+5", "A piece moves by 1 to 4 cells on this board, got 5."),
        ("A-17", "A piece moves by 1 to 4 cells on this board, got 17."),
    ],
)
def test_what_is_said_of_other_texts(text, message):
    assert parse(text) == ParseError(message)


@pytest.mark.parametrize(
    "text",
    ["", "A", "+2", "A2", "AA+2", "A+2.", "A++2", "A+-2", "A+2 B-1", "move A+2", "1", "A+1.5",
     "[[A+2]]", "**A+2**", "A+²", "A+" + "9" * 5000, "\uff21+2"],
)  # fmt: skip
def test_no_action_is_read_into_any_other_text(text):
    # C14: one strictness: the whole text is the action, as in CAST's Rush Hour.
    assert isinstance(parse(text), ParseError)
    assert len(parse(text).message) < 250


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_no_text_raises(text):
    assert isinstance(parse(text), int | ParseError)


@given(st.from_regex(r"\s*\[?\s*[A-Za-z]\s*[+-]\s*[0-9]{0,4}\s*\]?\s*", fullmatch=True))
@settings(max_examples=200, deadline=None)
def test_a_text_like_an_action_is_one_or_is_told_why_not(text):
    parsed = parse(text)
    if isinstance(parsed, int):
        bare = "".join(text.upper().split()).strip("[]")
        assert LAYOUT.actions[parsed] in (bare, bare + "1", bare[:2] + bare[2:].lstrip("0"))
    else:
        assert parsed.message


@pytest.mark.parametrize("size", [4, 5, 6, 7, 8])
def test_action_texts_and_indices_are_inverse(size):
    row = "AA" + "o" * (size - 2)
    state = made("o" * 2 * size + row + "o" * size * (size - 4) + "oo" + "ZZ" + "o" * (size - 4))
    layout = GAME.layout(OPTIONS, (state,))

    assert len(layout.actions) == 26 * 2 * (size - 2)
    for index, text in enumerate(layout.actions):
        assert GAME.parse(text, layout, OPTIONS) == index
        assert GAME.parse(f" [{text.lower()}] ", layout, OPTIONS) == index


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("A+1", "A+1 is blocked: A is horizontal and cannot go right."),
        ("A-3", "A-3 is blocked: A is horizontal and can go left by at most 1 cell."),
        ("B+4", "B+4 is blocked: B is vertical and can go down by at most 3 cells."),
        ("B-1", "B-1 is blocked: B is vertical and cannot go up."),
        ("G-4", "G-4 is blocked: G is horizontal and can go left by at most 3 cells."),
    ],
)
def test_a_blocked_slide_is_explained(action, why):
    assert GAME.explain(made(BOARD), parse(action), LAYOUT, OPTIONS) == why


def test_a_piece_that_the_board_has_not_is_explained():
    state = state_of(board_of(BOARD.replace("F", "o")), 7)

    assert GAME.explain(state, parse("F+1"), LAYOUT, OPTIONS) == (
        "There is no piece F on this board; its pieces are A, B, C, D, E, G."
    )


def test_after_the_win_there_is_nothing_to_do():
    state = made("oooooo" * 2 + "AAoooo" + "oooooo" * 3)
    GAME.step(state, 3)

    assert "out already" in GAME.explain(state, 0, LAYOUT, OPTIONS)


def test_the_instructions_explain_all_that_is_shown():
    # reasoning-gym #336: walls were never explained.
    text = GAME.instructions(OPTIONS, LAYOUT)

    for word in ("red car A", "wall", ">", "dot", "row 2", "1 to 4", "column 5", "B-2"):
        assert word in text
    assert len(text) < 1200
    assert text.isascii()


def test_the_layout_of_a_level():
    expert = GAME.layout(RushHourOptions(level="expert"), None)

    assert (LAYOUT.rows, LAYOUT.cols, LAYOUT.codes) == (6, 6, 9)
    assert len(LAYOUT.actions) == 7 * 2 * 4
    assert LAYOUT.actions[:9] == (
        "A+1", "A+2", "A+3", "A+4", "A-1", "A-2", "A-3", "A-4", "B+1",
    )  # fmt: skip
    assert len(expert.actions) == 13 * 2 * 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"level": "8car"}, "Unknown level of RushHour '8car'. Did you mean '7car'?"),
        ({"metric": "slide"}, "Did you mean 'slides'?"),
        ({"layout": "gird"}, "Did you mean 'grid'?"),
    ],
)
def test_unknown_words(given, message):
    with pytest.raises(UnknownName) as fault:
        RushHourOptions(**given)

    assert message in str(fault.value) or "Did you mean '9car'?" in str(fault.value)


def test_the_cards_example_is_real():
    failed, tried = doctest.testmod(rush_hour)

    assert tried > 0
    assert failed == 0


def test_the_card_has_its_headings_in_order():
    headings = [line for line in rush_hour.__doc__.split("\n")[1:] if line[:1].isalpha()]

    assert headings == [
        "Description", "Actions", "Observation", "Start", "Reward", "End", "Info", "Oracle",
        "Milestones", "Variants", "Versions",
    ]  # fmt: skip


def test_the_state_a_text_shows_is_never_changed_by_it():
    state = made(BOARD)
    state.flags.writeable = False

    assert GAME.render(state, OPTIONS)
    assert np.array_equal(state, made(BOARD))
