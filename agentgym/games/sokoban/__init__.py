"""Sokoban: push all boxes onto targets.

Description
    A player walks in a room and pushes boxes, one at a time and never pulls them; the board is won
    when every box stands on a target. Boards have up to 16x16 cells and 8 boxes. The default level
    is CAST's in-distribution setting (arXiv 2607.25308): 6x6 cells, 2 boxes, 30 turns.

Actions
    `moves="push"` (default): `Up`, `Down`, `Left`, `Right`, also `1` to `4`; walking into a box
    pushes it. `moves="explicit"` (ProAct, arXiv 2602.05327): `up`, `down`, `left`, `right` only
    walk and `push up`, `push down`, `push left`, `push right` only push. Upper and lower case,
    blanks around and one pair of brackets, quotes or back-ticks do not matter. A blocked action
    is valid, changes nothing and costs a turn; so does a text that is no action, with
    `info["valid"]` False.

Observation
    Text by default: `layout="grid_coord"` as below, `"grid"` only the map, `"coord"` no map but
    all the coordinates, inner walls included. Rows and columns count from 0 at the top left. A
    line of coordinates is left out when there is nothing to list; the targets under boxes and
    player are listed too.

    >>> import gymnasium as gym
    >>> import agentgym
    >>> observation, info = gym.make("agentgym/Sokoban-v0").reset(seed=0)
    >>> print(observation)
    Coordinates:
    Board size: 6 rows x 6 cols (zero-indexed).
    Targets: (1, 2), (4, 3)
    Boxes: (2, 2), (3, 2)
    Player: (4, 2)
    Grid Map:
    ######
    #_O__#
    #_X__#
    #_X__#
    ##PO##
    ######

    `symbols="cast"` (default): `#` wall, `_` floor, `O` target, `X` box, `*` box on target, `P`
    player, `S` player on target. `"proact"`: `#`, blank, `?`, `$`, `*`, `@`, `+`;
    `"proact-variant"`: `#`, `_`, `O`, `B`, `√`, `P`, `+`; or a mapping from "wall", "floor",
    "target", "box", "box_on_target", "player", "player_on_target" to glyphs of your own.
    `observation="grid"`: uint8 codes 0 floor, 1 target, 2 box, 3 box on target, 4 player, 5 player
    on target, 6 wall, so that the lowest bit marks targets. Boards smaller than the grid, which
    loaded files have, stand in its upper left corner.

Start
    Generated: random rooms; the optimal length is drawn first, as the smaller of two uniform draws
    from the level's band, and a start uniformly from all states of a room that need exactly that
    many moves and have all boxes off the targets. Lengths so spread as CAST's test boards do
    (6x6-2box: mean 8.7, CAST's 8.75; 7x7-3box: 15.8, CAST's 16.4, 1 in 100 of which need more than
    the 40 turns allowed, none of ours). Two boards that are mirrored, turned, shifted or differ
    only in where within its reach the player stands are the same instance for the splits.
    `instances=path` loads XSB and SOK files.

Reward
    Sparse: 1 for the win, else 0. `reward="dense"`: gym-sokoban's, which both papers use: -0.1 per
    turn (an invalid one too), +1 for a box onto a target, -1 for one off it, +10 for the win.

End
    Terminated when won. A dead end goes on to the turn limit, unless `end_on_dead_end=True`.
    Truncated at the turn limit of the level.

Info
    `score`: boxes on targets now. ProAct's score is the maximum over the episode's turns, which
    counts boxes that are stuck elsewhere for good as progress too; it follows from the recorded
    turns. `progress`: that as a share of all boxes. `oracle.push_optimal(state)` in this package
    gives the fewest pushes.

Oracle
    Cost to go: fewest player moves to a win, walking included, exact for every state, won, lost
    or open. A room with up to `oracle_budget` (2e7) states, box sets on cells from which a target
    can be reached times player cells, gets one table by backward breadth-first search, shared by
    all episodes in the process; a note takes a few microseconds. Larger rooms are searched by
    A* with at most a twentieth as many nodes: exact, or a bound from above or nan with `exact`
    False. A dead end is reported only when proven: by the table, by a search that ran to its end,
    by a box on a dead square, by frozen boxes, or because no assignment of boxes to targets is
    left. CAST's solver returns infinity both for that and when it runs out of nodes.

Milestones
    `box_1` to `box_n`: so many boxes stand on targets, in a state that is not a proven dead end.

Variants
    | id | optimal lengths | turns |
    |---|---|---|
    | `agentgym/Sokoban-v0`, `agentgym/Sokoban-6x6-2box-v0` (CAST in-distribution) | 3 to 20 | 30 |
    | `agentgym/Sokoban-7x7-3box-v0` (CAST unseen) | 6 to 36 | 40 |
    | `agentgym/Sokoban-8x8-3box-v0` | 20 to 50 | 75 |
    | `agentgym/Sokoban-10x10-4box-v0` | 40 to 80 | 120 |

    ProAct's three columns are
    `moves=` and `symbols=` on any of them: origin `moves="explicit", symbols="proact"`, action
    `symbols="proact"`, symbol `moves="explicit", symbols="proact-variant"`. Its eight hand-made
    levels, the same for training and test there, are not part of this package.

Versions
    v0: first version.
"""

from agentgym.game import Game, parse_by_lookup
from agentgym.games.sokoban.boards import canonical
from agentgym.games.sokoban.instances import SokobanOptions, generate, load
from agentgym.games.sokoban.milestones import reached
from agentgym.games.sokoban.oracle import make_oracle
from agentgym.games.sokoban.rules import legal, observe, progress, score, step, success
from agentgym.games.sokoban.text import explain, instructions, layout, milestone_total, render

GAME = Game(
    name=__name__,
    title="Sokoban",
    version=0,
    options=SokobanOptions,
    step=step,
    legal=legal,
    terminal=success,
    success=success,
    score=score,
    progress=progress,
    observe=observe,
    reached=reached,
    milestones_need_oracle=True,
    invalid_reward=-0.1,
    generate=generate,
    load=load,
    canonical=canonical,
    layout=layout,
    instructions=instructions,
    render=render,
    parse=parse_by_lookup,
    explain=explain,
    make_oracle=make_oracle,
    milestone_total=milestone_total,
)
"""The game, as the environments play it."""
