"""Players that are programs. They answer in the format that a model is asked for.

So their replies go through the same parser, and `--model oracle` also tests the way from a reply
to an action.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agentgym.chance import COUNTER, KEY
from agentgym.errors import InvalidOption
from agentgym.game import Game, State
from agentgym.setup import Setup
from harness import formats
from harness.models import Order, request_digest
from harness.request import Gauge, Reply, Request


class Player:
    """A model whose reply is one action, chosen by a function of the request.

    Attributes:
        name: As given to `--model`.
        concurrency: How many requests it serves well at once.
        settings: The seed, for `run.json`.
        gauge: Never moves.
    """

    def __init__(self, order: Order, choose: Callable[[Request], str]) -> None:
        """Take the name and seed from the order."""
        self.name = order.name
        self.concurrency = order.concurrency or os.cpu_count() or 1
        self.settings: dict[str, Any] = {"sampling": {"seed": order.sampling.seed}}
        self.gauge = Gauge()
        self._choose = choose

    async def reply(self, request: Request) -> Reply:
        """Answer with the chosen action, in the request's format.

        Raises:
            InvalidOption: The environment lacks what the choice needs.
        """
        return formats.write(request.format, self._choose(request))

    async def close(self) -> None:
        """Nothing to free."""


def load_oracle(order: Order) -> Player:
    """The best player: for 2048 the shipped value function, elsewhere what the card calls best."""
    return Player(order, best_action)


def best_action(request: Request) -> str:
    """The first of `info["oracle"]["best_actions"]`.

    Where the oracle knows none (a proven dead end, or a state beyond its budget) the first legal
    action is played.

    Raises:
        InvalidOption: The environment was made without an oracle, or lists no legal actions.
    """
    note = request.peek.info.get("oracle")
    if note is None:
        raise InvalidOption(
            "The model oracle plays what info['oracle'] says, and this environment was made "
            "with oracle=False; make it with oracle=True."
        )
    best: Sequence[str] = note["best_actions"] or _legal_actions(request, "oracle")
    return best[0]


def load_random(order: Order) -> Player:
    """The player that knows nothing: its score is what any model must beat."""

    def draw(request: Request) -> str:
        return random_action(request, order.sampling.seed)

    return Player(order, draw)


def random_action(request: Request, seed: int) -> str:
    """Any of the legal actions with equal chance.

    The draw depends on the run's seed and the request's key alone, so the same run gives the same
    play in any order and any process.

    Raises:
        InvalidOption: The environment lists no legal actions.
    """
    legal = _legal_actions(request, "random")
    rng = np.random.default_rng(np.random.SeedSequence(request_digest(seed, request.key)))
    return legal[int(rng.integers(len(legal)))]


def load_greedy(order: Order) -> Player:
    """The player that looks one step ahead; see `greedy_action` for what it peeks at."""

    def look(request: Request) -> str:
        return greedy_action(request, order.sampling.seed)

    return Player(order, look)


def greedy_action(request: Request, seed: int) -> str:
    """The legal action after which the public `info["score"]` is largest; the first one on a tie.

    It tries each action on a copy of the true state, so where the state hides something, it sees
    one step of that: in Minesweeper it never opens a mine while a safe cell is left. Chance to
    come is not peeked at: in games with chance the copy draws from another key than the episode.

    Raises:
        InvalidOption: The environment lists no legal actions, or is no native game.
    """
    env = request.peek.env.unwrapped
    setup, state = getattr(env, "setup", None), getattr(env, "state", None)
    if not isinstance(setup, Setup) or state is None:
        raise InvalidOption(
            f"The model greedy plays agentgym's native games only, got {type(env).__name__}; "
            "use another model there."
        )
    if setup.game.chance:
        state = _rekeyed(state, request_digest(seed, request.key))
    legal = _legal_actions(request, "greedy")
    index = {action: number for number, action in enumerate(setup.layout.actions)}
    scores = [_score_after(setup.game, state, index[action]) for action in legal]
    return legal[int(np.argmax(scores))]


def _score_after(game: Game, state: State, action: int) -> float:
    after = state.copy()
    game.step(after, action)
    return float(game.score(after))


def _rekeyed(state: State, digest: int) -> State:
    copied = state.copy()
    copied[KEY] = digest >> 65  # 63 bits, to fit int64
    copied[COUNTER] = 0
    return copied


def _legal_actions(request: Request, model: str) -> Sequence[str]:
    legal: Sequence[str] = request.peek.info.get("legal_actions", ())
    if not legal:
        raise InvalidOption(
            f"The model {model} chooses among info['legal_actions'], which are not listed here; "
            "use another model for this environment."
        )
    return legal


class Scripted:
    """Repeats recorded replies, for tests and for verification by replay.

    Attributes:
        name: "scripted".
        concurrency: 1.
        settings: Empty.
        gauge: Never moves.
    """

    def __init__(self, replies: Sequence[Reply | str]) -> None:
        """Keep one episode's replies, by turn."""
        self.name = "scripted"
        self.concurrency = 1
        self.settings: dict[str, Any] = {}
        self.gauge = Gauge()
        self._replies = [Reply(reply) if isinstance(reply, str) else reply for reply in replies]

    async def reply(self, request: Request) -> Reply:
        """The reply of the request's turn.

        Raises:
            InvalidOption: The record ends before this turn.
        """
        turn = request.key[2]
        if turn >= len(self._replies):
            raise InvalidOption(
                f"The episode asks for a reply at turn {turn}, but only {len(self._replies)} "
                "replies are recorded; the record is not of this episode."
            )
        return self._replies[turn]

    async def close(self) -> None:
        """Nothing to free."""
