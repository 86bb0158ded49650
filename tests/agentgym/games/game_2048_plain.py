"""2048 in plain Python on lists of exponents: slow, and shares nothing with the rules it checks."""


def slide_row(row):
    """A row slid to the left, and the exponents of the tiles that merged."""
    tiles = [k for k in row if k]
    slid, merged = [], []
    while tiles:
        first = tiles.pop(0)
        if tiles and tiles[0] == first:
            tiles.pop(0)
            first += 1
            merged.append(first)
        slid.append(first)
    return slid + [0] * (len(row) - len(slid)), merged


def slide(board, action):
    """A board after a move (0 to 3: up, down, left, right), and the exponents that merged."""
    lines = [list(line) for line in (zip(*board, strict=True) if action < 2 else board)]
    if action % 2:
        lines = [line[::-1] for line in lines]
    slid = [slide_row(line) for line in lines]
    lines = [line for line, _ in slid]
    if action % 2:
        lines = [line[::-1] for line in lines]
    if action < 2:
        lines = [list(line) for line in zip(*lines, strict=True)]
    return lines, [k for _, merged in slid for k in merged]


def legal(board):
    """The moves that change a board."""
    return [action for action in range(4) if slide(board, action)[0] != [*map(list, board)]]


def spawns(board):
    """Every board after a spawn, with its probability."""
    empty = [(r, c) for r, row in enumerate(board) for c, k in enumerate(row) if not k]
    for r, c in empty:
        for exponent, chance in ((1, 0.9), (2, 0.1)):
            after = [list(row) for row in board]
            after[r][c] = exponent
            yield after, chance / len(empty)


def random_score(size, rng):
    """Merged points of a game of uniformly random legal moves, in units of the base."""
    board = [[0] * size for _ in range(size)]
    points = 0
    for _ in range(2):
        board = _spawned(board, rng)
    while moves := legal(board):
        board, merged = slide(board, rng.choice(moves))
        points += sum(1 << (k - 1) for k in merged)
        board = _spawned(board, rng)
    return points


def _spawned(board, rng):
    boards, chances = zip(*spawns(board), strict=True)
    return rng.choices(boards, chances)[0]
