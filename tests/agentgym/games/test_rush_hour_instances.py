"""Rush Hour's instances: generated in their band, named by their state graph, apart by split."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.chance import COUNTER, KEY
from agentgym.games.rush_hour import GAME
from agentgym.games.rush_hour import component as component_module
from agentgym.games.rush_hour.boards import board_of, board_of_state, state_of, text_of
from agentgym.games.rush_hour.component import canonical, component_of, mirrored
from agentgym.games.rush_hour.graph import PIECE, make_graph
from agentgym.games.rush_hour.options import LEVELS, RushHourOptions
from agentgym.games.rush_hour.rules import FIELDS, SHAPE, SIZE, place_all
from agentgym.games.rush_hour.search import draw_board, redraw_piece, shut_in
from agentgym.registration import ROWS as IDS
from agentgym.splits import SPLITS, instance, split_of
from tests.agentgym.games import rush_hour_plain as plain
from tests.agentgym.games.test_rush_hour_oracle import data

QUICK = {"7car": 120, "9car": 45, "expert": 6, "grandmaster": 1}
BULK = {"7car": 20_000, "9car": 10_000, "expert": 2_000, "grandmaster": 2_000}
SAME = {"7car": 10_000, "9car": 10_000, "expert": 1_000, "grandmaster": 1_000}
levels = pytest.mark.parametrize("level", LEVELS)


def made(text):
    return state_of(board_of(text))


def generated(level, split, seed):
    return instance(GAME, RushHourOptions(level=level), split, seed)


def check_bulk(level, seeds):
    """Every instance is winnable, in its level's band, deepest where that is promised."""
    shape, budget = LEVELS[level], 1_000_000
    limit = min(row.max_turns for row in IDS if row.kwargs.get("level") == level)
    lengths = []
    for seed in seeds:
        start = generated(level, SPLITS[seed % 3], seed).start
        oracle = GAME.make_oracle(RushHourOptions(level=level), budget)
        note = oracle.note(start)
        board = board_of_state(start)
        assert note.exact
        assert shape.slides[0] <= note.cost_to_go <= min(shape.slides[1], limit)
        assert shape.pieces[0] <= len(board.pieces) <= shape.pieces[1]
        assert list(board.pieces) == sorted(board.pieces)
        assert (board.size, board.walls, start[KEY], start[COUNTER]) == (6, (), 0, 0)
        fresh = start.copy()
        place_all(fresh)
        assert (fresh == start).all()
        lengths.append(int(note.cost_to_go))
    return lengths


@levels
def test_every_instance_is_winnable_and_in_its_band(level):
    lengths = check_bulk(level, range(QUICK[level]))

    if QUICK[level] > 40:
        assert set(lengths) == set(range(LEVELS[level].slides[0], LEVELS[level].slides[1] + 1))


def test_the_limits_allow_half_as_much_again_on_our_own_levels_and_are_casts_on_theirs():
    limits = {r.kwargs["level"]: r.max_turns for r in IDS if r.game == "rush_hour"}

    assert limits.keys() == LEVELS.keys()
    assert (limits["7car"], limits["9car"]) == (20, 20)
    for level in ("expert", "grandmaster"):
        assert limits[level] >= 1.5 * LEVELS[level].slides[1]


def test_the_start_of_a_searched_board_is_farthest_from_a_win():
    # TextArena's Rush Hour needs 1 to 12 single cells, the median 7.
    for seed in range(QUICK["expert"]):
        start = generated("expert", "test", seed).start
        component = component_of(start, 1_000_000)
        oracle, other = GAME.make_oracle(RushHourOptions(), 1_000_000), start.copy()
        farthest = 0.0
        for places in component.graph.places[: component.size : 7]:
            for mover, place in zip(component.graph.movers, places, strict=True):
                other[SHAPE + 2 * 13 + mover[PIECE]] = place
            place_all(other)
            farthest = max(farthest, oracle.note(other).cost_to_go)
        assert farthest <= oracle.note(start).cost_to_go


def test_lengths_are_spread_as_in_casts_test_set():
    lines = [json.loads(line) for line in data("cast_id.jsonl")]
    theirs = np.array([line["optimal_slides"] for line in lines])
    ours = np.array(check_bulk("7car", range(QUICK["7car"])))

    for slides in (6, 7, 8):
        share, other = np.mean(theirs == slides), np.mean(ours == slides)
        spread = np.sqrt(share * (1 - share) * (1 / len(theirs) + 1 / len(ours)))
        assert abs(share - other) < 4 * spread


@levels
def test_a_split_holds_only_what_its_digest_says(level):
    for split in SPLITS:
        for seed in range(max(1, QUICK[level] // 8)):
            one = generated(level, split, seed)
            assert split_of(one.canonical) == split
            assert GAME.canonical(one.start) == one.canonical


def forms(level, seeds):
    """The canonical forms by split; the seeds go round the splits."""
    made = {split: set() for split in SPLITS}
    for seed in seeds:
        split = SPLITS[seed % 3]
        made[split].add(generated(level, split, seed).canonical)
    return made


def check_apart(level, seeds):
    made = forms(level, seeds)
    assert not made["train"] & made["validation"]
    assert not made["train"] & made["test"]
    assert not made["validation"] & made["test"]
    return sum(len(form) for form in made.values())


@levels
def test_no_form_is_in_two_splits(level):
    check_apart(level, range(QUICK[level]))


@pytest.mark.slow
@levels
def test_in_bulk_every_instance_is_in_its_band_and_no_form_in_two_splits(level):
    # In blocks that the instance cache holds, so that each is made once.
    made, starts = 0, set()
    apart = {split: set() for split in SPLITS}
    for first in range(0, BULK[level], 2000):
        block = range(first, min(first + 2000, BULK[level]))
        made += len(check_bulk(level, block))
        starts |= {bytes(generated(level, SPLITS[seed % 3], seed).start) for seed in block}
        for split, found in forms(level, block).items():
            apart[split] |= found

    assert made == BULK[level]
    assert sum(map(len, apart.values())) == len(set().union(*apart.values()))
    # Boards of one state graph are one form: many boards of seven cars share theirs.
    assert len(starts) > 0.99 * made


# C1: of CAST's 200 test boards, 101 have a training start in their own state graph.


@given(plain.boards(sizes=(4, 5, 6), most=6), st.data())
@settings(max_examples=30, deadline=None)
def test_another_start_of_the_same_graph_has_the_same_form(board, draw):
    other = draw.draw(st.sampled_from(sorted(plain.reachable(board))))

    assert canonical(made(other)) == canonical(made(board))


@given(plain.boards(sizes=(4, 5, 6), most=6), st.data())
@settings(max_examples=30, deadline=None)
def test_other_labels_make_no_other_form(board, draw):
    labels = sorted(plain.pieces(board))
    renamed = dict(zip(labels[1:], draw.draw(st.permutations(labels[1:])), strict=True))

    text = "".join(renamed.get(glyph, glyph) for glyph in board)

    assert canonical(made(text)) == canonical(made(board))


def test_only_lookalikes_share_a_form():
    board = "ooooBo" + "ooooBo" + "AAooBo" + "oooooo" * 3
    for other in (
        "oooBoo" + "oooBoo" + "AAoBoo" + "oooooo" * 3,
        "oooooo" + "ooooBo" + "AAooBo" + "oooooo" * 3,
        "oooooo" * 2 + "AAoooo" + "oooooo" * 3,
        "xoooBo" + "ooooBo" + "AAooBo" + "oooooo" * 3,
    ):
        assert canonical(made(other)) != canonical(made(board))


def test_a_piece_that_can_never_move_is_a_wall():
    pieces = "BBCCDD" + "oooooo" + "AAoEoo" + "oooEoo" + "oooooo" * 2
    trucks = "BBBCCC" + pieces[6:]
    walls = "xxxxxx" + pieces[6:]

    assert canonical(made(pieces)) == canonical(made(trucks)) == canonical(made(walls))


def test_the_red_car_stays_the_red_car():
    # Two cars in row 2, A behind or in front: the same shapes, but not the same game.
    behind = "oooooo" * 2 + "AABBoo" + "oooooo" * 3
    front = "oooooo" * 2 + "BBAAoo" + "oooooo" * 3

    assert canonical(made(behind)) != canonical(made(front))


@given(plain.boards(sizes=(5,), most=5))
@settings(max_examples=20, deadline=None)
def test_a_board_that_its_exit_row_halves_is_its_mirror_image(board):
    assert canonical(made(board)) == canonical(state_of(mirrored(board_of(board))))


def test_a_mirror_image_of_six_rows_is_no_board_of_this_game():
    # Row 2 becomes row 3, and A leaves from row 2: nothing else to identify.
    image = mirrored(board_of("oooBoo" + "oooBoo" + "AAoBoo" + "oooooo" * 3))

    assert image.pieces["A"].lane == 3


def test_a_component_too_large_to_name_is_named_by_its_start(monkeypatch):
    board = "ooBoCo" + "ooBoCo" + "AABooo" + "oooDDo" + "ooEEoo" + "oooooo"
    relabelled = board.replace("B", "Z").replace("C", "B").replace("Z", "C")
    monkeypatch.setattr(component_module, "NAMED", 20)

    assert canonical(made(board)) == canonical(made(relabelled))
    assert canonical(made(board)) != canonical(made(board[:-1] + "x"))


@given(plain.boards(sizes=(6, 7), most=8, walls=0))
@settings(max_examples=60, deadline=None)
def test_a_board_said_to_shut_the_car_in_is_dead(board):
    if shut_in(made(board)):
        assert plain.distance(board, cells=False) is None


@given(st.integers(0, 2**62), st.sampled_from([7, 9, 12, 13]))
@settings(max_examples=30, deadline=None)
def test_a_drawn_board_is_a_board_and_stays_one(key, count):
    state = np.zeros(FIELDS + 3 * 13, np.int64)
    state[KEY], state[SIZE] = key, 6
    draw_board(state, count, 4)
    for _ in range(10):
        before = state.copy()
        if not redraw_piece(state, count, 4):
            before[COUNTER] = state[COUNTER]
            state = before
        board = board_of_state(state)
        assert len(board.pieces) == count
        assert board_of(text_of(board)) == board
        assert not any(p.lane == 2 and not p.vertical for p in list(board.pieces.values())[1:])
        fresh = state.copy()
        place_all(fresh)
        assert (fresh == state).all()


@pytest.mark.parametrize(
    ("column", "shut"),
    [("BBBCCo", True), ("BBoCCC", False), ("BBoCCo", False), ("BBCCDD", True), ("BBBoCC", True),
     ("BBBooo", False), ("BBBCCC", True), ("oooooo", False)],
)  # fmt: skip
def test_which_columns_shut_the_car_in(column, shut):
    rows = ["oooo" + glyph + "o" for glyph in column]
    rows[2] = "AA" + rows[2][2:]
    board = "".join(rows)

    assert shut_in(made(board)) == shut
    assert (plain.distance(board, cells=False) is None) == shut


_PRINT = (
    "import sys, hashlib\n"
    "from agentgym.games.rush_hour import GAME\n"
    "from agentgym.games.rush_hour.options import RushHourOptions\n"
    "from agentgym.splits import instance\n"
    "order = int(sys.argv[1])\n"
    "for word in sys.argv[2:]:\n"
    "    level, _, count = word.partition('=')\n"
    "    options = RushHourOptions(level=level)\n"
    "    made = {}\n"
    "    for seed in list(range(int(count)))[::order]:\n"
    "        made[seed] = instance.__wrapped__(GAME, options, 'test', seed).start.tobytes()\n"
    "    print(hashlib.sha256(b''.join(made[s] for s in sorted(made))).hexdigest())\n"
)


def digests_elsewhere(counts):
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


def digests_here(counts):
    text = ""
    for level, count in counts.items():
        starts = b"".join(generated(level, "test", s).start.tobytes() for s in range(count))
        text += hashlib.sha256(starts).hexdigest() + "\n"
    return text


def test_the_same_bytes_under_any_hash_seed_and_in_any_order():
    counts = {"7car": 5, "9car": 3, "expert": 2}

    assert digests_elsewhere(counts) == {digests_here(counts)}


@pytest.mark.slow
@levels
def test_the_same_bytes_under_any_hash_seed_and_in_any_order_in_bulk(level):
    assert len(digests_elsewhere({level: SAME[level]})) == 1


def test_neighbouring_seeds_share_nothing():
    # reasoning-gym: seeds s and s + 1 share all but one of their items.
    starts = {generated("7car", "train", seed).canonical for seed in range(50)}

    assert len(starts) == 50


def test_a_level_with_fewer_pieces_than_fields_leaves_the_last_letters_out():
    counts = set()
    for seed in range(12):
        start = generated("expert", "train", seed).start
        counts.add(len(board_of_state(start).pieces))
        assert len(start) == FIELDS + 3 * 13
    assert len(counts) > 1


def test_a_graph_holds_what_it_was_made_for():
    assert len(make_graph(3, 100).keys) == 256
    assert make_graph(3, 100, linked=False).links.shape == (0, 6)
