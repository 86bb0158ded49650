"""What a note says is best; CAST's K(s) and the facts of its boards; play through gymnasium."""

import copy
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings

from agentgym.games.minesweeper import (
    GAME,
    MinesweeperOptions,
    greedy_reveals,
    mine_probabilities,
    odds,
    rules,
)
from agentgym.games.minesweeper.workspace import MAX_NODES, workspace
from tests.agentgym.games.minesweeper_plain import board, position, states

CAST = Path(__file__).parents[4] / "shared" / "data" / "minesweeper" / "cast_id.jsonl"
ORACLE = GAME.make_oracle(MinesweeperOptions(), 10**6)


@pytest.fixture(scope="module")
def cast_boards():
    if not CAST.exists():
        pytest.skip("The shared data folder with CAST's boards is not here.")
    return GAME.load(CAST, MinesweeperOptions())


def alone(state):
    """Odds from the open numbers without the number of mines."""
    found = np.empty(state.size - rules.CELLS)
    odds.fill_odds(state.copy(), odds.UNCOUNTED, MAX_NODES, workspace(), found)
    return found


@given(states())
@settings(max_examples=150, deadline=None)
def test_best_are_the_proven_cells_or_else_the_safest(state):
    note, found = ORACLE.note(state), mine_probabilities(state).ravel()
    cells = state.size - rules.CELLS
    safest = np.flatnonzero(found <= np.nanmin(found) + 1e-9)
    flagged = [bool(state[rules.CELLS + cell] & rules.FLAG) for cell in safest]
    expected = [cell + cells * flag for cell, flag in zip(safest.tolist(), flagged, strict=True)]

    assert sorted(expected) == np.flatnonzero(note.best).tolist()
    assert note.exact == (np.nanmin(found) == 0.0)
    assert all(rules.legal(state, action) for action in expected)
    assert math.isnan(note.value)
    assert note.action_values is None
    assert not note.dead_end


def test_a_flag_on_a_proven_cell_is_taken_off():
    state = position(["_F_", "121"], 2)

    assert np.flatnonzero(ORACLE.note(state).best).tolist() == [6 + 1]
    rules.step(state, 6 + 1)
    assert np.flatnonzero(ORACLE.note(state).best).tolist() == [1]


def test_best_does_not_look_under_the_cells():
    left, right = position(["_1_"], 1), position(["_1_"], 1)
    words = right[rules.CELLS :]
    words[[0, 2]] = words[[2, 0]]

    assert (left != right).any()
    assert (ORACLE.note(left).best == ORACLE.note(right).best).all()


def test_a_read_only_state_is_no_other(cast_boards):
    state = cast_boards[0].copy()
    before = ORACLE.note(state)
    state.flags.writeable = False
    after = ORACLE.note(state)

    assert (before.best == after.best).all()
    assert before.cost_to_go == after.cost_to_go


def test_the_facts_of_casts_boards(cast_boards):
    """Figures from running CAST's own code on them."""
    values = [greedy_reveals(state) for state in cast_boards]
    finite = [value for value in values if value < math.inf]
    no_proof = [state for state in cast_boards if np.nanmin(alone(state)) > 0]
    lost = [s for s, value in zip(cast_boards, values, strict=True) if value == math.inf]

    assert len(cast_boards) == 200
    assert not any(rules.terminal(state.copy()) for state in cast_boards)
    assert len(finite) / 200 == 0.845
    assert round(sum(finite) / len(finite), 1) == 11.4
    assert max(finite) == 23
    assert len(no_proof) == 7
    assert sum(np.nanmin(alone(state)) == 0 for state in lost) == 28
    assert len(lost) == 31


def test_casts_faults_are_not_ours(cast_boards):
    """K is inf on 31 starts (C6); 11 starts have cells that only the mines prove safe (C8)."""
    notes = [ORACLE.note(state.copy()) for state in cast_boards]
    unlisted = 0
    for state, note in zip(cast_boards, notes, strict=True):
        found = mine_probabilities(state).ravel()
        proven = found == 0.0
        unlisted += bool((proven & (alone(state) != 0.0)).any())
        assert proven.any() == note.exact
        if note.exact:
            assert (note.best[:36] == proven).all()
        assert 0 < note.cost_to_go <= min(greedy_reveals(state), 30)

    assert unlisted == 11


def test_greedy_reveals_counts_wrong_flags_and_ends_with_a_mine():
    state = board(["*......", "o......", "*......"])
    assert greedy_reveals(state) == 1
    rules.step(state, 21 + 6)
    assert greedy_reveals(state) == 2
    rules.step(state, 21)
    assert greedy_reveals(state) == 2
    rules.step(state, 14)
    assert greedy_reveals(state) == math.inf


def test_greedy_reveals_is_inf_where_its_guess_is_a_mine():
    unlucky = {greedy_reveals(s) for s in _both(position(["_1_"], 1))}

    assert unlucky == {1.0, math.inf}


def _both(state):
    other = state.copy()
    words = other[rules.CELLS :]
    words[[0, 2]] = words[[2, 0]]
    return state, other


def test_an_episode_by_proofs_alone_wins():
    env = gym.make("agentgym/Minesweeper-v0", no_guess=True)
    for seed in range(30):
        _, info = env.reset(seed=seed)
        ended = False
        while not ended:
            assert info["oracle"]["exact"]
            assert math.isnan(info["oracle"]["value"])
            assert "action_values" not in info["oracle"]
            _, reward, ended, truncated, info = env.step(info["oracle"]["best_actions"][0])
            assert not truncated
        assert info["success"]
        assert reward == 1.0
        assert info["oracle"]["cost_to_go"] == 0.0


def test_progress_falls_by_all_that_was_left_at_a_mine():
    env = gym.make("agentgym/Minesweeper-v0")
    env.reset(seed=3)
    start = env.unwrapped.state
    mine = int(np.flatnonzero(start[rules.CELLS :] & rules.MINE)[0])
    cost = env.unwrapped.oracle.note(start).cost_to_go
    _, reward, terminated, _, info = env.step(f"reveal {mine // 6} {mine % 6}")

    assert terminated
    assert (reward, info["success"]) == (0.0, False)
    assert info["oracle"]["dead_end"]
    assert info["oracle"]["progress"] == -cost
    assert info["legal_actions"] == ()


def test_values_through_gymnasium():
    env = gym.make("agentgym/Minesweeper-v0", value=True, action="index", observation="grid")
    _, info = env.reset(seed=6)
    note = info["oracle"]

    assert note["action_values"].shape == (72,)
    assert note["value"] == np.nanmax(note["action_values"])
    assert note["exact"]
    legal = [text in info["legal_actions"] for text in env.unwrapped.setup.layout.actions]
    assert ((note["action_values"] > -np.inf) == legal).all()


def test_an_environment_pickles_in_mid_game():
    env = gym.make("agentgym/Minesweeper-v0").unwrapped
    _, info = env.reset(seed=6)
    for other in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        assert repr(other.step(info["oracle"]["best_actions"][0])) == repr(
            copy.deepcopy(env).step(info["oracle"]["best_actions"][0])
        )


@pytest.mark.parametrize("level", ["6x6-7", "16x16-40"])
def test_milestones_are_quarters_of_the_safe_cells(level):
    env = gym.make(f"agentgym/Minesweeper-{level}-v0", no_guess=True)
    _, info = env.reset(seed=1)
    ended = False
    while not ended:
        share = info["progress"]
        expected = [share >= 0.25, share >= 0.5, share >= 0.75, share == 1.0]
        assert info["milestones"]["reached"].tolist() == expected
        assert info["milestones"]["total"] == 4
        _, _, ended, _, info = env.step(info["oracle"]["best_actions"][-1])
    assert info["milestones"]["count"] == 4


_PRINT = (
    "import hashlib, gymnasium as gym, agentgym\n"
    "digest = hashlib.sha256()\n"
    "env = gym.make('agentgym/Minesweeper-7x7-10-v0', value=True)\n"
    "for seed in range(3):\n"
    "    observation, info = env.reset(seed=seed)\n"
    "    digest.update(repr((observation, info)).encode())\n"
    "print(digest.hexdigest())\n"
)


def test_notes_are_the_same_in_every_process():
    digests = {
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(digests) == 1


def test_a_vector_of_games_is_its_single_games_with_notes():
    n = 6
    batch = gym.make_vec("agentgym/Minesweeper-v0", num_envs=n, oracle=True)
    _, info = batch.reset(seed=2)
    singles = [gym.make("agentgym/Minesweeper-v0") for _ in range(n)]
    for i, env in enumerate(singles):
        note = env.reset(seed=2 + i)[1]["oracle"]
        names = env.unwrapped.setup.layout.actions
        best = [names[a] for a in np.flatnonzero(info["oracle"]["best_actions"][i])]
        assert tuple(best) == note["best_actions"]
        assert info["oracle"]["cost_to_go"][i] == note["cost_to_go"]


def test_the_loader_keeps_casts_mines(cast_boards):
    rows = [json.loads(line) for line in CAST.read_text().splitlines()]
    for row, state in zip(rows, cast_boards, strict=True):
        mines = np.argwhere((state[rules.CELLS :].reshape(6, 6) & rules.MINE) != 0)
        assert mines.tolist() == sorted(row["mines"])
