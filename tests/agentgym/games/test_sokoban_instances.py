"""Generated instances of Sokoban: winnable, in their band, apart by split, the same everywhere."""

import hashlib
import os
import subprocess
import sys
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.games.sokoban import GAME, SokobanOptions
from agentgym.games.sokoban.instances import LEVELS
from agentgym.games.sokoban.rules import BOXES, COLS, ON_TARGET, ROWS
from agentgym.registration import ROWS as IDS
from agentgym.splits import SPLITS, instance, split_of
from tests.agentgym.games.sokoban_plain import boards, state_of

LEVEL_SEEDS = {"6x6-2box": 300, "7x7-3box": 200, "8x8-3box": 100, "10x10-4box": 8}
BULK = {"6x6-2box": 10_000, "7x7-3box": 10_000, "8x8-3box": 10_000, "10x10-4box": 1_000}
APART = {"6x6-2box": 20_000, "7x7-3box": 20_000, "8x8-3box": 20_000, "10x10-4box": 2_000}
levels = pytest.mark.parametrize("level", LEVELS)


def made(level, split, seed):
    return instance(GAME, SokobanOptions(level=level), split, seed)


def check_bulk(level, seeds):
    """Every instance is winnable, unsolved, of its level's band, and within the turn limits."""
    oracle = GAME.make_oracle(SokobanOptions(), 20_000_000)
    limit = min(row.max_turns for row in IDS if row.kwargs.get("level") == level)
    shape = LEVELS[level]
    lengths = []
    for seed in seeds:
        start = made(level, SPLITS[seed % 3], seed).start
        note = oracle.note(start)
        assert note.exact
        assert shape.band[0] <= note.cost_to_go <= min(shape.band[1], limit)
        assert (start[ROWS], start[COLS], start[BOXES]) == (shape.size, shape.size, shape.boxes)
        assert start[ON_TARGET] == 0
        lengths.append(note.cost_to_go)
    return np.array(lengths)


@levels
def test_every_instance_is_winnable_and_in_its_band(level):
    lengths = check_bulk(level, range(LEVEL_SEEDS[level]))

    assert len(set(lengths.tolist())) > 3


@pytest.mark.slow
@levels
def test_every_instance_is_winnable_and_in_its_band_in_bulk(level):
    lengths = check_bulk(level, range(BULK[level]))

    assert set(lengths.tolist()) >= set(range(LEVELS[level].band[0], LEVELS[level].band[1] - 4))


def test_the_limits_allow_half_as_much_again_on_our_own_levels():
    for row in IDS:
        if row.game == "sokoban":
            most = LEVELS[row.kwargs["level"]].band[1]
            own = row.kwargs["level"] in ("8x8-3box", "10x10-4box")
            assert row.max_turns == 1.5 * most if own else row.max_turns >= most


@levels
def test_a_split_holds_only_what_its_digest_says(level):
    for split in SPLITS:
        for seed in range(LEVEL_SEEDS[level] // 4):
            one = made(level, split, seed)
            assert split_of(one.canonical) == split
            assert GAME.canonical(one.start) == one.canonical


def check_apart(level, seeds):
    forms = {split: {made(level, split, s).canonical for s in seeds} for split in SPLITS}
    assert not forms["train"] & forms["validation"]
    assert not forms["train"] & forms["test"]
    assert not forms["validation"] & forms["test"]
    return sum(len(form) for form in forms.values())


@levels
def test_no_form_is_in_two_splits(level):
    """CAST: three of ten test boards are training boards but for the player's place (C1)."""
    check_apart(level, range(LEVEL_SEEDS[level] // 4))


@pytest.mark.slow
@levels
def test_no_form_is_in_two_splits_in_bulk(level):
    distinct = check_apart(level, range(-(-APART[level] // 3)))

    assert distinct > (0.4 if level == "6x6-2box" else 0.9) * APART[level]


_PRINT = (
    "import sys, hashlib\n"
    "from agentgym.games.sokoban import GAME, SokobanOptions\n"
    "from agentgym.splits import instance\n"
    "order = int(sys.argv[1])\n"
    "for word in sys.argv[2:]:\n"
    "    level, _, count = word.partition('=')\n"
    "    options = SokobanOptions(level=level)\n"
    "    made = {}\n"
    "    for seed in list(range(int(count)))[::order]:\n"
    "        made[seed] = instance.__wrapped__(GAME, options, 'test', seed).start.tobytes()\n"
    "    print(hashlib.sha256(b''.join(made[s] for s in sorted(made))).hexdigest())\n"
)


def digests_elsewhere(**counts):
    """Digests of the first instances per level, from two processes of different hash seeds."""
    words = [f"{level}={count}" for level, count in counts.items()]
    return {
        subprocess.run(
            [sys.executable, "-c", _PRINT, order, *words],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed, order in (("0", "1"), ("12345", "-1"))
    }


def test_the_same_bytes_under_any_hash_seed_and_in_any_order():
    """RAGEN's next seed hangs on PYTHONHASHSEED; TextArena's on what else draws."""
    here = ""
    for level in LEVELS:
        starts = b"".join(made(level, "test", seed).start.tobytes() for seed in range(5))
        here += hashlib.sha256(starts).hexdigest() + "\n"

    assert digests_elsewhere(**dict.fromkeys(LEVELS, 5)) == {here}


@pytest.mark.slow
@levels
def test_the_same_bytes_under_any_hash_seed_and_in_any_order_in_bulk(level):
    assert len(digests_elsewhere(**{level: BULK[level]})) == 1


def test_neighbouring_seeds_share_nothing():
    """reasoning-gym's seeds s and s + 1 share all but one item."""
    forms = [made("6x6-2box", "test", seed).canonical for seed in range(300)]

    assert sum(a == b for a, b in pairwise(forms)) <= 1
    assert len(set(forms)) > 270


def test_looks_and_action_sets_are_on_the_same_instances():
    plain = made("6x6-2box", "test", 3)
    options = SokobanOptions(moves="explicit", symbols="proact", layout="grid")

    assert instance(GAME, options, "test", 3).canonical == plain.canonical


def turn(rows, kind):
    board = np.array([list(row) for row in rows])
    board = board.T if kind & 4 else board
    board = board[::-1] if kind & 2 else board
    board = board[:, ::-1] if kind & 1 else board
    return ["".join(row) for row in board]


@given(boards(), st.integers(0, 7))
@settings(max_examples=80, deadline=None)
def test_mirrored_and_turned_boards_are_one(rows, kind):
    assert GAME.canonical(state_of(turn(rows, kind))) == GAME.canonical(state_of(rows))


@given(boards(), st.integers(0, 2), st.integers(0, 2))
@settings(max_examples=50, deadline=None)
def test_outer_walls_and_the_place_on_the_board_do_not_matter(rows, above, left):
    wide = ["#" * left + row for row in rows]
    shifted = ["#" * len(wide[0])] * above + wide

    assert GAME.canonical(state_of(shifted, cells=200)) == GAME.canonical(state_of(rows))


@given(boards(), st.lists(st.integers(0, 3), max_size=15))
@settings(max_examples=80, deadline=None)
def test_walking_about_makes_no_new_problem_but_a_push_does(rows, actions):
    state = state_of(rows)
    form, boxes = GAME.canonical(state), _boxes(state)
    for action in actions:
        GAME.step(state, action)
        if _boxes(state) != boxes:
            break
        assert GAME.canonical(state) == form


def _boxes(state):
    text = GAME.render(state, SokobanOptions(layout="grid", symbols={"box_on_target": "Y"}))
    return [i for i, glyph in enumerate(text) if glyph in "XY"]


SAME = [
    (["#####", "#PXO#", "#####"], ["#####", "#OXP#", "#####"]),
    (["######", "#P_XO#", "######"], ["######", "#_PXO#", "######"]),
    (["#######", "#PX_XO#", "#O____#", "#######"], ["#######", "#_XPXO#", "#O____#", "#######"]),
    (["########", "#PXO#__#", "########"], ["########", "#PXO####", "########"]),
    (["########", "#PXO##*#", "########"], ["########", "#PXO####", "########"]),
]
DIFFERENT = [
    (["######", "#P_XO#", "######"], ["#######", "#P__XO#", "#######"]),
    (["######", "#PX_O#", "######"], ["######", "#PXO_#", "######"]),
    (["########", "#PXO#X_#", "########"], ["########", "#PXO####", "########"]),
    (["#######", "#PXO__#", "#_____#", "#######"], ["#######", "#PX_O_#", "#_____#", "#######"]),
    (["######", "#PXO_#", "##X#O#", "######"], ["######", "#_XOP#", "##X#O#", "######"]),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_boards_that_are_the_same_problem(one, other):
    assert GAME.canonical(state_of(one)) == GAME.canonical(state_of(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_boards_that_are_different_problems(one, other):
    assert GAME.canonical(state_of(one)) != GAME.canonical(state_of(other))


def test_every_level_spreads_its_lengths_as_casts_boards_do():
    """CAST's test boards: mean 8.75 and 16.4 moves, medians 8 and 16 (its 200 + 200 boards)."""
    oracle = GAME.make_oracle(SokobanOptions(), 20_000_000)
    for level, mean in (("6x6-2box", 8.75), ("7x7-3box", 16.4)):
        lengths = [oracle.note(made(level, "test", s).start).cost_to_go for s in range(300)]
        assert np.mean(lengths) == pytest.approx(mean, abs=1.5)


def test_nothing_else_that_draws_or_plays_changes_an_episode():
    """Process-wide generators make ProAct's and TextArena's episodes diverge (P6)."""

    def play(disturbed):
        env, other = gym.make("agentgym/Sokoban-v0"), gym.make("agentgym/Sokoban-7x7-3box-v0")
        seen = [env.reset(seed=7)[0]]
        for action in ("Up", "Left", "Down", "Right", "Down"):
            if disturbed:
                other.reset()
                other.step("Up")
                np.random.default_rng().random(3)
            seen.append(env.step(action)[0])
        return seen

    assert play(disturbed=True) == play(disturbed=False)


def test_a_reset_without_seed_draws_other_instances_but_always_the_same_ones():
    """ProAct gives each of a group's episodes another level (P7)."""

    def ids():
        env = gym.make("agentgym/Sokoban-v0")
        return [env.reset(seed=1)[1]["instance"], *(env.reset()[1]["instance"] for _ in range(4))]

    assert ids() == ids()
    assert len(set(ids())) == 5
