"""Random play in bulk: returns, state values and action values of the random policy.

The engine of ProAct's MC-Critic (arXiv 2602.05327, section on the Monte-Carlo critic): M random
plays of at most T turns from a state, discounted, on one core and without Python in the loop. Each
play has a chance and a policy stream of its own, derived from `seed` and the play's number, so the
m-th play is the same whatever M is; the plays of different first actions share their streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agentgym.errors import InvalidOption, InvalidState
from agentgym.game import State
from agentgym.loops import Play, limits_of, loops_of
from agentgym.setup import Setup


@dataclass(frozen=True, kw_only=True)
class RandomPlay:
    """How to play.

    Attributes:
        plays: M, the number of plays.
        turns: T, the longest play, in turns.
        discount: Weight of the next turn's reward relative to this one's.
        dense: The game's own shaped reward, as ProAct uses it for Sokoban, not the sparse one.
        any_action: Draw from all actions, the illegal ones costing a turn and the dense penalty
            (as ProAct does), not uniformly from the legal ones.
        seed: Of the plays' chance and policy.
    """

    plays: int = 1000
    turns: int = 1000
    discount: float = 1.0
    dense: bool = False
    any_action: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            InvalidOption: A number out of range.
        """
        for name in ("plays", "turns"):
            if getattr(self, name) < 1:
                raise InvalidOption(f"{name} is at least 1, got {getattr(self, name)!r}.")
        if not 0 <= self.seed < 2**64:
            raise InvalidOption(f"seed is from 0 to 2^64 - 1, got {self.seed!r}.")
        if not 0.0 <= self.discount <= 1.0:
            raise InvalidOption(f"discount is from 0 to 1, got {self.discount!r}.")


class Plays(NamedTuple):
    """What came of the plays; every array has shape (plays,).

    Attributes:
        returns: Discounted sum of rewards.
        scores: The game's score at the end.
        successes: Won.
        turns: Turns played.
    """

    returns: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    successes: npt.NDArray[np.bool_]
    turns: npt.NDArray[np.int64]


class Estimate(NamedTuple):
    """A mean and its standard error.

    Attributes:
        mean: float64, shape () or (actions,); nan for an illegal first action.
        error: Standard error of the mean, same shape; nan for a single play.
    """

    mean: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]


def play_randomly(setup: Setup, state: State, how: RandomPlay, *, first: int = -1) -> Plays:
    """Play M times from a state, every action drawn at random but, if given, the first.

    Args:
        setup: `env.unwrapped.setup`.
        state: Where to start; it is not changed.
        how: Number of plays, their length, discount and reward.
        first: Index of the first action; -1 draws it too.

    Raises:
        InvalidState: The state has another shape or dtype than the game's.
        InvalidOption: There is no such first action.
    """
    layout = setup.layout
    if state.shape != (layout.state_size,) or state.dtype != np.int64:
        raise InvalidState(
            f"A state here is an int64 array of shape ({layout.state_size},), "
            f"got {state.dtype} of shape {state.shape}."
        )
    if not -1 <= first < len(layout.actions):
        raise InvalidOption(f"first is an action index below {len(layout.actions)}, got {first!r}.")
    play = Play(how.turns, how.dense, how.discount, how.any_action)
    limits = limits_of(setup.game, len(layout.actions), play)
    ends = np.empty((how.plays, 4))
    start = np.array(state)
    loops_of(setup.game).play_randomly(
        start, first, np.uint64(how.seed), limits, np.empty_like(start), ends
    )
    return Plays(ends[:, 0], ends[:, 1], ends[:, 2] != 0.0, ends[:, 3].astype(np.int64))


def state_value(setup: Setup, state: State, how: RandomPlay) -> Estimate:
    """V of the random policy: the mean return of M plays."""
    return _estimate(play_randomly(setup, state, how).returns)


def action_values(setup: Setup, state: State, how: RandomPlay) -> Estimate:
    """Q of the random policy per action index: the first action given, random play after it.

    An illegal first action has the value nan; with `any_action` it is played: it costs its turn.
    """
    actions = range(len(setup.layout.actions))
    played = [how.any_action or setup.game.legal(np.array(state), action) for action in actions]
    returns = np.full((len(played), how.plays), np.nan)
    for action in np.flatnonzero(played).tolist():
        returns[action] = play_randomly(setup, state, how, first=action).returns
    return _estimate(returns)


def _estimate(returns: npt.NDArray[np.float64]) -> Estimate:
    plays = returns.shape[-1]
    mean = returns.mean(axis=-1)
    spread = ((returns - mean[..., None]) ** 2).sum(axis=-1)
    if plays == 1:
        return Estimate(mean, np.full_like(mean, np.nan))
    return Estimate(mean, np.sqrt(spread / (plays - 1) / plays))
