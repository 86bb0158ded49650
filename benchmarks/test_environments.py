"""Steps per second of one environment and of a batch, against the limits of the project.

Run on one core: `taskset -c 0 python -m pytest benchmarks --benchmark-only`.
"""

import gymnasium as gym
import numpy as np
import pytest

import agentgym  # noqa: F401 (registers the ids)

STEPS = 4_000
GRID = {"observation": "grid", "action": "index"}
SINGLE = [
    ("Sokoban-v0", {}, GRID, 50_000),
    ("RushHour-v0", {}, GRID, 50_000),
    ("Minesweeper-v0", {}, GRID, 20_000),
    ("2048-v0", {"oracle": False}, GRID, 100_000),
    ("Sokoban-v0", {}, {}, 30_000),
    ("RushHour-v0", {}, {}, 30_000),
    ("Minesweeper-v0", {}, {}, 15_000),
    ("2048-v0", {"oracle": False}, {}, 50_000),
]
BATCH = [
    ("Sokoban-v0", 10e6),
    ("2048-v0", 5e6),
    ("RushHour-v0", 5e6),
    ("Minesweeper-v0", 1e6),
]


def random_play(env, form):
    """Sixteen instances, played at random among the legal actions; a list of what to replay."""
    rng = np.random.Generator(np.random.PCG64(0))
    names = {name: i for i, name in enumerate(env.unwrapped.setup.layout.actions)}
    script, seed = [], 0
    while len(script) < STEPS:
        _, info = env.reset(seed=seed % 16)
        script.append((seed % 16, None))
        over = False
        while not over and len(script) < STEPS:
            text = info["legal_actions"][rng.integers(len(info["legal_actions"]))]
            action = text if not form else names[text]
            script.append((None, action))
            _, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        seed += 1
    return script


@pytest.mark.parametrize(("env_id", "kwargs", "form", "limit"), SINGLE)
def test_steps_of_one_environment(rate, board, env_id, kwargs, form, limit):
    env = gym.make(f"agentgym/{env_id}", **kwargs, **form)
    script = random_play(env, form)
    steps = sum(action is not None for _, action in script)

    def play():
        for seed, action in script:
            if action is None:
                env.reset(seed=seed)
            else:
                env.step(action)

    label = "grid" if form else "text"
    oracle = "" if kwargs else ", oracle"
    board.add(f"{env_id} {label}{oracle}: steps", rate(play, steps), limit, "per second", "limit")


@pytest.mark.parametrize(("env_id", "limit"), BATCH)
def test_steps_of_1024_at_once(rate, board, env_id, limit):
    n, steps = 1024, 64
    env = gym.make_vec(f"agentgym/{env_id}", num_envs=n)
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(steps)]

    def play():
        for action in actions:
            env.step(action)

    board.add(f"{env_id} x 1,024: steps", rate(play, n * steps), limit, "per second", "limit")
