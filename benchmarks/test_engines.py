"""Random games, instances with their tables, and the start of a process, against the limits."""

import subprocess
import sys

import gymnasium as gym
import pytest

import agentgym  # noqa: F401 (registers the ids)
from agentgym.games.rush_hour.oracle import table_of
from agentgym.simulate import RandomPlay, play_randomly
from agentgym.splits import instance

INSTANCES = [
    ("Sokoban-6x6-2box-v0", 100, 0.002),
    ("Sokoban-7x7-3box-v0", 60, 0.010),
    ("Sokoban-10x10-4box-v0", 6, 2.0),
]
TABLES = [("RushHour-7car-v0", 100, 0.003), ("RushHour-9car-v0", 60, 0.012)]
FIRST_STEP = (
    "import agentgym, gymnasium as gym; env = gym.make('agentgym/{}'); "
    "env.reset(seed=0); env.step('Up')"
)


def test_complete_random_games_of_2048(rate, board):
    env = gym.make("agentgym/2048-v0", oracle=False)
    env.reset(seed=0)
    setup, state = env.unwrapped.setup, env.unwrapped.state
    how = RandomPlay(plays=20_000, turns=100_000)

    games = rate(lambda: play_randomly(setup, state, how), how.plays)

    board.add("2048 random games", games, 150_000, "per second", "limit")


@pytest.mark.parametrize(("env_id", "count", "limit"), INSTANCES)
def test_an_instance_with_its_exact_table(benchmark, board, env_id, count, limit):
    """Generation and oracle together, per instance of the fastest round; none is remembered."""
    env = gym.make(f"agentgym/{env_id}").unwrapped
    env.reset(seed=10**6)

    def make():
        for seed in range(count):
            env.reset(seed=seed)

    benchmark.pedantic(make, setup=instance.cache_clear, rounds=3, iterations=1)
    fastest = benchmark.stats.stats.min / count
    board.add(f"{env_id}: instance and table", fastest, limit, "seconds", "limit")


@pytest.mark.parametrize(("env_id", "count", "limit"), TABLES)
def test_an_exact_table_of_rush_hour(benchmark, board, env_id, count, limit):
    """The table alone, per instance of the fastest round."""
    env = gym.make(f"agentgym/{env_id}").unwrapped
    starts = []
    for seed in range(count):
        env.reset(seed=seed)
        starts.append(env.state.copy())

    def build():
        for start in starts:
            table_of(start, 1_000_000, cells=False)

    benchmark.pedantic(build, rounds=3, iterations=1, warmup_rounds=1)
    fastest = benchmark.stats.stats.min / count
    board.add(f"{env_id}: exact table", fastest, limit, "seconds", "limit")


@pytest.mark.parametrize("env_id", ["Sokoban-v0", "RushHour-v0", "Minesweeper-v0", "2048-v0"])
def test_first_step_in_a_second_process(benchmark, board, env_id):
    command = [sys.executable, "-c", FIRST_STEP.format(env_id)]
    subprocess.run(command, check=True)

    benchmark.pedantic(lambda: subprocess.run(command, check=True), rounds=5, iterations=1)

    fastest = benchmark.stats.stats.min
    board.add(f"{env_id}: import to first step", fastest, 1.5, "seconds", "limit")
