"""Rush Hour told a second time, plainly, for the tests: a board is a string, searched by sets."""

import heapq

from hypothesis import strategies as st

LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def pieces(board):
    """Label -> cells (row, column) in reading order."""
    size = round(len(board) ** 0.5)
    found = {}
    for k, glyph in enumerate(board):
        if glyph.isupper():
            found.setdefault(glyph, []).append((k // size, k % size))
    return found


def slide(board, label, sign, cells):
    """The board after a slide, None if it is not possible."""
    size = round(len(board) ** 0.5)
    own = pieces(board).get(label)
    if own is None or won(board):
        return None
    across = own[0][0] == own[1][0]
    step = (0, sign) if across else (sign, 0)
    for _ in range(cells):
        moved = [(r + step[0], c + step[1]) for r, c in own]
        for r, c in moved:
            if not (0 <= r < size and 0 <= c < size):
                return None
            if (r, c) not in own and board[r * size + c] != "o":
                return None
        glyphs = ["o" if glyph == label else glyph for glyph in board]
        for r, c in moved:
            glyphs[r * size + c] = label
        board, own = "".join(glyphs), moved
    return board


def slides(board):
    """Every possible slide as (label, sign, cells, board after)."""
    size = round(len(board) ** 0.5)
    for label in pieces(board):
        for sign in (1, -1):
            for cells in range(1, size):
                after = slide(board, label, sign, cells)
                if after is None:
                    break
                yield label, sign, cells, after


def won(board):
    size = round(len(board) ** 0.5)
    return board[3 * size - 1] == "A"


def blockers(board):
    size = round(len(board) ** 0.5)
    row = board[2 * size : 3 * size]
    return len({glyph for glyph in row[row.rindex("A") + 1 :] if glyph.isupper()})


def reachable(board):
    """All boards that the pieces can make, sliding on from won ones too."""
    seen, left = {board}, [board]
    size = round(len(board) ** 0.5)
    while left:
        now = left.pop()
        for label in pieces(now):
            for sign in (1, -1):
                after = _through_the_end(now, label, sign, size)
                if after is not None and after not in seen:
                    seen.add(after)
                    left.append(after)
    return seen


def _through_the_end(board, label, sign, size):
    if not won(board):
        return slide(board, label, sign, 1)
    if label == "A":
        row = board[2 * size : 3 * size]
        if sign == 1 or row[-3] != "o":
            return None
        return board[: 3 * size - 3] + "AAo" + board[3 * size :]
    # Another piece may move while A waits at the exit; a wall in A's place says the same.
    walled = slide(board.replace("A", "x"), label, sign, 1)
    if walled is None:
        return None
    return walled[: 3 * size - 2] + "AA" + walled[3 * size :]


def distance(board, cells):
    """Fewest slides, or cells, to a win from one board, by search from that board; None if dead."""
    best, left = {board: 0}, [(0, board)]
    while left:
        cost, now = heapq.heappop(left)
        if won(now):
            return cost
        if cost > best[now]:
            continue
        for _, _, k, after in slides(now):
            then = cost + (k if cells else 1)
            if then < best.get(after, then + 1):
                best[after] = then
                heapq.heappush(left, (then, after))
    return None


@st.composite
def boards(draw, sizes=(4, 5, 6, 7, 8), most=6, walls=3):
    """Boards with a red car that is not out, walls, and pieces anywhere, its own row included."""
    size = draw(st.sampled_from(sizes))
    glyphs = ["o"] * size**2
    col = draw(st.integers(0, size - 3))
    glyphs[2 * size + col] = glyphs[2 * size + col + 1] = "A"
    for _ in range(draw(st.integers(0, walls))):
        cell = draw(st.integers(0, size**2 - 1))
        if glyphs[cell] == "o":
            glyphs[cell] = "x"
    labels = draw(st.permutations(LABELS[1 : most + 3]))
    for label in labels[: draw(st.integers(1, most))]:
        length, across = draw(st.sampled_from((2, 2, 3))), draw(st.booleans())
        lane, at = draw(st.integers(0, size - 1)), draw(st.integers(0, size - length))
        cells = [(lane, at + k) if across else (at + k, lane) for k in range(length)]
        if all(glyphs[r * size + c] == "o" for r, c in cells):
            for r, c in cells:
                glyphs[r * size + c] = label
    return "".join(glyphs)
