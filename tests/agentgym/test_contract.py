"""The contract, Gymnasium's check and the golden episode, over every registered id."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import agentgym
from agentgym.contract import check_game
from tests.agentgym import golden

SLOW = {"Sokoban-10x10-4box-v0", "RushHour-expert-v0", "RushHour-grandmaster-v0"}
"""Ids whose instances take up to seconds."""


def _params(rows):
    return [
        pytest.param(row, id=row.id, marks=[pytest.mark.slow] if row.id in SLOW else [])
        for row in rows
    ]


ROWS = _params(agentgym.ROWS)


def _arguments(row):
    return {**row.kwargs, "oracle": row.game != "game_2048"}


@pytest.mark.parametrize("row", ROWS)
def test_the_contract_holds(row):
    check_game(row.game, seeds=range(2), **_arguments(row))


@pytest.mark.parametrize("observation", ["text", "grid"])
@pytest.mark.parametrize("action", ["text", "index"])
@pytest.mark.parametrize("row", ROWS)
def test_gymnasiums_own_check_passes(row, observation, action):
    env = gym.make(f"agentgym/{row.id}", observation=observation, action=action)

    check_env(env.unwrapped)


@pytest.mark.parametrize("row", ROWS)
def test_a_batch_is_its_single_games(row):
    n = 5
    batch = gym.make_vec(f"agentgym/{row.id}", num_envs=n, action_mask=True)
    grids, info = batch.reset(seed=3)
    arguments = {"observation": "grid", "action": "index", "oracle": False}
    singles = [gym.make(f"agentgym/{row.id}", **arguments) for _ in range(n)]
    infos = [env.reset(seed=3 + i)[1] for i, env in enumerate(singles)]
    rng = np.random.Generator(np.random.PCG64(1))
    running = np.ones(n, bool)
    for _ in range(25):
        masks = info["action_mask"]
        for i in np.flatnonzero(running):
            assert int(masks[i].sum()) == len(infos[i]["legal_actions"])
        weights = np.where(masks.any(axis=1, keepdims=True), masks, True).astype(float)
        actions = np.array([rng.choice(len(w), p=w / w.sum()) for w in weights])
        grids, rewards, ended, cut, info = batch.step(actions)
        for i in np.flatnonzero(running):
            grid, reward, terminated, truncated, infos[i] = singles[i].step(int(actions[i]))
            assert (grids[i] == grid).all()
            assert (rewards[i], ended[i], cut[i]) == (reward, terminated, truncated)
            assert info["score"][i] == infos[i]["score"]
        running &= ~(ended | cut)


@pytest.mark.parametrize("row", ROWS)
def test_the_golden_episode_is_unchanged(row):
    recorded = json.loads(golden.PATH.read_text())

    assert golden.episode(f"agentgym/{row.id}") == recorded[row.id]


def test_every_golden_episode_is_of_a_registered_id():
    assert list(json.loads(golden.PATH.read_text())) == [row.id for row in agentgym.ROWS]
