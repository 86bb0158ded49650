"""Suites: named lists of (environment, split, how many instances, how many rollouts).

The instances of a row are those of the seeds 0 to n-1 of its split; the environment makes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from agentgym.env import TextGameEnv
from agentgym.errors import InvalidOption, UnknownName
from agentgym.splits import check_split
from harness.episode import check_id, make
from harness.prompts import History, Style
from harness.record import Key
from harness.settings import Assignment, ContextPolicy, Settings

_OF_ROW = ("instances", "rollouts", "split")
_OF_STYLE = ("format", "lenient", "history", "list_actions")
_OF_SETTINGS = (
    *("max_tokens", "max_turns", "max_invalid", "max_unparseable"),
    *("episode_tokens", "episode_seconds", "context_policy", "end_on_dead_end"),
)
_2048_STUCK = 10
"""ProAct ends a game of 2048 after ten turns in a row that left the board as it was
(arXiv 2602.05327, `max_stuck_steps`); without it a stubborn model pays for 10,000 turns."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One environment of a suite.

    Attributes:
        env_id: As registered.
        kwargs: Keyword arguments to `gym.make` besides the split; plain JSON values.
        split: "train", "validation" or "test".
        instances: How many; seeds 0 to n-1.
        rollouts: How often each is played.
        settings: How its episodes are played.
    """

    env_id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    split: str = "test"
    instances: int
    rollouts: int
    settings: Settings

    def __post_init__(self) -> None:
        """Refuse what cannot be played.

        Raises:
            UnknownName: The split.
            InvalidOption: A number below 1.
        """
        check_split(self.split)
        for name in ("instances", "rollouts"):
            if getattr(self, name) < 1:
                raise InvalidOption(f"{name} must be at least 1, got {getattr(self, name)}.")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A named list of rows.

    Attributes:
        name: As given to `--suite`.
        description: What it measures, whom its numbers compare with, and what it costs.
        rows: In the order of the table.
        temperature: That the suite asks of models which sample; None leaves it to the model.
        top_p: Likewise.
    """

    name: str
    description: str
    rows: tuple[Row, ...]
    temperature: float | None = None
    top_p: float | None = None


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What the command line changes in a suite; None changes nothing.

    Attributes:
        instances: Of each row.
        rollouts: Of each instance.
        split: Of each row.
        format: Of the replies; a name of `harness.formats`.
        lenient: Try the format's lenient rules where its strict ones find no action.
        history: "stateless", "full", or how many of the last turns are sent.
        list_actions: Show the legal actions each turn.
        max_tokens: Upper limit of one reply.
        max_turns: Turn limit of an episode, in place of the environment's own.
        episode_tokens: Reply tokens of an episode.
        episode_seconds: Of an episode, waiting, generating and playing.
        context_policy: "stop" or "drop"; this and what follows as in `harness.settings.Settings`.
        max_invalid: Turns in a row without a valid action that end an episode.
        max_unparseable: Replies in a row without an action that end it.
        end_on_dead_end: A proven dead end ends it.
    """

    instances: int | None = None
    rollouts: int | None = None
    split: str | None = None
    format: str | None = None
    lenient: bool | None = None
    history: History | None = None
    list_actions: bool | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    episode_tokens: int | None = None
    episode_seconds: float | None = None
    context_policy: ContextPolicy | None = None
    max_invalid: int | None = None
    max_unparseable: int | None = None
    end_on_dead_end: bool | None = None


def find(name: str) -> Suite:
    """The suite of that name.

    Raises:
        UnknownName: There is none; the message offers the nearest.
    """
    if name not in SUITES:
        raise UnknownName.of("suite", name, SUITES)
    return SUITES[name]


def only(suite: Suite, env_ids: Iterable[str]) -> Suite:
    """The suite with the rows of these ids alone.

    Raises:
        UnknownName: An id that the suite does not have.
    """
    wanted = tuple(env_ids)
    known = {row.env_id for row in suite.rows}
    for env_id in wanted:
        if env_id not in known:
            raise UnknownName.of(f"environment of the suite {suite.name!r}", env_id, known)
    return replace(suite, rows=tuple(row for row in suite.rows if row.env_id in wanted))


def custom(env_ids: Iterable[str]) -> Suite:
    """A suite of the given ids: 20 test instances each, one rollout, stateless.

    Raises:
        UnknownName: An id that is not registered; the message offers the nearest.
        InvalidOption: The environment is none of agentgym's.
    """
    ids = tuple(dict.fromkeys(env_ids))
    for env_id in ids:
        check_id(env_id)
    settings = Settings(max_tokens=1024, max_invalid=_2048_STUCK)
    rows = tuple(Row(env_id=i, instances=20, rollouts=1, settings=settings) for i in ids)
    return Suite(name="custom", description="The environments given with --env.", rows=rows)


def at_most(suite: Suite, max_tokens: int | None) -> Suite:
    """The suite with no reply longer than that; None changes nothing."""
    if max_tokens is None:
        return suite
    return replace(suite, rows=tuple(_shortened(row, max_tokens) for row in suite.rows))


def _shortened(row: Row, most: int) -> Row:
    settings = replace(row.settings, max_tokens=min(row.settings.max_tokens, most))
    return replace(row, settings=settings)


def changed(suite: Suite, changes: Changes) -> Suite:
    """The suite with every row changed alike.

    Raises:
        UnknownName: The split, the format, the history or the context policy.
        InvalidOption: A number below 1, or more turns than an environment allows.
    """
    found = replace(suite, rows=tuple(_changed_row(row, changes) for row in suite.rows))
    if changes.max_turns is not None:
        for row in found.rows:
            _check_turns(row, changes.max_turns)
    return found


def _check_turns(row: Row, max_turns: int) -> None:
    """Refuse a longer game than the environment's: its name would then mean another task."""
    env = make(Assignment(_key(row, 0, 0), replace(row.settings, max_turns=None)))
    own = cast(TextGameEnv, env.unwrapped).setup.max_turns
    env.close()
    if max_turns > own:
        raise InvalidOption(
            f"max_turns is at most {own}, the limit of {row.env_id} itself, got {max_turns}."
        )


def _changed_row(row: Row, changes: Changes) -> Row:
    style = replace(row.settings.style, **_given(changes, _OF_STYLE))
    settings = replace(row.settings, style=style, **_given(changes, _OF_SETTINGS))
    return replace(row, settings=settings, **_given(changes, _OF_ROW))


def _given(changes: Changes, names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(changes, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def assignments(suite: Suite) -> tuple[Assignment, ...]:
    """Every episode of the suite, in the order in which they are begun."""
    return tuple(
        Assignment(_key(row, seed, rollout), row.settings)
        for row in suite.rows
        for seed in range(row.instances)
        for rollout in range(row.rollouts)
    )


def plain(suite: Suite) -> dict[str, Any]:
    """What the suite plays as plain JSON values, for the record; without the description."""
    return json.loads(json.dumps(asdict(replace(suite, description=""))))


def _key(row: Row, seed: int, rollout: int) -> Key:
    return Key(
        env_id=row.env_id,
        kwargs=json.dumps(dict(row.kwargs), sort_keys=True),
        split=row.split,
        seed=seed,
        rollout=rollout,
    )


def _quick() -> Suite:
    settings = Settings(style=Style(history="stateless"), max_tokens=48, max_turns=8)
    ids = ("Sokoban-v0", "RushHour-v0", "Minesweeper-v0", "2048-v0")
    return Suite(
        name="quick",
        description=(
            "A smoke test of a small model on a CPU, not a measurement: three instances of each "
            "game, one rollout, 8 turns and 48 tokens a reply at most, so at most 96 replies and "
            "4,608 reply tokens."
        ),
        rows=tuple(
            Row(env_id=f"agentgym/{i}", instances=3, rollouts=1, settings=settings) for i in ids
        ),
    )


def _core() -> Suite:
    full = Settings(style=Style(history="full"), max_tokens=2048)
    alone = Settings(style=Style(history="stateless"), max_tokens=2048, max_invalid=_2048_STUCK)
    ids = ("Sokoban-v0", "RushHour-v0", "Minesweeper-v0")
    rows = tuple(Row(env_id=f"agentgym/{i}", instances=200, rollouts=4, settings=full) for i in ids)
    last = Row(env_id="agentgym/2048-v0", instances=200, rollouts=4, settings=alone)
    return Suite(
        name="core",
        description=(
            "The default level of each game: 200 test instances, 4 rollouts, 3,200 episodes. "
            "Sokoban, Rush Hour and Minesweeper with the whole history, at most 24,000, 16,000 "
            "and 24,000 replies. 2048 without history, and it costs more than the rest together: "
            "a game of random play takes about 120 turns, so 800 games some 95,000 replies, and "
            "a model that reaches the 2048 tile takes about 1,000 turns a game, 800,000 replies; "
            "--env leaves it out, --instances and --max-turns make it smaller."
        ),
        rows=(*rows, last),
    )


def _cast() -> Suite:
    settings = Settings(style=Style(history="full"), max_tokens=16_384, episode_tokens=16_384)
    ids = ("Sokoban-v0", "Sokoban-7x7-3box-v0", "Minesweeper-v0", "Minesweeper-7x7-10-v0")
    ids = (*ids, "RushHour-v0", "RushHour-9car-v0")
    return Suite(
        name="cast",
        description=(
            "CAST (arXiv 2607.25308): both levels of its three games, 200 test instances, 4 "
            "rollouts, turn limits 30/40, 30/40, 20/20, the whole history, and 16,384 reply "
            "tokens an episode (CAST counts the observations in, we do not). Instances are ours: "
            "CAST's leak between train and test. Temperature 0.6 and top-p 0.95, as for its open "
            "models."
        ),
        rows=tuple(
            Row(env_id=f"agentgym/{i}", instances=200, rollouts=4, settings=settings) for i in ids
        ),
        temperature=0.6,
        top_p=0.95,
    )


def _proact() -> Suite:
    style = Style(history="stateless", format="move")
    games = Settings(style=style, max_tokens=4096, max_invalid=_2048_STUCK)
    boxes = Settings(style=style, max_tokens=4096)
    plain = {"layout": "grid", "moves": "explicit", "symbols": "proact"}
    variants = (
        plain,
        {**plain, "moves": "push"},
        {**plain, "symbols": "proact-variant"},
    )
    ids = ("2048-v0", "2048-3x3-v0", "3072-v0")
    rows = tuple(Row(env_id=f"agentgym/{i}", instances=40, rollouts=1, settings=games) for i in ids)
    sokoban = tuple(
        Row(
            env_id="agentgym/Sokoban-8x8-3box-v0",
            kwargs=kwargs,
            instances=40,
            rollouts=1,
            settings=boxes,
        )
        for kwargs in variants
    )
    return Suite(
        name="proact",
        description=(
            "ProAct's six columns (arXiv 2602.05327): 2048, 2048 3x3 and 3072, 40 episodes each, "
            "mean score; Sokoban Unseen, Action and Symbol, 40 episodes each, mean of the most "
            "boxes on targets at any time (the table's `best score`). No history, its two lines "
            "`thought:` and `move:` as the format, temperature 0.6, and for 2048 its rule that ten "
            "turns in a row without effect end the game. ProAct's parser forgives nothing, so "
            "--parsing strict is what compares with its numbers. The "
            "Sokoban columns are NOT on ProAct's eight hand-written levels, which are not ours to "
            "ship: they are on generated 8x8 boards with 3 boxes, so the most is 3, not 2.67, and "
            "only their order compares with the paper. Its limit of 200 turns is 75 here."
        ),
        rows=(*rows, *sokoban),
        temperature=0.6,
    )


SUITES = {suite.name: suite for suite in (_quick(), _core(), _cast(), _proact())}
"""Every suite by name."""
