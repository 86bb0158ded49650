"""One episode as plain synchronous code: a generator that asks for replies.

The same code serves evaluation, training, matches, and verification, where the replies are the
recorded ones. It knows no clock but the one that measures how long the game took, no network and
no other episode; `harness.scheduler` drives many at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import load_env_creator

import agentgym
from agentgym.env import TextGameEnv
from agentgym.errors import InvalidOption, UnknownName
from harness import prompts
from harness.prompts import Exchange, Shown, Style
from harness.record import Episode, Key, Note, Result, Start, Turn
from harness.request import Message, Model, Peek, Reply, Request

__all__ = [
    "Assignment",
    "Message",
    "Model",
    "Peek",
    "Reply",
    "Request",
    "Settings",
    "make",
    "play",
]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How an episode is played, whoever plays it.

    Attributes:
        style: Of the prompt: the history that is sent, and the like.
        max_tokens: Upper limit of one reply, in tokens.
        max_turns: Turn limit in place of the environment's own; None keeps that.
        max_invalid: So many turns in a row without a valid action end the episode with
            `step_limit`; None lets it go on.
        max_unparseable: So many replies in a row without an action end it with `unparseable` or
            `output_truncated`; None lets it go on.
        episode_tokens: Reply tokens of a whole episode, after which it ends with `budget`; None for
            no limit. Replies of a backend that does not count tokens cost none.
        end_on_dead_end: A proven dead end ends it with `dead_end`.
    """

    style: Style = field(default_factory=Style)
    max_tokens: int = 1024
    max_turns: int | None = None
    max_invalid: int | None = None
    max_unparseable: int | None = None
    episode_tokens: int | None = None
    end_on_dead_end: bool = False

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InvalidOption: One is below 1.
        """
        for name in ("max_tokens", "max_turns", "max_invalid", "max_unparseable", "episode_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidOption(f"{name} is at least 1, got {value!r}.")


@dataclass(frozen=True)
class Assignment:
    """An episode to be played.

    Attributes:
        key: Which one of the run.
        settings: How.
    """

    key: Key
    settings: Settings


class _Ending(NamedTuple):
    result: Result
    error: str = ""


class _Moment(NamedTuple):
    """What the environment returned last; the flags are False at the start."""

    observation: str
    info: Mapping[str, Any]
    terminated: bool = False
    truncated: bool = False


def make(assignment: Assignment) -> gym.Env[Any, Any]:
    """The environment of an assignment.

    Raises:
        UnknownName: The id is not registered; the message offers the nearest.
        InvalidOption: The environment is none of agentgym's, or an argument cannot be.
    """
    key = assignment.key
    check_id(key.env_id)
    kwargs = json.loads(key.kwargs) | {"split": key.split}
    if assignment.settings.max_turns is not None:
        kwargs["max_turns"] = assignment.settings.max_turns
    return gym.make(key.env_id, disable_env_checker=True, **kwargs)


def check_id(env_id: str) -> None:
    """Refuse an id that the harness cannot play.

    Raises:
        UnknownName: It is not registered; the message offers the nearest.
        InvalidOption: The environment is none of agentgym's.
    """
    if env_id not in gym.registry:
        known = (known for known in gym.registry if known.startswith("agentgym/"))
        raise UnknownName.of("environment", env_id, known)
    entry = gym.registry[env_id].entry_point
    made = load_env_creator(entry) if isinstance(entry, str) else entry
    if not (isinstance(made, type) and issubclass(made, TextGameEnv)):
        raise InvalidOption(
            f"{env_id} is none of agentgym's environments, whose ids begin with agentgym/; its "
            "info holds none of what the record needs."
        )


def play(
    env: gym.Env[Any, Any],
    assignment: Assignment,
    *,
    model: str = "",
    sampling: Mapping[str, Any] | None = None,
) -> Generator[Request, Reply, Episode]:
    """Play one episode: yields a request, is sent the reply, returns the episode.

    A reply without an action costs a turn: the environment is given "" and says what it expects.

    Args:
        env: From `make`; not closed here.
        assignment: What to play, and how.
        model: Name for the record.
        sampling: For the record.
    """
    started = time.perf_counter()
    observation, info = env.reset(seed=assignment.key.seed)
    now = _Moment(observation, info)
    start = _start(now, time.perf_counter() - started)
    talk = _Talk(env, assignment.settings.style)
    turns: list[Turn] = []
    ending = None
    while ending is None:
        request = _request(assignment, turns, talk.prompt(now, turns), Peek(env, dict(now.info)))
        reply = yield request
        ending = _refusal(reply)
        if ending is None:
            before = now
            turn, now = _take_turn(env, before, reply, assignment.settings.style)
            turns.append(turn)
            talk.note(turn, before.observation == now.observation)
            ending = _ending(turns, now, assignment.settings, env)
    record = _episode(assignment, start, now, turns, ending)
    return record.model_copy(update={"model": model, "sampling": dict(sampling or {})})


class _Talk:
    """The conversation so far, as the prompt needs it."""

    def __init__(self, env: gym.Env[Any, Any], style: Style) -> None:
        game = _game(env)
        setup = game.setup
        instructions = setup.game.instructions(setup.options, setup.layout)
        self._system = prompts.system(instructions, setup.layout.actions[0])
        self._max_turns = setup.max_turns
        self._style = style
        self._past: list[Exchange] = []
        self._user = ""
        self._unchanged = False

    def prompt(self, now: _Moment, turns: Sequence[Turn]) -> tuple[Message, ...]:
        """The prompt for the next turn."""
        last = turns[-1] if turns else None
        shown = Shown(
            turn=len(turns),
            max_turns=self._max_turns,
            observation=now.observation,
            error=_feedback(last) if last else "",
            unchanged=self._unchanged,
            legal_actions=tuple(now.info.get("legal_actions", ())),
        )
        self._user = (prompts.later if last else prompts.first)(shown, self._style)
        return prompts.messages(self._system, self._past, self._user, self._style)

    def note(self, turn: Turn, unchanged: bool) -> None:
        """Take in a turn that is over."""
        self._past.append(Exchange(self._user, turn.reply))
        self._unchanged = turn.valid and unchanged


def _feedback(turn: Turn) -> str:
    return prompts.PROBLEMS[turn.problem] if turn.problem else turn.error


def _game(env: gym.Env[Any, Any]) -> TextGameEnv:
    return cast(TextGameEnv, env.unwrapped)


def _request(
    assignment: Assignment, turns: Sequence[Turn], messages: tuple[Message, ...], peek: Peek
) -> Request:
    settings, key = assignment.settings, assignment.key
    left = settings.max_tokens
    if settings.episode_tokens is not None:
        left = min(left, settings.episode_tokens - _spent(turns))
    return Request(messages, left, (str(peek.info["instance"]), key.rollout, len(turns)), peek)


def _spent(turns: Sequence[Turn]) -> int:
    return sum(turn.completion_tokens or 0 for turn in turns)


def _refusal(reply: Reply) -> _Ending | None:
    """The ending that a reply without content means."""
    if reply.stop_reason == "context":
        return _Ending(Result.CONTEXT_OVERFLOW, reply.error)
    if reply.stop_reason == "provider_error":
        return _Ending(Result.PROVIDER_ERROR, reply.error)
    if reply.stop_reason == "cost_limit":
        return _Ending(Result.COST_LIMIT, reply.error)
    return None


def _take_turn(
    env: gym.Env[Any, Any], before: _Moment, reply: Reply, style: Style
) -> tuple[Turn, _Moment]:
    text = _writable(reply.text)
    found = prompts.extract(text, lenient=style.lenient)
    begun = time.perf_counter()
    observation, reward, terminated, truncated, info = env.step(found.action_text or "")
    seconds = time.perf_counter() - begun
    now = _Moment(observation, info, terminated, truncated)
    turn = Turn(
        observation=before.observation,
        reply=text,
        reasoning=_writable(reply.reasoning),
        attempt=found.action_text or "",
        problem=found.problem,
        strict=found.strict,
        action=info["action"],
        valid=info["valid"],
        error=info["error"],
        reward=float(reward),
        score=info["score"],
        progress=info["progress"],
        success=info["success"],
        milestones=_indices(info, "new"),
        note=_note(info),
        stop_reason=reply.stop_reason,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        retries=reply.retries,
        tool_calls=tuple((call.name, call.arguments) for call in reply.tool_calls),
        faults=dict(reply.faults),
        cached=reply.cached,
        prompt_ids=reply.prompt_ids,
        completion_ids=reply.completion_ids,
        logprobs=reply.logprobs,
        seconds_waiting=reply.seconds_waiting,
        seconds_generating=reply.seconds_generating,
        seconds_game=seconds,
    )
    return turn, now


def _writable(text: str) -> str:
    """Half a surrogate pair, which no UTF-8 file can hold, as U+FFFD; all else stays as it is."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _indices(info: Mapping[str, Any], which: str) -> tuple[int, ...]:
    return tuple(np.flatnonzero(info["milestones"][which]).tolist())


def _note(info: Mapping[str, Any]) -> Note | None:
    oracle = info.get("oracle")
    if oracle is None:
        return None
    return Note(
        cost_to_go=float(oracle["cost_to_go"]),
        value=float(oracle["value"]),
        progress=float(oracle["progress"]),
        dead_end=bool(oracle["dead_end"]),
        exact=bool(oracle["exact"]),
        best_actions=tuple(oracle["best_actions"]),
    )


def _ending(
    turns: Sequence[Turn], now: _Moment, settings: Settings, env: gym.Env[Any, Any]
) -> _Ending | None:
    """The ending that the last turn means, None if the episode goes on."""
    dead_end = bool(turns[-1].note and turns[-1].note.dead_end)
    if now.terminated:
        return _own_end(turns[-1], env)
    if now.truncated:
        return _Ending(Result.STEP_LIMIT)
    if dead_end and settings.end_on_dead_end:
        return _Ending(Result.DEAD_END)
    if settings.episode_tokens is not None and _spent(turns) >= settings.episode_tokens:
        return _Ending(Result.BUDGET, f"{settings.episode_tokens} reply tokens were spent.")
    return _unparseable(turns, settings.max_unparseable) or _stuck(turns, settings.max_invalid)


def _own_end(turn: Turn, env: gym.Env[Any, Any]) -> _Ending:
    game = _game(env)
    if turn.success:
        return _Ending(Result.WON)
    # An environment made with end_on_dead_end=True ends where the game itself would go on.
    return _Ending(Result.LOST if game.setup.game.terminal(game.state.copy()) else Result.DEAD_END)


def _unparseable(turns: Sequence[Turn], limit: int | None) -> _Ending | None:
    last = turns[-limit:] if limit else ()
    if limit is None or len(last) < limit or not all(turn.problem for turn in last):
        return None
    cut = all(turn.stop_reason == "length" for turn in last)
    result = Result.OUTPUT_TRUNCATED if cut else Result.UNPARSEABLE
    return _Ending(result, f"{limit} replies in a row had no action.")


def _stuck(turns: Sequence[Turn], limit: int | None) -> _Ending | None:
    last = turns[-limit:] if limit else ()
    if limit is None or len(last) < limit or any(turn.valid for turn in last):
        return None
    return _Ending(Result.STEP_LIMIT, f"{limit} turns in a row had no valid action.")


def _episode(
    assignment: Assignment, start: Start, now: _Moment, turns: Sequence[Turn], ending: _Ending
) -> Episode:
    spec = gym.registry[assignment.key.env_id]
    level = json.loads(assignment.key.kwargs).get("level", spec.kwargs.get("level", ""))
    return Episode(
        key=assignment.key,
        instance=now.info["instance"],
        level=level,
        env_version=agentgym.__version__,
        prompt_hash=prompts.prompt_hash(assignment.settings.style),
        model="",
        result=ending.result,
        error=ending.error,
        success=now.info["success"],
        terminated=now.terminated,
        truncated=now.truncated,
        score=now.info["score"],
        progress=now.info["progress"],
        milestones=now.info["milestones"]["count"],
        milestone_total=now.info["milestones"]["total"],
        start=start,
        turns=tuple(turns),
        final_observation=now.observation,
    )


def _start(begun: _Moment, seconds: float) -> Start:
    return Start(
        observation=begun.observation,
        score=begun.info["score"],
        progress=begun.info["progress"],
        milestones=_indices(begun.info, "reached"),
        note=_note(begun.info),
        seconds_game=seconds,
    )
