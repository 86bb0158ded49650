"""One episode as plain synchronous code: a generator that asks for replies.

The same code serves evaluation, training, matches, and verification, where the replies are the
recorded ones. It knows no clock but the one that measures how long the game took, no network and
no other episode; `harness.scheduler` drives many at once.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import load_env_creator

import agentgym
from agentgym.env import TextGameEnv
from agentgym.errors import InvalidOption, UnknownName
from harness import endings, formats, prompts
from harness.conversation import Conversation
from harness.endings import Ending, Moment
from harness.formats import Extracted
from harness.prices import Price
from harness.prompts import Shown, Style
from harness.record import SPOILT, Episode, Note, Result, Start, Turn
from harness.request import Message, Model, Peek, Reply, Request, ToolCall
from harness.settings import Assignment, Settings

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
    "prepare",
]


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


def prepare(assignments: Iterable[Assignment]) -> None:
    """Take first steps, an illegal and a legal one, in each environment of the assignments.

    So rules are compiled, which happens once on a machine, before any model waits for them.

    Raises:
        AgentGymError: An environment cannot be made.
    """
    firsts = {(each.key.env_id, each.key.kwargs): each for each in reversed(list(assignments))}
    for first in firsts.values():
        env = make(first)
        _, info = env.reset(seed=first.key.seed)
        for action in ("", *info.get("legal_actions", ())[:1]):
            env.reset(seed=first.key.seed)  # The step before may have been the last one.
            env.step(action)
        env.close()


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
    price: Price | None = None,
) -> Generator[Request, Reply, Episode]:
    """Play one episode: yields a request, is sent the reply, returns the episode.

    A reply without an action costs a turn: the environment is given "" and says what it expects.

    Args:
        env: From `make`; not closed here.
        assignment: What to play, and how.
        model: Name for the record.
        sampling: For the record.
        price: Of the model's tokens; None where it is not known.
    """
    game = _Play(env, assignment, price)
    ending = None
    while ending is None:
        reply = yield from game.ask()
        ending = endings.refusal(reply) or game.take(reply)
    record = game.episode(ending)
    return record.model_copy(update={"model": model, "sampling": dict(sampling or {})})


class _Play:
    """An episode in the middle of being played."""

    def __init__(self, env: gym.Env[Any, Any], assignment: Assignment, price: Price | None) -> None:
        began = time.perf_counter()
        observation, info = env.reset(seed=assignment.key.seed)
        self._now = Moment(observation, info)
        self._start = _start(self._now, time.perf_counter() - began)
        self._env, self._assignment, self._price = env, assignment, price
        self._settings, self._style = assignment.settings, assignment.settings.style
        self._talk = Conversation(_system(env, self._style), self._style)
        self._turns: list[Turn] = []
        self._unchanged = False
        self._faults: dict[str, int] = {}

    def ask(self) -> Generator[Request, Reply, Reply]:
        """The reply of this turn; older turns are dropped from the prompt where that is asked."""
        reply = _clean((yield self._request()))
        dropping = self._settings.context_policy == "drop"
        while dropping and reply.stop_reason == "context" and self._talk.drop():
            reply = _together(reply, _clean((yield self._request())))
        self._faults = dict(reply.faults)
        return reply

    def _request(self) -> Request:
        left = self._settings.max_tokens
        if self._settings.episode_tokens is not None:
            left = min(left, self._settings.episode_tokens - endings.tokens_of(self._turns))
        rollout, turn = self._assignment.key.rollout, len(self._turns)
        # Else old turns would be kept until they left no room to reply, turn after turn.
        dropping = self._settings.context_policy == "drop" and self._talk.sent > 0
        return Request(
            self._talk.prompt(self._shown()),
            left,
            (str(self._now.info["instance"]), rollout, turn),
            Peek(self._env, dict(self._now.info)),
            tools=formats.find(self._style.format).tools,
            format=self._style.format,
            reserve=left if dropping else 0,
        )

    def _shown(self) -> Shown:
        return Shown(
            turn=len(self._turns),
            max_turns=_game(self._env).setup.max_turns,
            observation=self._now.observation,
            error=self._turns[-1].error if self._turns else "",
            unchanged=self._unchanged,
            legal_actions=tuple(self._now.info.get("legal_actions", ())),
        )

    def take(self, reply: Reply) -> Ending | None:
        """Play the action of a reply; the ending that this turn means, if it means one."""
        found = formats.extract(self._style.format, reply, lenient=self._style.lenient)
        before, began = self._now, time.perf_counter()
        observation, reward, terminated, truncated, info = self._env.step(found.action_text or "")
        seconds = time.perf_counter() - began
        self._now = Moment(observation, info, terminated, truncated)
        more = {
            "observation": before.observation,
            "error": self._error(found),
            "reward": float(reward),
            "asked": self._talk.asked,
            "sent": self._talk.sent,
            "dropped": self._talk.dropped,
            "cost": self._cost(reply),
            "seconds_game": seconds,
        }
        turn = Turn(**more, **_said(reply), **_done(found, info))
        self._turns.append(turn)
        self._talk.answered(reply)
        self._unchanged = turn.valid and before.observation == observation
        start, game = self._start, _game(self._env)
        return endings.after(self._turns, self._settings, start=start, now=self._now, game=game)

    def _error(self, found: Extracted) -> str:
        if found.problem:
            return formats.find(self._style.format).problems[found.problem]
        return str(self._now.info["error"])

    def _cost(self, reply: Reply) -> float | None:
        if self._price is None:
            return None
        if reply.cached:
            return 0.0
        return self._price.cost(reply.prompt_tokens, reply.completion_tokens)

    def episode(self, ending: Ending) -> Episode:
        """The record of the episode."""
        key, now = self._assignment.key, self._now
        made = gym.registry[key.env_id].kwargs
        refused = ending.result in SPOILT or ending.result is Result.CONTEXT_OVERFLOW
        return Episode(
            key=key,
            instance=now.info["instance"],
            level=json.loads(key.kwargs).get("level", made.get("level", "")),
            env_version=agentgym.__version__,
            prompt_hash=prompts.prompt_hash(self._style),
            format=self._style.format,
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
            system=self._talk.system,
            start=self._start,
            turns=tuple(self._turns),
            final_observation=now.observation,
            faults=self._faults if refused else {},
        )


def _system(env: gym.Env[Any, Any], style: Style) -> str:
    setup = _game(env).setup
    instructions = setup.game.instructions(setup.options, setup.layout)
    return prompts.system(instructions, style, example=setup.layout.actions[0])


def _game(env: gym.Env[Any, Any]) -> TextGameEnv:
    return cast(TextGameEnv, env.unwrapped)


def _together(refused: Reply, reply: Reply) -> Reply:
    """A reply with what was spent on the refusal before it."""
    waited = refused.seconds_waiting + refused.seconds_generating
    return replace(
        reply,
        seconds_waiting=waited + reply.seconds_waiting,
        retries=refused.retries + reply.retries,
        faults=Counter(refused.faults) + Counter(reply.faults),
    )


def _said(reply: Reply) -> dict[str, Any]:
    """The fields of a turn that come from the reply."""
    return {
        "reply": reply.text,
        "reasoning": reply.reasoning,
        "stop_reason": reply.stop_reason,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "retries": reply.retries,
        "tool_calls": tuple(tuple(call) for call in reply.tool_calls),
        "faults": dict(reply.faults),
        "cached": reply.cached,
        "prompt_ids": reply.prompt_ids,
        "completion_ids": reply.completion_ids,
        "logprobs": reply.logprobs,
        "seconds_waiting": reply.seconds_waiting,
        "seconds_generating": reply.seconds_generating,
    }


def _done(found: Extracted, info: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a turn that come from the action and what became of it."""
    return {
        "attempt": found.action_text or "",
        "problem": found.problem,
        "strict": found.strict,
        "action": info["action"],
        "valid": info["valid"],
        "score": info["score"],
        "progress": info["progress"],
        "success": info["success"],
        "milestones": _indices(info, "new"),
        "note": _note(info),
    }


def _clean(reply: Reply) -> Reply:
    """The reply with texts that a file can hold."""
    calls = (ToolCall(_writable(call.name), _writable(call.arguments)) for call in reply.tool_calls)
    text, reasoning = _writable(reply.text), _writable(reply.reasoning)
    return replace(reply, text=text, reasoning=reasoning, tool_calls=tuple(calls))


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


def _start(begun: Moment, seconds: float) -> Start:
    return Start(
        observation=begun.observation,
        score=begun.info["score"],
        progress=begun.info["progress"],
        milestones=_indices(begun.info, "reached"),
        note=_note(begun.info),
        seconds_game=seconds,
    )
