"""The oracle of Sokoban against published optima, plain search and known dead ends."""

import json
import math
from itertools import combinations
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings

from agentgym.game import NoSolution
from agentgym.games.sokoban import GAME, SokobanOptions
from agentgym.games.sokoban.oracle import push_optimal
from agentgym.splits import instance
from tests.agentgym.games import sokoban_plain as plainly
from tests.agentgym.games.sokoban_plain import MOVES, boards, follow, plain, play, state_of

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "sokoban"
needs_data = pytest.mark.skipif(
    not DATA.exists(), reason="the sample boards of ../shared/data/sokoban are not here"
)
TABLE = GAME.make_oracle(SokobanOptions(), 20_000_000)
SEARCH = GAME.make_oracle(SokobanOptions(), 1)
"""Without tables, every state is searched."""
EXPLICIT = GAME.make_oracle(SokobanOptions(moves="explicit"), 20_000_000)


def _cast():
    if not DATA.exists():
        return []
    return [json.loads(line) for line in (DATA / "cast_id.jsonl").read_text().splitlines()]


def _optima(name):
    lines = (DATA / name).read_text().splitlines()
    columns = lines[0].split("\t")
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[1:] if line]


@needs_data
def test_casts_boards_have_their_optimum_and_best_actions_win_in_just_as_many():
    rows = _cast()
    assert len(rows) == 200
    for row in rows:
        notes = follow(TABLE, state_of(row["board"]))

        expected = list(range(row["optimal_moves"], 0, -1))
        assert [note.cost_to_go for note in notes] == expected, row["uid"]


@needs_data
def test_casts_boards_by_search():
    for row in _cast()[::5]:
        note = SEARCH.note(state_of(row["board"]))
        assert (note.cost_to_go, note.exact) == (row["optimal_moves"], True), row["uid"]


@needs_data
@pytest.mark.parametrize("oracle", [TABLE, SEARCH], ids=["table", "search"])
def test_microban_moves(oracle):
    states = GAME.load(DATA / "microban_1-10.xsb", SokobanOptions())
    for state, optimum in zip(states, _optima("microban_1-10.optimal.tsv"), strict=True):
        notes = follow(TABLE, state)
        assert len(notes) == notes[0].cost_to_go == int(optimum["optimal_moves"]), optimum
        assert len(oracle.solve(state)) == int(optimum["optimal_moves"])


@needs_data
@pytest.mark.parametrize("name", ["microban_1-10.xsb", "boxoban_sample.txt"])
def test_pushes_of_microban_and_boxoban(name):
    optima = _optima(f"{name.partition('.')[0]}.optimal{'_pushes' * ('box' in name)}.tsv")
    states = GAME.load(DATA / name, SokobanOptions())
    for state, optimum in zip(states, optima, strict=True):
        assert push_optimal(state) == int(optimum["optimal_pushes"]), optimum


@needs_data
def test_boxoban_moves_are_the_same_by_table_and_by_search():
    for state in GAME.load(DATA / "boxoban_sample.txt", SokobanOptions()):
        assert len(SEARCH.solve(state)) == TABLE.note(state).cost_to_go


def check(oracle, rows, names=tuple(MOVES), **how):
    """The note of a board against plain breadth-first search from it and from its successors."""
    position = plain(rows)
    cost = plainly.fewest_moves(position)
    after = [plainly.fewest_moves(play(position, name)) for name in names]

    note = oracle.note(state_of(rows, **how))

    assert (note.cost_to_go, note.value) == (cost, -cost)
    assert note.exact
    assert note.dead_end == math.isinf(cost)
    assert note.action_values is not None
    assert note.action_values.tolist() == [-1 - n for n in after]
    assert note.best.tolist() == [n < cost for n in after]


@given(boards())
@settings(max_examples=200, deadline=None)
def test_the_table_is_exact(rows):
    check(TABLE, rows)


@given(boards())
@settings(max_examples=150, deadline=None)
def test_the_search_is_exact(rows):
    check(SEARCH, rows)


@pytest.mark.parametrize(("level", "count"), [("7x7-3box", 40), ("8x8-3box", 15)])
def test_search_and_table_agree_on_generated_boards(level, count):
    options = SokobanOptions(level=level)
    for seed in range(count):
        start = instance(GAME, options, "train", seed).start
        searched, known = SEARCH.note(start), TABLE.note(start)

        assert (searched.cost_to_go, searched.exact) == (known.cost_to_go, True)
        assert (searched.action_values == known.action_values).all()
        assert (searched.best == known.best).all()


@given(boards(inner=3, boxes=2))
@settings(max_examples=40, deadline=None)
def test_the_explicit_actions_have_values_of_their_own(rows):
    names = [f"{kind} {name}" for kind in ("walk", "push") for name in MOVES]

    check(EXPLICIT, rows, names, explicit=True)


@given(boards())
@settings(max_examples=60, deadline=None)
def test_fewest_pushes_are_exact(rows):
    assert push_optimal(state_of(rows)) == plainly.fewest_pushes(plain(rows))


@pytest.mark.parametrize(
    "rows",
    [
        ["#######", "#_____#", "#_XX__#", "#__P_O#", "#___O_#", "#######"],
        ["#######", "#__O__#", "##X_X_#", "#__P_O#", "#######"],
    ],
)
def test_every_state_of_a_room(rows):
    """All box sets and player cells, not only those that play from one start would meet."""
    base = plain(rows)
    shape = (len(rows), len(rows[0]))
    floor = [(r, c) for r in range(shape[0]) for c in range(shape[1]) if (r, c) not in base.walls]
    all_states = [
        base._replace(boxes=frozenset(boxes), player=player)
        for boxes in combinations(floor, len(base.boxes))
        for player in floor
        if player not in boxes
    ]
    before = {}
    for state in all_states:
        for name in MOVES:
            before.setdefault(play(state, name), []).append(state)
    cost = {state: 0 for state in all_states if state.boxes == state.targets}
    level = list(cost)
    while level:
        later = []
        for state in level:
            for earlier in before.get(state, ()):
                if earlier not in cost:
                    cost[earlier] = cost[state] + 1
                    later.append(earlier)
        level = later

    for state in all_states:
        note = TABLE.note(state_of(plainly.draw(state, shape)))
        assert note.cost_to_go == cost.get(state, math.inf)


def test_a_won_state_has_nothing_left_to_do():
    for oracle in (TABLE, SEARCH):
        note = oracle.note(state_of(["######", "#P_*_#", "######"]))

        assert (note.cost_to_go, note.value, note.dead_end, note.exact) == (0, 0, False, True)
        assert not note.best.any()
        assert oracle.solve(state_of(["######", "#P_*_#", "######"])) == []


DEAD = {
    "corner": ["######", "#X___#", "#_PO_#", "######"],
    "wall without target": ["######", "#__X_#", "#__P_#", "#_O__#", "######"],
    "square of four": ["########", "#______#", "#_XX___#", "#_XX_P_#", "#_OOOO_#", "########"],
    "pair at a wall": ["#######", "#O_XX_#", "#_P___#", "#O____#", "#######"],
    "square with walls": ["######", "##___#", "#X_PO#", "#X_O_#", "##___#", "######"],
    "two boxes, one reachable target": [
        "#######",
        "#O_#__#",
        "##_#__#",
        "#XPXO_#",
        "#######",
    ],
    "a box shut out": ["########", "#PXO#_O#", "#___#X_#", "########"],
    "target shut out": ["#########", "#P_X__#O#", "#_____#_#", "#########"],
}


@pytest.mark.parametrize("name", DEAD)
@pytest.mark.parametrize("oracle", [TABLE, SEARCH], ids=["table", "search"])
def test_dead_ends_are_proven(oracle, name):
    state = state_of(DEAD[name])
    assert math.isinf(plainly.fewest_moves(plain(DEAD[name])))

    note = oracle.note(state)

    assert (note.cost_to_go, note.value, note.dead_end, note.exact) == (
        math.inf,
        -math.inf,
        True,
        True,
    )
    assert (note.action_values == -np.inf).all()
    assert not note.best.any()
    assert push_optimal(state) == math.inf
    with pytest.raises(NoSolution, match="No win is possible"):
        oracle.solve(state)


ALIVE = {
    "corridor, not a corner": ["#######", "#PX__O#", "#######"],
    "pair at a wall on targets": ["#######", "#_**__#", "#_P_X_#", "#___O_#", "#######"],
    "square that is all at home": ["######", "#**__#", "#**P_#", "#__X_#", "#__O_#", "######"],
}


@pytest.mark.parametrize("name", ALIVE)
@pytest.mark.parametrize("oracle", [TABLE, SEARCH], ids=["table", "search"])
def test_what_only_looks_dead_is_not(oracle, name):
    """TextArena's test calls a corridor a corner."""
    note = oracle.note(state_of(ALIVE[name]))

    assert not note.dead_end
    assert note.cost_to_go == plainly.fewest_moves(plain(ALIVE[name])) < math.inf


def test_a_room_shares_one_table_and_other_targets_have_another():
    here = state_of(["######", "#PXO_#", "######"])
    there = state_of(["######", "#XPO_#", "######"])
    other = state_of(["######", "#PX_O#", "######"])

    assert TABLE.table(here) is TABLE.table(there)
    assert TABLE.table(here) is GAME.make_oracle(SokobanOptions(), 20_000_000).table(here)
    assert TABLE.table(here) is not TABLE.table(other)


def test_a_batch_knows_what_single_games_know_where_no_table_fits():
    given_ = {"observation": "grid", "action": "index", "oracle": True, "oracle_budget": 1}
    single = gym.make("agentgym/Sokoban-v0", **given_)
    batch = gym.make_vec("agentgym/Sokoban-v0", num_envs=2, **given_)
    _, infos = batch.reset(seed=5)
    _, info = single.reset(seed=5)
    for action in (0, 1, 2, 3, 0):
        for key in ("cost_to_go", "dead_end", "exact"):
            assert infos["oracle"][key][0] == info["oracle"][key]
        assert (infos["oracle"]["action_values"][0] == info["oracle"]["action_values"]).all()
        assert info["oracle"]["exact"]
        _, _, _, _, infos = batch.step(np.array([action, action]))
        _, _, _, _, info = single.step(action)


def test_progress_of_each_action_sums_to_the_cost_of_the_start():
    env = gym.make("agentgym/Sokoban-7x7-3box-v0", max_turns=500)
    _, info = env.reset(seed=4)
    start = info["oracle"]["cost_to_go"]
    total = 0.0
    for name in ["Up", "Down"] * 3:
        *_, info = env.step(name)
        total += info["oracle"]["progress"]

    assert not info["oracle"]["dead_end"]
    assert start - info["oracle"]["cost_to_go"] == total


def test_read_only_states_have_notes_too():
    state = state_of(["#####", "#PXO#", "#####"])
    state.flags.writeable = False

    assert TABLE.note(state).cost_to_go == SEARCH.note(state).cost_to_go == 1
