"""The state graph of a board: all states that its pieces can reach, and how far each is from a win.

Slides can be taken back, so the states that can be reached from one another make a component, and
exactly one of two things holds for all of them: each can win, or none can. A component is explored
by single cells, which reach the same states as slides do; a slide is a run of such links.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.games.rush_hour.rules import (
    OCCUPIED,
    RANK,
    RED_LENGTH,
    SHAPE,
    SIZE,
    WALLS,
    line,
    room,
)
from agentgym.kernels import kernel

FREE = -1
"""In place of the rank in a free slot; no state has it, see `rules.place_all`."""
DEAD = np.iinfo(np.int32).max
"""The cost of a state that cannot win."""
ORIGIN, STRIDE, LENGTH, WEIGHT, BODY, PIECE = range(6)
"""Columns of `Graph.movers`: cell of place 0, cells between places, length, weight in the rank,
bits at place 0, index of the piece."""
WON = -2
"""In place of a count: a win was found."""
LINKED = 1 << 20
"""Largest capacity at which links are kept; beyond, they are looked up, for memory's sake."""


class Graph(NamedTuple):
    """A component's states, numbered from 0 (the one it was explored from), and room for more.

    Attributes:
        movers: int64 (pieces, 6): the pieces on the board, the red car first.
        keys: int64 (slots,): ranks, open addressing with linear probing.
        names: int32 (slots,): the number of the state in each slot.
        ranks: int64 (capacity,).
        places: uint8 (capacity, pieces): of each mover.
        links: int32 (capacity or 0, 2 pieces): the state after mover k goes one cell right or
            down (2 k), left or up (2 k + 1); -1 if it cannot.
        costs: int32 (capacity,): fewest slides, or cells, to a win.
        order: int32 (capacity,): states by their costs.
    """

    movers: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    names: npt.NDArray[np.int32]
    ranks: npt.NDArray[np.int64]
    places: npt.NDArray[np.uint8]
    links: npt.NDArray[np.int32]
    costs: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32]


def make_graph(pieces: int, capacity: int, *, linked: bool = True) -> Graph:
    """An empty graph.

    Args:
        pieces: Number of pieces on the board.
        capacity: Most states it can hold.
        linked: Keep links, which costs 8 bytes for each state and piece, and halves the time.
    """
    slots = 1 << (2 * capacity - 1).bit_length()
    return Graph(
        np.empty((pieces, 6), np.int64),
        np.empty(slots, np.int64),
        np.empty(slots, np.int32),
        np.empty(capacity, np.int64),
        np.empty((capacity, pieces), np.uint8),
        np.empty((capacity if linked else 0, 2 * pieces), np.int32),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.int32),
    )


@kernel
def find(keys: Any, rank: Any) -> Any:
    """The slot that holds a rank, or the free one where it belongs."""
    mask = keys.shape[0] - 1
    mixed = rank * -7046029254386353131
    slot = (mixed ^ (mixed >> 32)) & mask
    while keys[slot] != rank and keys[slot] != FREE:
        slot = (slot + 1) & mask
    return slot


@kernel
def begin(state: Any, graph: Any) -> None:
    """Make a state the graph's number 0, and its only one."""
    n, pieces, k = state[SIZE], room(state), 0
    for piece in range(pieces):
        shape = state[SHAPE + piece]
        if shape == 0:
            continue
        lane, vertical = (shape >> 2) & 7, shape >> 5
        mover = graph.movers[k]
        mover[ORIGIN] = lane if vertical else lane * n
        mover[STRIDE] = n if vertical else 1
        mover[LENGTH], mover[WEIGHT] = shape & 3, state[SHAPE + pieces + piece]
        mover[BODY] = line(mover[ORIGIN], mover[STRIDE], mover[LENGTH])
        mover[PIECE] = piece
        graph.places[0, k] = state[SHAPE + 2 * pieces + piece]
        k += 1
    graph.keys[:] = FREE
    slot = find(graph.keys, state[RANK])
    graph.keys[slot], graph.names[slot], graph.ranks[0] = state[RANK], 0, state[RANK]
    if graph.links.shape[0]:
        graph.links[0, :] = -1


@kernel
def occupied(walls: Any, movers: Any, places: Any) -> Any:
    """The cells that are taken when the movers stand at `places`, one bit each."""
    bits = walls
    for k in range(movers.shape[0]):
        bits |= movers[k, BODY] << (places[k] * movers[k, STRIDE])
    return bits


@kernel
def way(n: Any, bits: Any, mover: Any, place: Any, sign: Any) -> Any:
    """How many cells a mover can go right or down (`sign` 1), left or up (-1)."""
    at = place + mover[LENGTH] if sign > 0 else place - 1
    cells = 0
    while 0 <= at < n and not (bits >> (mover[ORIGIN] + at * mover[STRIDE])) & 1:
        cells += 1
        at += sign
    return cells


@kernel
def enter(graph: Any, count: Any, source: Any, mover: Any, move: Any, slot: Any) -> None:
    """Make the state after a mover goes `move` cells (signed) from `source` number `count`."""
    rank = graph.ranks[source] + move * graph.movers[mover, WEIGHT]
    graph.keys[slot], graph.names[slot], graph.ranks[count] = rank, count, rank
    for k in range(graph.movers.shape[0]):
        graph.places[count, k] = graph.places[source, k]
    graph.places[count, mover] += move
    if graph.links.shape[0]:
        graph.links[count, :] = -1


@kernel
def explore(state: Any, graph: Any) -> Any:
    """Enter a state's whole component; returns the number of states, -1 if there are too many."""
    begin(state, graph)
    n, walls, linked = state[SIZE], state[WALLS], graph.links.shape[0] > 0
    movers, keys, names, links = graph.movers, graph.keys, graph.names, graph.links
    count, name = 1, 0
    while name < count:
        bits = occupied(walls, movers, graph.places[name])
        for link in range(2 * movers.shape[0]):
            k, sign = link >> 1, 1 - 2 * (link & 1)
            at = graph.places[name, k] + (movers[k, LENGTH] if sign > 0 else -1)
            if at < 0 or at >= n or (bits >> (movers[k, ORIGIN] + at * movers[k, STRIDE])) & 1:
                continue
            if linked and links[name, link] >= 0:
                continue
            slot = find(keys, graph.ranks[name] + sign * movers[k, WEIGHT])
            to = names[slot]
            if keys[slot] == FREE:
                if count == graph.ranks.shape[0]:
                    return -1
                enter(graph, count, name, k, sign, slot)
                to = count
                count += 1
            if linked:
                links[name, link], links[to, link ^ 1] = to, name
        name += 1
    return count


@kernel
def measure(state: Any, graph: Any, count: Any, cells: Any) -> Any:
    """Fill the cost of each of `count` explored states; returns how many can win: all or none.

    One breadth-first search from all won states at once; with `cells` the cost is in cells, else
    in slides.
    """
    last = state[SIZE] - RED_LENGTH
    tail = 0
    for name in range(count):
        graph.costs[name] = DEAD
        if graph.places[name, 0] == last:
            graph.costs[name] = 0
            graph.order[tail] = name
            tail += 1
    head = 0
    while head < tail:
        name = graph.order[head]
        if graph.links.shape[0]:
            tail = _relax_links(graph, name, tail, cells)
        else:
            tail = _relax_runs(state, graph, name, tail, cells)
        head += 1
    return tail


@kernel
def _relax_links(graph: Any, name: Any, tail: Any, cells: Any) -> Any:
    """Lower the costs of the states one slide (or cell) from `name`; returns the new tail.

    The states along a run of links are one slide apart from each other, so a run is left at the
    first state that is no dearer than `name`: its own run goes on from there.
    """
    costs, links, order = graph.costs, graph.links, graph.order
    cost = costs[name] + 1
    for link in range(links.shape[1]):
        to = links[name, link]
        while to >= 0 and costs[to] >= cost:
            if costs[to] > cost:
                costs[to] = cost
                order[tail] = to
                tail += 1
            to = -1 if cells else links[to, link]
    return tail


@kernel
def _relax_runs(state: Any, graph: Any, name: Any, tail: Any, cells: Any) -> Any:
    """The same without links."""
    bits = occupied(state[WALLS], graph.movers, graph.places[name])
    cost = graph.costs[name] + 1
    for link in range(2 * graph.movers.shape[0]):
        mover, sign = graph.movers[link >> 1], 1 - 2 * (link & 1)
        run = way(state[SIZE], bits, mover, np.int64(graph.places[name, link >> 1]), sign)
        for k in range(1, (min(run, 1) if cells else run) + 1):
            to = graph.names[find(graph.keys, graph.ranks[name] + k * sign * mover[WEIGHT])]
            if graph.costs[to] < cost:
                break
            if graph.costs[to] > cost:
                graph.costs[to] = cost
                graph.order[tail] = to
                tail += 1
    return tail


@kernel
def near(state: Any, graph: Any, depth: Any) -> Any:
    """Fewest slides to a win if at most `depth`, else `depth` + 1; DEAD if none was found.

    A breadth-first search from the state itself, cheap where a win is close. It gives up, saying
    `depth` + 1, where the graph has no room for more.
    """
    begin(state, graph)
    name, end = 0, 1
    for cost in range(1, depth + 1):
        count = end
        while name < end:
            count = _enter_runs(state, graph, name, count)
            if count < 0:
                return cost if count == WON else depth + 1
            name += 1
        if end == count:
            return DEAD
        end = count
    return depth + 1


@kernel
def _enter_runs(state: Any, graph: Any, name: Any, count: Any) -> Any:
    """Enter the states one slide from `name`; returns the new count, or WON, or -1 if no room."""
    n = state[SIZE]
    bits = occupied(state[WALLS], graph.movers, graph.places[name])
    for link in range(2 * graph.movers.shape[0]):
        mover, sign = graph.movers[link >> 1], 1 - 2 * (link & 1)
        place = np.int64(graph.places[name, link >> 1])
        run = way(n, bits, mover, place, sign)
        if link == 0 and place + run == n - RED_LENGTH:
            return WON
        for k in range(1, run + 1):
            slot = find(graph.keys, graph.ranks[name] + k * sign * mover[WEIGHT])
            if graph.keys[slot] == FREE:
                if count == graph.ranks.shape[0]:
                    return -1
                enter(graph, count, name, link >> 1, k * sign, slot)
                count += 1
    return count


@kernel
def smallest(graph: Any, count: Any) -> Any:
    """The number of the explored state with the smallest rank, as an unsigned number."""
    least = 0
    for name in range(1, count):
        if np.uint64(graph.ranks[name]) < np.uint64(graph.ranks[least]):
            least = name
    return least


@kernel
def moved(graph: Any, count: Any, moves: Any) -> None:
    """Mark in `moves` (bool, one per mover) those that are not in one place in all states."""
    for k in range(graph.movers.shape[0]):
        moves[k] = False
        for name in range(count):
            if graph.places[name, k] != graph.places[0, k]:
                moves[k] = True
                break


@kernel
def put(state: Any, graph: Any, name: Any) -> None:
    """Turn a state of the board into the explored one of that number."""
    pieces = room(state)
    for k in range(graph.movers.shape[0]):
        state[SHAPE + 2 * pieces + graph.movers[k, PIECE]] = graph.places[name, k]
    state[RANK] = graph.ranks[name]
    state[OCCUPIED] = occupied(state[WALLS], graph.movers, graph.places[name])
