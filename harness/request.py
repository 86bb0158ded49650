"""What passes between an episode and a model: the request, the reply, and what a model is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

import gymnasium as gym


class Message(TypedDict):
    """One chat message, as every chat template takes it."""

    role: str
    content: str


@dataclass(frozen=True)
class Peek:
    """What a scripted player may look at and a model never does.

    Attributes:
        env: The live environment. Read-only for players.
        info: The latest `info`, with oracle and milestones.
    """

    env: gym.Env[Any, Any]
    info: dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What the episode asks of a model for one turn.

    Attributes:
        messages: The whole prompt. The only field a real model is ever sent.
        max_tokens: Upper limit of the reply, in tokens.
        key: `(instance, rollout, turn)`; seeds sampling where the model supports it.
        peek: For scripted players only.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    key: tuple[str, int, int]
    peek: Peek = field(repr=False)


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        text: The reply, verbatim.
        reasoning: The server's separate reasoning field, "" if it has none.
        stop_reason: `stop`, `length` (cut at `max_tokens`), `context` (the prompt did not fit) or
            `provider_error` (nothing usable came back after all retries).
        error: One sentence when `stop_reason` is `provider_error` or `context`, else "".
        prompt_tokens: Tokens of the prompt; None where the backend does not say.
        completion_tokens: Tokens of the reply; None where the backend does not say.
        seconds_waiting: Time in queues and between retries.
        seconds_generating: Time the backend worked on the reply.
        retries: How often the request was sent again.
    """

    text: str
    reasoning: str = ""
    stop_reason: str = "stop"
    error: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds_waiting: float = 0.0
    seconds_generating: float = 0.0
    retries: int = 0


class Model(Protocol):
    """Anything that answers requests; many may be in flight at once.

    Attributes:
        name: As given to `--model`.
        concurrency: How many requests it serves well at once.
        settings: What a second person needs to repeat it (weights, sampling); goes into `run.json`.
    """

    name: str
    concurrency: int
    settings: dict[str, Any]

    async def reply(self, request: Request) -> Reply:
        """Answer one request; never raises for a fault of the provider, reports it in the reply."""
        ...

    async def close(self) -> None:
        """Free servers, connections and memory."""
        ...
