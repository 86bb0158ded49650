"""Sokoban as text: layouts, glyphs, action texts, instructions."""

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.errors import InvalidOption, UnknownName
from agentgym.game import ParseError
from agentgym.games.sokoban import GAME, SokobanOptions
from agentgym.games.sokoban.glyphs import SYMBOLS
from tests.agentgym.games.sokoban_plain import boards, state_of

CAST_EXAMPLE = ["######", "#_X###", "#P_###", "#O_#_#", "#XO__#", "######"]


def _layout(**options):
    return GAME.layout(SokobanOptions(**options), None)


def test_grid_coord_is_casts_layout_to_the_letter():
    text = GAME.render(state_of(CAST_EXAMPLE), SokobanOptions())

    assert text == (
        "Coordinates:\n"
        "Board size: 6 rows x 6 cols (zero-indexed).\n"
        "Targets: (3, 1), (4, 2)\n"
        "Boxes: (1, 2), (4, 1)\n"
        "Player: (2, 1)\n"
        "Grid Map:\n"
        "######\n#_X###\n#P_###\n#O_#_#\n#XO__#\n######"
    )


def test_boxes_and_player_on_targets_have_lines_of_their_own_and_empty_lines_are_left_out():
    text = GAME.render(state_of(["#####", "#S*X#", "#_O_#", "#####"]), SokobanOptions())

    assert text.split("\n")[2:6] == [
        "Targets: (1, 1), (1, 2), (2, 2)",
        "Boxes: (1, 3)",
        "Boxes on target: (1, 2)",
        "Player on target: (1, 1)",
    ]
    assert "Boxes" not in GAME.render(state_of(["####", "#P_#", "####"]), SokobanOptions())


def test_the_target_under_the_player_is_shown():
    """TextArena's and GEM's Sokoban hide it."""
    state = state_of(["######", "#SX_O#", "#X___#", "######"])

    assert "S" in GAME.render(state, SokobanOptions(layout="grid"))
    assert "+" in GAME.render(state, SokobanOptions(layout="grid", symbols="proact"))


def test_grid_is_the_map_alone():
    state = state_of(CAST_EXAMPLE)

    assert GAME.render(state, SokobanOptions(layout="grid")).split("\n") == CAST_EXAMPLE


def test_coord_has_no_map_but_tells_the_inner_walls():
    text = GAME.render(state_of(CAST_EXAMPLE), SokobanOptions(layout="coord"))

    assert text.split("\n")[1:] == [
        "Board size: 6 rows x 6 cols (zero-indexed).",
        "Targets: (3, 1), (4, 2)",
        "Boxes: (1, 2), (4, 1)",
        "Player: (2, 1)",
        "Walls: the whole border; inside: (1, 3), (1, 4), (2, 3), (2, 4), (3, 3)",
    ]
    bare = GAME.render(state_of(["#####", "#PXO#", "#####"]), SokobanOptions(layout="coord"))
    assert bare.endswith("inside: none")


@pytest.mark.parametrize(
    ("symbols", "rows"),
    [
        ("cast", ["#######", "#_OX*S#", "#######"]),
        ("proact", ["#######", "# ?$*+#", "#######"]),
        ("proact-variant", ["#######", "#_OB√+#", "#######"]),
        ({"wall": "W", "box": "b"}, ["WWWWWWW", "W_Ob*SW", "WWWWWWW"]),
    ],
)
def test_each_set_of_symbols(symbols, rows):
    options = SokobanOptions(layout="grid", symbols=symbols)

    assert GAME.render(state_of(["#######", "#_OX*S#", "#######"]), options).split("\n") == rows


def test_the_players_glyph_off_targets():
    state = state_of(["#####", "#PXO#", "#####"])
    middle = [GAME.render(state, SokobanOptions(layout="grid", symbols=s))[6:11] for s in SYMBOLS]

    assert middle == ["#PXO#", "#@$?#", "#PBO#"]


@pytest.mark.parametrize(
    ("symbols", "error", "says"),
    [
        ("prooact", UnknownName, "Did you mean 'proact'"),
        ({"wal": "W"}, UnknownName, "Did you mean 'wall'"),
        ({"wall": "WW"}, InvalidOption, "one printable character, got 'WW'"),
        ({"wall": "\n"}, InvalidOption, "one printable character"),
        ({"wall": "_"}, InvalidOption, "a glyph of its own"),
    ],
)
def test_symbols_that_cannot_be(symbols, error, says):
    with pytest.raises(error, match=says):
        SokobanOptions(symbols=symbols)


@pytest.mark.parametrize(
    ("argument", "value", "says"),
    [
        ("level", "6x6-2boxes", "Did you mean '6x6-2box'"),
        ("moves", "pull", "Did you mean 'push'"),
        ("layout", "gridcoord", "Did you mean 'grid_coord'"),
    ],
)
def test_unknown_words_name_the_nearest(argument, value, says):
    with pytest.raises(UnknownName, match=says):
        gym.make("agentgym/Sokoban-v0", **{argument: value})


def test_a_mapping_becomes_hashable_and_can_be_given_again():
    options = SokobanOptions(symbols={"wall": "W"})

    assert SokobanOptions(symbols=options.symbols) == options
    assert hash(options) == hash(SokobanOptions(symbols={"wall": "W"}))
    assert options.instance_key == SokobanOptions().instance_key


def test_the_actions_are_understood_in_every_spelling():
    layout, options = _layout(), SokobanOptions()

    assert layout.actions == ("Up", "Down", "Left", "Right")
    for index, name in enumerate(layout.actions):
        for text in (name, name.lower(), name.upper(), str(index + 1), f" [{name}]\n", f"`{name}`"):
            assert GAME.parse(text, layout, options) == index


def test_the_explicit_actions_are_proacts():
    layout, options = _layout(moves="explicit"), SokobanOptions(moves="explicit")

    assert layout.actions[0] == "up"
    assert layout.actions[7] == "push right"
    assert GAME.parse("[Push Left]", layout, options) == 6
    assert GAME.parse("left", layout, options) == 2


@pytest.mark.parametrize("text", ["push up", "5", "0", "", "Up || Down", "1||3", "up up"])
def test_other_texts_are_refused_with_what_is_accepted(text):
    """CAST's agent sent "1||3", which its environment could not read (C3)."""
    parsed = GAME.parse(text, _layout(), SokobanOptions())

    assert isinstance(parsed, ParseError)
    assert "Up, Down, Left, Right" in parsed.message


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_an_action_or_an_explained_error(text):
    for moves in ("push", "explicit"):
        parsed = GAME.parse(text, _layout(moves=moves), SokobanOptions(moves=moves))
        assert isinstance(parsed, int) or parsed.message.endswith(".")


@pytest.fixture(scope="module")
def env():
    env = gym.make("agentgym/Sokoban-v0", max_turns=10**6)
    env.reset(seed=0)
    return env


@given(st.text(max_size=40).filter(lambda t: not any(w in t.lower() for w in "udlr1234")))
@settings(max_examples=100, deadline=None)
def test_a_random_reply_changes_nothing_costs_a_turn_and_is_explained(env, text):
    state, turn = env.unwrapped.state, env.unwrapped.set_state(env.unwrapped.state)["turn"]

    observation, reward, terminated, truncated, info = env.step(text)

    assert (env.unwrapped.state == state).all()
    assert (reward, terminated, truncated) == (0, False, False)
    assert (info["valid"], info["action"], info["turn"]) == (False, "", turn + 1)
    assert "Up, Down, Left, Right" in info["error"]
    assert observation.startswith("Coordinates:")


@given(boards(), st.sampled_from(list(SYMBOLS)))
@settings(max_examples=60, deadline=None)
def test_the_grid_can_be_read_back(rows, symbols):
    text = GAME.render(state_of(rows), SokobanOptions(layout="grid", symbols=symbols))
    back = str.maketrans(SYMBOLS[symbols], SYMBOLS["cast"])

    assert text.translate(back).split("\n") == rows


def test_an_action_index_that_does_not_exist_is_explained():
    state = state_of(["#####", "#PXO#", "#####"])

    assert GAME.explain(state, 7, _layout(), SokobanOptions()) == (
        "Action 7 does not exist; 0 to 3 are Up, Down, Left, Right."
    )


@pytest.mark.parametrize("symbols", SYMBOLS)
@pytest.mark.parametrize("moves", ["push", "explicit"])
def test_the_instructions_name_every_glyph_and_action_and_are_short(symbols, moves):
    options = SokobanOptions(symbols=symbols, moves=moves)
    layout = GAME.layout(options, None)

    text = GAME.instructions(options, layout)

    for glyph in SYMBOLS[symbols]:
        assert f"{glyph if glyph != ' ' else 'blank'} " in text
    assert ", ".join(layout.actions) in text
    assert len(text) < 900


def test_the_board_can_be_rendered_when_it_is_larger_than_ten():
    rows = ["#" * 12, "#P" + "_" * 9 + "#", "#X" + "_" * 8 + "O#", "#" * 12]

    assert "Targets: (2, 10)" in GAME.render(state_of(rows), SokobanOptions())
