"""Where boards come from: generated ones by level, and JSON lines of mine positions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from agentgym.errors import InvalidInstance, InvalidOption, UnknownName
from agentgym.game import Accept, Instance, Options, State
from agentgym.games.minesweeper import rules
from agentgym.games.minesweeper.clearance import cost_to_go
from agentgym.games.minesweeper.odds import deducible
from agentgym.games.minesweeper.workspace import MAX_NODES, workspace

MAX_SIDE = 30
MAX_CELLS = 720
_KEYS = ("rows", "cols", "mines", "first_click")


class Level(NamedTuple):
    """The boards of a level.

    Attributes:
        rows: Rows.
        cols: Columns.
        mines: Mines.
        fewest: Fewest reveals, by `cost_to_go`, that a start may need.
        most: Most reveals.
    """

    rows: int
    cols: int
    mines: int
    fewest: int
    most: int


LEVELS = {
    "6x6-7": Level(6, 6, 7, 2, 24),
    "7x7-10": Level(7, 7, 10, 3, 30),
    "9x9-10": Level(9, 9, 10, 3, 32),
    "16x16-40": Level(16, 16, 40, 36, 100),
    "16x30-99": Level(16, 30, 99, 115, 230),
}


@dataclass(frozen=True, kw_only=True)
class MinesweeperOptions(Options):
    """Minesweeper's keyword arguments.

    Attributes:
        level: See `LEVELS`.
        no_guess: Only boards that deduction alone solves.
        value: The oracle searches for the probability of winning as well, which takes longer.
    """

    level: str = "6x6-7"
    no_guess: bool = False
    value: bool = False

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            UnknownName: There is no such level.
            InvalidOption: A switch that is neither True nor False.
        """
        if self.level not in LEVELS:
            raise UnknownName.of("level of Minesweeper", self.level, LEVELS)
        for name in ("no_guess", "value"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidOption(f"{name} is True or False, got {getattr(self, name)!r}.")

    @property
    def instance_key(self) -> str:
        """The level, and whether it is free of guesses."""
        return self.level + (",no_guess" if self.no_guess else "")


def generate(rng: np.random.Generator, options: MinesweeperOptions, accept: Accept) -> Instance:
    """A board of the level, its first click made: mines uniform outside of the click's 3x3.

    Rejected are boards that the first click wins, that are outside the level's band, that need a
    guess where `no_guess` forbids it, and that `accept` does not want.
    """
    level = LEVELS[options.level]
    work, ways = workspace()
    while True:
        click = int(rng.integers(level.rows * level.cols))
        free = _free_cells(level.rows, level.cols, level.mines, click)
        state = make_board((level.rows, level.cols), rng.permutation(free)[: level.mines], click)
        if not level.fewest <= cost_to_go(state, work) <= level.most or rules.terminal(state):
            continue
        form = canonical(state)
        if not accept(form):
            continue
        if not options.no_guess or deducible(state.copy(), MAX_NODES, work, ways):
            return Instance(state, form)


@lru_cache(maxsize=4096)
def _free_cells(rows: int, cols: int, mines: int, click: int) -> npt.NDArray[np.int64]:
    """Cells that may hold a mine: all but the click's 3x3, or but the click if they do not fit."""
    cells = np.arange(rows * cols)
    far = np.abs(cells // cols - click // cols) > 1
    far |= np.abs(cells % cols - click % cols) > 1
    return cells[far] if np.count_nonzero(far) >= mines else cells[cells != click]


def make_board(
    shape: tuple[int, int], mines: npt.NDArray[np.int64] | list[int], click: int
) -> State:
    """A start state: the mines laid, the numbers counted, the first click made.

    Args:
        shape: Rows and columns.
        mines: Cells with a mine, row-major, none twice.
        click: Cell of the first click, without a mine.
    """
    state = np.zeros(rules.CELLS + shape[0] * shape[1], np.int64)
    state[[rules.ROWS, rules.HEIGHT]] = shape[0]
    state[[rules.COLS, rules.WIDTH]] = shape[1]
    state[rules.CLICK] = click
    state[rules.CELLS :][mines] = rules.MINE
    rules.found(state)
    return state


def pad(state: State, height: int, width: int) -> State:
    """The same board in a larger layout; the cells beyond it are OUTSIDE."""
    rows, cols = int(state[rules.HEIGHT]), int(state[rules.WIDTH])
    words = np.full((height, width), rules.OUTSIDE, np.int64)
    words[:rows, :cols] = state[rules.CELLS :].reshape(rows, cols)
    padded = np.concatenate([state[: rules.CELLS], words.reshape(-1)])
    padded[rules.HEIGHT], padded[rules.WIDTH] = height, width
    click = int(state[rules.CLICK])
    padded[rules.CLICK] = click // cols * width + click % cols
    return padded


def board_words(state: State) -> npt.NDArray[np.int64]:
    """The words of the board's own cells, shape (rows, cols)."""
    words = state[rules.CELLS :].reshape(state[rules.HEIGHT], state[rules.WIDTH])
    return words[: state[rules.ROWS], : state[rules.COLS]]


def canonical(state: State) -> bytes:
    """Size, mines and opened cells of a start, the smallest of its rotations and reflections.

    Two first clicks that open the same cells make the same problem. A rectangle has four
    symmetries, a square eight.
    """
    cells = (board_words(state) & (rules.MINE | rules.OPEN)).astype(np.uint8)
    forms = [cells, cells[::-1], cells[:, ::-1], cells[::-1, ::-1]]
    if cells.shape[0] == cells.shape[1]:
        forms += [form.T for form in forms]
    return bytes(cells.shape) + min(form.tobytes() for form in forms)


def load(path: Path, options: MinesweeperOptions) -> tuple[State, ...]:
    """Boards from JSON lines: `rows`, `cols`, `mines` and `first_click`, zero-indexed [row, col].

    Other keys are ignored, blank lines skipped; boards of several sizes share the largest layout.

    Raises:
        InvalidInstance: A line that is no such board, or no board at all; names file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInstance(
            f"{path.name}: expected a file of JSON lines, got {fault}."
        ) from fault
    boards = [
        _read_board(line, f"{path.name}:{number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not boards:
        raise InvalidInstance(f"{path.name}: expected one board a line, got none.")
    height = max(int(board[rules.ROWS]) for board in boards)
    width = max(int(board[rules.COLS]) for board in boards)
    return tuple(pad(board, height, width) for board in boards)


def _read_board(line: str, place: str) -> State:
    try:
        parsed = json.loads(line)
    except json.JSONDecodeError as fault:
        raise InvalidInstance(f"{place}: expected a JSON object, got {fault}.") from fault
    if not isinstance(parsed, dict):
        raise InvalidInstance(f"{place}: expected a JSON object, got {line.strip()[:60]!r}.")
    board = cast(dict[str, Any], parsed)
    missing = [key for key in _KEYS if key not in board]
    if missing:
        raise InvalidInstance(
            f"{place}: a board has {', '.join(_KEYS)}; missing: {', '.join(missing)}."
        )
    shape = _read_shape(board, place)
    if not isinstance(board["mines"], list):
        raise InvalidInstance(f"{place}: mines is a list of [row, col], got {board['mines']!r}.")
    mines = [_read_cell(cell, shape, f"{place}: a mine") for cell in board["mines"]]
    click = _read_cell(board["first_click"], shape, f"{place}: first_click")
    doubled = sorted({cell for cell in mines if mines.count(cell) > 1})
    if doubled:
        raise InvalidInstance(f"{place}: the mine {_pair(doubled[0], shape)} is there twice.")
    if click in mines:
        raise InvalidInstance(f"{place}: first_click {_pair(click, shape)} is on a mine.")
    state = make_board(shape, mines, click)
    if rules.terminal(state):
        raise InvalidInstance(f"{place}: the first click {_pair(click, shape)} wins at once.")
    return state


def _pair(cell: int, shape: tuple[int, int]) -> list[int]:
    return list(divmod(cell, shape[1]))


def _read_shape(board: dict[str, Any], place: str) -> tuple[int, int]:
    rows, cols = board["rows"], board["cols"]
    for name, side in (("rows", rows), ("cols", cols)):
        if type(side) is not int or not 1 <= side <= MAX_SIDE:
            raise InvalidInstance(f"{place}: {name} is from 1 to {MAX_SIDE}, got {side!r}.")
    if rows * cols > MAX_CELLS:
        raise InvalidInstance(
            f"{place}: a board has at most {MAX_CELLS} cells (30x24), got {rows}x{cols}."
        )
    return rows, cols


def _read_cell(cell: Any, shape: tuple[int, int], what: str) -> int:
    pair = isinstance(cell, list) and len(cast(list[Any], cell)) == 2
    if not pair or not all(type(part) is int for part in cell):
        raise InvalidInstance(f"{what} is [row, col], got {cell!r}.")
    row, col = cell
    if not (0 <= row < shape[0] and 0 <= col < shape[1]):
        raise InvalidInstance(
            f"{what} is outside of the {shape[0]}x{shape[1]} board, got [{row}, {col}]."
        )
    return row * shape[1] + col
