"""The installable peers beside ours, in one run: `tox -e bench`, or with the extra `bench`.

All on one core and 1,024 games at once where the peer can; each peer plays random actions in its
own rules and with its own resets, so a row compares the cost of a step, not equal work to the bit.
"""

import os
import time

# Before JAX is imported: one thread, as ours.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import gymnasium as gym
import numpy as np
import pytest

import agentgym  # noqa: F401 (registers the ids)

N, STEPS = 1024, 50
JUMANJI = [
    ("2048-v0", "Game2048-v1"),
    ("Minesweeper-v0", "Minesweeper-v0"),
    ("Sokoban-v0", "Sokoban-v0"),
]
ENVPOOL = [
    ("2048-v0", "Game2048-v1"),
    ("Minesweeper-v0", "Minesweeper-v0"),
    ("Sokoban-v0", "Jumanji/Sokoban-v0"),
]
TEXTARENA = [("2048-v0", "2048-v0"), ("Sokoban-v0", "Sokoban-v0")]


def ours_at_once(env_id):
    """Our N games, as a function that plays STEPS random steps."""
    env = gym.make_vec(f"agentgym/{env_id}", num_envs=N)
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(STEPS)]

    def play():
        for action in actions:
            env.step(action)

    return play


def per_second(function, count, rounds=5):
    """Events per second of the other side of a row in its fastest round, timed in the same test."""
    function()
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begin)
    return count / min(seconds)


def jumanji_loop(jumanji, name):
    """A compiled loop of STEPS random steps of N games, and its first state."""
    import jax
    from jumanji.wrappers import AutoResetWrapper

    if name == "Sokoban-v0":
        # The registered one fetches its levels from a hub; this generator repeats a toy level.
        from jumanji.environments import Sokoban
        from jumanji.environments.routing.sokoban.generator import SimpleSolveGenerator

        env = Sokoban(generator=SimpleSolveGenerator())
    else:
        env = jumanji.make(name)
    env = AutoResetWrapper(env)
    spec = env.action_spec
    low, high = np.asarray(spec.minimum), np.asarray(spec.maximum) + 1

    def step(state, key):
        keys = jax.random.split(key, N)
        actions = jax.vmap(lambda k: jax.random.randint(k, spec.shape, low, high))(keys)
        state, timestep = jax.vmap(env.step)(state, actions)
        return state, timestep.reward

    @jax.jit
    def loop(state, key):
        return jax.lax.scan(step, state, jax.random.split(key, STEPS))

    state, _ = jax.vmap(env.reset)(jax.random.split(jax.random.PRNGKey(0), N))
    return lambda: jax.block_until_ready(loop(state, jax.random.PRNGKey(1)))


@pytest.mark.parametrize(("env_id", "peer"), JUMANJI)
def test_jumanji(rate, board, env_id, peer):
    jumanji = pytest.importorskip("jumanji", reason="jumanji is in the extra 'bench'")

    theirs = per_second(jumanji_loop(jumanji, peer), N * STEPS)

    ours = rate(ours_at_once(env_id), N * STEPS)
    board.add(f"{env_id} x 1,024: steps", ours, theirs, "per second", "jumanji")


@pytest.mark.parametrize(("env_id", "peer"), ENVPOOL)
def test_envpool(rate, board, env_id, peer):
    envpool = pytest.importorskip("envpool", reason="envpool is in the extra 'bench'")
    env = envpool.make(peer, env_type="gymnasium", num_envs=N, num_threads=1)
    env.reset()
    actions = [np.array([env.action_space.sample() for _ in range(N)]) for _ in range(STEPS)]

    def play():
        for action in actions:
            env.step(action)

    theirs = per_second(play, N * STEPS)

    ours = rate(ours_at_once(env_id), N * STEPS)
    board.add(f"{env_id} x 1,024: steps", ours, theirs, "per second", "envpool")


@pytest.mark.parametrize(("env_id", "peer"), TEXTARENA)
def test_textarena(rate, board, env_id, peer):
    """One game, text in and out: a reset and 30 turns at most of random moves, per turn played.

    TextArena ends a game of 2048 at the second move without effect, so its games are shorter.
    """
    textarena = pytest.importorskip("textarena", reason="textarena is in the extra 'bench'")
    theirs_env, ours_env = textarena.make(peer), gym.make(f"agentgym/{env_id}", oracle=False)
    moves = np.random.Generator(np.random.PCG64(0)).choice(["up", "down", "left", "right"], 30)

    def play_theirs():
        theirs_env.reset(num_players=1, seed=0)
        for turn, move in enumerate(moves, 1):
            theirs_env.get_observation()
            if theirs_env.step(f"[{move}]")[0]:
                return turn
        return len(moves)

    def play_ours():
        ours_env.reset(seed=0)
        for turn, move in enumerate(moves, 1):
            if ours_env.step(move)[2]:
                return turn
        return len(moves)

    theirs = per_second(play_theirs, play_theirs())

    ours = rate(play_ours, play_ours())
    board.add(f"{env_id} text: turns, resets in", ours, theirs, "per second", "textarena")
