"""Why an episode ends, of all reasons the one that counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agentgym.env import TextGameEnv
from harness.record import Result, Start, Turn
from harness.request import Reply
from harness.settings import Settings

_REFUSALS = {
    "context": Result.CONTEXT_OVERFLOW,
    "provider_error": Result.PROVIDER_ERROR,
    "cost_limit": Result.COST_LIMIT,
}


class Moment(NamedTuple):
    """What the environment returned last; the flags are False at the start.

    Attributes:
        observation: The state as text.
        info: As the environment gave it.
        terminated: The game ended by itself.
        truncated: The environment's turn limit ended it.
    """

    observation: str
    info: Mapping[str, Any]
    terminated: bool = False
    truncated: bool = False


class Ending(NamedTuple):
    """How an episode ended.

    Attributes:
        result: Of the episode.
        error: One sentence where the result is a limit or an error that has more to say.
    """

    result: Result
    error: str = ""


def refusal(reply: Reply) -> Ending | None:
    """The ending that a reply without content means; None if it has content."""
    result = _REFUSALS.get(reply.stop_reason)
    return None if result is None else Ending(result, reply.error)


def after(
    turns: Sequence[Turn], settings: Settings, *, start: Start, now: Moment, game: TextGameEnv
) -> Ending | None:
    """The ending that the last turn means, None if the episode goes on.

    The game's own end comes first, then the limits.

    Args:
        turns: At least one.
        settings: With the limits.
        start: Of the episode.
        now: After the last turn.
        game: The environment.
    """
    last = turns[-1]
    if now.terminated:
        return _own_end(last, game)
    if now.truncated:
        return Ending(Result.STEP_LIMIT)
    if settings.end_on_dead_end and last.note is not None and last.note.dead_end:
        return Ending(Result.DEAD_END)
    return (
        _spent(turns, settings, start)
        or _unparseable(turns, settings.max_unparseable)
        or _stuck(turns, settings.max_invalid)
    )


def _own_end(turn: Turn, game: TextGameEnv) -> Ending:
    if turn.success:
        return Ending(Result.WON)
    # An environment made with end_on_dead_end=True ends where the game itself would go on.
    return Ending(Result.LOST if game.setup.game.terminal(game.state.copy()) else Result.DEAD_END)


def _spent(turns: Sequence[Turn], settings: Settings, start: Start) -> Ending | None:
    tokens, seconds = settings.episode_tokens, settings.episode_seconds
    if tokens is not None and tokens_of(turns) >= tokens:
        return Ending(Result.BUDGET, f"{tokens} reply tokens were spent.")
    if seconds is not None and seconds_of(start, turns) >= seconds:
        return Ending(Result.TIME_LIMIT, f"{seconds:g} seconds were spent.")
    return None


def tokens_of(turns: Sequence[Turn]) -> int:
    """Reply tokens of these turns; those of a backend that does not count them are none."""
    return sum(turn.completion_tokens or 0 for turn in turns)


def seconds_of(start: Start, turns: Sequence[Turn]) -> float:
    """Seconds of waiting, generating and playing, from the record's own figures."""
    return start.seconds_game + math.fsum(
        turn.seconds_waiting + turn.seconds_generating + turn.seconds_game for turn in turns
    )


def _unparseable(turns: Sequence[Turn], limit: int | None) -> Ending | None:
    last = turns[-limit:] if limit else ()
    if limit is None or len(last) < limit or not all(turn.problem for turn in last):
        return None
    cut = all(turn.stop_reason == "length" for turn in last)
    result = Result.OUTPUT_TRUNCATED if cut else Result.UNPARSEABLE
    return Ending(result, f"{limit} replies in a row had no action.")


def _stuck(turns: Sequence[Turn], limit: int | None) -> Ending | None:
    last = turns[-limit:] if limit else ()
    if limit is None or len(last) < limit or any(turn.valid for turn in last):
        return None
    return Ending(Result.STEP_LIMIT, f"{limit} turns in a row had no valid action.")
