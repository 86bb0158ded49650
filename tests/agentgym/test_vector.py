"""The batched environment against single ones, game by game and step by step."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from agentgym.env import TextGameEnv
from agentgym.errors import EpisodeOver, InvalidOption, UnknownName
from agentgym.vector import TextGameVectorEnv

GAME = "tests.agentgym.walk_game"
N = 7


def make(**arguments):
    return TextGameVectorEnv(GAME, **{"num_envs": N, "max_turns": 6, **arguments})


def single(seed, **arguments):
    env = TextGameEnv(
        GAME, **{"max_turns": 6, "observation": "grid", "action": "index", **arguments}
    )
    return env, env.reset(seed=seed)


def compare(i, batched, one):
    """Game i of a batched (observation, info) against a single environment's."""
    (observation, info), (expected, wanted) = batched, one
    assert (observation[i] == expected).all()
    for key in ("turn", "valid", "score", "progress", "success"):
        assert info[key][i] == wanted[key], key
    for key in ("reached", "new"):
        assert (info["milestones"][key][i] == wanted["milestones"][key]).all(), key
    for key in ("cost_to_go", "value", "progress", "dead_end", "exact"):
        assert info["oracle"][key][i] == wanted["oracle"][key], key
    assert (info["oracle"]["action_values"][i] == wanted["oracle"]["action_values"]).all()


@pytest.mark.parametrize("slippery", [False, True])
@pytest.mark.parametrize("reward", ["sparse", "dense"])
def test_every_game_of_a_batch_is_the_single_game_of_its_seed(slippery, reward):
    options = {"slippery": slippery, "reward": reward, "oracle": True}
    env = make(**options)
    batched = env.reset(seed=20)
    singles = [single(20 + i, **options) for i in range(N)]
    running = np.ones(N, bool)
    rng = np.random.Generator(np.random.PCG64(0))
    for i in range(N):
        compare(i, batched, singles[i][1])

    while running.any():
        actions = rng.integers(-1, 3, size=N)
        observation, rewards, ended, cut, info = env.step(actions)
        for i in np.flatnonzero(running):
            expected = singles[i][0].step(int(actions[i]))
            compare(i, (observation, info), (expected[0], expected[4]))
            assert (rewards[i], ended[i], cut[i]) == expected[1:4]
        running &= ~(ended | cut)


def test_next_step_resets_one_step_after_the_end():
    env = make(num_envs=2, pool=4)
    env.reset(seed=0)
    for _ in range(6):
        observation, _, _, cut, _ = env.step(np.array([0, 0]))
    assert cut.all()

    observation, reward, ended, cut, info = env.step(np.array([1, 1]))

    assert not (ended | cut).any()
    assert (reward == 0).all()
    assert (info["turn"] == 0).all()
    assert (observation[:, 0, 0] == 1).all()


def test_same_step_hands_over_the_final_observation():
    env = make(num_envs=2, autoreset_mode="SameStep", oracle=True, max_turns=4)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.array([1, 0]))

    observation, reward, ended, cut, info = env.step(np.array([1, 0]))

    assert reward.tolist() == [1.0, 0.0]
    assert (ended.tolist(), cut.tolist()) == ([True, False], [False, True])
    assert info["_final_obs"].tolist() == [True, True]
    assert info["final_obs"][:, 0].argmax(axis=1).tolist() == [4, 0]
    assert info["final_info"]["success"].tolist() == [True, False]
    assert info["final_info"]["milestones"]["new"][0].tolist() == [False, True]
    assert observation[:, 0].argmax(axis=1).tolist() == [0, 0]
    assert info["turn"].tolist() == [0, 0]
    assert not info["milestones"]["reached"].any()


def test_disabled_autoreset_wants_a_mask():
    env = make(num_envs=2, autoreset_mode=AutoresetMode.DISABLED, max_turns=4)
    env.reset(seed=0)
    for _ in range(4):
        env.step(np.array([1, 1]))
    with pytest.raises(EpisodeOver, match="reset_mask"):
        env.step(np.array([1, 1]))

    _, info = env.reset(options={"reset_mask": np.array([True, True])})

    assert info["turn"].tolist() == [0, 0]
    env.step(np.array([1, 1]))


def test_the_pool_goes_round_and_chance_is_another_in_the_second_round():
    env = make(num_envs=1, pool=1, slippery=True, level="long", max_turns=12)
    rounds = []
    env.reset(seed=3)
    for _ in range(2):
        places = [env.step(np.array([1]))[0].argmax() for _ in range(12)]
        rounds.append(places)
        env.step(np.array([1]))
    again = make(num_envs=1, pool=1, slippery=True, level="long", max_turns=12)
    again.reset(seed=3)

    assert rounds[0] != rounds[1]
    assert [again.step(np.array([1]))[0].argmax() for _ in range(12)] == rounds[0]


def test_a_seed_repeats_everything_and_seeds_may_be_a_list():
    env = make(slippery=True, oracle=True)
    first = env.reset(seed=5)
    steps = [env.step(np.ones(N, int)) for _ in range(9)]

    assert repr(env.reset(seed=5)) == repr(first)
    assert repr([env.step(np.ones(N, int)) for _ in range(9)]) == repr(steps)
    assert repr(env.reset(seed=[5 + i for i in range(N)])[0]) == repr(first[0])


def test_returned_arrays_are_never_written_again():
    env = make(oracle=True, action_mask=True)
    observation, info = env.reset(seed=0)
    kept = repr((observation, info))

    env.step(np.ones(N, int))

    assert repr((observation, info)) == kept


def test_text_is_rendered_only_when_asked_for_and_text_actions_are_understood():
    env = make(num_envs=2, observation="text", action="text")
    observation, _ = env.reset(seed=0)
    assert observation == ("P____", "P____")

    observation, *_, info = env.step(["Right", "what?"])

    assert observation == ("_P___", "P____")
    assert info["valid"].tolist() == [True, False]


def test_make_vec_finds_it_and_its_spaces_hold_what_it_returns(walk):
    env = gym.make_vec(walk, num_envs=3, action_mask=True)
    observation, info = env.reset(seed=0)

    assert type(env.unwrapped) is TextGameVectorEnv
    assert env.observation_space.contains(observation)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert info["action_mask"].tolist() == [[False, True]] * 3
    assert env.step(env.action_space.sample())[1].dtype == np.float64


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasiums_own_vector_environments_stack_the_info(walk, mode):
    kwargs = {"shared_memory": False} if mode == "async" else {}
    env = gym.make_vec(walk, num_envs=2, vectorization_mode=mode, vector_kwargs=kwargs)
    observation, info = env.reset(seed=0)

    assert observation == ("P____", "P____")
    assert info["oracle"]["cost_to_go"].tolist() == [4.0, 4.0]
    assert info["oracle"]["cost_to_go"].dtype == np.float64
    assert info["milestones"]["reached"].shape == (2, 2)
    env.close()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_envs": 0}, InvalidOption, "at least 1, got 0"),
        ({"pool": 0}, InvalidOption, "at least 1"),
        ({"autoreset_mode": "nextstep"}, UnknownName, "Did you mean 'NextStep'"),
        ({"levle": "long"}, UnknownName, "Did you mean 'level'"),
    ],
)
def test_bad_arguments_get_one_clear_sentence(arguments, error, message):
    with pytest.raises(error, match=message):
        make(**arguments)


def test_bad_calls_get_one_clear_sentence():
    env = make()
    with pytest.raises(EpisodeOver, match=r"reset\(\) first"):
        env.step(np.zeros(N, int))
    with pytest.raises(InvalidOption, match="7 games, got 2 seeds"):
        env.reset(seed=[1, 2])
    with pytest.raises(UnknownName, match="reset_mask"):
        env.reset(options={"index": 0})
    env.reset(seed=0)
    with pytest.raises(InvalidOption, match="one action for each of 7"):
        env.step(np.zeros(3, int))
