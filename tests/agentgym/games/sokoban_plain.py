"""Sokoban written a second time, plainly and slowly, to hold the fast code against."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from agentgym.games.sokoban import GAME
from agentgym.games.sokoban.boards import make_state
from agentgym.games.sokoban.glyphs import SYMBOLS

MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


class Plain(NamedTuple):
    """A position; cells are (row, column)."""

    walls: frozenset
    targets: frozenset
    boxes: frozenset
    player: tuple


def plain(rows):
    """A position from rows in CAST's glyphs."""
    cells = {(r, c): glyph for r, row in enumerate(rows) for c, glyph in enumerate(row)}
    at = {glyphs: frozenset(x for x, g in cells.items() if g in glyphs) for glyphs in _KINDS}
    (player,) = at["PS"]
    return Plain(at["#"], at["O*S"], at["X*"], player)


_KINDS = ("#", "O*S", "X*", "PS")


def state_of(rows, *, explicit=False, cells=None):
    """The state of a board in CAST's glyphs."""
    codes = np.array([[SYMBOLS["cast"].index(glyph) for glyph in row] for row in rows], np.int64)
    return make_state(codes, explicit=explicit, cells=cells)


def play(position, action):
    """What an action leads to: "up" walks or pushes, "walk up" and "push up" do only that."""
    kind, _, name = action.rpartition(" ")
    dr, dc = MOVES[name]
    (r, c), boxes = position.player, position.boxes
    there, beyond = (r + dr, c + dc), (r + 2 * dr, c + 2 * dc)
    if there in position.walls:
        return position
    if there in boxes:
        if kind == "walk" or beyond in position.walls or beyond in boxes:
            return position
        return position._replace(boxes=boxes - {there} | {beyond}, player=there)
    return position if kind == "push" else position._replace(player=there)


def fewest_moves(position):
    """Length of the shortest win by breadth-first search; inf if there is none."""
    seen, queue = {position}, deque([(position, 0)])
    while queue:
        now, turns = queue.popleft()
        if now.boxes == now.targets:
            return turns
        for name in MOVES:
            after = play(now, name)
            if after not in seen:
                seen.add(after)
                queue.append((after, turns + 1))
    return math.inf


def fewest_pushes(position):
    """Fewest pushes to a win: breadth-first, walks cost nothing; inf if there is none."""
    seen, queue = set(), deque([(position, 0)])
    while queue:
        now, pushes = queue.popleft()
        if now in seen:
            continue
        seen.add(now)
        if now.boxes == now.targets:
            return pushes
        for name in MOVES:
            after = play(now, name)
            if after.boxes == now.boxes:
                queue.appendleft((after, pushes))
            else:
                queue.append((after, pushes + 1))
    return math.inf


def follow(oracle, state):
    """Notes along the best actions until the win, a different one each time if there are many."""
    state, notes = state.copy(), []
    while not GAME.success(state):
        notes.append(oracle.note(state))
        best = np.flatnonzero(notes[-1].best)
        GAME.step(state, int(best[len(notes) % len(best)]))
    return notes


def draw(position, shape):
    """Rows in CAST's glyphs."""

    def glyph(cell):
        if cell in position.walls:
            return "#"
        what = "X" if cell in position.boxes else "P" if cell == position.player else "_"
        return {"X": "*", "P": "S", "_": "O"}[what] if cell in position.targets else what

    return ["".join(glyph((r, c)) for c in range(shape[1])) for r in range(shape[0])]


@st.composite
def boards(draw_, *, inner=4, boxes=3):
    """Small boards with walls at random, in CAST's glyphs: also split rooms and lost positions."""
    height, width = draw_(st.integers(1, inner)), draw_(st.integers(2, inner + 1))
    cells = [(r, c) for r in range(1, height + 1) for c in range(1, width + 1)]
    order = draw_(st.permutations(cells))
    most = min(boxes, (len(cells) - 1) // 2) or 1
    count = draw_(st.integers(1, most))
    walls = draw_(st.integers(0, max(0, (len(cells) - count - 1) // 2)))
    floor = order[walls:]
    targets = frozenset(draw_(st.permutations(floor))[:count])
    border = {(r, c) for r in range(height + 2) for c in range(width + 2)} - set(cells)
    position = Plain(
        frozenset(border | set(order[:walls])), targets, frozenset(floor[1 : count + 1]), floor[0]
    )
    return draw(position, (height + 2, width + 2))
