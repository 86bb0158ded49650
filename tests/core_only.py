"""Plays an episode of every id, as installed, with nothing but the core dependencies.

`tox -e min` runs it on the wheel, outside the checkout. It imports gymnasium alone: the installed
hook has to make the ids known.
"""

from __future__ import annotations

import sys
import time

import gymnasium as gym
import numpy as np

HEAVY = ("torch", "openai", "pydantic", "rich", "scipy", "tyro", "pettingzoo", "harness")
MOST_TURNS = 200
"""A game of 2048 can go on for thousands of turns."""


def play(env_id: str) -> str:
    """Random legal actions to the end; one line on how it went."""
    begun = time.perf_counter()
    rng = np.random.default_rng(0)
    env = gym.make(env_id)
    _, info = env.reset(seed=0)
    over, turns, total = False, 0, 0.0
    while not over and turns < MOST_TURNS:
        action = info["legal_actions"][rng.integers(len(info["legal_actions"]))]
        _, reward, terminated, truncated, info = env.step(action)
        if info["error"] or info["action"] != action:
            sys.exit(f"{env_id}: the legal action {action!r} was refused: {info['error']}")
        over, turns, total = terminated or truncated, turns + 1, total + float(reward)
    if info["turn"] != turns or "oracle" not in info:
        sys.exit(f"{env_id}: info is wrong after {turns} turns: {info}")
    return f"{env_id}: {turns} turns, reward {total:g}, {time.perf_counter() - begun:.1f} s"


def main() -> None:
    """Fail if an id is unknown or broken, or if something heavy was imported."""
    if "numba" in sys.modules:
        sys.exit("import gymnasium imported numba")
    ids = [env_id for env_id in gym.registry if env_id.startswith("agentgym/")]
    if "agentgym/Sokoban-v0" not in ids:
        sys.exit(f"import gymnasium did not register the ids; got {ids}")
    for env_id in ids:
        sys.stdout.write(f"{play(env_id)}\n")
        sys.stdout.flush()
    heavy = [name for name in HEAVY if name in sys.modules]
    if heavy:
        sys.exit(f"playing imported {', '.join(heavy)}")
    import agentgym

    if "site-packages" not in (agentgym.__file__ or ""):
        sys.exit(f"not the installed wheel was played but {agentgym.__file__}")
    sys.stdout.write(f"{len(ids)} ids played with agentgym {agentgym.__version__}\n")


if __name__ == "__main__":
    main()
