"""Programs that play, on a real environment."""

import asyncio
from collections import Counter
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from agentgym.chance import KEY
from agentgym.errors import InvalidOption
from harness import models
from harness.episode import Settings
from harness.formats import FORMATS
from harness.models import Sampling
from harness.models.scripted import Scripted, greedy_action, random_action
from harness.prompts import Style
from harness.record import Result
from harness.request import Peek, Reply, Request


@pytest.fixture
def play(finish):
    """Lets a model play an assignment."""

    def run(assignment, model):
        return finish(assignment, lambda request: asyncio.run(model.reply(request)))

    return run


def _request(env, info, turn=0, rollout=0):
    return Request((), 8, ("instance", rollout, turn), Peek(env, info))


@pytest.mark.parametrize("name", ["oracle", "random", "greedy"])
@pytest.mark.parametrize("asked", FORMATS)
def test_replies_are_in_the_asked_format(name, asked, assignment, play) -> None:
    style = Style(format=asked, lenient=False)
    episode, requests = play(assignment(style=style), models.load(name))
    assert len(episode.turns) == len(requests)
    for turn in episode.turns:
        assert turn.strict
        assert turn.valid


def test_oracle_wins_in_the_fewest_turns(assignment, play) -> None:
    episode, _ = play(assignment(), models.load("oracle"))
    assert episode.result is Result.WON
    assert len(episode.turns) == episode.start.note.cost_to_go == 4


def test_oracle_plays_the_first_of_the_best_and_a_legal_one_where_there_is_none() -> None:
    model = models.load("oracle")
    info = {"oracle": {"best_actions": ("B", "A")}, "legal_actions": ("A", "B")}
    assert asyncio.run(model.reply(_request(None, info))).text == "```\nB\n```"
    info["oracle"]["best_actions"] = ()
    assert asyncio.run(model.reply(_request(None, info))).text == "```\nA\n```"


def test_oracle_says_so_where_the_environment_has_none(assignment, play) -> None:
    with pytest.raises(InvalidOption, match="oracle=False; make it with oracle=True"):
        play(assignment(kwargs='{"oracle": false}'), models.load("oracle"))


@pytest.mark.parametrize("name", ["random", "greedy"])
def test_players_that_need_legal_actions_say_so(name, walk) -> None:
    env = gym.make(walk)
    _, info = env.reset(seed=0)
    del info["legal_actions"]
    with pytest.raises(InvalidOption, match=f"The model {name} chooses among"):
        asyncio.run(models.load(name).reply(_request(env, info)))


def test_random_play_depends_on_the_seed_and_the_key_alone(assignment, play) -> None:
    def actions(seed, rollout):
        model = models.load("random", sampling=Sampling(seed=seed))
        episode, _ = play(assignment(rollout=rollout), model)
        return [turn.action for turn in episode.turns]

    forwards = [actions(seed, rollout) for seed in (0, 1) for rollout in (0, 1, 2)]
    backwards = [actions(seed, rollout) for seed in (1, 0) for rollout in (2, 1, 0)]
    assert forwards == backwards[::-1]
    assert len({tuple(play) for play in forwards}) > 1


def test_random_play_is_uniform_over_the_legal_actions() -> None:
    info = {"legal_actions": ("a", "b", "c")}
    drawn = Counter(random_action(_request(None, info, turn), seed=0) for turn in range(3000))
    # Three standard deviations of a third of 3000.
    assert all(abs(drawn[action] - 1000) < 78 for action in "abc")


def test_greedy_takes_the_largest_score_one_step_ahead(walk) -> None:
    env = gym.make(walk)
    _, info = env.reset(seed=0)
    _, _, _, _, info = env.step("Right")
    assert info["legal_actions"] == ("Left", "Right")
    before = env.unwrapped.state.tobytes()
    assert greedy_action(_request(env, info), seed=0) == "Right"
    assert env.unwrapped.state.tobytes() == before


def test_greedy_does_not_see_the_chance_to_come(walk) -> None:
    env = gym.make(walk, slippery=True)
    _, info = env.reset(seed=0)
    state = env.unwrapped.state.copy()
    chosen = []
    for turn in range(200):
        answers = set()
        for key in (1, 2, 3):
            state[KEY] = key
            env.unwrapped.set_state(state)
            info["legal_actions"] = ("Left", "Right")
            answers.add(greedy_action(_request(env, info, turn), seed=0))
        assert len(answers) == 1
        chosen += answers
    # On its own ice it slips half the time. Then both actions score the same, and the first is
    # taken. Three standard deviations of 200 fair draws:
    assert abs(chosen.count("Left") - 100) < 22


def test_greedy_tries_every_action_from_the_same_state() -> None:
    env = gym.make("agentgym/Sokoban-v0")
    differences = 0
    for seed in range(30):
        _, info = env.reset(seed=seed)
        env.step("Up")
        state, request = env.unwrapped.state, _request(env, info)
        scores = []
        for action in info["legal_actions"]:
            env.unwrapped.set_state(state)
            scores.append(env.step(action)[-1]["score"])
        env.unwrapped.set_state(state)
        assert greedy_action(request, 0) == info["legal_actions"][int(np.argmax(scores))]
        differences += len(set(scores)) > 1
    assert differences > 0


def test_greedy_refuses_what_is_no_native_game() -> None:
    env = gym.make("FrozenLake-v1")
    info = {"legal_actions": ("a",)}
    with pytest.raises(InvalidOption, match="native games only, got FrozenLakeEnv"):
        greedy_action(_request(env, info), seed=0)


def test_scripted_repeats_the_record(assignment, play, fenced) -> None:
    model = Scripted([fenced("Right"), Reply("nonsense words without any action at all")])
    task = assignment()
    task = replace(task, settings=Settings(max_turns=2))
    episode, _ = play(task, model)
    assert [turn.action for turn in episode.turns] == ["Right", ""]
    assert [turn.problem for turn in episode.turns] == ["", "no_action"]


def test_scripted_says_when_the_record_is_too_short(assignment, play, fenced) -> None:
    with pytest.raises(InvalidOption, match="at turn 1, but only 1 replies are recorded"):
        play(assignment(), Scripted([fenced("Right")]))


def test_a_replay_equals_what_was_played(assignment, play) -> None:
    task = assignment(kwargs='{"slippery": true}')
    episode, _ = play(task, models.load("random"))
    again, _ = play(task, Scripted([turn.reply for turn in episode.turns]))
    assert len(episode.turns) > 2

    def without_time(e):
        return [turn.model_copy(update={"seconds_game": 0.0}).model_dump_json() for turn in e.turns]

    assert without_time(again) == without_time(episode)


def test_models_close() -> None:
    for model in (models.load("oracle"), Scripted([])):
        asyncio.run(model.close())
