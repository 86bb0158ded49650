"""Minesweeper: reveal every cell that hides no mine.

Description
    Some cells of a board hide mines. A revealed cell shows how many of its 8 neighbours hold one;
    around a 0 the neighbours are revealed as well. All cells without a mine revealed is a win, a
    mine revealed is a loss. Boards have up to 30x24 cells, either way round. The default level is
    CAST's in-distribution setting (arXiv 2607.25308): 6x6 cells, 7 mines, 30 turns.

Actions
    `reveal R C` and `flag R C`, row and column counted from 0; `flag` puts a flag on a hidden cell
    or takes it off. Upper and lower case, more blanks, and one pair of brackets, quotes or
    back-ticks around do not matter; other text before or after makes it no action (CAST plays the
    first action that it finds anywhere). By index: the reveals row by row, then the flags. Not
    legal: a cell outside of the board, revealing what is revealed, revealing a flag (also one on a
    mine), flagging what is revealed. Each costs a turn, changes nothing and is told in its own
    sentence. A flag stops an opening: its cell stays hidden, and so does what lies only behind it.

Observation
    Text: the number of mines and of flags, then the board as CAST draws it. CAST does not tell the
    number of mines, which its solver knows. `.` hidden, `F` flag, `0` to `8` revealed, `*` the mine
    that was hit; other mines are not shown.

    >>> import gymnasium as gym
    >>> import agentgym
    >>> observation, info = gym.make("agentgym/Minesweeper-v0").reset(seed=0)
    >>> print(observation)  # doctest: +NORMALIZE_WHITESPACE
    Mines: 7, flags: 0
        0  1  2  3  4  5
     0  .  .  1  0  0  0
     1  .  .  1  0  0  0
     2  .  .  1  0  1  1
     3  .  .  2  1  2  .
     4  .  .  .  .  .  .
     5  .  .  .  .  .  .

    `observation="grid"`: uint8 codes 0 to 8 for numbers, 9 hidden, 10 flag, 11 the mine that was
    hit, 12 outside of the board, which only boards smaller than the largest of a file have.

Start
    A first click, uniform; then the mines, uniform outside of the 3x3 around it, or outside of its
    cell where they do not fit. The click is made for the player, for free and without a turn, so
    the board starts with an opening. Boards that the click wins are rejected, and those outside of
    the level's band of `cost_to_go`. `no_guess=True` keeps only boards that deduction alone solves:
    by cells that are proven safe, the number of mines counted in. Two boards that are mirrored or
    turned, or where another first click opens the same cells, are the same instance for the splits.
    `instances=path` loads JSON lines
    `{"rows": 6, "cols": 6, "mines": [[1, 0], ...], "first_click": [0, 4]}`.

Reward
    Sparse: 1 for the win, else 0, as in CAST. `reward="dense"`: the share of the safe cells that
    the turn opened, 1 more for the win, -1 for a mine, 0 for a flag and for an invalid action.

End
    Terminated when won or when a mine is hit. Truncated at the level's turn limit; every action
    counts, flags and invalid ones too.

Info
    `score`: safe cells revealed, those of the first click included. `progress`: their share.

Oracle
    `best_actions` sees only what the player sees, and takes no flag for a fact. Behind it stands
    the exact mine probability of every hidden cell, from all open numbers and the number of mines
    (`mine_probabilities` in this package; components of any width that fits 4 million nodes).
    Best are the cells that are proven safe, `exact` True; else those of least mine probability,
    `exact` False, for the safest cell is not always the best. Where a best cell carries a flag,
    taking the flag off is best in its place. `value` is nan and `action_values` absent.

    `value=True` looks for the probability of winning under best play without a turn limit. While
    at most 5,000 layouts agree with what is seen it is exact, by memoised search over what the
    player can come to know; `action_values` holds it for each reveal, best are the highest, `exact`
    True. Beyond, `exact` is False: `value` is the share won by the safest-cell policy on 200
    layouts drawn from those that agree, always the same for the same state, and `action_values`
    the same after each reveal (nan for all but the less risky cells of a large board); a cell that
    is proven safe is best all the same. A flag action is worth what the state is worth, since it
    changes nothing that is known.

    `cost_to_go` and `solve` peek under the cells: the fewest further actions to a win, which are
    the reveals of the board's remaining 3BV, and one to take off each flag on a safe cell. It is
    inf after a mine was hit, the only dead end. A reveal that a flag keeps from opening what it
    should makes no progress: taking the flag off first was the shortest way.

    CAST's K(s), a greedy solver's reveals in hindsight, is `greedy_reveals` in this package, with
    its faults listed.

Milestones
    `open_25`, `open_50`, `open_75`, `open_100`: so many hundredths of the safe cells are revealed;
    the first click's opening counts.

Variants
    | id | cost to go at the start | turns |
    |---|---|---|
    | `agentgym/Minesweeper-v0` (CAST in-distribution) | 2 to 24 | 30 |
    | `agentgym/Minesweeper-6x6-7-v0` (the same) | 2 to 24 | 30 |
    | `agentgym/Minesweeper-7x7-10-v0` (CAST unseen) | 3 to 30 | 40 |
    | `agentgym/Minesweeper-9x9-10-v0` | 3 to 32 | 100 |
    | `agentgym/Minesweeper-16x16-40-v0` | 36 to 100 | 350 |
    | `agentgym/Minesweeper-16x30-99-v0` | 115 to 230 | 600 |

    A level's name says rows x columns and mines.

Versions
    v0: first version.
"""

from agentgym.game import Game
from agentgym.games.minesweeper import milestones, rules, text
from agentgym.games.minesweeper.exact import mine_probabilities_exact
from agentgym.games.minesweeper.greedy import greedy_reveals
from agentgym.games.minesweeper.instances import (
    MinesweeperOptions,
    canonical,
    generate,
    load,
    make_board,
)
from agentgym.games.minesweeper.odds import mine_probabilities
from agentgym.games.minesweeper.oracle import make_oracle

__all__ = [
    "GAME",
    "MinesweeperOptions",
    "greedy_reveals",
    "make_board",
    "mine_probabilities",
    "mine_probabilities_exact",
]

GAME = Game(
    name=__name__,
    title="Minesweeper",
    version=0,
    options=MinesweeperOptions,
    step=rules.step,
    legal=rules.legal,
    terminal=rules.terminal,
    success=rules.success,
    score=rules.score,
    progress=rules.progress,
    observe=rules.observe,
    reached=milestones.reached,
    peeks=True,
    generate=generate,
    load=load,
    canonical=canonical,
    layout=text.layout,
    instructions=text.instructions,
    render=text.render,
    parse=text.parse,
    explain=text.explain,
    make_oracle=make_oracle,
)
"""The game, as the environments play it."""
