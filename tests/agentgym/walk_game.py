"""A third party's game in one file: walk along a line to its far end, on ice that may slip."""

from dataclasses import dataclass

import numpy as np

from agentgym.chance import HEADER, KEY, draw_below
from agentgym.errors import InvalidOption
from agentgym.game import Game, Instance, Layout, Options, parse_by_lookup
from agentgym.kernels import kernel
from agentgym.oracle import TableCache, TableOracle

PLACE, GOAL, SLIPPERY = HEADER, HEADER + 1, HEADER + 2
ACTIONS = ("Left", "Right")
_TABLES = TableCache()


@dataclass(frozen=True, kw_only=True)
class WalkOptions(Options):
    level: str = "short"
    slippery: bool = False

    def __post_init__(self):
        if self.level not in ("short", "long"):
            raise InvalidOption(f'level is "short" or "long", got {self.level!r}.')


@kernel
def legal(state, action):
    return state[PLACE] > 0 if action == 0 else True


@kernel
def step(state, action):
    if not legal(state, action):
        return np.nan
    if state[SLIPPERY] == 0 or draw_below(state, 2) == 0:
        state[PLACE] += 1 if action == 1 else -1
    return -0.1


@kernel
def success(state):
    return state[PLACE] >= state[GOAL]


@kernel
def score(state):
    return float(state[PLACE])


@kernel
def progress(state):
    return min(1.0, state[PLACE] / state[GOAL])


@kernel
def observe(state, grid):
    for c in range(grid.shape[1]):
        grid[0, c] = c == state[PLACE]


@kernel
def reached(state, start, dead_end, held):
    held[0] |= 2 * state[PLACE] >= state[GOAL]
    held[1] |= state[PLACE] >= state[GOAL]


@kernel
def read(state, table, values, best, out):
    left = max(0, state[GOAL] - state[PLACE])
    values[0] = -(left + 2.0) if state[PLACE] > 0 else -np.inf
    values[1] = -float(left)
    best[0], best[1] = False, left > 0
    out[0], out[1], out[2], out[3] = left, -left, 0.0, table[0]


def generate(rng, options, accept):
    goal = 4 if options.level == "short" else 9
    while True:
        key = int(rng.integers(2**62))
        start = np.array([key, 0, 0, goal, options.slippery], np.int64)
        if accept(canonical(start)):
            return Instance(start, canonical(start))


def canonical(state):
    return int(state[KEY]).to_bytes(8, "little") + bytes([state[GOAL]])


def load(path, options):
    goals = [int(line) for line in path.read_text().split()]
    return tuple(np.array([0, 0, 0, goal, 0], np.int64) for goal in goals)


def layout(options, starts):
    cols = 10 if options.level == "long" or starts else 5
    lookup = {name.lower(): i for i, name in enumerate(ACTIONS)}
    return Layout(1, cols, 2, HEADER + 3, ACTIONS, lookup, ("half", "end"))


def render(state, options):
    return "".join("P" if c == state[PLACE] else "_" for c in range(state[GOAL] + 1))


def make_oracle(options, budget):
    table = np.array([0.0 if options.slippery else 1.0])
    return TableOracle(lambda state: table, read, 2, step, success)


GAME = Game(
    name=__name__,
    title="Walk",
    version=0,
    options=WalkOptions,
    step=step,
    legal=legal,
    terminal=success,
    success=success,
    score=score,
    progress=progress,
    observe=observe,
    reached=reached,
    chance=True,
    generate=generate,
    load=load,
    canonical=canonical,
    layout=layout,
    instructions=lambda options, layout: "Reach the right end.",
    render=render,
    parse=parse_by_lookup,
    explain=lambda state, action, layout, options: "There is no cell to the left.",
    make_oracle=make_oracle,
)
