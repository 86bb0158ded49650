"""Boards in the field's file formats, XSB and SOK: text with many boards, titles and comments.

`#` wall, `@` player, `+` player on target, `$` box, `*` box on target, `.` target, and blank, `-`
or `_` floor. Rows may be run-length encoded (`7#|3#.#`, where `|` ends a row). Any other line
parts two boards: an empty one, `; comment`, `Title: ...`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agentgym.errors import InvalidInstance
from agentgym.games.sokoban.boards import Codes
from agentgym.games.sokoban.box_sets import MAX_BOXES
from agentgym.games.sokoban.rules import (
    BOX,
    BOX_ON_TARGET,
    EMPTY,
    MAN,
    MAN_ON_TARGET,
    TARGET,
    WALL,
)

MAX_SIZE = 16
"""Rows and columns of the largest board."""

_GLYPHS = {
    "#": WALL,
    "@": MAN,
    "+": MAN_ON_TARGET,
    "$": BOX,
    "*": BOX_ON_TARGET,
    ".": TARGET,
    " ": EMPTY,
    "-": EMPTY,
    "_": EMPTY,
}
_RUN = re.compile(r"(\d{1,3})([#@+$*. _-])")
_HEADING = re.compile(r"\s*([;:']|[A-Za-z][\w ]*:)")


@dataclass
class _Block:
    """Rows of one board as they stand in the file."""

    name: str
    line: int
    rows: list[str] = field(default_factory=list[str])

    def error(self, fault: str) -> InvalidInstance:
        """The error that says where the board is."""
        return InvalidInstance(f"{self.name}, board at line {self.line}: {fault}")


def read_boards(path: Path) -> list[Codes]:
    """All boards of a file, in order.

    Raises:
        InvalidInstance: A board that breaks the rules; names the file, the line and the fault.
    """
    if path.is_dir():
        raise InvalidInstance(f"instances={str(path)!r} is a folder; give an XSB file.")
    text = path.read_text(encoding="utf-8", errors="replace")
    return [_codes(block) for block in _blocks(path.name, text.splitlines())]


def _blocks(name: str, lines: list[str]) -> Iterator[_Block]:
    block = _Block(name, 0)
    for number, line in enumerate([*lines, ""], start=1):
        rows = _rows(line, bool(block.rows))
        if rows and not block.rows:
            block.line = number
        block.rows += rows
        if not rows and block.rows:
            yield block
            block = _Block(name, 0)


def _rows(line: str, inside: bool) -> list[str]:
    """The board rows on a line; none if it is a title, a comment or empty."""
    bare = line.strip()
    if _HEADING.match(line) or not bare:
        return []
    if "#" not in bare:
        return [line.rstrip()] if inside and set(line) <= set(_GLYPHS) else []
    expanded = _RUN.sub(lambda run: run[2] * int(run[1]), line.rstrip())
    walled = expanded.lstrip(" -_").startswith("#") or (inside and expanded.endswith("#"))
    if walled or set(expanded) <= {*_GLYPHS, "|"}:
        return [row.rstrip() for row in expanded.rstrip("|").split("|")]
    return []


def _codes(block: _Block) -> Codes:
    width = max(len(row) for row in block.rows)
    codes = np.full((len(block.rows), width), EMPTY, np.int64)
    for r, row in enumerate(block.rows):
        for c, glyph in enumerate(row):
            if glyph not in _GLYPHS:
                raise block.error(
                    f"row {r + 1} has the unknown glyph {glyph!r}; the glyphs are "
                    "# @ + $ * . and blank, - or _, and a comment begins with ;"
                )
            codes[r, c] = _GLYPHS[glyph]
    _check_counts(block, codes)
    outside = _outside(codes)
    _check_walls(block, codes, outside)
    walls = codes == WALL
    height, breadth = np.flatnonzero(walls.any(axis=1)), np.flatnonzero(walls.any(axis=0))
    codes[outside] = WALL
    codes = codes[height[0] : height[-1] + 1, breadth[0] : breadth[-1] + 1]
    if max(codes.shape) > MAX_SIZE:
        raise block.error(
            f"the board has {codes.shape[0]} rows and {codes.shape[1]} columns; the largest is "
            f"{MAX_SIZE}x{MAX_SIZE}, so take this board out of the file"
        )
    return codes


def _check_counts(block: _Block, codes: Codes) -> None:
    players = int((codes >= MAN).sum() - (codes == WALL).sum())
    if players != 1:
        raise block.error(f"a board has one player (@ or +), got {players}")
    boxes = int(((codes == BOX) | (codes == BOX_ON_TARGET)).sum())
    targets = int((codes & 1 != 0).sum())
    if boxes != targets:
        raise block.error(
            f"a board has as many boxes ($ or *) as targets (. * or +), "
            f"got {boxes} boxes and {targets} targets"
        )
    if not 1 <= boxes <= MAX_BOXES:
        raise block.error(f"a board has 1 to {MAX_BOXES} boxes, got {boxes}")
    if not (codes == BOX).any():
        raise block.error("all boxes stand on targets already; a board begins unsolved")


def _check_walls(block: _Block, codes: Codes, outside: npt.NDArray[np.bool_]) -> None:
    for r, c in np.argwhere(outside & (codes != EMPTY)):
        what = "the player" if codes[r, c] >= MAN else "a box or target"
        raise block.error(
            f"the walls are not closed: {what} in row {r + 1}, column {c + 1} can be reached from "
            "outside"
        )


def _outside(codes: Codes) -> npt.NDArray[np.bool_]:
    """The cells that are connected to the edge of the board without crossing a wall."""
    open_cells = np.pad(codes != WALL, 1, constant_values=True)
    outside = np.zeros_like(open_cells)
    outside[0, 0] = True
    waiting = [(0, 0)]
    while waiting:
        r, c = waiting.pop()
        for near in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
            inside = min(near) >= 0 and near[0] < outside.shape[0] and near[1] < outside.shape[1]
            if inside and open_cells[near] and not outside[near]:
                outside[near] = True
                waiting.append(near)
    return outside[1:-1, 1:-1]
