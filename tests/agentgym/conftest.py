"""The third party's game under an id of its own."""

import gymnasium as gym
import pytest

WALK = "agentgym/Walk-v0"


@pytest.fixture(scope="session")
def walk():
    """The id of the game of `walk_game.py`."""
    gym.register(
        id=WALK,
        entry_point="agentgym.env:TextGameEnv",
        vector_entry_point="agentgym.vector:TextGameVectorEnv",
        kwargs={"game": "tests.agentgym.walk_game", "max_turns": 50},
    )
    yield WALK
    del gym.registry[WALK]
