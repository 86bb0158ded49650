"""TextGameEnv on the third party's game: info, rewards, limits, copies, bad input."""

import copy
import dataclasses
import json
import math
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.contract import ContractBroken, check_game
from agentgym.env import TextGameEnv
from agentgym.errors import EpisodeOver, InvalidInstance, InvalidOption, InvalidState, UnknownName
from agentgym.info import UNDETERMINED, Info, MilestoneInfo, OracleInfo
from agentgym.kernels import kernel
from tests.agentgym import walk_game

GAME = "tests.agentgym.walk_game"


def make(**arguments):
    return TextGameEnv(GAME, **{"max_turns": 50, **arguments})


@pytest.mark.parametrize("observation", ["text", "grid"])
@pytest.mark.parametrize("action", ["text", "index"])
def test_gymnasiums_own_check_passes(walk, observation, action):
    check_env(gym.make(walk, observation=observation, action=action).unwrapped)


def test_the_whole_contract_holds():
    check_game(GAME, max_turns=50)
    check_game(GAME, max_turns=50, slippery=True, observation="grid", action="index")


@kernel
def _anything_goes(state, action):
    return True


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        ({"legal": _anything_goes}, "legal and step agree on 'Left'"),
        ({"parse": lambda text, layout, options: 0}, "means 'Right'"),
        ({"explain": lambda state, action, layout, options: ""}, "'Left' is explained"),
        ({"progress": walk_game.score}, "progress 1 is success"),
    ],
)
def test_a_broken_promise_is_found(monkeypatch, broken, promise):
    monkeypatch.setattr(walk_game, "GAME", dataclasses.replace(walk_game.GAME, **broken))

    with pytest.raises(ContractBroken, match=promise):
        check_game(GAME, max_turns=50)


def test_info_holds_exactly_the_keys_of_the_schema():
    env = make()
    _, info = env.reset(seed=0)

    assert set(info) == set(Info.__annotations__)
    assert set(info["oracle"]) == set(OracleInfo.__annotations__)
    assert set(info["milestones"]) == set(MilestoneInfo.__annotations__)
    assert set(env.step("Right")[4]) == set(Info.__annotations__)
    assert "oracle" not in make(oracle=False).reset(seed=0)[1]


def test_a_game_by_hand():
    env = make()
    observation, info = env.reset(seed=0)
    assert observation == "P____"
    assert info["legal_actions"] == ("Right",)
    assert info["oracle"]["cost_to_go"] == 4.0
    assert info["oracle"]["action_values"].tolist() == [-math.inf, -4.0]

    observation, reward, terminated, truncated, info = env.step("[right]")
    assert (observation, reward, terminated, truncated) == ("_P___", 0.0, False, False)
    assert (info["turn"], info["action"], info["oracle"]["progress"]) == (1, "Right", 1.0)

    info = env.step("Right")[4]
    assert info["milestones"]["new"].tolist() == [True, False]
    info = env.step("Left")[4]
    assert info["milestones"]["reached"].tolist() == [True, False]
    assert info["milestones"]["new"].tolist() == [False, False]
    assert info["oracle"]["progress"] == -1.0

    for _ in range(2):
        env.step("Right")
    observation, reward, terminated, truncated, info = env.step("Right")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert (info["progress"], info["milestones"]["count"]) == (1.0, 2)
    assert info["oracle"]["best_actions"] == ()
    with pytest.raises(EpisodeOver, match="reset"):
        env.step("Right")


def test_dense_reward_is_the_games_own():
    env = make(reward="dense")
    env.reset(seed=0)

    assert env.step("Right")[1] == -0.1
    assert env.step("nonsense")[1] == 0.0


def test_an_illegal_action_costs_a_turn_and_is_explained():
    env = make()
    env.reset(seed=0)
    before = env.state

    _, reward, _, _, info = env.step("Left")

    assert (env.state == before).all()
    assert (reward, info["turn"], info["valid"], info["action"]) == (0.0, 1, False, "")
    assert info["error"] == "There is no cell to the left."


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_ever_raises_or_changes_the_state(text):
    env = make()
    env.reset(seed=0)
    before = env.state

    info = env.step(text)[4]

    assert info["turn"] == 1
    if not info["valid"]:
        assert info["error"]
        assert (env.state == before).all()
    else:
        assert info["error"] == ""


def test_an_index_out_of_range_is_no_action():
    env = make(action="index")
    env.reset(seed=0)

    for index in (-1, 2, 10**9):
        info = env.step(index)[4]
        assert not info["valid"]
        assert "from 0 to 1" in info["error"]


def test_the_turn_limit_truncates():
    env = make(max_turns=3)
    env.reset(seed=0)

    ends = [env.step("nonsense")[2:4] for _ in range(3)]

    assert ends == [(False, False), (False, False), (False, True)]


def test_seed_split_and_level_come_through_make_and_reset(walk):
    env = gym.make(walk, seed=11, level="long", split="train")
    first = env.reset()[1]["instance"]
    assert first.startswith("Walk-v0/long/train/11/")
    assert env.reset()[1]["instance"] != first
    assert env.reset(seed=11)[1]["instance"] == first
    other = env.reset(seed=11, options={"level": "short", "split": "test"})[1]["instance"]
    assert other.startswith("Walk-v0/short/test/11/")
    assert env.reset(seed=11)[1]["instance"] == first


def test_loaded_instances_are_chosen_by_index_or_by_seed(tmp_path):
    path = tmp_path / "goals.txt"
    path.write_text("3 5 7")
    env = make(instances=str(path))

    assert env.reset(options={"index": 1})[0] == "P_____"
    assert env.reset(seed=5)[0] == "P_______"
    assert env.reset(seed=5)[1]["instance"].startswith("Walk-v0/short/goals.txt/2/")
    with pytest.raises(InvalidOption, match="3 loaded instances, got 3"):
        env.reset(options={"index": 3})


@pytest.mark.parametrize("slippery", [False, True])
def test_copies_in_mid_game_go_on_identically(slippery):
    env = make(slippery=slippery, level="long")
    env.reset(seed=4)
    for _ in range(4):
        env.step("Right")
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]

    futures = [repr([one.step("Right") for _ in range(4)]) for one in (env, *copies)]

    assert futures[1:] == futures[:1] * 2


def test_a_set_state_goes_on_identically_chance_included():
    env, other = make(slippery=True, level="long"), make(slippery=True, level="long")
    env.reset(seed=4)
    other.reset(seed=4)
    for _ in range(4):
        env.step("Right")

    info = other.set_state(env.state, turn=4)

    assert info["turn"] == 4
    for _ in range(4):
        assert repr(other.step("Right")[:4]) == repr(env.step("Right")[:4])
    with pytest.raises(ValueError, match="read-only"):
        env.state[0] = 1


def test_a_wrong_state_is_refused():
    env = make()
    with pytest.raises(EpisodeOver, match="reset"):
        env.set_state(np.zeros(5, np.int64))
    env.reset(seed=0)
    with pytest.raises(InvalidState, match=r"shape \(5,\), got int64 of shape \(4,\)"):
        env.set_state(np.zeros(4, np.int64))
    with pytest.raises(InvalidState, match="got float64"):
        env.set_state(np.zeros(5))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"split": "tset"}, UnknownName, "Did you mean 'test'"),
        ({"levle": "long"}, UnknownName, "Did you mean 'level'"),
        ({"level": "tall"}, InvalidOption, "got 'tall'"),
        ({"observation": "pixels"}, UnknownName, "Unknown observation 'pixels'"),
        ({"max_turns": 0}, InvalidOption, "max_turns is at least 1, got 0"),
        ({"instances": "nowhere.txt"}, InvalidInstance, "no such file"),
        ({"render_mode": "human"}, InvalidOption, "ansi"),
    ],
)
def test_bad_arguments_get_one_clear_sentence(arguments, error, message):
    with pytest.raises(error, match=message):
        make(**arguments)


def test_an_unknown_reset_option_is_refused():
    with pytest.raises(UnknownName, match="Did you mean 'index'"):
        make().reset(options={"indx": 1})


def test_undetermined_equals_itself_and_is_nan_everywhere_else():
    assert UNDETERMINED == UNDETERMINED == math.nan
    assert UNDETERMINED != 0.0
    assert math.isnan(UNDETERMINED + 1)
    assert np.zeros(1, type(UNDETERMINED)).dtype == np.float64
    assert json.dumps(float(UNDETERMINED)) == "NaN"
    assert pickle.loads(pickle.dumps(UNDETERMINED)) == UNDETERMINED


def test_rendering_is_text():
    env = make(render_mode="ansi")
    env.reset(seed=0)

    assert env.render() == "P____"
