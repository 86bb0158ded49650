"""The probability of winning: exact against plain recursion, and estimated by play."""

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from agentgym.games.minesweeper import GAME, MinesweeperOptions, mine_probabilities, rules, sampling
from agentgym.games.minesweeper.exact import count_layouts_exact
from agentgym.games.minesweeper.layouts import MAX_LAYOUTS, STATES, book
from agentgym.games.minesweeper.oracle import spread_values, state_key
from agentgym.games.minesweeper.sampling import SAMPLES
from agentgym.games.minesweeper.workspace import workspace
from tests.agentgym.games.minesweeper_plain import layouts, near, position, states, win_odds

DATA = Path(__file__).parents[4] / "shared" / "data" / "minesweeper" / "positions.json"
BUDGET = 10**7
ORACLE = GAME.make_oracle(MinesweeperOptions(value=True), BUDGET)


def started(level, seed):
    rng = np.random.default_rng(seed)
    return GAME.generate(rng, MinesweeperOptions(level=level), lambda form: True).start


def estimate(state):
    """Value and values of the reveals, by play where a search would do."""
    values, deck = np.empty(state.size - rules.CELLS), sampling.deck()
    key = state_key(state)
    value = sampling.estimate_wins(state, key, BUDGET, workspace(), deck, values)
    return value, values


def check(state, note):
    """A note against the plain recursion over what a player can come to know."""
    value, reveals = win_odds(state)
    cells = state.size - rules.CELLS
    best = {cell for cell, odds in reveals.items() if odds == value}
    assert note.exact
    assert note.value == pytest.approx(float(value), abs=1e-12)
    for cell in range(cells):
        if rules.legal(state, cell):
            assert note.action_values[cell] == pytest.approx(float(reveals[cell]), abs=1e-12)
            assert note.best[cell] == (cell in best)
        else:
            assert note.action_values[cell] == -np.inf
            assert not note.best[cell]
        if rules.legal(state, cells + cell):
            assert note.action_values[cells + cell] == note.value
        else:
            assert note.action_values[cells + cell] == -np.inf
        flagged = state[rules.CELLS + cell] & rules.FLAG != 0
        assert note.best[cells + cell] == (flagged and cell in best)


def test_public_positions():
    if not DATA.exists():
        pytest.skip("The shared data folder with public positions is not here.")
    positions = json.loads(DATA.read_text())
    assert len(positions) == 3
    for given_ in positions:
        state = position(given_["rows"], given_["mines"])
        note = ORACLE.note(state)
        cols = len(given_["rows"][0])
        assert note.exact
        assert note.value * given_["n_configs"] == pytest.approx(given_["optimal_wins"])
        best = [list(divmod(cell, cols)) for cell in np.flatnonzero(note.best).tolist()]
        assert best == given_["best_first_moves"]


def test_the_safest_cell_is_not_always_the_best():
    state = position(["_____", "_1___", "_3___", "_____"], 5)
    odds = mine_probabilities(state)

    assert np.nanmin(odds) == odds[0, 0] == odds[0, 1] == pytest.approx(1 / 45)
    assert np.flatnonzero(ORACLE.note(state).best).tolist() == [2]
    plain = GAME.make_oracle(MinesweeperOptions(), BUDGET).note(state)
    assert np.flatnonzero(plain.best).tolist() == [0, 1, 2]
    assert not plain.exact
    assert np.isnan(plain.value)
    assert plain.action_values is None


@pytest.mark.parametrize(
    ("rows", "mines", "value"),
    [
        (["_1", "_1"], 1, Fraction(1, 2)),
        (["_1_"], 1, Fraction(1, 2)),
        (["_F_", "121"], 2, Fraction(1)),
        (["_1_1_"], 2, Fraction(1)),
        (["_1___1_"], 2, Fraction(3, 4)),
    ],
)
def test_small_positions(rows, mines, value):
    state = position(rows, mines)

    assert ORACLE.note(state).value == float(value)
    check(state, ORACLE.note(state))


@given(states(cells=12, mines=3))
@settings(max_examples=100, deadline=None)
def test_against_plain_recursion(state):
    check(state, ORACLE.note(state))


@given(states(cells=15, mines=4, turns=4))
@settings(max_examples=8, deadline=None)
def test_against_plain_recursion_on_larger_boards(state):
    check(state, ORACLE.note(state))


def policy_wins(state, laid):
    """Whether the safest-cell policy wins on a layout, played plainly."""
    state = with_layout(state, laid)
    while not rules.terminal(state):
        odds = mine_probabilities(state).ravel()
        rules.step(state, int(np.flatnonzero(odds <= np.nanmin(odds) + 1e-9)[0]))
    return rules.success(state)


def with_layout(state, laid):
    """The same to the player, with other mines."""
    state = state.copy()
    words = state[rules.CELLS :]
    words &= ~(rules.MINE | rules.NUMBER)
    words[list(laid)] |= rules.MINE
    shape = (int(state[rules.ROWS]), int(state[rules.COLS]))
    for cell in range(words.size):
        words[cell] += sum(bool(words[at] & rules.MINE) for at in near(cell, shape))
    return state


@pytest.mark.parametrize("seed", [0, 4, 13, 15, 19])
def test_an_estimate_is_near_what_the_policy_wins(seed):
    state = started("6x6-7", seed)
    possible = layouts(state)
    truth = sum(policy_wins(state, laid) for laid in possible) / len(possible)

    assert 3 <= len(possible) <= 90
    # The error of 200 draws; play takes nothing but the layouts from them.
    assert abs(estimate(state)[0] - truth) < 4 * np.sqrt(truth * (1 - truth) / SAMPLES)


def test_reveals_are_estimated_near_the_truth():
    state = position(["_____", "_1___", "_3___", "_____"], 5)
    exact = ORACLE.note(state).action_values[:20]
    _, values = estimate(state)
    hidden = exact >= 0

    assert np.isnan(values[~hidden]).all()
    assert np.abs(values[hidden] - exact[hidden]).max() < 0.15
    assert np.corrcoef(values[hidden], exact[hidden])[0, 1] > 0.95


def test_every_layout_is_drawn_equally_often():
    state = position(["_____", "_1___", "_3___", "_____"], 5)
    values, deck, drawn = np.empty(20), sampling.deck(), Counter()
    for key in range(60):
        sampling.estimate_wins(state, key, BUDGET, workspace(), deck, values)
        mines = (deck.starts[:, rules.CELLS : rules.CELLS + 20] & rules.MINE) != 0
        drawn.update(frozenset(np.flatnonzero(laid).tolist()) for laid in mines)
    expected = 60 * SAMPLES / 360
    deviation = sum((count - expected) ** 2 / expected for count in drawn.values())

    assert set(drawn) == set(layouts(state))
    # Chi-square with 359 degrees of freedom: mean 359, standard deviation 27.
    assert abs(deviation - 359) < 5 * 27


def test_an_estimate_never_outweighs_a_proof():
    state = position(["__", "_1", "_1"], 1)
    values, best = (
        np.array([0.4, 0.4, 0.9, np.nan, 0.9, np.nan] + [-np.inf] * 6),
        np.zeros(12, bool),
    )
    best[:2] = True
    spread_values(state, 0.4, True, values, best)
    assert np.flatnonzero(best).tolist() == [0, 1]

    spread_values(state, 0.4, False, values, best)
    assert np.flatnonzero(best).tolist() == [2, 4]


def test_an_estimate_hangs_on_the_state_alone():
    state = started("16x16-40", 4)
    first = ORACLE.note(state)
    ORACLE.note(started("16x16-40", 5))
    again = ORACLE.note(state)

    assert not first.exact
    assert first.value == again.value
    assert np.array_equal(first.action_values, again.action_values, equal_nan=True)


def test_many_layouts_are_played_not_searched():
    note = ORACLE.note(started("16x16-40", 0))

    assert not note.exact
    assert 0.3 < note.value < 1.0
    assert (note.value * SAMPLES) % 1 == pytest.approx(0.0, abs=1e-9)
    assert note.best.any()


def test_a_budget_too_small_for_the_search_is_no_proof():
    state = next(s for s in (started("6x6-7", k) for k in range(50)) if _searched(s) > 400)
    cut = GAME.make_oracle(MinesweeperOptions(value=True), 300).note(state)

    assert ORACLE.note(state).exact
    assert not cut.exact
    assert abs(cut.value - ORACLE.note(state).value) < 0.15


def _searched(state):
    return book().numbers[STATES] if ORACLE.note(state).exact else 0


@pytest.mark.parametrize("level", ["7x7-10", "9x9-10", "16x16-40"])
def test_what_is_proven_safe_stays_best_in_an_estimate(level):
    checked = 0
    for seed in range(30):
        state = started(level, seed)
        odds = mine_probabilities(state).ravel()
        if count_layouts_exact(state) <= MAX_LAYOUTS or not (odds == 0.0).any():
            continue
        note, safe = ORACLE.note(state), np.flatnonzero(odds == 0.0)
        assert not note.exact
        assert np.flatnonzero(note.best).tolist() == safe.tolist()
        assert (note.action_values[safe] == note.value).all()
        assert (note.action_values[: odds.size][odds == 1.0] == 0.0).all()
        checked += 1
        if checked == 3:
            break

    assert checked == 3


def test_a_flag_keeps_the_value():
    state = position(["_____", "_1___", "_3___", "_____"], 5)
    before = ORACLE.note(state)
    rules.step(state, 20 + 2)
    after = ORACLE.note(state)

    assert after.value == before.value == before.action_values[20 + 2]
    assert np.flatnonzero(after.best).tolist() == [20 + 2]


def test_won_and_lost_are_worth_one_and_nothing():
    state = position(["_1_"], 1)
    mine = int(np.flatnonzero(state[rules.CELLS :] & rules.MINE)[0])
    lost, won = state.copy(), state.copy()
    rules.step(lost, mine)
    rules.step(won, 2 - mine)

    for end, value, cost in ((lost, 0.0, np.inf), (won, 1.0, 0.0)):
        note = ORACLE.note(end)
        assert (note.value, note.cost_to_go) == (value, cost)
        assert note.exact
        assert not note.best.any()
        assert (note.action_values == -np.inf).all()
    assert ORACLE.note(lost).dead_end
    assert not ORACLE.note(won).dead_end


@given(states(cells=12, mines=3))
@settings(max_examples=60, deadline=None)
def test_a_value_is_the_mean_of_what_follows_it(state):
    """The win probability of the best reveal is the mean over layouts of the next state's."""
    note = ORACLE.note(state)
    cells = state.size - rules.CELLS
    reveals = np.flatnonzero(note.best[:cells])
    if reveals.size == 0:
        return
    cell, total, count = int(reveals[0]), 0.0, 0
    for laid in layouts(state):
        other = with_layout(state, laid)
        count += 1
        if rules.step(other, cell) != -1.0:
            total += ORACLE.note(other).value

    assert total / count == pytest.approx(note.value)
