"""One recorded episode per id: a change of behaviour shows here and asks for a new version.

`python -m tests.agentgym.golden` writes golden.json anew; the ids whose lines change need a higher
`-vN` and a line under Versions on their cards.
"""

import hashlib
import json
from pathlib import Path

import gymnasium as gym
import numpy as np

import agentgym

PATH = Path(__file__).with_name("golden.json")
TURNS = 60


def episode(env_id):
    """Instance, last observation and a digest of all that reset and step returned."""
    env = gym.make(env_id, oracle=False)
    rng = np.random.Generator(np.random.PCG64(0))
    observation, info = env.reset(seed=0)
    digest = hashlib.blake2b(observation.encode(), digest_size=8)
    for _ in range(TURNS):
        legal = info["legal_actions"]
        action = "no action" if rng.random() < 0.1 else legal[rng.integers(len(legal))]
        observation, reward, terminated, truncated, info = env.step(action)
        told = (observation, action, reward, terminated, truncated, info["error"], info["score"])
        digest.update(repr((*told, info["milestones"]["reached"].tolist())).encode())
        if terminated or truncated:
            break
    return {"instance": info["instance"], "last": observation, "digest": digest.hexdigest()}


def main():
    episodes = {row.id: episode(f"agentgym/{row.id}") for row in agentgym.ROWS}
    PATH.write_text(json.dumps(episodes, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
