"""Rush Hour: slide cars and trucks out of the way, so that the red car gets out.

Description
    Cars of 2 cells and trucks of 3 stand on a square board, each along a row or a column, and only
    move along it. The red car `A` lies in row 2 and leaves at the row's right end; the game is won
    when its right end is in the last column. Boards have 6x6 cells, loaded ones 4x4 to 8x8, and
    may have walls. The default level is CAST's in-distribution setting (arXiv 2607.25308): 7
    pieces, 6 to 8 slides, 20 turns.

Actions
    `<label><+|-><cells>`: `+` is right or down, `-` left or up, so `B-2` moves B two cells left or
    up. The number may be missing (1); blanks within, upper and lower case, blanks around and one
    pair of brackets, quotes or back-ticks do not matter; any other text in it makes it no action.
    One slide of any length is one turn, all or nothing: if a cell on the way is taken, the action
    is not legal, changes nothing, costs a turn, and `info["error"]` says how far the piece can go.
    (CAST calls such a slide valid but ineffective; what happens is the same.) With
    `action="index"`: piece x 2 (n - 2) + sign x (n - 2) + cells - 1 on n x n cells, sign 0 for `+`,
    piece 0 for A; a level's count of actions is fixed, and those of pieces that a board has not
    are not legal.

Observation
    Text by default: `layout="grid_coord"` as below, `"grid"` or `"coord"` only one of the two.
    Letters are pieces, `.` empty, `x` a wall, `>` the exit; a list of walls ends the text if there
    are any. Rows and columns count from 0 at the upper left.

    >>> import gymnasium as gym
    >>> import agentgym
    >>> observation, info = gym.make("agentgym/RushHour-v0").reset(seed=0)
    >>> print(observation)
    Grid:
    G . D D . .
    G . . . B .
    A A . . B . >
    . F . . B .
    . F . E E E
    . . . . C C
    <BLANKLINE>
    Coordinates:
    Board size: 6 rows x 6 cols (zero-indexed). Exit: right end of row 2.
    A (red car): horizontal, (2,0), (2,1)
    B: vertical, (1,4), (2,4), (3,4)
    C: horizontal, (5,4), (5,5)
    D: horizontal, (0,2), (0,3)
    E: horizontal, (4,3), (4,4), (4,5)
    F: vertical, (3,1), (4,1)
    G: vertical, (0,0), (1,0)

    `observation="grid"`: uint8 codes 0 empty, 1 wall, 2 + i piece i.

Start
    `7car` and `9car` are random placements as CAST draws them (A in any column but the last two,
    of the other pieces one in three a truck, half vertical, none but A along row 2) of which a
    win is 6 to 8 (7 to 9) slides away. `expert` (11 to 13 pieces, 20 to 34 slides) and
    `grandmaster` (12 or 13 pieces, 35 to 51; 51 is the most that any board without walls needs,
    github.com/fogleman/rush) come from a walk from board to board that keeps what is deeper, until
    the board's farthest state is deep enough: that state is the start. Boards with more than
    131,072 states (16,384 where they are searched for) are left out. Two starts of one state graph
    are one instance for the splits, whatever their labels and whatever jammed pieces or walls
    stand where nothing moves; in CAST's data half of the test boards have a training board in
    their own graph. Graphs are fewer than boards, by far for `grandmaster`: 20,000 seeds of
    `7car` give 20,000 boards of 9,501 graphs, 10,000 of `9car` 8,798 graphs, 2,000 of `expert`
    1,865, and 2,000 of `grandmaster` 301. `instances=path` loads boards, one a line: one character
    per cell, `o` or `.` empty, `x` a wall, letters pieces; or
    lines `moves board states` of the Rush Hour database.

Reward
    Sparse: 1 for the win, else 0. `reward="dense"`: -0.1 per turn (an invalid one too), +1 for
    each piece less between A and the exit, -1 for each more, +10 for the win.

End
    Terminated by the win. Truncated after 20 turns (`7car`, `9car`: CAST's budgets), 60 (`expert`)
    or 100 (`grandmaster`), at least 1.5 times the longest optimum of the two latter. There are no
    dead ends on boards that can be won: a slide can be taken back.

Info
    As in every game. `score`: minus the number of cells and of pieces between A and the exit, 0
    when it is out; `progress`: the same from 0 (both at their most) to 1.

Oracle
    `cost_to_go` N(s): fewest slides to a win, exact for every state that can be reached, from one
    breadth-first search from all won states of the board's whole state graph; the table is built at
    the first question (0.6 ms on average for 7 pieces) and shared by all episodes of the
    board. `metric="cells"` counts cells, so a slide costs as many as it covers: Q(s, a) = -(cells
    + N(s')), a best action lowers N by its cells, and `solve` goes cell by cell. A board that
    cannot be won, which only a file can hold, is a proven dead end. Of a graph of more than
    `oracle_budget` states nothing is known: nan, `exact` False.

Milestones
    `cleared_k`: for the first time only k pieces are left between A and the exit, for each k below
    the start's (`cleared_3` to `cleared_0` on 6x6; `info["milestones"]["total"]` counts those that
    the instance has); then `out`.

Variants
    | id | slides | turns |
    |---|---|---|
    | `agentgym/RushHour-v0`, `agentgym/RushHour-7car-v0` (CAST in-distribution) | 6 to 8 | 20 |
    | `agentgym/RushHour-9car-v0` (CAST unseen) | 7 to 9 | 20 |
    | `agentgym/RushHour-expert-v0` | 20 to 34 | 60 |
    | `agentgym/RushHour-grandmaster-v0` | 35 to 51 | 100 |

Versions
    v0: first release.
"""

from __future__ import annotations

from agentgym.game import Game
from agentgym.games.rush_hour import milestones, rules, text
from agentgym.games.rush_hour.component import canonical
from agentgym.games.rush_hour.instances import generate, load
from agentgym.games.rush_hour.options import RushHourOptions
from agentgym.games.rush_hour.oracle import make_oracle

GAME = Game(
    name=__name__,
    title="RushHour",
    version=0,
    options=RushHourOptions,
    step=rules.step,
    legal=rules.legal,
    terminal=rules.terminal,
    success=rules.success,
    score=rules.score,
    progress=rules.progress,
    observe=rules.observe,
    reached=milestones.reached,
    invalid_reward=rules.TURN_REWARD,
    generate=generate,
    load=load,
    canonical=canonical,
    layout=text.layout,
    instructions=text.instructions,
    render=text.render,
    parse=text.parse,
    explain=text.explain,
    make_oracle=make_oracle,
    milestone_total=milestones.total,
)
