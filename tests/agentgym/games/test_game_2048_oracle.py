"""The oracle of 2048 against exact values, its own games and hand-made positions."""

from functools import cache

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentgym  # noqa: F401
from agentgym.game import NoSolution
from agentgym.games.game_2048 import GAME
from agentgym.games.game_2048.instances import fresh, shape_of
from agentgym.games.game_2048.measure import measure
from agentgym.games.game_2048.network import evaluate, pack, symmetries
from agentgym.games.game_2048.oracle import network_file, weights_of
from agentgym.games.game_2048.rules import begin, get_board, step
from agentgym.games.game_2048.solve_3x3 import solve
from agentgym.games.game_2048.train import GAMES, keep, train
from agentgym.splits import instance
from tests.agentgym.games import game_2048_plain as plain
from tests.agentgym.games.test_game_2048_rules import boards, state_of

ORACLE = GAME.make_oracle(GAME.options(), 1)
DEAD = [[1, 2, 1, 2], [2, 1, 2, 1], [1, 2, 1, 2], [2, 1, 2, 1]]


@cache
def best_play(board):
    """The exact value of a 2x2 board before a move, in units of the base; plain value iteration."""
    return max((move_value(board, a) for a in plain.legal(board)), default=0.0)


@cache
def move_value(board, action):
    after, merged = plain.slide(board, action)
    later = sum(p * best_play(tuple(map(tuple, b))) for b, p in plain.spawns(after))
    return sum(1 << (k - 1) for k in merged) + later


def all_2x2():
    """Every 2x2 board that a game can reach."""
    opened = [b for b, _ in plain.spawns([[0, 0], [0, 0]])]
    found = {tuple(map(tuple, b)) for one in opened for b, _ in plain.spawns(one)}
    waiting = list(found)
    while waiting:
        board = waiting.pop()
        for action in plain.legal(board):
            for after, _ in plain.spawns(plain.slide(board, action)[0]):
                after = tuple(map(tuple, after))
                if after not in found:
                    found.add(after)
                    waiting.append(after)
    return sorted(found)


def test_on_2x2_the_oracle_plays_perfectly_and_its_values_are_close():
    gaps = []
    for board in all_2x2():
        note = ORACLE.note(state_of(board))
        exact = best_play(board)
        gaps.append(abs(note.value - 2 * exact))
        if plain.legal(board):
            chosen = move_value(board, int(note.best.argmax()))
            assert chosen == pytest.approx(exact, abs=1e-9)

    assert len(gaps) == 662
    assert max(gaps) < 1.3
    assert np.mean(gaps) < 0.35


def test_the_exact_solver_agrees_with_plain_value_iteration_on_2x2():
    opened = list(plain.spawns([[0, 0], [0, 0]]))
    twice = [(b, p * q) for one, p in opened for b, q in plain.spawns(one)]
    start = sum(p * best_play(tuple(map(tuple, b))) for b, p in twice)
    found = solve(2)

    assert found.points == pytest.approx(start, abs=1e-9)
    assert 2 * found.points == pytest.approx(66.9641, abs=1e-4)
    assert found.boards == len({_smallest(board) for board in all_2x2()}) == 110


def _smallest(board):
    turned = [np.rot90(board, k) for k in range(4)]
    return min(tuple(b.ravel()) for t in turned for b in (t, t.T))


def turned(board):
    """A board, and how its four moves are called, under each of the eight symmetries."""
    for k in range(4):
        for mirror in (False, True):
            moved = np.rot90(np.array(board)[:, ::-1] if mirror else board, k)
            names = [0, 1, 3, 2] if mirror else [0, 1, 2, 3]
            for _ in range(k):  # A quarter turn makes up left, left down, down right, right up.
                names = [(2, 3, 1, 0)[name] for name in names]
            yield moved.tolist(), names


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4).flatmap(boards))
def test_symmetric_boards_have_the_same_values(board):
    note = ORACLE.note(state_of(board))
    for moved, names in turned(board):
        other = ORACLE.note(state_of(moved))
        assert other.value == pytest.approx(note.value, rel=1e-5, abs=1e-3)
        assert other.action_values[names] == pytest.approx(note.action_values, rel=1e-5, abs=1e-3)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4).flatmap(boards))
def test_the_eight_symmetries_are_numpys(board):
    size = len(board)
    words = symmetries(get_board(state_of(board)), size)

    def packed(grid):
        cells = np.ndenumerate(np.minimum(grid, 15))
        return sum(int(k) << (16 * r + 4 * c) for (r, c), k in cells)

    # A nibble of 8 or more in the last cell makes the word negative.
    assert sorted(w % 2**64 for w in words) == sorted(packed(grid) for grid, _ in turned(board))


@settings(max_examples=60, deadline=None)
@given(boards(4))
def test_another_base_scales_the_values(board):
    two, three = (ORACLE.note(state_of(board, base=base)) for base in (2, 3))

    assert three.value == pytest.approx(1.5 * two.value)
    assert three.action_values == pytest.approx(1.5 * two.action_values)
    assert (three.best == two.best).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4).flatmap(boards), st.integers(1, 2**62))
def test_a_note_is_of_the_board_and_not_of_the_chance_to_come(board, key):
    state = state_of(board, key=key)
    before = state.tobytes()
    note, other = ORACLE.note(state), ORACLE.note(state_of(board, key=1))

    assert state.tobytes() == before
    assert note.value == other.value
    assert np.isnan(note.cost_to_go)
    assert note.exact is False
    legal = np.isin(range(4), plain.legal(board))
    assert (np.isfinite(note.action_values) == legal).all()
    assert (note.action_values[~legal] == -np.inf).all()
    assert (note.best == legal & (note.action_values == note.value)).all()
    assert note.value == (note.action_values.max() if legal.any() else 0.0)


def test_equal_moves_are_all_best():
    note = ORACLE.note(state_of([[0, 0, 0], [0, 1, 0], [0, 0, 0]]))

    assert note.action_values.tolist() == [note.value] * 4
    assert note.best.all()


def test_the_end_without_the_target_is_a_dead_end():
    lost = ORACLE.note(state_of(DEAD))
    won = ORACLE.note(state_of([[11, *DEAD[0][1:]], *DEAD[1:]]))

    assert (lost.value, lost.dead_end, won.value, won.dead_end) == (0.0, True, 0.0, False)
    assert not lost.best.any()
    assert (lost.action_values == -np.inf).all()


def test_late_values_do_not_promise_what_an_early_board_does():
    """The bare network tells boards of one shape apart by little, whatever their largest tile."""
    late = ORACLE.note(state_of([[13, 12, 11, 10], [6, 7, 8, 9], [5, 4, 1, 0], [0, 1, 0, 0]]))
    early = ORACLE.note(state_of([[9, 8, 7, 6], [1, 2, 4, 5], [2, 1, 0, 0], [0, 0, 0, 0]]))

    assert early.value > 2 * late.value > 0


def test_a_sure_merge_is_worth_its_points():
    full = [[10, 10, 1, 2], [2, 1, 2, 1], [1, 2, 1, 2], [2, 1, 2, 1]]
    note = ORACLE.note(state_of(full))

    assert np.flatnonzero(np.isfinite(note.action_values)).tolist() == [2, 3]
    assert note.value > 2048


def test_solve_plays_to_the_target_with_the_states_own_chance():
    state = fresh(3, shape_of(3, 2))
    begin(state)
    start = state.copy()
    plan = ORACLE.solve(start)
    for turn, action in enumerate(plan):
        assert not GAME.success(state), turn
        assert step(state, action) >= 0.0

    assert GAME.success(state)
    assert ORACLE.solve(state) == []
    assert ORACLE.solve(start) == plan


def test_solve_says_when_its_play_dies():
    with pytest.raises(NoSolution, match="ends after 0 moves without the target"):
        ORACLE.solve(state_of(DEAD))


def test_5x5_has_best_moves_but_no_values():
    state = fresh(1, shape_of(5, 2))
    begin(state)
    note = ORACLE.note(state)

    assert np.isnan(note.value)
    assert note.action_values is None
    assert note.best.any()
    plan = ORACLE.solve(state)
    assert len(plan) > 800


def test_more_than_16_bits_of_tile_read_as_the_largest_nibble():
    word = pack(get_board(state_of([[14, 15, 16, 17], [0, 1, 2, 3], [0] * 4, [0] * 4])))

    assert word == 0x3210_FFFE
    high = state_of([[17, 16, 15, 14], [0, 1, 2, 3], [0] * 4, [0] * 4])
    assert np.isfinite(evaluate(get_board(high), 4, weights_of(4)))


def test_training_gives_the_shipped_network_again(tmp_path):
    *_, (games, _, tables) = train(2, GAMES[2], seed=0)
    keep(tmp_path / "again.npz", tables)
    assert games == GAMES[2]

    with np.load(tmp_path / "again.npz") as again, np.load(network_file(2)) as shipped:
        assert (again["steps"] == shipped["steps"]).all()
        assert (again["width"] == shipped["width"]).all()


def test_the_networks_are_within_ten_megabytes():
    assert sum(network_file(size).stat().st_size for size in (2, 3, 4)) < 10_000_000


def test_on_3x3_the_oracle_reaches_the_target_nearly_always():
    games = measure(3, 2, games=100, seed=1)

    assert (games.tops >= 8).mean() > 0.9
    assert games.scores.mean() > 4500


def test_an_environment_reports_the_oracle():
    env = gym.make("agentgym/3072-v0")
    _, info = env.reset(seed=0)
    before = info["oracle"]
    best = before["best_actions"][0]
    _, _, _, _, info = env.step(best)

    assert np.isnan(info["oracle"]["cost_to_go"])
    assert info["oracle"]["progress"] == 0.0
    assert before["value"] == before["action_values"].max() > 50_000
    env.reset(seed=0)
    values = before["action_values"]
    worst = int(np.where(np.isinf(values), np.inf, values).argmin())
    _, _, _, _, info = env.step(("Up", "Down", "Left", "Right")[worst])
    lost = values[worst] - before["value"]
    assert info["oracle"]["progress"] == pytest.approx(lost)


@pytest.mark.slow
def test_the_oracle_reaches_2048_in_97_of_100_games():
    games = measure(4, 2, games=1000, seed=0)

    assert (games.tops >= 11).mean() >= 0.97


@pytest.mark.slow
def test_3x3_is_solved_and_the_oracle_is_within_a_tenth_of_it():
    """Five to fifteen minutes and 1 GB."""
    found = solve(3)
    games = measure(3, 2, games=1000, seed=0)

    assert found.boards == 48_713_519
    assert 2 * found.points == pytest.approx(5468.4868, abs=1e-3)
    error = games.scores.std() / np.sqrt(1000)
    assert 0.9 * 5468.5 - 2 * error < games.scores.mean() < 5468.5 + 2 * error


@pytest.mark.slow
@pytest.mark.parametrize(("size", "games", "apart"), [(3, 1000, 0.06), (4, 300, 0.06)])
def test_values_at_the_start_are_what_the_oracle_then_scores(size, games, apart):
    """Keys that neither training nor calibration used; the standard error is about 1.5 %."""
    starts = [instance(GAME, GAME.options(size=size), "test", seed).start for seed in range(200)]
    told = np.mean([ORACLE.note(start).value for start in starts])

    assert told == pytest.approx(measure(size, 2, games, seed=9).scores.mean(), rel=apart)


@pytest.mark.slow
def test_3072_is_the_same_game_times_three_halves():
    two, three = (measure(4, base, games=20, seed=5) for base in (2, 3))

    assert (two.tops == three.tops).all()
    assert (3 * two.scores == 2 * three.scores).all()
