"""Rush Hour's oracle: exact on every reachable state, in slides and in cells."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.game import NoSolution
from agentgym.games.rush_hour import GAME
from agentgym.games.rush_hour.boards import board_of, state_of
from agentgym.games.rush_hour.component import component_of, room_of
from agentgym.games.rush_hour.graph import DEAD, explore, make_graph, measure, near, put
from agentgym.games.rush_hour.options import RushHourOptions
from agentgym.oracle import PoolOracle
from agentgym.splits import instance
from tests.agentgym.games import rush_hour_plain as plain

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "rush_hour"
SLIDES, CELLS = RushHourOptions(), RushHourOptions(metric="cells")
BUDGET = 1_000_000
# B and C fill column 3 but for one cell, so that row 2 is never free there.
DEAD_BOARD = "oooBoo" + "oooBoo" + "AAoBoo" + "oooCoo" + "oooCoo" + "oooooo"
LONE_CAR = "oooooo" * 2 + "AAoooo" + "oooooo" * 3


def made(text, room=None):
    return state_of(board_of(text), room)


def oracle_of(options=SLIDES, budget=BUDGET):
    return GAME.make_oracle(options, budget)


def text_actions(state):
    return GAME.layout(SLIDES, (state,)).actions


def data(name):
    if not (DATA / name).exists():
        pytest.skip(f"The shared data are not there: {DATA / name}.")
    return (DATA / name).read_text().splitlines()


def check_note(board, options):
    """The note of a board is what a plain search from each of its neighbours says."""
    state, counted = made(board), options is CELLS
    note = oracle_of(options).note(state)
    actions = text_actions(state)
    own = plain.distance(board, counted)
    values = np.full(len(actions), -np.inf)
    for label, sign, k, after in plain.slides(board):
        then = plain.distance(after, counted)
        if then is not None:
            action = actions.index(f"{label}{'+' if sign > 0 else '-'}{k}")
            values[action] = -(then + (k if counted else 1))
    assert note.exact
    assert note.dead_end == (own is None)
    assert note.cost_to_go == (np.inf if own is None else own)
    assert note.value == -note.cost_to_go
    assert note.action_values.tolist() == values.tolist()
    expected = np.isfinite(values) & (values == note.value)
    assert note.best.tolist() == expected.tolist()


@given(plain.boards(sizes=(4, 5, 6), most=4), st.sampled_from([SLIDES, CELLS]))
@settings(max_examples=30, deadline=None)
def test_a_note_is_what_plain_searches_say(board, options):
    check_note(board, options)


@given(plain.boards(sizes=(7, 8), most=2), st.sampled_from([SLIDES, CELLS]))
@settings(max_examples=8, deadline=None)
def test_a_note_on_the_larger_boards_is_what_plain_searches_say(board, options):
    check_note(board, options)


@given(plain.boards(sizes=(4, 5, 6), most=6), st.sampled_from([SLIDES, CELLS]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_every_reachable_state_is_there_with_its_distance(board, options, linked):
    state = made(board)
    reachable = plain.reachable(board)
    graph = make_graph(len(plain.pieces(board)), max(len(reachable), 2), linked=linked)

    count = explore(state, graph)
    winning = measure(state, graph, count, options is CELLS)

    assert count == len(reachable)
    assert winning in (0, count)
    order = graph.order[:winning]
    assert (np.diff(graph.costs[order]) >= 0).all()
    oracle, room = oracle_of(options), room_of(state)
    for other in sorted(reachable)[:: max(1, len(reachable) // 5)]:
        distance = plain.distance(other, options is CELLS)
        expected = np.inf if distance is None else distance
        assert oracle.note(made(other, room)).cost_to_go == expected


@pytest.mark.parametrize("options", [SLIDES, CELLS], ids=["slides", "cells"])
@pytest.mark.parametrize("level", ["7car", "expert"])
def test_a_states_distance_is_that_of_its_nearest_neighbour_and_the_way_there(level, options):
    # With 0 for won states alone this has one solution, the distances; a run of links that is
    # left a state too early breaks it for one state in some hundreds.
    start = instance(GAME, RushHourOptions(level=level), "train", 0).start
    component, state = component_of(start, BUDGET), start.copy()
    oracle = oracle_of(options)
    for name in range(0, component.size, max(1, component.size // 1500)):
        put(state, component.graph, name)
        now = oracle.note(state)
        ways = [1 + a % 4 if options is CELLS else 1 for a in range(len(now.best))]
        after = [_cost_after(oracle, state, a) + way for a, way in enumerate(ways)]
        assert now.cost_to_go == (0 if GAME.success(state) else min(after))


def _cost_after(oracle, state, action):
    after = state.copy()
    refused = np.isnan(GAME.step(after, action))
    return np.inf if refused else oracle.note(after).cost_to_go


@given(plain.boards(sizes=(5, 6), most=6), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_the_first_look_agrees(board, depth):
    state = made(board)
    graph = make_graph(len(plain.pieces(board)), 1 << 16, linked=False)
    distance = plain.distance(board, cells=False)

    found = near(state, graph, depth)

    if distance is None:
        assert found in (DEAD, depth + 1)
    else:
        assert found == min(distance, depth + 1)


def test_the_first_look_gives_up_where_there_is_no_room():
    state = made("oooooo" * 2 + "AAoBoo" + "oooBoo" + "oooooo" * 2)

    assert near(state, make_graph(2, 3, linked=False), 4) == 5
    assert near(state, make_graph(2, 64, linked=False), 4) == 2


def test_a_graph_without_room_says_so_and_one_with_just_enough_does_not():
    state = made(LONE_CAR)

    assert explore(state, make_graph(1, 4)) == -1
    assert explore(state, make_graph(1, 5)) == 5


def test_every_board_of_casts_test_set_has_its_published_optimum():
    lines = [json.loads(line) for line in data("cast_id.jsonl")]
    oracle = oracle_of()

    assert len(lines) == 200
    for line in lines:
        state = made(line["board"])
        assert oracle.note(state).cost_to_go == line["optimal_slides"]


def test_following_any_best_action_wins_casts_boards_in_exactly_n_turns():
    rng = np.random.Generator(np.random.PCG64(0))
    oracle = oracle_of()
    for line in (json.loads(line) for line in data("cast_id.jsonl")):
        state, left = made(line["board"]), line["optimal_slides"]
        while left:
            note = oracle.note(state)
            assert note.cost_to_go == left
            GAME.step(state, int(rng.choice(np.flatnonzero(note.best))))
            left -= 1
        assert GAME.success(state)
        assert oracle.note(state).cost_to_go == 0


@pytest.mark.parametrize("options", [SLIDES, CELLS], ids=["slides", "cells"])
def test_the_database_sample_has_its_published_optima_and_state_counts(options):
    rows = [row.split() for row in data("fogleman_sample.tsv") if row[0].isdecimal()]
    assert len(rows) == 34
    for moves, board, cluster, slides, cells in rows:
        state = made(board)
        # The published cluster is the whole component: won states count, and slides go on from
        # them (from the last cell A can come back), as they do in the physical puzzle.
        component = component_of(state, BUDGET)
        assert component.size == int(cluster)
        note = oracle_of(options).note(state)
        assert note.cost_to_go == int(cells if options is CELLS else slides)
        assert moves == slides
        plan = oracle_of(options).solve(state)
        spent = 0
        for action in plan:
            spent += action % 4 + 1 if options is CELLS else 1
            GAME.step(state, action)
        assert spent == note.cost_to_go
        assert GAME.success(state)


def test_a_won_state_has_nothing_left_to_do():
    state = made(LONE_CAR)
    GAME.step(state, 3)

    note = oracle_of().note(state)

    assert (note.cost_to_go, note.value, note.dead_end, note.exact) == (0, 0, False, True)
    assert not note.best.any()
    assert np.isneginf(note.action_values).all()
    assert oracle_of().solve(state) == []


def test_a_dead_board_is_proven_dead_whatever_is_played():
    state = made(DEAD_BOARD)

    note = oracle_of().note(state)

    assert (note.cost_to_go, note.value) == (np.inf, -np.inf)
    assert (note.dead_end, note.exact) == (True, True)
    assert not note.best.any()
    assert np.isneginf(note.action_values).all()
    with pytest.raises(NoSolution):
        oracle_of().solve(state)


def test_a_board_beyond_the_budget_is_undetermined_not_dead():
    # C5: CAST says the same inf for a proof and for a search that was cut short.
    state = made("ooBoCo" + "ooBoCo" + "AABooo" + "oooDDo" + "ooEEoo" + "oooooo")
    size = component_of(state, BUDGET).size
    within, beyond = oracle_of(budget=size), oracle_of(budget=size - 1)

    note = beyond.note(state)

    assert within.note(state).exact
    assert np.isnan(note.cost_to_go)
    assert np.isnan(note.value)
    assert not note.exact
    assert not note.dead_end
    assert not note.best.any()
    legal = [GAME.legal(state, action) for action in range(len(note.best))]
    assert np.isnan(note.action_values).tolist() == legal
    with pytest.raises(NoSolution):
        beyond.solve(state)


def test_what_was_asked_before_changes_no_answer_beyond_the_budget():
    state = made("ooBoCo" + "ooBoCo" + "AABooo" + "oooDDo" + "ooEEoo" + "oooooo")
    oracle, rng = oracle_of(budget=50), np.random.Generator(np.random.PCG64(0))
    for _ in range(200):
        assert np.isnan(oracle.note(state).cost_to_go)
        legal = [a for a in range(len(text_actions(state))) if GAME.legal(state, a)]
        if not legal:
            break
        GAME.step(state, int(rng.choice(legal)))


def test_a_large_board_is_known_within_its_budget_and_given_up_without():
    row = "BBoooooo", "CCoooooo", "AAooooox", "DDoooooo", "EEoooooo", "FFoooooo", "oooooooo"
    state = made("".join(row) + "oooooooo")

    assert component_of(state, BUDGET).size == 7**5 * 6
    assert not oracle_of(budget=7**5 * 6 - 1).note(state).exact
    assert oracle_of(budget=7**5 * 6).note(state).dead_end


def test_components_of_the_same_pieces_have_tables_of_their_own():
    # Row 3 is full: the truck D stays above it, in A's way for ever, or below it.
    rest = "AAo{}ooo" + "EEEFFGG"
    above = "oooDooo" * 2 + rest.format("D") + "ooooooo" * 3
    below = "ooooooo" * 2 + rest.format("o") + "oooDooo" * 3
    oracle = oracle_of()

    for _ in range(2):
        assert oracle.note(made(above)).cost_to_go == np.inf
        assert oracle.note(made(below)).cost_to_go == 1


@pytest.mark.parametrize("options", [SLIDES, CELLS], ids=["slides", "cells"])
def test_a_batch_is_read_as_single_states_are(options):
    boards = [json.loads(line)["board"] for line in data("cast_id.jsonl")[:8]]
    pool = np.array([made(board) for board in boards])
    oracle, rng = oracle_of(options), np.random.Generator(np.random.PCG64(0))
    batch = PoolOracle(oracle, pool, len(text_actions(pool[0])))
    states, which = pool.copy(), np.arange(8)
    for _ in range(20):
        notes = batch.notes(states, which)
        for i, state in enumerate(states):
            single = oracle.note(state)
            assert notes.cost_to_go[i] == single.cost_to_go
            assert notes.action_values[i].tolist() == single.action_values.tolist()
            assert notes.best[i].tolist() == single.best.tolist()
            GAME.step(state, int(rng.integers(len(single.best))))
