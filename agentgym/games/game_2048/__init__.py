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
    `score`: merged points so far. `progress`: (k-1) / (K-1) for the largest tile base x 2^(k-1) and
    the target base x 2^(K-1), at most 1. Random play scores on average, with the standard error:

    | level | of the legal moves | of all four, ProAct's end | the same, by ProAct's code |
    |---|---|---|---|
    | 4x4 | 1095.1 (0.1) | 1086.2 (0.5) | 1108 |
    | 3x3 | 178.8 (0.1) | 176.9 (0.1) | 177 |
    | 3072 | 1642.6 (0.2) | 1629.4 (0.8) | 1620 |

    A game's standard deviation is 535, 96 and 802 points, so the last two columns agree within the
    error of a mean over up to 1,000 games.

Oracle
    `value` and `action_values`: expected further points under the oracle's own play. It looks at
    one move and all its spawns (two moves on 3x3), and at the boards beyond asks an n-tuple
    network: 8 tables of five cells, read in all 8 symmetries, trained by temporal differences over
    100,000 games (500,000 on 3x3; `python -m agentgym.games.game_2048.train`). So that values are
    what the oracle then scores, ratios by the sum of tiles, found from its play, multiply the
    network's (`python -m agentgym.games.game_2048.calibrate`). `cost_to_go` is nan and `exact`
    False always; `dead_end` only where the game has ended without the target. `oracle_budget`
    changes nothing. `solve(state)` plays the best moves with the state's own chance until the
    target is reached, and raises NoSolution if that play ends before. Measured with
    `python -m agentgym.games.game_2048.measure` (mean score with 95 % interval, one core):

    | level | games | target reached | mean score | value at the start | ms a move |
    |---|---|---|---|---|---|
    | 4x4 | 1,000 | 99.6 % | 164,295 +- 2,386 | 167,400 | 0.020 |
    | 3x3 | 5,000 | 97.0 % | 4,962 +- 46 | 5,059 | 0.080 |

    3072 is 4x4 with all points times 3/2, and so is every base. Best play scores 5,468.4868 on 3x3
    on average (exact, over 48,713,519 boards up to symmetry;
    `python -m agentgym.games.game_2048.solve_3x3`): the oracle's play falls 9 % short of it. On
    2x2, where best play scores 66.9641, its moves are best on all 662 boards and its values off by
    0.3 points on average and 1.3 at most. `size=5` has no network: a heuristic of empty cells and
    neighbours alike finds the best move; `value` is nan and `action_values` are left out.

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
