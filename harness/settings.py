"""What is to be played, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from agentgym.errors import InvalidOption, UnknownName
from harness.prompts import Style
from harness.record import Key

ContextPolicy = Literal["stop", "drop"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How an episode is played, whoever plays it.

    Attributes:
        style: Of the prompt: the format, the history that is sent, and the like.
        max_tokens: Upper limit of one reply, in tokens.
        max_turns: Turn limit in place of the environment's own; None keeps that.
        max_invalid: So many turns in a row without a valid action end the episode with
            `step_limit`; None lets it go on.
        max_unparseable: So many replies in a row without an action end it with `unparseable` or
            `output_truncated`; None lets it go on.
        episode_tokens: Reply tokens of a whole episode, after which it ends with `budget`; None for
            no limit. Replies of a backend that does not count tokens cost none.
        episode_seconds: Of waiting, generating and playing together, after which it ends with
            `time_limit`; None for no limit. Looked at after each turn: no reply is cut off by it.
        end_on_dead_end: A proven dead end ends it with `dead_end`.
        context_policy: What happens where the prompt does not fit into the model's context: `stop`
            ends it with `context_overflow`; `drop` leaves the oldest turn out and asks again, as
            often as it takes, and never sends that turn again. As long as a turn could be dropped,
            a reply of full length must fit too, in engines that know their context. The rules and
            the current turn are always sent; where these alone do not fit, `drop` too ends with
            `context_overflow`.
    """

    style: Style = field(default_factory=Style)
    max_tokens: int = 1024
    max_turns: int | None = None
    max_invalid: int | None = None
    max_unparseable: int | None = None
    episode_tokens: int | None = None
    episode_seconds: float | None = None
    end_on_dead_end: bool = False
    context_policy: ContextPolicy = "stop"

    def __post_init__(self) -> None:
        """Check the numbers and the name.

        Raises:
            InvalidOption: A number below 1, or seconds that are not above 0.
            UnknownName: No such context policy.
        """
        for name in ("max_tokens", "max_turns", "max_invalid", "max_unparseable", "episode_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidOption(f"{name} is at least 1, got {value!r}.")
        if self.episode_seconds is not None and not self.episode_seconds > 0:
            raise InvalidOption(f"episode_seconds is above 0, got {self.episode_seconds!r}.")
        if self.context_policy not in get_args(ContextPolicy):
            raise UnknownName.of("context policy", self.context_policy, get_args(ContextPolicy))


@dataclass(frozen=True)
class Assignment:
    """An episode to be played.

    Attributes:
        key: Which one of the run.
        settings: How.
    """

    key: Key
    settings: Settings
