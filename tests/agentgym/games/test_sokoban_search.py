"""The search of Sokoban: tests for lost positions, budgets, bounds, and sets of boxes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.game import NoSolution
from agentgym.games.sokoban import GAME, SokobanOptions
from agentgym.games.sokoban.box_sets import first, following, moved, rank_of
from agentgym.games.sokoban.deadlocks import SUBSETS, frozen_away
from agentgym.games.sokoban.deadlocks import fewest_pushes as assignment
from agentgym.games.sokoban.oracle import push_optimal
from agentgym.games.sokoban.rooms import survey
from agentgym.games.sokoban.table import size_of
from agentgym.games.sokoban.wins import box_set
from tests.agentgym.games import sokoban_plain as plainly
from tests.agentgym.games.sokoban_plain import boards, follow, plain, state_of

TABLE = GAME.make_oracle(SokobanOptions(), 20_000_000)
SEARCH = GAME.make_oracle(SokobanOptions(), 1)


def _frozen(rows):
    state = state_of(rows)
    room = survey(state)
    boxes = box_set(state, room)
    assert boxes is not None
    return frozen_away(room, boxes, np.full(len(room.cells), -1, np.int8))


@pytest.mark.parametrize(
    ("rows", "frozen"),
    [
        (["#######", "#_____#", "#_XX__#", "#_XX_P#", "#_OOOO#", "#_____#", "#######"], True),
        (["#######", "#_____#", "#_XX__#", "#_X__P#", "#_OOO_#", "#_____#", "#######"], False),
        (["#######", "#____P#", "#_**__#", "#_**__#", "#_____#", "#_____#", "#######"], False),
        (["#######", "#____P#", "#_**__#", "#_*X__#", "#__O__#", "#_____#", "#######"], True),
        (["######", "#_XX_#", "#_P__#", "#OO__#", "######"], None),
        (["######", "#OXXO#", "#__P_#", "#____#", "######"], True),
    ],
)
def test_frozen_boxes(rows, frozen):
    if frozen is None:
        assert box_set(state_of(rows), survey(state_of(rows))) is None
    else:
        assert _frozen(rows) is frozen


@given(boards())
@settings(max_examples=80, deadline=None)
def test_no_dead_end_test_ever_calls_a_state_lost_that_can_be_won(rows):
    state, cost = state_of(rows), plainly.fewest_moves(plain(rows))
    room = survey(state)
    boxes = box_set(state, room)
    if math.isinf(cost):
        return
    assert boxes is not None
    assert not frozen_away(room, boxes, np.full(len(room.cells), -1, np.int8))
    bound = assignment(room, boxes, np.empty(SUBSETS, np.int64))
    assert bound <= plainly.fewest_pushes(plain(rows))


def test_the_assignment_bound_is_the_cheapest_of_all():
    """Each box to its nearest free target in turn would cost 1 + 5."""
    state = state_of(["##########", "#________#", "#_O_XO_XP#", "#________#", "##########"])
    room = survey(state)

    assert assignment(room, box_set(state, room), np.empty(SUBSETS, np.int64)) == 2 + 2


OPEN = [
    "################",
    *["#" + "_" * 14 + "#"] * 3,
    "#__X_X_X_X_____#",
    "#______________#",
    "#__X_X_X_X__P__#",
    *["#" + "_" * 14 + "#"] * 3,
    "#OOOO__________#",
    "#OOOO__________#",
    "################",
]


def test_out_of_budget_is_neither_a_dead_end_nor_a_proof():
    """CAST's solver answers infinity (C5)."""
    state = state_of(OPEN)
    assert size_of(survey(state)) > 10**12

    note = SEARCH.note(state)

    assert not note.dead_end
    assert not note.exact
    assert not note.best.any()
    assert math.isnan(note.cost_to_go) or note.cost_to_go >= 8
    assert np.isnan(note.action_values).all()


def test_a_bound_comes_with_a_win_that_is_as_long():
    wide = "#" + "_" * 10 + "#"
    boxes = ["#_X_X_X_X__#", wide, "#____P_____#", "#OOOO______#"]
    state = state_of(["#" * 12, wide, wide, *boxes, "#" * 12])

    note = SEARCH.note(state)
    assert (note.exact, note.dead_end) == (False, False)
    assert math.isfinite(note.cost_to_go)
    actions = SEARCH.solve(state)

    assert len(actions) == note.cost_to_go
    for action in actions:
        GAME.step(state, action)
    assert GAME.success(state)


def test_nothing_found_says_so(monkeypatch):
    monkeypatch.setattr("agentgym.games.sokoban.oracle._LEAST_NODES", 50)
    oracle, state = GAME.make_oracle(SokobanOptions(), 2), state_of(OPEN)

    note = oracle.note(state)

    assert math.isnan(note.cost_to_go)
    assert math.isnan(note.value)
    assert (note.dead_end, note.exact) == (False, False)
    with pytest.raises(NoSolution, match="within the budget"):
        oracle.solve(state)


def test_whatever_a_small_budget_leaves_known_is_true(monkeypatch):
    """The start may be solved within a budget that some of its successors exceed."""
    state = state_of(["#######", "#_____#", "#_XPXO#", "#__O__#", "#_____#", "#######"])
    truth = TABLE.note(state)
    seen = set()
    for limit in range(1, 60):
        monkeypatch.setattr("agentgym.games.sokoban.oracle._LEAST_NODES", limit)
        note = GAME.make_oracle(SokobanOptions(), -limit).note(state)
        known = ~np.isnan(note.action_values)

        assert not note.dead_end
        assert note.exact == (known.all() and note.cost_to_go == truth.cost_to_go)
        assert not note.cost_to_go < truth.cost_to_go
        assert (note.action_values[known] == truth.action_values[known]).all()
        assert (note.best <= truth.best).all()
        seen.add((int(known.sum()), note.cost_to_go == truth.cost_to_go, note.exact))
    assert {(3, True, False), (4, True, True)} <= seen


def test_a_large_board_with_an_easy_win_is_solved_exactly():
    wide = "#" + "_" * 14 + "#"
    rows = ["#" * 16, *[wide] * 12, "#_XXXXXXXX___P_#", "#_OOOOOOOO_____#", "#" * 16]
    state = state_of(rows)
    assert size_of(survey(state)) > 20_000_000

    note = TABLE.note(state)

    # Five steps to stand above the nearest box, a push, three actions for each of the other seven.
    assert (note.cost_to_go, note.exact) == (27, True)
    assert push_optimal(state) == 8


def test_a_search_is_remembered_along_its_win():
    state = state_of(["########", "#P_____#", "#_X__X_#", "#______#", "#O____O#", "########"])
    notes = follow(SEARCH, state)

    assert [n.cost_to_go for n in notes] == [n.cost_to_go for n in follow(TABLE, state)]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_ranks_number_the_sets_in_order(count):
    cells = 7
    boxes = first(count)
    for rank in range(math.comb(cells, count)):
        assert rank_of(boxes, count) == rank
        members = [int(boxes) >> 8 * i & 255 for i in range(count)]
        assert members == sorted(set(members))
        boxes = following(boxes, count)


@given(st.sets(st.integers(0, 195), min_size=1, max_size=8), st.data())
@settings(max_examples=60, deadline=None)
def test_a_moved_box_keeps_the_set_in_order(cells, data):
    def packed(members):
        return np.uint64(sum(cell << 8 * i for i, cell in enumerate(sorted(members))))

    old = data.draw(st.sampled_from(sorted(cells)))
    new = data.draw(st.sampled_from(sorted({*range(196)} - cells)))

    result = moved(packed(cells), len(cells), old, new)

    assert result == packed(cells - {old} | {new})
    rank = sum(math.comb(cell, i) for i, cell in enumerate(sorted(cells), start=1))
    assert rank_of(packed(cells), len(cells)) == rank
