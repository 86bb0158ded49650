"""What each game must satisfy; third parties check theirs with the same function.

from agentgym.contract import check_game
check_game("my_package.my_game", seeds=range(5))
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from agentgym.env import TextGameEnv
from agentgym.errors import AgentGymError
from agentgym.game import NoSolution, ParseError, State
from agentgym.setup import Setup
from agentgym.splits import split_of

_NONSENSE = ("", " ", "\n", "\x00", "up up down", "🎲", "[" * 50, "1e999", "-1", "None")
_MAX_TURNS = 200
"""Longest play of a check; games of chance can go on for thousands of turns."""


class ContractBroken(AgentGymError):
    """A game does not do what `agentgym.game.Game` promises."""


def check_game(game: str, *, seeds: Iterable[int] = range(3), **arguments: Any) -> None:
    """Play instances of a game and check what every game promises.

    Args:
        game: As for `TextGameEnv`.
        seeds: Instances to check.
        **arguments: As for `TextGameEnv`.

    Raises:
        ContractBroken: With the promise, the instance and what was found.
    """
    env = TextGameEnv(game, **arguments)
    for seed in seeds:
        for check in (_check_start, _check_texts, _check_play, _check_copies, _check_oracle):
            check(env, seed)


def _require(holds: bool, promise: str, env: TextGameEnv, seed: int) -> None:
    if not holds:
        title, options = env.setup.game.title, env.setup.options
        raise ContractBroken(f"{title} with {options}, seed {seed}: {promise}")


def _check_start(env: TextGameEnv, seed: int) -> None:
    """The start is an unfinished instance of the asked split with the layout's shapes."""
    _, info = env.reset(seed=seed)
    setup, start = env.setup, env.state
    game, layout = setup.game, setup.layout
    _require(start.shape == (layout.state_size,), "the start has the layout's size", env, seed)
    _require(not game.terminal(np.array(start)), "a start is not the end", env, seed)
    _require(not info["success"] and info["progress"] < 1, "a start is not won", env, seed)
    reached = info["milestones"]["reached"]
    _require(reached.shape == (len(layout.milestones),), "one flag per milestone", env, seed)
    if not setup.starts:
        canonical = game.canonical(np.array(start))
        split = setup.common.split
        _require(split_of(canonical) == split, f"the instance is of the split {split}", env, seed)


def _check_texts(env: TextGameEnv, seed: int) -> None:
    """Action texts are understood as themselves, nonsense never, and neither raises."""
    env.reset(seed=seed)
    setup = env.setup
    for action, text in enumerate(setup.layout.actions):
        for spelling in (text, text.upper(), f" [{text}] ", f"`{text}`"):
            parsed = setup.game.parse(spelling, setup.layout, setup.options)
            _require(parsed == action, f"{spelling!r} means {text!r}", env, seed)
    for text in _NONSENSE:
        parsed = setup.game.parse(text, setup.layout, setup.options)
        _require(isinstance(parsed, ParseError), f"{text!r} is no action", env, seed)


def _check_play(env: TextGameEnv, seed: int) -> None:
    """Legal means that `step` plays it; what is not legal changes nothing and is explained."""
    game, layout = env.setup.game, env.setup.layout
    _, info = env.reset(seed=seed)
    rng = np.random.Generator(np.random.PCG64(seed))
    over, turn, reached = False, 0, info["milestones"]["reached"]
    while not over and turn < _MAX_TURNS:
        state = env.state
        _check_actions(env, seed, state)
        legal = [layout.actions[a] for a in range(len(layout.actions)) if game.legal(state, a)]
        _require(info["legal_actions"] == tuple(legal), "info lists what is legal", env, seed)
        text = legal[rng.integers(len(legal))]
        _, _, terminated, truncated, info = env.step(text if _is_text(env) else _index(env, text))
        turn, over = turn + 1, terminated or truncated
        _require(info["turn"] == turn and info["valid"], "a legal action is valid", env, seed)
        _require((info["progress"] == 1) == info["success"], "progress 1 is success", env, seed)
        now = info["milestones"]["reached"]
        _require(bool((now | ~reached).all()), "a milestone stays reached", env, seed)
        reached = now


def _check_actions(env: TextGameEnv, seed: int, state: State) -> None:
    game, layout, options = env.setup.game, env.setup.layout, env.setup.options
    for action in range(len(layout.actions)):
        after = np.array(state)
        refused = bool(np.isnan(game.step(after, action)))
        text = layout.actions[action]
        agree = refused != bool(game.legal(np.array(state), action))
        _require(agree, f"legal and step agree on {text!r}", env, seed)
        if refused:
            _require((after == state).all().item(), f"illegal {text!r} changes nothing", env, seed)
            why = game.explain(np.array(state), action, layout, options)
            _require(bool(why), f"illegal {text!r} is explained", env, seed)


def _is_text(env: TextGameEnv) -> bool:
    return env.setup.common.action == "text"


def _index(env: TextGameEnv, text: str) -> int:
    return env.setup.layout.actions.index(text)


def _check_copies(env: TextGameEnv, seed: int) -> None:
    """A clone, a pickle and an environment set to the state all go on as the original does."""
    env.reset(seed=seed)
    rng = np.random.Generator(np.random.PCG64(seed))
    if any(turn[2] or turn[3] for turn in _play(env, rng, 5)):
        return
    other = TextGameEnv(env.setup.name, **_arguments(env.setup))
    other.reset(seed=seed)
    other.set_state(env.state, turn=int(env.set_state(env.state)["turn"]))
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), other]
    futures = [_play(one, np.random.Generator(np.random.PCG64(7)), 20) for one in (env, *copies)]
    for future in futures[1:]:
        _require(future == futures[0], "copies go on identically", env, seed)


def _arguments(setup: Setup) -> dict[str, Any]:
    return {**vars(setup.common), **vars(setup.options), "max_turns": setup.max_turns}


def _play(env: TextGameEnv, rng: np.random.Generator, turns: int) -> list[Any]:
    """Random actions, legal or not; what can be compared of what came of them."""
    seen: list[Any] = []
    for _ in range(turns):
        action = int(rng.integers(len(env.setup.layout.actions)))
        text = env.setup.layout.actions[action]
        observation, reward, terminated, truncated, info = env.step(
            text if _is_text(env) else action
        )
        seen.append((str(observation), reward, terminated, truncated, repr(info)))
        if terminated or truncated:
            break
    return seen


def _check_oracle(env: TextGameEnv, seed: int) -> None:
    """Following the best actions wins in exactly N(start) turns, N falling by one each turn."""
    env.reset(seed=seed)
    note = env.oracle.note(env.state)
    shortest = note.exact and np.isfinite(note.cost_to_go) and not env.setup.game.scored
    if not shortest or env.setup.game.chance:
        return
    plan = _attempt(lambda: env.oracle.solve(env.state))
    _require(plan is not None, "an instance is winnable", env, seed)
    state, left = np.array(env.state), note.cost_to_go
    _require(left <= env.setup.max_turns, "the optimum is within the turn limit", env, seed)
    for action in plan or []:
        honest = env.setup.game.peeks or bool(note.best[action])
        _require(honest, "a plan takes best actions", env, seed)
        env.setup.game.step(state, action)
        note, left = env.oracle.note(state), left - 1
        _require(note.cost_to_go == left, "N falls by one each turn of a plan", env, seed)
    _require(bool(env.setup.game.success(state)), "a plan ends in a win", env, seed)


def _attempt(solve: Callable[[], list[int]]) -> list[int] | None:
    try:
        return solve()
    except NoSolution:
        return None
