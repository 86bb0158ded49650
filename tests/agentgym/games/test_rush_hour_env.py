"""Rush Hour through `gym.make`: text and grids, texts and indices."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.contract import check_game
from agentgym.games.rush_hour.boards import board_of_state, text_of
from agentgym.games.rush_hour.options import LAYOUTS
from agentgym.simulate import RandomPlay, action_values
from tests.agentgym.games import rush_hour_plain as plain

ENV = gym.make("agentgym/RushHour-v0")


def board_of_env(env):
    return text_of(board_of_state(env.unwrapped.state))


def follow(env, info):
    """Play the first best action until the end; every info on the way."""
    infos, over = [info], False
    while not over:
        *_, terminated, truncated, info = env.step(info["oracle"]["best_actions"][0])
        infos.append(info)
        over = terminated or truncated
    return infos


@pytest.mark.parametrize("level", ["7car", "9car"])
def test_the_oracles_play_wins_with_an_advantage_of_one_each_turn(level):
    env = gym.make(f"agentgym/RushHour-{level}-v0")
    for seed in range(5):
        _, start = env.reset(seed=seed)

        infos = follow(env, start)

        assert infos[-1]["success"]
        assert len(infos) - 1 == start["oracle"]["cost_to_go"]
        assert all(info["oracle"]["progress"] == 1 for info in infos[1:])
        assert infos[-1]["milestones"]["count"] == infos[-1]["milestones"]["total"]
        assert infos[-1]["milestones"]["reached"][-1]


@settings(max_examples=60, deadline=None)
@given(st.one_of(st.text(), st.from_regex(r"[A-Ga-g][+-][0-9]?", fullmatch=True)))
def test_a_reply_is_played_or_explained_and_never_half_done(reply):
    # reasoning-gym: any text scores 0.01, and a blocked slide is passed over in silence.
    ENV.reset(seed=1)
    before = board_of_env(ENV)

    observation, reward, terminated, truncated, info = ENV.step(reply)

    assert (reward, terminated, truncated) == (0.0, False, False)
    if info["valid"]:
        label, sign, cells = info["action"][0], info["action"][1], int(info["action"][2:])
        assert board_of_env(ENV) == plain.slide(before, label, 1 if sign == "+" else -1, cells)
        assert info["error"] == ""
    else:
        assert board_of_env(ENV) == before
        assert info["error"]
        assert info["action"] == ""
        assert info["oracle"]["progress"] == 0
    assert info["turn"] == 1
    assert observation == ENV.unwrapped.setup.game.render(
        ENV.unwrapped.state, ENV.unwrapped.setup.options
    )


def test_the_legal_actions_are_the_possible_slides():
    _, info = ENV.reset(seed=2)

    possible = {f"{p}{'+' if s > 0 else '-'}{k}" for p, s, k, _ in plain.slides(board_of_env(ENV))}
    assert set(info["legal_actions"]) == possible


def test_an_invalid_turn_costs_a_turn_and_in_the_dense_reward_as_much_as_any():
    env = gym.make("agentgym/RushHour-v0", reward="dense")
    env.reset(seed=0)

    rewards = [env.step(text)[1] for text in ("nonsense", "A-4", "Q+1")]

    assert rewards == [-0.1, -0.1, -0.1]


@pytest.mark.parametrize(("level", "limit"), [("7car", 20), ("9car", 20)])
def test_the_turn_limit_truncates(level, limit):
    env = gym.make(f"agentgym/RushHour-{level}-v0", oracle=False)
    env.reset(seed=0)

    ends = [env.step("pass")[2:4] for _ in range(limit)]

    assert ends == [(False, False)] * (limit - 1) + [(False, True)]


def test_a_win_in_the_last_turn_is_a_win():
    env = gym.make("agentgym/RushHour-v0")
    _, info = env.reset(seed=0)
    for _ in range(20 - int(info["oracle"]["cost_to_go"])):
        *_, info = env.step("pass")

    while not info["success"]:
        _, reward, terminated, truncated, info = env.step(info["oracle"]["best_actions"][0])

    assert (info["turn"], reward, terminated, truncated) == (20, 1.0, True, False)


def test_grids_and_indices_are_the_same_game():
    text = gym.make("agentgym/RushHour-v0")
    grid = gym.make("agentgym/RushHour-v0", observation="grid", action="index")
    text.reset(seed=4)
    shown, _ = grid.reset(seed=4)
    actions = grid.unwrapped.setup.layout.actions
    rng = np.random.Generator(np.random.PCG64(0))
    for _ in range(15):
        board = board_of_env(text)
        glyphs = np.array(["." if g == "o" else g for g in board]).reshape(6, 6)
        codes = {".": 0, "x": 1} | {label: 2 + k for k, label in enumerate(plain.LABELS)}
        assert shown.tolist() == [[codes[g] for g in row] for row in glyphs]
        action = int(rng.integers(len(actions)))
        _, *one, info = text.step(actions[action])
        shown, *other, same = grid.step(action)
        assert one == other
        assert info["valid"] == same["valid"]
        assert info["legal_actions"] == same["legal_actions"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gymnasiums_own_check_passes_with_every_layout(layout):
    check_env(gym.make("agentgym/RushHour-v0", layout=layout).unwrapped, skip_render_check=True)


def test_the_contract_holds_with_cells_counted():
    check_game("rush_hour", seeds=range(3), metric="cells", max_turns=200)


def test_the_metric_changes_what_is_counted_not_what_is_played():
    slides = gym.make("agentgym/RushHour-v0")
    cells = gym.make("agentgym/RushHour-v0", metric="cells")

    seen, info = slides.reset(seed=3)
    same, other = cells.reset(seed=3)

    assert seen == same
    assert info["instance"] == other["instance"]
    assert other["oracle"]["cost_to_go"] == plain.distance(board_of_env(cells), cells=True)
    assert info["oracle"]["cost_to_go"] == plain.distance(board_of_env(cells), cells=False)


def test_random_play_tells_actions_apart():
    ENV.reset(seed=5)
    setup = ENV.unwrapped.setup

    values = action_values(setup, ENV.unwrapped.state, RandomPlay(plays=50, turns=30))

    legal = [bool(setup.game.legal(np.array(ENV.unwrapped.state), a)) for a in range(56)]
    assert (~np.isnan(values.mean)).tolist() == legal


def test_a_batch_of_games_is_won_by_its_oracle():
    batch = gym.make_vec("agentgym/RushHour-v0", num_envs=6, oracle=True)
    _, info = batch.reset(seed=0)
    left = info["oracle"]["cost_to_go"].copy()
    won = np.zeros(6, bool)
    for turn in range(int(left.max())):
        actions = info["oracle"]["best_actions"].argmax(axis=1)
        _, _, terminated, _, info = batch.step(actions)
        won |= terminated & (left == turn + 1)

    assert won.all()
