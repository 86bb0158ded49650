"""The record: the schema of an episode, and the file of JSON lines that holds a run's episodes.

`episodes.jsonl` has one line per finished episode, in the order in which they finished, each on
disk before the next begins to be written. Where two lines have one key (an episode that a provider
error spoilt, and the same one replayed) the later line holds. JSON has no infinities: a number
that is one, or is not determined, is written as the text "Infinity", "-Infinity" or "NaN".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.writer import RecordError, Writer

__all__ = [
    "EPISODES",
    "SCHEMA",
    "SPOILT",
    "Data",
    "Episode",
    "Key",
    "Note",
    "RecordError",
    "Result",
    "Start",
    "Turn",
    "Writer",
    "check_schema",
    "latest",
    "playable",
    "read",
]

SCHEMA = 1
"""Raised by one with every change that an older reader would misread."""
EPISODES = "episodes.jsonl"


class Result(StrEnum):
    """Why an episode ended. Success is a flag of its own: 2048 goes on after it."""

    WON = "won"
    """The game ended by itself with its success flag set; in 2048, which plays on after success,
    the board filled up some time after the target tile."""
    LOST = "lost"
    """The game ended by itself and its success flag was never set."""
    DEAD_END = "dead_end"
    """The oracle proved that no win is possible, and the run ends episodes there (off unless asked
    for); a game that ended by itself is `lost`."""
    STEP_LIMIT = "step_limit"
    """The turn limit of the environment, or the tighter one of the suite, was reached."""
    CONTEXT_OVERFLOW = "context_overflow"
    """The next prompt did not fit into the model's context."""
    OUTPUT_TRUNCATED = "output_truncated"
    """The run's limit of consecutive replies without an action was reached, and every one of them
    was cut at the token limit; no limit unless asked for."""
    UNPARSEABLE = "unparseable"
    """The same limit was reached, and at least one of those replies was complete."""
    PROVIDER_ERROR = "provider_error"
    """The provider gave nothing usable after all retries. Replayed on resume, never averaged."""
    BUDGET = "budget"
    """The episode's budget of reply tokens was spent; no budget unless asked for."""
    TIME_LIMIT = "time_limit"
    """The episode's seconds were spent; no limit unless asked for."""
    COST_LIMIT = "cost_limit"
    """The run's money was spent before this episode's end. Which episodes that meets depends on
    their order, so they are played again on resume with more money, and never averaged."""


SPOILT = frozenset({Result.PROVIDER_ERROR, Result.COST_LIMIT})
"""Endings that say nothing of the player: replayed on resume, never averaged."""


class Data(BaseModel, frozen=True):
    """Frozen, knows its fields exactly, and writes infinities and nan as text."""

    model_config = ConfigDict(
        extra="forbid",
        ser_json_inf_nan="strings",
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Note(Data, frozen=True):
    """The oracle's scalars at one state; of `info["oracle"]` only the action values are left out.

    Attributes:
        cost_to_go: N(s); inf if proven dead, nan if not determined.
        value: V(s), higher is better.
        progress: Of the action that led here; 0 at the start.
        dead_end: No win is possible from here.
        exact: Proven, not a bound or an estimate.
        best_actions: All optimal actions.
    """

    cost_to_go: float
    value: float
    progress: float
    dead_end: bool
    exact: bool
    best_actions: tuple[str, ...]


class Start(Data, frozen=True):
    """The start state, before any action.

    Attributes:
        observation: As shown for the first turn.
        score: The game's own score.
        progress: 0 to 1.
        milestones: Indices of those reached already, in the card's order.
        note: The oracle's note; None where the environment was made with `oracle=False`.
        seconds_game: That the environment worked for it, its oracle included.
    """

    observation: str
    score: float
    progress: float
    milestones: tuple[int, ...] = ()
    note: Note | None = None
    seconds_game: float = 0.0


class Turn(Data, frozen=True):
    """One reply and what came of it.

    Attributes:
        observation: As shown before the reply.
        asked: What the prompt said after the observation.
        reply: Verbatim.
        reasoning: The server's separate reasoning field, "" if it has none.
        attempt: The text that was taken out of the reply and given to the environment.
        problem: Why no action was found in the reply, "" if one was.
        strict: The reply kept the format to the letter.
        action: Canonical text of the action executed, "" if none.
        valid: The action was understood and legal.
        error: What was wrong with it, as the model was told in the next turn; "" if nothing.
        reward: Of this turn.
        score: The game's own score after the turn.
        progress: 0 to 1, after the turn.
        success: Won, after the turn.
        milestones: Indices of those reached by this turn for the first time.
        note: The oracle's note on the state after the turn.
        stop_reason: Of the reply: `stop` or `length`.
        prompt_tokens: None where the backend does not say.
        completion_tokens: None where the backend does not say.
        retries: How often the request was sent again.
        tool_calls: Native tool calls of the reply: name and arguments, JSON text as the model wrote
            it.
        faults: How often each transient fault was met before this reply, by name; and `without
            NAME`, where the server takes no such parameter (`seed`, for one) and had none.
        sent: Earlier turns that the prompt held.
        dropped: Oldest turns left out of the prompt so that it fitted into the context.
        cost: Of the request, in the currency of the model's price; None where no price is known.
        cached: The reply came from the reply cache.
        prompt_ids: Token ids of the prompt; only where they were asked for.
        completion_ids: Token ids of the reply; likewise.
        logprobs: Natural logarithms of their probabilities; likewise.
        seconds_waiting: In queues and between retries.
        seconds_generating: That the backend worked.
        seconds_game: That the environment worked, its oracle included.
    """

    observation: str
    asked: str = ""
    reply: str
    reasoning: str = ""
    attempt: str
    problem: str = ""
    strict: bool
    action: str
    valid: bool
    error: str
    reward: float
    score: float
    progress: float
    success: bool
    milestones: tuple[int, ...] = ()
    note: Note | None = None
    stop_reason: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    retries: int = 0
    tool_calls: tuple[tuple[str, str], ...] = ()
    faults: dict[str, int] = Field(default_factory=dict)
    sent: int = 0
    dropped: int = 0
    cost: float | None = None
    cached: bool = False
    prompt_ids: tuple[int, ...] | None = None
    completion_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    seconds_waiting: float = 0.0
    seconds_generating: float = 0.0
    seconds_game: float = 0.0


class Key(Data, frozen=True):
    """What tells one episode of a run from all others, known before it is played.

    Attributes:
        env_id: As registered, for example "agentgym/Sokoban-v0".
        kwargs: Keyword arguments to `gym.make` besides the split, as JSON with sorted keys.
        split: "train", "validation" or "test".
        seed: Of the instance.
        rollout: 0 to k-1.
    """

    env_id: str
    kwargs: str = "{}"
    split: str = "test"
    seed: int
    rollout: int = 0


class Episode(Data, frozen=True):
    """One finished episode.

    Attributes:
        schema_version: `SCHEMA` of the writer; "schema" in the file.
        key: Which episode of the run.
        instance: The environment's stable id of the instance.
        level: Name of the level, "" where the environment has none.
        env_version: Version of agentgym that played.
        prompt_hash: Of everything that shapes the prompt.
        format: Of the replies; a name of `harness.formats`.
        model: As given to `--model`.
        sampling: Temperature and the like, as the model was asked to sample.
        result: Why it ended.
        error: One sentence where `result` is a limit or an error that has more to say.
        success: Won, at any time.
        terminated: The game ended by itself.
        truncated: The environment's turn limit ended it.
        score: The game's own, at the end.
        progress: 0 to 1, at the end.
        milestones: How many were reached.
        milestone_total: How many the instance has.
        system: The system message: the rules of the game, and how to reply.
        start: The start state.
        turns: In order.
        final_observation: As the model would have been shown next.
        faults: Transient faults met after the last turn, where no reply came at all, by name.
    """

    schema_version: int = Field(default=SCHEMA, alias="schema")
    key: Key
    instance: str
    level: str = ""
    env_version: str
    prompt_hash: str
    format: str = "fence"
    model: str
    sampling: dict[str, Any] = Field(default_factory=dict)
    result: Result
    error: str = ""
    success: bool
    terminated: bool = False
    truncated: bool = False
    score: float
    progress: float
    milestones: int = 0
    milestone_total: int = 0
    system: str = ""
    start: Start
    turns: tuple[Turn, ...]
    final_observation: str = ""
    faults: dict[str, int] = Field(default_factory=dict)


def read(path: Path) -> Iterator[Episode]:
    """The episodes of a file in its order, one after another; a torn last line is left out.

    Of two with one key the later holds; see `latest`.

    Raises:
        RecordError: It cannot be read, or a whole line is not JSON, does not fit, or has another
            schema.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if _whole(line):
                    yield _episode(line, path, number)
    except OSError as fault:
        raise RecordError(f"Cannot read {path}: {fault.strerror}.") from fault


def latest(episodes: Iterable[Episode]) -> list[Episode]:
    """One episode per key, the last one given, in the order of the first."""
    return list({episode.key: episode for episode in episodes}.values())


def playable(episodes: Iterable[Episode]) -> Iterator[Episode]:
    """Those that stand: all but the ones that `SPOILT` says are played again."""
    return (episode for episode in episodes if episode.result not in SPOILT)


def _whole(line: bytes) -> bool:
    return line.endswith(b"\n")


def _episode(line: bytes, path: Path, number: int) -> Episode:
    where = f"{path}:{number}"
    try:
        found = json.loads(line)
    except ValueError as fault:
        raise RecordError(f"{where} is not JSON ({fault}); delete that line to go on.") from fault
    check_schema(found, where)
    try:
        return Episode.model_validate(found)
    except ValidationError as fault:
        first = fault.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise RecordError(
            f"{where} is no episode: {field}: {first['msg']}; delete that line to play it again."
        ) from fault


def check_schema(found: Any, where: str) -> None:
    """Refuse JSON that another version of agentgym wrote.

    Args:
        found: The parsed JSON.
        where: File, and line if it has lines, for the message.

    Raises:
        RecordError: No integer `schema`, or another one than `SCHEMA`.
    """
    schema = found.get("schema") if isinstance(found, dict) else None
    if type(schema) is not int:
        raise RecordError(f"{where} has no integer 'schema'; it was not written by agentgym.")
    if schema != SCHEMA:
        upgrade = "upgrade agentgym" if schema > SCHEMA else "use the older agentgym that wrote it"
        raise RecordError(
            f"{where} has schema {schema}, this version reads {SCHEMA}; {upgrade}, or give "
            "another folder."
        )
