"""Text games for language-model agents, each of which knows the truth about its states.

import gymnasium as gym
env = gym.make("agentgym/Sokoban-v0")
observation, info = env.reset(seed=0)
observation, reward, terminated, truncated, info = env.step("Up")
info["oracle"]["best_actions"], info["milestones"]["reached"]
"""

from importlib.metadata import PackageNotFoundError, version

from agentgym.registration import ROWS, register_all

try:
    __version__ = version("agentgym-suite")
except PackageNotFoundError:  # A checkout that was never installed.
    __version__ = "0+unknown"

register_all()

__all__ = ["ROWS", "__version__", "register_all"]
