"""Boards as five words of five byte lanes: all columns of a board slide at once.

A board is a tuple of five int64 rows; lane c (bits 8c to 8c + 7) of row r is the exponent of cell
(r, c): 0 for an empty cell, k for the tile base * 2^(k-1). A board of size n uses the first n rows
and lanes, the rest is 0. 25 cells never reach an exponent above 26 and a lane holds 127, so one set
of rules, without tables, is right for every size and every tile.

Arithmetic is on all lanes at once. `x + LOW` sets a lane's top bit where the lane is not 0. A set
of lanes is written as marks (their top bits) or as a mask (all their bits).
"""

from __future__ import annotations

from typing import Any

from agentgym.kernels import inlined, kernel

MAX_SIZE = 5
"""Most rows of a board; a board always has this many words."""
UP, DOWN, LEFT, RIGHT = range(4)
"""Actions: bit 1 says sideways, bit 0 says towards the last row or lane."""

ONE = 0x01_01_01_01_01
LOW = 0x7F_7F_7F_7F_7F
TOP_BITS = 0x80_80_80_80_80
ALL = 0xFF_FF_FF_FF_FF


@inlined
def filled(row: Any) -> Any:
    """Mark the lanes that hold a tile."""
    return (row + LOW) & TOP_BITS


@inlined
def mask(marks: Any) -> Any:
    """Widen marks to all eight bits of their lanes."""
    return (marks << 1) - (marks >> 7)


@inlined
def fall(near: Any, far: Any, near_mask: Any, far_mask: Any) -> Any:
    """Let tiles of `far` drop into the empty lanes of `near`; the masks are their filled lanes."""
    tiles, lanes = far & ~near_mask, far_mask & ~near_mask
    return near | tiles, far ^ tiles, near_mask | lanes, far_mask ^ lanes


@inlined
def compress(board: Any, masks: Any) -> Any:
    """Let all tiles fall towards row 0: the board and the masks of its filled lanes."""
    a, b, c, d, e = board
    ma, mb, mc, md, me = masks
    a, b, ma, mb = fall(a, b, ma, mb)
    c, d, mc, md = fall(c, d, mc, md)
    b, c, mb, mc = fall(b, c, mb, mc)
    a, b, ma, mb = fall(a, b, ma, mb)
    c, d, mc, md = fall(c, d, mc, md)
    b, c, mb, mc = fall(b, c, mb, mc)
    if e:
        d, e, md, me = fall(d, e, md, me)
        c, d, mc, md = fall(c, d, mc, md)
        b, c, mb, mc = fall(b, c, mb, mc)
        a, b, ma, mb = fall(a, b, ma, mb)
    return (a, b, c, d, e), (ma, mb, mc, md, me)


@inlined
def merge(board: Any, masks: Any) -> Any:
    """Merge equal neighbours of a compressed board, each tile once, those nearest row 0 first.

    Returns the board, the masks of its filled lanes, and the merged tiles in two words: a lane that
    merges in one row cannot merge in the next, so two rows share a word.
    """
    a, b, c, d, e = board
    ma, mb, mc, md, me = masks
    ab = mb & ~mask(filled(a ^ b))
    bc = mc & ~mask(filled(b ^ c)) & ~ab
    cd = md & ~mask(filled(c ^ d)) & ~bc
    de = me & ~mask(filled(d ^ e)) & ~cd
    a += ab & ONE
    b = (b + (bc & ONE)) & ~ab
    c = (c + (cd & ONE)) & ~bc
    d = (d + (de & ONE)) & ~cd
    board = a, b, c, d, e & ~de
    masks = ma, mb ^ ab, mc ^ bc, md ^ cd, me ^ de
    return board, masks, (a & ab) | (b & bc), (c & cd) | (d & de)


@inlined
def close(board: Any, masks: Any) -> Any:
    """Let tiles fall into the gaps that merging left, none of them in row 0."""
    a, b, c, d, e = board
    _, mb, mc, md, me = masks
    b, c, mb, mc = fall(b, c, mb, mc)
    c, d, mc, md = fall(c, d, mc, md)
    if e:
        d, e, md, me = fall(d, e, md, me)
        c, d, mc, md = fall(c, d, mc, md)
    return a, b, c, d, e


@inlined
def points(tiles: Any) -> Any:
    """Sum of the tiles of a word, in units of the base."""
    total = (1 << (tiles & 0xFF)) & -2
    total += (1 << ((tiles >> 8) & 0xFF)) & -2
    total += (1 << ((tiles >> 16) & 0xFF)) & -2
    total += (1 << ((tiles >> 24) & 0xFF)) & -2
    total += (1 << (tiles >> 32)) & -2
    return total >> 1


@inlined
def slide(board: Any) -> Any:
    """Slide all columns towards row 0: the board, and the points in units of the base."""
    a, b, c, d, e = board
    masks = mask(filled(a)), mask(filled(b)), mask(filled(c)), mask(filled(d)), mask(filled(e))
    board, masks = compress(board, masks)
    board, masks, some, more = merge(board, masks)
    return close(board, masks), points(some) + points(more)


@inlined
def transpose(board: Any) -> Any:
    """Swap rows and columns."""
    a, b, c, d, e = board
    corner = e & 0xFF_00_00_00_00
    last = (a >> 32) | (b >> 32 << 8) | (c >> 32 << 16) | (d >> 32 << 24)
    swap = ((a >> 8) ^ b) & 0xFF00FF
    a, b = a ^ (swap << 8), b ^ swap
    swap = ((c >> 8) ^ d) & 0xFF00FF
    c, d = c ^ (swap << 8), d ^ swap
    swap = ((a >> 16) ^ c) & 0xFFFF
    a, c = a ^ (swap << 16), c ^ swap
    swap = ((b >> 16) ^ d) & 0xFFFF
    b, d = b ^ (swap << 16), d ^ swap
    if last | e:
        four = 0xFF_FF_FF_FF
        a = (a & four) | ((e & 0xFF) << 32)
        b = (b & four) | ((e >> 8 & 0xFF) << 32)
        c = (c & four) | ((e >> 16 & 0xFF) << 32)
        d = (d & four) | ((e >> 24 & 0xFF) << 32)
        e = corner | last
    return a, b, c, d, e


@inlined
def swap_if(wanted: Any, near: Any, far: Any) -> Any:
    """Exchange two rows if `wanted` is -1, not if it is 0."""
    change = (near ^ far) & wanted
    return near ^ change, far ^ change


@inlined
def flip(board: Any, size: Any, wanted: Any) -> Any:
    """Reverse the order of the rows if `wanted` is -1, not if it is 0."""
    a, b, c, d, e = board
    if size == 4:
        a, d = swap_if(wanted, a, d)
        b, c = swap_if(wanted, b, c)
    elif size == 3:
        a, c = swap_if(wanted, a, c)
    elif size == 5:
        a, e = swap_if(wanted, a, e)
        b, d = swap_if(wanted, b, d)
    else:
        a, b = swap_if(wanted, a, b)
    return a, b, c, d, e


@inlined
def move(board: Any, size: Any, action: Any) -> Any:
    """Slide a board: the board after it, and the points in units of the base."""
    if action & 2:
        board = transpose(board)
    # A branch here would be guessed wrong every other time.
    board = flip(board, size, -(action & 1))
    board, gain = slide(board)
    board = flip(board, size, -(action & 1))
    if action & 2:
        board = transpose(board)
    return board, gain


@inlined
def same(one: Any, other: Any) -> Any:
    """Whether two boards are equal."""
    a, b, c, d, e = one
    v, w, x, y, z = other
    return ((a ^ v) | (b ^ w) | (c ^ x) | (d ^ y) | (e ^ z)) == 0


@inlined
def towards(near: Any, far: Any) -> Any:
    """Mark where `far` can move or merge into `near`."""
    return filled(far) & ~(filled(near) & filled(near ^ far))


@kernel
def moves(board: Any, size: Any) -> Any:
    """The actions that change a board, one bit each."""
    a, b, c, d, e = board
    up = towards(a, b) | towards(b, c) | towards(c, d) | towards(d, e)
    down = towards(b, a)
    if size > 2:
        down |= towards(c, b)
    if size > 3:
        down |= towards(d, c)
    if size > 4:
        down |= towards(e, d)
    left = towards(a, a >> 8) | towards(b, b >> 8) | towards(c, c >> 8)
    left |= towards(d, d >> 8) | towards(e, e >> 8)
    right = towards(a >> 8, a) | towards(b >> 8, b) | towards(c >> 8, c)
    right |= towards(d >> 8, d) | towards(e >> 8, e)
    right &= (1 << (8 * size - 8)) - 1
    return (up != 0) | (down != 0) << DOWN | (left != 0) << LEFT | (right != 0) << RIGHT


@inlined
def space(board: Any, size: Any) -> Any:
    """Count empty cells: each lane holds those of its column and of all columns left of it.

    The last lane is the number of all empty cells.
    """
    a, b, c, d, e = board
    full = (filled(a) >> 7) + (filled(b) >> 7) + (filled(c) >> 7) + (filled(d) >> 7)
    full += filled(e) >> 7
    columns = ONE & ((1 << (8 * size)) - 1)
    return ((size * columns - full) * ONE) & ALL


@inlined
def put(board: Any, space: Any, place: Any, exponent: Any) -> Any:
    """Set a tile on the empty cell number `place`, from 0, counted down the columns from the left.

    Args:
        board: The board.
        space: Its `space`.
        place: Below the number of empty cells.
        exponent: Of the tile.
    """
    a, b, c, d, e = board
    number = (place + 1) * ONE
    enough = ((space | TOP_BITS) - number) & TOP_BITS
    column = mask(enough & -enough)
    number = (number - (space << 8)) & column
    one = column & ONE
    # Empty cells of the column, down to each row; the tile goes where they reach its number.
    in_a = one & ~(filled(a) >> 7)
    in_b = in_a + (one & ~(filled(b) >> 7))
    in_c = in_b + (one & ~(filled(c) >> 7))
    in_d = in_c + (one & ~(filled(d) >> 7))
    in_e = in_d + (one & ~(filled(e) >> 7))
    tile = one * exponent
    a += tile * (in_a == number)
    b += tile * ((in_b == number) & (in_a != number))
    c += tile * ((in_c == number) & (in_b != number))
    d += tile * ((in_d == number) & (in_c != number))
    e += tile * ((in_e == number) & (in_d != number))
    return a, b, c, d, e
