"""What the oracle says about each turn that was played, after the event."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from harness import score
from harness.record import Episode, Key, Note, Result, Turn


class Verdict(StrEnum):
    """On the action of one turn."""

    BEST = "best"
    """One of the best actions that the oracle knew before it."""
    FINE = "fine"
    """None of them, and yet nothing was lost: luck, or an action that the oracle does not list."""
    BLUNDER = "blunder"
    """None of them, and the win is further away than after a best action."""
    FATAL = "fatal"
    """None of them, and no win is possible any more."""
    INVALID = "invalid"
    """No valid action: the turn was wasted."""
    LOST = "lost"
    """No win was possible before it either."""
    UNKNOWN = "unknown"
    """The oracle says nothing: it was off, or did not know the state."""


MISTAKES = (Verdict.BLUNDER, Verdict.FATAL)
"""What counts as a blunder in figures and counts."""


class Judged(NamedTuple):
    """A turn with its verdict.

    Attributes:
        turn: As recorded.
        before: The oracle's note on the state that the action was chosen in.
        verdict: On the action.
        loss: By how many turns the win moved away, against a best action; inf into a dead end; nan
            if not known. In games without a distance, what the action's value falls short by.
    """

    turn: Turn
    before: Note | None
    verdict: Verdict
    loss: float


def judged(episode: Episode) -> Iterator[Judged]:
    """Every turn of an episode with its verdict, in order."""
    before = episode.start.note
    for turn in episode.turns:
        loss = _loss(before, turn.note)
        yield Judged(turn, before, _verdict(turn, before, loss), loss)
        before = turn.note


def _loss(before: Note | None, after: Note | None) -> float:
    if before is None or after is None:
        return math.nan
    if before.dead_end:
        return 0.0
    if after.dead_end:
        return math.inf
    if math.isfinite(before.cost_to_go) and math.isfinite(after.cost_to_go):
        return after.cost_to_go + 1 - before.cost_to_go
    return -after.progress


def _verdict(turn: Turn, before: Note | None, loss: float) -> Verdict:
    if not turn.valid:
        return Verdict.INVALID
    if before is None or (not before.dead_end and not before.best_actions):
        return Verdict.UNKNOWN
    if before.dead_end:
        return Verdict.LOST
    if turn.action in before.best_actions:
        return Verdict.BEST
    if math.isnan(loss):
        return Verdict.UNKNOWN
    if loss == math.inf:
        return Verdict.FATAL
    return Verdict.BLUNDER if loss > 0 else Verdict.FINE


@dataclass(frozen=True)
class Trace:
    """What the figures need of an episode, so that a record larger than memory can be drawn.

    Attributes:
        key: Of the episode.
        environment: As `score.name` gives it.
        instance: Of the episode.
        result: Why it ended.
        success: Won.
        costs: N at the start and after each turn; inf in a dead end, nan where it is not known.
        blunders: How many turns were mistakes.
        first_blunder: Turn of the first, counted from 1; None if there was none.
        first_dead_end: The turn, counted from 1, that led into the first dead end, 0 if the start
            is one; None if there was none.
        tokens: Reply tokens by turn; characters where the backend does not count tokens.
        counted: `tokens` are tokens.
        verdicts: How many turns got which.
    """

    key: Key
    environment: str
    instance: str
    result: Result
    success: bool
    costs: array[float]
    blunders: int
    first_blunder: int | None
    first_dead_end: int | None
    tokens: array[float]
    counted: bool
    verdicts: Mapping[Verdict, int]

    @property
    def turns(self) -> int:
        """Turns of the episode."""
        return len(self.costs) - 1


def trace(episode: Episode) -> Trace:
    """What the figures need of an episode."""
    notes = [episode.start.note, *(turn.note for turn in episode.turns)]
    found = [each.verdict for each in judged(episode)]
    mistakes = [number for number, verdict in enumerate(found, 1) if verdict in MISTAKES]
    dead = (number for number, note in enumerate(notes) if note is not None and note.dead_end)
    counted = all(turn.completion_tokens is not None for turn in episode.turns)
    lengths = (
        float((turn.completion_tokens or 0) if counted else len(turn.reply))
        for turn in episode.turns
    )
    return Trace(
        key=episode.key,
        environment=score.name(episode.key),
        instance=episode.instance,
        result=episode.result,
        success=episode.success,
        costs=array("d", (math.nan if note is None else note.cost_to_go for note in notes)),
        blunders=len(mistakes),
        first_blunder=mistakes[0] if mistakes else None,
        first_dead_end=next(dead, None),
        tokens=array("d", lengths),
        counted=counted,
        verdicts=Counter(found),
    )
