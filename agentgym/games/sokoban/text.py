"""Sokoban as text: action names, instructions, observation, parsing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np

from agentgym.game import Layout, State
from agentgym.games.sokoban import milestones
from agentgym.games.sokoban.glyphs import PARTS
from agentgym.games.sokoban.instances import LEVELS, SokobanOptions
from agentgym.games.sokoban.rooms import MAX_CELLS
from agentgym.games.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    BOXES,
    CELLS,
    CODES,
    COLS,
    MAN,
    MAN_ON_TARGET,
    ROWS,
    TARGETS,
    WALL,
)

ACTIONS = {
    "push": ("Up", "Down", "Left", "Right"),
    "explicit": (
        "up",
        "down",
        "left",
        "right",
        "push up",
        "push down",
        "push left",
        "push right",
    ),
}
"""Canonical text of the actions, by `moves`."""

_INSTRUCTIONS = """\
You are playing Sokoban. Push every box onto a target; when all boxes stand on targets, you win.
Board: {legend}.
{moves}
A box moves one cell, and only if the cell behind it is neither wall nor box. Boxes are never \
pulled: a box in a corner is stuck. A blocked action changes nothing but costs a turn.
{where}Actions: {actions}."""

_MOVES = {
    "push": "Each turn you step one cell up, down, left or right; stepping into a box pushes it.",
    "explicit": (
        "Each turn you step one cell onto free floor (up, down, left, right), or push the box next "
        "to you and follow it (push up, push down, push left, push right)."
    ),
}

_LABELS = (
    (BOX, "Boxes"),
    (BOX_ON_TARGET, "Boxes on target"),
    (MAN, "Player"),
    (MAN_ON_TARGET, "Player on target"),
)

_WHERE = "Coordinates are (row, column), counted from 0 at the top left; up is row - 1.\n"


def layout(options: SokobanOptions, starts: Sequence[State] | None) -> Layout:
    """The shapes for a level's boards, or for loaded ones."""
    if starts is None:
        level = LEVELS[options.level]
        rows = cols = level.size
        boxes, size = level.boxes, CELLS + rows * cols
    else:
        rows, cols, boxes = (max(int(s[f]) for s in starts) for f in (ROWS, COLS, BOXES))
        size = len(starts[0])
    actions = ACTIONS[options.moves]
    lookup = {name.lower(): index for index, name in enumerate(actions)}
    if options.moves == "push":
        lookup |= {str(index + 1): index for index in range(4)}
    return Layout(rows, cols, CODES, size, actions, lookup, milestones.names(boxes))


def instructions(options: SokobanOptions, layout: Layout) -> str:
    """The rules as told to a player."""
    shown = zip(options.glyphs, PARTS, strict=True)
    return _INSTRUCTIONS.format(
        legend=", ".join(f"{g if g != ' ' else 'blank'} {p.replace('_', ' ')}" for g, p in shown),
        moves=_MOVES[options.moves],
        where="" if options.layout == "grid" else _WHERE,
        actions=", ".join(layout.actions) + (", or 1, 2, 3, 4" * (options.moves == "push")),
    )


def render(state: State, options: SokobanOptions) -> str:
    """The observation, in the layout and the glyphs of the options."""
    rows, cols = int(state[ROWS]), int(state[COLS])
    codes = state[CELLS : CELLS + rows * cols].astype(np.uint8).tobytes()
    lines: list[str] = []
    if options.layout != "grid":
        lines.append(_fixed_lines(rows, cols, state[TARGETS:CELLS].tobytes()))
        for code, label in _LABELS:
            if code in codes:
                lines.append(f"{label}: {_places(codes, code, cols)}")
    if options.layout == "coord":
        lines.append(_inner_walls(codes, rows, cols))
        return "\n".join(lines)
    if lines:
        lines.append("Grid Map:")
    drawn = codes.decode("latin-1").translate(options.glyphs)
    lines += [drawn[start : start + cols] for start in range(0, len(drawn), cols)]
    return "\n".join(lines)


def explain(state: State, action: int, layout: Layout, options: SokobanOptions) -> str:
    """Why an action is not legal: there is no such action, all that exist are legal."""
    last = len(layout.actions) - 1
    return f"Action {action} does not exist; 0 to {last} are {', '.join(layout.actions)}."


@lru_cache(maxsize=4096)
def _fixed_lines(rows: int, cols: int, targets: bytes) -> str:
    bits = np.unpackbits(np.frombuffer(targets, np.uint8), bitorder="little").tobytes()
    size = f"Board size: {rows} rows x {cols} cols (zero-indexed)."
    return f"Coordinates:\n{size}\nTargets: {_places(bits, 1, cols)}"


def _inner_walls(codes: bytes, rows: int, cols: int) -> str:
    inside = bytearray(codes)
    inside[:cols] = inside[-cols:] = bytes(cols)
    inside[::cols] = inside[cols - 1 :: cols] = bytes(rows)
    return f"Walls: the whole border; inside: {_places(bytes(inside), WALL, cols) or 'none'}"


def _places(codes: bytes, code: int, cols: int) -> str:
    """The cells with a code, as "(row, column), (row, column)"."""
    found: list[str] = []
    names = _names(cols)
    cell = codes.find(code)
    while cell >= 0:
        found.append(names[cell])
        cell = codes.find(code, cell + 1)
    return ", ".join(found)


@cache
def _names(cols: int) -> tuple[str, ...]:
    return tuple(f"({cell // cols}, {cell % cols})" for cell in range(MAX_CELLS))


def milestone_total(start: State, layout: Layout) -> int:
    """As many milestones as the board has boxes."""
    return int(start[BOXES])
