"""2048.

Description
-----------
Slide the tiles of a square board; two equal ones that meet become one of twice the value. After
each move that changed the board a tile appears on an empty cell. Reach the target tile (2048 on
4x4, 256 on 3x3, 3072 in the game of that name) and score as much as you can.

Actions
-------
Up, Down, Left, Right: indices 0 to 3. A tile merges once in a move, the pair nearest to the wall
first. A move that changes nothing is not legal: it costs a turn and spawns nothing.

Observation
-----------
Text: one row a line, cells right-justified to the widest tile (at least 4), a dot where empty.

>>> import gymnasium as gym
>>> env = gym.make("agentgym/2048-v0", oracle=False)
>>> observation, info = env.reset(seed=0)
>>> print(observation)

Grid: uint8 exponents, 0 where empty, k for the tile base * 2^(k-1).

Start
-----
An instance is a 63-bit chance key. Two tiles are spawned on an empty board, and all later spawns
follow from the key and the moves: base with probability 0.9, else 2 * base, uniform over the
empty cells. `instances=path` loads JSON lines {"board": [[0, 2, ...], ...], "key": 7, "score": 0},
0 for an empty cell; `key` is the line's number and `score` 0 where they are not given.

Reward
------
The points of each merge: the value of the merged tile. `reward="dense"` is the same, and -1 for an
action that is not legal or not understood. (ProAct gives -1 and -10.)
"""

from agentgym.game import Game, parse_by_lookup
from agentgym.games.game_2048 import instances, milestones, rules, text
from agentgym.games.game_2048.oracle import make_oracle

GAME = Game(
    name=__name__,
    title="2048",
    version=0,
    options=instances.BoardOptions,
    step=rules.step,
    legal=rules.legal,
    terminal=rules.terminal,
    success=rules.success,
    score=rules.score,
    progress=rules.progress,
    observe=rules.observe,
    reached=milestones.reached,
    scored=True,
    chance=True,
    invalid_reward=-1.0,
    generate=instances.generate,
    load=instances.load,
    canonical=instances.canonical,
    layout=instances.layout,
    instructions=text.instructions,
    render=text.render,
    parse=parse_by_lookup,
    explain=text.explain,
    make_oracle=make_oracle,
)
