"""The generic loops: batch step, observation, masks, milestones and random play, for every game.

Each is a plain template over the rule names below; `loops_of` compiles a copy per game with the
names bound to that game's kernels, so that the rules exist once and no call goes through Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from agentgym.chance import COUNTER, KEY, below, bits, mix, rekey
from agentgym.game import Game
from agentgym.kernels import Kernel, kernel, specialise

# Bound to a game's kernels by `specialise`.
step: Any = None
legal: Any = None
terminal: Any = None
success: Any = None
score: Any = None
progress: Any = None
observe: Any = None
reached: Any = None

REWARD, SCORE, PROGRESS = 0, 1, 2
"""Columns of the float64 output of `advance`."""
VALID, TERMINATED, SUCCESS, TRUNCATED = 0, 1, 2, 3
"""Columns of the bool output of `advance`; the last only where there is a turn limit."""
TURN, OVER, CURSOR = 0, 1, 2
"""Columns of a vector environment's slots: turns taken, episode over, next instance of the pool."""
TURNS, ACTIONS, SCORED, DENSE, INVALID, DISCOUNT, ANY_ACTION = range(7)
"""Fields of `limits`, see `limits_of`."""


@dataclass(frozen=True)
class Play:
    """How turns are limited and rewarded.

    Attributes:
        max_turns: Turn limit.
        dense: The game's own shaped reward, not the sparse one.
        discount: Weight of the next turn's reward relative to this one's.
        any_action: Random play draws from all actions, not only from the legal ones.
    """

    max_turns: int
    dense: bool = False
    discount: float = 1.0
    any_action: bool = False


def limits_of(game: Game, actions: int, play: Play) -> npt.NDArray[np.float64]:
    """A `Play` as the float64 array that the loops read."""
    return np.array(
        [
            play.max_turns,
            actions,
            game.scored,
            play.dense,
            game.invalid_reward,
            play.discount,
            play.any_action,
        ],
        np.float64,
    )


@kernel
def reward_of(limits: Any, gain: Any, points: Any, first_win: Any) -> Any:
    """The reward of one turn: `gain` is the dense one, nan if invalid; `points` gained in score."""
    if limits[DENSE] != 0.0:
        return limits[INVALID] if np.isnan(gain) else gain
    if limits[SCORED] != 0.0:
        return points
    return 1.0 if first_win else 0.0


@dataclass(frozen=True)
class Loops:
    """The compiled loops of one game; see the templates of the same names."""

    describe: Kernel
    observe_all: Kernel
    legal_masks: Kernel
    reach_all: Kernel
    advance: Kernel
    restart: Kernel
    play_randomly: Kernel


@cache
def loops_of(game: Game) -> Loops:
    """The loops of a game; each is compiled, or read from the cache on disk, at its first call."""
    rules = {
        "step": game.step,
        "legal": game.legal,
        "terminal": game.terminal,
        "success": game.success,
        "score": game.score,
        "progress": game.progress,
        "observe": game.observe,
        "reached": game.reached,
    }
    label = game.name.replace(".", "_")
    return Loops(
        describe=specialise(_describe, label, **rules),
        observe_all=specialise(_observe_all, label, **rules),
        legal_masks=specialise(_legal_masks, label, **rules),
        reach_all=specialise(_reach_all, label, **rules),
        advance=specialise(_advance, label, **rules),
        restart=specialise(_restart, label, **rules),
        play_randomly=specialise(_play_randomly, label, **rules),
    )


def _describe(states: Any, numbers: Any, flags: Any) -> None:
    """Fill score, progress, terminated and success of each state."""
    for i in range(states.shape[0]):
        state = states[i]
        numbers[i, SCORE] = score(state)
        numbers[i, PROGRESS] = progress(state)
        flags[i, TERMINATED] = terminal(state)
        flags[i, SUCCESS] = success(state)


def _observe_all(states: Any, grids: Any) -> None:
    """Fill the grid observation (n, rows, cols) of each state."""
    for i in range(states.shape[0]):
        observe(states[i], grids[i])


def _legal_masks(states: Any, masks: Any) -> None:
    """Fill the mask (n, actions) of legal actions; none is legal after the end."""
    for i in range(states.shape[0]):
        over = terminal(states[i])
        for action in range(masks.shape[1]):
            masks[i, action] = (not over) and legal(states[i], action)


def _reach_all(states: Any, starts: Any, dead_ends: Any, held: Any, new: Any) -> Any:
    """Add the milestones that each state reaches to `held`, mark those in `new`; count `held`."""
    count = 0
    for i in range(states.shape[0]):
        for k in range(held.shape[1]):
            new[i, k] = held[i, k]
        reached(states[i], starts[i], dead_ends[i], held[i])
        for k in range(held.shape[1]):
            new[i, k] = held[i, k] and not new[i, k]
            count += held[i, k]
    return count


def _advance(states: Any, actions: Any, slots: Any, limits: Any, numbers: Any, flags: Any) -> None:
    """Play one action in each episode that runs, in place; those that are over stay as they are.

    An action outside [0, actions) is none: it costs a turn and changes nothing. `slots` (n, 3) =
    [turn, over, cursor]; `limits` see `limits_of`; the first column of `numbers` is the reward of
    the chosen kind; the columns of `flags` are valid, terminated, success, truncated.
    """
    for i in range(states.shape[0]):
        numbers[i, REWARD] = 0.0
        flags[i, VALID] = False
        if slots[i, OVER]:
            continue
        state = states[i]
        won, points = flags[i, SUCCESS], numbers[i, SCORE]
        known = 0 <= actions[i] < limits[ACTIONS]
        gain = step(state, actions[i]) if known else np.nan
        slots[i, TURN] += 1
        if not np.isnan(gain):
            flags[i, VALID] = True
            numbers[i, SCORE] = score(state)
            numbers[i, PROGRESS] = progress(state)
            flags[i, TERMINATED] = terminal(state)
            flags[i, SUCCESS] = success(state)
        first_win = flags[i, SUCCESS] and not won
        numbers[i, REWARD] = reward_of(limits, gain, numbers[i, SCORE] - points, first_win)
        flags[i, TRUNCATED] = slots[i, TURN] >= limits[TURNS] and not flags[i, TERMINATED]
        slots[i, OVER] = flags[i, TERMINATED] or flags[i, TRUNCATED]


def _restart(states: Any, who: Any, pool: Any, slots: Any, numbers: Any, flags: Any) -> None:
    """Begin the next instance of the pool in each slot where `who` is set.

    Slot i plays the pool's instances i, i + n, i + 2n, ... of n slots, round and round; from the
    second round on, chance has another future.
    """
    for i in range(states.shape[0]):
        if not who[i]:
            continue
        start = pool[slots[i, CURSOR] % pool.shape[0]]
        state = states[i]
        for k in range(state.shape[0]):
            state[k] = start[k]
        if slots[i, CURSOR] >= pool.shape[0] and state[KEY] != 0:
            rekey(state, slots[i, CURSOR] // pool.shape[0])
        slots[i, CURSOR] += states.shape[0]
        slots[i, TURN] = 0
        slots[i, OVER] = False
        numbers[i, REWARD] = 0.0
        numbers[i, SCORE] = score(state)
        numbers[i, PROGRESS] = progress(state)
        flags[i, VALID] = True
        flags[i, TERMINATED] = False
        flags[i, SUCCESS] = success(state)
        flags[i, TRUNCATED] = False


def _play_randomly(start: Any, first: Any, key: Any, limits: Any, work: Any, ends: Any) -> None:
    """Play `len(ends)` random episodes from `start`, each with a future of its own.

    `first` >= 0 is the first action of each; the others are uniform over the legal actions, or
    over all if `limits[ANY_ACTION]`. `ends` (n, 4) = [discounted return, score, success, turns].
    """
    for m in range(ends.shape[0]):
        branch = bits(key, m)
        for k in range(start.shape[0]):
            work[k] = start[k]
        work[KEY] = np.int64(mix(np.uint64(work[KEY]) ^ branch))
        work[COUNTER] = 0
        policy = mix(branch)
        draws, turn, total, weight = 0, 0, 0.0, 1.0
        won, points = success(work), score(work)
        while turn < limits[TURNS] and not terminal(work):
            gain = np.nan
            if turn == 0 and first >= 0:
                gain = step(work, first)
            else:
                while np.isnan(gain):
                    gain = step(work, below(bits(policy, draws), np.int64(limits[ACTIONS])))
                    draws += 1
                    if limits[ANY_ACTION] != 0.0:
                        break
            now_won, now_points = success(work), score(work)
            total += weight * reward_of(limits, gain, now_points - points, now_won and not won)
            won, points = now_won, now_points
            weight *= limits[DISCOUNT]
            turn += 1
        ends[m, 0], ends[m, 1], ends[m, 2], ends[m, 3] = total, score(work), success(work), turn
