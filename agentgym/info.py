"""The typed schema of `info` (DESIGN section 5)."""

from __future__ import annotations

import math
from typing import Any, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt


class Undetermined(np.float64):
    """nan that equals nan, so that two infos of one state compare equal.

    Gymnasium's `check_env` compares infos with `==`. In every other respect (arithmetic, `isnan`,
    stacking into float64 arrays, JSON, pickling) it is the float nan.
    """

    def __eq__(self, other: Any) -> Any:
        """True for every float nan."""
        return isinstance(other, float) and math.isnan(other)

    def __ne__(self, other: Any) -> Any:
        """The opposite of `==`."""
        return not self == other

    __hash__ = np.float64.__hash__


UNDETERMINED = Undetermined("nan")
"""In place of a number that the oracle did not determine."""


class MilestoneInfo(TypedDict):
    """`info["milestones"]`: which sub-goals are reached.

    Attributes:
        reached: Bool array, one per named milestone, in the card's order.
        new: Bool array: reached by the last action.
        count: How many are reached.
        total: How many there are in this instance.
    """

    reached: npt.NDArray[np.bool_]
    new: npt.NDArray[np.bool_]
    count: int
    total: int


class OracleInfo(TypedDict):
    """`info["oracle"]`: the truth about the state, never shown to a model.

    Attributes:
        cost_to_go: N(s): fewest further actions to a win; inf if proven dead, nan if undetermined.
        value: V(s), higher is better.
        action_values: Q(s, a) per action index, float64, -inf where illegal.
        best_actions: All optimal actions, canonical texts.
        progress: N(before) - N(now) for the last action; -N(before) for a step into a dead end
            (CAST's shifted advantage, arXiv 2607.25308); Q - V for score games; 0 at the start.
        dead_end: No win is possible from here.
        exact: Proven, not a bound or an estimate.
    """

    cost_to_go: float
    value: float
    action_values: NotRequired[npt.NDArray[np.float64]]
    best_actions: tuple[str, ...]
    progress: float
    dead_end: bool
    exact: bool


class Info(TypedDict):
    """`info`, as `reset` and `step` return it.

    Attributes:
        instance: Stable id: game, version, level, split, seed, hash of the canonical start state.
        turn: Actions taken so far.
        valid: The last action was understood and legal; True at the start.
        error: What was wrong with it, "" if nothing.
        action: Canonical text of the action executed, "" if none.
        legal_actions: Canonical texts.
        score: The game's own score.
        progress: 0 to 1; 1 only on success.
        success: Won.
        milestones: See `MilestoneInfo`.
        oracle: See `OracleInfo`; absent with `oracle=False`.
    """

    instance: str
    turn: int
    valid: bool
    error: str
    action: str
    legal_actions: tuple[str, ...]
    score: float
    progress: float
    success: bool
    milestones: MilestoneInfo
    oracle: NotRequired[OracleInfo]
