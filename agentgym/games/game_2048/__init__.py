"""2048: slide and merge tiles; the score is what the merges make.

Description
    Slide the tiles of a square board; two equal ones that meet become one of twice the value.
    After each move that changed the board a tile appears on an empty cell. Reach the target tile
    (2048; 256 on 3x3; 3072 in the game of that name, whose smallest tile is 3) and score as much
    as you can. `level=` is "4x4", "3x3" or "3072"; `size=` 2 to 5 and `base=` choose other boards.

Actions
    `Up`, `Down`, `Left`, `Right`, indices 0 to 3; upper and lower case, blanks around and one pair
    of brackets, quotes or back-ticks do not matter. A tile merges once in a move, the pair nearest
    to the wall first. A move that changes nothing is not legal: it costs a turn, spawns nothing.

Observation
    Text: one row a line, cells right-justified to the widest tile (at least 4), a dot where empty.

    >>> import gymnasium as gym
    >>> import agentgym
    >>> observation, info = gym.make("agentgym/2048-v0", oracle=False).reset(seed=0)
    >>> print(observation)
       2    .    .    .
       .    .    .    .
       .    .    .    .
       4    .    .    .

    `observation="grid"`: uint8 exponents, 0 where empty, k for the tile base x 2^(k-1).

Start
    An instance is a 63-bit chance key. Two tiles are spawned on an empty board, and all later
    spawns follow from the key and the moves: base with probability 0.9, else 2 x base, uniform
    over the empty cells. `instances=path` loads JSON lines {"board": [[0, 2, ...], ...], "key": 7,
    "score": 0}, 0 for an empty cell; `key` is the line's number and `score` 0 where not given.

Reward
    The points of each merge: the value of the merged tile. `reward="dense"` is the same, and -1 for
    an action that is not legal or not understood (ProAct, arXiv 2602.05327, gives -1 and -10).

End
    Terminated when no move changes the board; truncated after 10000 turns. Reaching the target sets
    `info["success"]` and does not end the game. ProAct also ends it after ten turns in a row that
    changed nothing; here that is the harness's part.

Info
    `score`: merged points so far. `progress`: exponent of the largest tile over that of the target,
    1 once it is reached. Random play scores, on average: drawing among the legal moves 1095 (4x4),
    179 (3x3), 1643 (3072); ProAct's way, among all four and with its ten-turn rule, 1108, 177, 1620
    with its own code, which ours meets within their error.

Oracle
    `value` and `action_values`: expected further points under the oracle's own play, estimated by
    an n-tuple network (8 tables of five cells, trained by temporal difference with
    `python -m agentgym.games.game_2048.train`) and an exact mean over all spawns of one move ahead
    (two on 3x3). `cost_to_go` is nan and `exact` False always; `dead_end` only when the game has
    ended without the target. Measured with `python -m agentgym.games.game_2048.measure`: on 4x4 it
    reaches 2048 in 99.7 % of 1,000 games and scores 162,846 +- 2,412 (95 %), at 0.020 ms a move; on
    3x3 it reaches 256 in 97.5 % of 5,000 games and scores 4,965 +- 45, at 0.080 ms a move, where
    exact play scores 5,468.4868 on average (`python -m agentgym.games.game_2048.solve_3x3`); on 2x2
    its moves are optimal on all 662 boards and its values off by less than 1.3 points. The estimate
    is low: it says 109,753 at the start of seed 0 on 4x4, since the network learned from its own
    play without looking ahead. 3072 is 4x4 with all points times 3/2. For `size=5` there is no
    network: best moves come from a heuristic, and `value` is nan.

Milestones
    `tile_32`, `tile_64` and so on (`tile_48`, `tile_96` for base 3): the largest tile, from
    16 x base on, up to the highest that fits on the board.

Variants
    | id | board | target | turns |
    |---|---|---|---|
    | `agentgym/2048-v0` | 4x4, tiles 2, 4, 8 | 2048 | 10000 |
    | `agentgym/2048-3x3-v0` | 3x3, tiles 2, 4, 8 | 256 | 10000 |
    | `agentgym/3072-v0` | 4x4, tiles 3, 6, 12 | 3072 | 10000 |

Versions
    v0: first version.
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
