"""Generated boards: winnable, in their band, apart by split, free of guesses where asked."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.errors import InvalidOption, UnknownName
from agentgym.games.minesweeper import GAME, MinesweeperOptions, make_board, rules
from agentgym.games.minesweeper.instances import LEVELS
from agentgym.registration import ROWS as IDS
from agentgym.splits import SPLITS, instance, split_of

ORACLE = GAME.make_oracle(MinesweeperOptions(), 10**7)
FEW = {"6x6-7": 200, "7x7-10": 200, "9x9-10": 200, "16x16-40": 60, "16x30-99": 30}
BULK = {"6x6-7": 10_000, "7x7-10": 10_000, "9x9-10": 10_000, "16x16-40": 10_000, "16x30-99": 1_000}
APART = 20_000
levels = pytest.mark.parametrize("level", LEVELS)
kinds = pytest.mark.parametrize("no_guess", [False, True], ids=["any", "no_guess"])


def made(level, split, seed, no_guess=False):
    return instance(GAME, MinesweeperOptions(level=level, no_guess=no_guess), split, seed)


def plays_out(start):
    """Whether best actions that are proven, and only they, win the board; reveals made."""
    state, reveals = start.copy(), 0
    while not rules.terminal(state):
        note = ORACLE.note(state)
        if not note.exact:
            return False
        for cell in np.flatnonzero(note.best).tolist():
            if rules.legal(state, cell):
                rules.step(state, cell)
                reveals += 1
    assert rules.success(state)
    assert reveals >= ORACLE.note(start).cost_to_go
    return True


def check_bulk(level, seeds, no_guess=False):
    limit = min(row.max_turns for row in IDS if row.kwargs.get("level") == level)
    shape, costs = LEVELS[level], []
    for seed in seeds:
        start = made(level, SPLITS[seed % 3], seed, no_guess).start
        note = ORACLE.note(start)
        assert not rules.terminal(start.copy())
        assert shape.fewest <= note.cost_to_go <= min(shape.most, limit)
        assert (start[rules.ROWS], start[rules.COLS], start[rules.MINES]) == shape[:3]
        click = divmod(int(start[rules.CLICK]), shape.cols)
        mines = np.argwhere((start[rules.CELLS :].reshape(shape[:2]) & rules.MINE) != 0)
        assert np.abs(mines - click).max(axis=1).min() > 1
        assert start[rules.FLAGS] == start[rules.HIT] == 0
        if no_guess:
            assert plays_out(start)
        costs.append(note.cost_to_go)
    return costs


@levels
@kinds
def test_every_board_is_winnable_and_in_its_band(level, no_guess):
    costs = check_bulk(level, range(FEW[level]), no_guess)

    assert len(set(costs)) > 8


@pytest.mark.slow
@levels
@kinds
def test_every_board_is_winnable_and_in_its_band_in_bulk(level, no_guess):
    check_bulk(level, range(BULK[level]), no_guess)


def test_some_boards_need_a_guess_and_no_guess_drops_them():
    guessed = [s for s in range(100) if not plays_out(made("7x7-10", "test", s).start)]

    assert 20 < len(guessed) < 80
    assert all(plays_out(made("7x7-10", "test", s, no_guess=True).start) for s in range(100))


@levels
def test_a_split_holds_only_what_its_digest_says(level):
    for split in SPLITS:
        for seed in range(20):
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
    check_apart(level, range(30))


@pytest.mark.slow
@levels
def test_no_form_is_in_two_splits_in_bulk(level):
    distinct = check_apart(level, range(-(-APART // 3)))

    assert distinct > 0.9 * APART


_PRINT = (
    "import sys, hashlib\n"
    "from agentgym.games.minesweeper import GAME, MinesweeperOptions\n"
    "from agentgym.splits import instance\n"
    "level, count, order = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])\n"
    "options = MinesweeperOptions(level=level, no_guess=sys.argv[4] == 'True')\n"
    "made = {s: instance.__wrapped__(GAME, options, 'test', s).start.tobytes()\n"
    "        for s in list(range(count))[::order]}\n"
    "print(hashlib.sha256(b''.join(made[s] for s in range(count))).hexdigest())\n"
)


def check_same_bytes(level, count, no_guess):
    """TextArena's and GEM's boards hang on what else draws from the process's generator."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", _PRINT, level, str(count), order, str(no_guess)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        for hash_seed, order in (("0", "1"), ("12345", "-1"))
    }
    starts = b"".join(made(level, "test", s, no_guess).start.tobytes() for s in range(count))
    assert digests == {hashlib.sha256(starts).hexdigest()}


@pytest.mark.parametrize(("level", "no_guess"), [("6x6-7", False), ("16x16-40", True)])
def test_the_same_bytes_under_any_hash_seed_and_in_any_order(level, no_guess):
    check_same_bytes(level, 20, no_guess)


@pytest.mark.slow
@levels
@kinds
def test_the_same_bytes_under_any_hash_seed_and_in_any_order_in_bulk(level, no_guess):
    check_same_bytes(level, BULK[level] if not no_guess else 500, no_guess)


def test_neighbouring_seeds_and_levels_share_nothing():
    """CAST's two test sets are drawn from the same seeds (C2)."""
    forms = [made("6x6-7", "test", seed).canonical for seed in range(300)]
    assert len(set(forms)) == 300

    pairs = [(made("6x6-7", "test", s).start, made("7x7-10", "test", s).start) for s in range(100)]
    same = [
        bool(large[rules.CELLS + 7 * r + c] & small[rules.CELLS + 6 * r + c] & rules.MINE)
        for small, large in pairs
        for r in range(6)
        for c in range(6)
    ]
    # CAST shares 57% of the smaller board's mines; two boards apart share about a fifth.
    assert sum(same) / (100 * 7) < 0.3


@given(st.integers(0, 10**6), st.integers(0, 7), st.sampled_from([(3, 3), (4, 4), (3, 5)]))
@settings(max_examples=80, deadline=None)
def test_mirrored_and_turned_boards_are_one(seed, kind, shape):
    rng = np.random.default_rng(seed)
    codes = np.zeros(shape, int)
    cells = rng.permutation(codes.size)
    codes.flat[cells[:3]] = 1
    codes.flat[cells[3]] = 2
    turned = codes.T if kind & 4 and shape[0] == shape[1] else codes
    turned = turned[::-1] if kind & 2 else turned
    turned = turned[:, ::-1] if kind & 1 else turned
    forms = [
        GAME.canonical(
            make_board(shape, np.flatnonzero(c == 1).tolist(), int(np.flatnonzero(c == 2)[0]))
        )
        for c in (codes, turned)
    ]

    assert forms[0] == forms[1]


def test_two_clicks_into_one_opening_are_one_problem_and_other_clicks_are_not():
    shape, mines = (3, 6), [2, 8, 14, 5]
    forms = [GAME.canonical(make_board(shape, mines, click)) for click in (0, 6, 3)]

    assert forms[0] == forms[1] != forms[2]


def test_a_wrong_level_or_switch_is_told():
    with pytest.raises(UnknownName, match="Did you mean '16x16-40'"):
        MinesweeperOptions(level="16x16-4")
    with pytest.raises(InvalidOption, match="no_guess is True or False, got 'yes'"):
        MinesweeperOptions(no_guess="yes")
    with pytest.raises(InvalidOption, match="value is True or False, got 1"):
        MinesweeperOptions(value=1)


def test_a_search_for_values_is_on_the_same_boards():
    with_value = instance(GAME, MinesweeperOptions(value=True), "test", 5)

    assert with_value.canonical == made("6x6-7", "test", 5).canonical
    assert MinesweeperOptions(no_guess=True).instance_key == "6x6-7,no_guess"
