"""What a player of 2048 reads and writes."""

from __future__ import annotations

from functools import lru_cache

from agentgym.game import Layout, State
from agentgym.games.game_2048.board import moves
from agentgym.games.game_2048.instances import BoardOptions, shape_of
from agentgym.games.game_2048.rules import BASE, ROWS, SIZE, TOP, get_board

_NARROWEST = 4


def instructions(options: BoardOptions, layout: Layout) -> str:
    """The rules as told to a player."""
    size, base, goal = shape_of(layout.rows, options.shape.base)
    return (
        f"2048 on a {size}x{size} board. Each cell holds a tile, a number, or is empty, shown "
        "as a dot.\n"
        "A move slides all tiles as far as they go in one direction: Up, Down, Left or Right. Two "
        "equal tiles that meet merge into one of twice the value, and you score that value; a "
        "tile merges only once in a move, the pair nearest to the wall first.\n"
        f"After each move that changed the board a new tile, {base} or sometimes {2 * base}, "
        "appears on an empty cell. A move that changes nothing is not allowed and costs a turn.\n"
        f"Reach a tile of {base << (goal - 1)} and score as much as you can. The game ends when no "
        "move changes the board."
    )


def render(state: State, options: BoardOptions) -> str:
    """The board: one row a line, cells right-justified to the widest tile, a dot where empty."""
    fields = state.tolist()
    size, base = fields[SIZE], fields[BASE]
    width = max(_NARROWEST, len(str(base << fields[TOP] >> 1)))
    return "\n".join([_row(lanes, size, base, width) for lanes in fields[ROWS : ROWS + size]])


@lru_cache(maxsize=1 << 16)
def _row(lanes: int, size: int, base: int, width: int) -> str:
    exponents = [lanes >> (8 * col) & 0xFF for col in range(size)]
    cells = [str(base << (k - 1)) if k else "." for k in exponents]
    return " ".join([cell.rjust(width) for cell in cells])


def explain(state: State, action: int, layout: Layout, options: BoardOptions) -> str:
    """Why a move is not legal, and which moves are."""
    legal = moves(get_board(state), state[SIZE])
    name = layout.actions[action]
    if legal == 0:
        return f"{name} is not possible: the game is over, no move changes the board."
    others = ", ".join(text for index, text in enumerate(layout.actions) if legal >> index & 1)
    return f"{name} moves no tile and merges none; moves that change the board: {others}."
