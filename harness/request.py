"""What passes between an episode and a model: the request, the reply, and what a model is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NotRequired, Protocol, TypedDict, cast

import gymnasium as gym


class Message(TypedDict):
    """One chat message, as every chat template takes it.

    The two keys that may be absent belong to native tool calls, in the form of OpenAI's chat
    completions: the calls of an assistant message, and which call a `tool` message answers.
    """

    role: str
    content: str
    tool_calls: NotRequired[list[dict[str, Any]]]
    tool_call_id: NotRequired[str]


class ToolCall(NamedTuple):
    """A native tool call of a reply.

    Attributes:
        name: Of the tool.
        arguments: JSON text, as the model wrote it.
    """

    name: str
    arguments: str

    def given(self) -> dict[str, Any]:
        """The arguments as an object; empty where the model wrote none."""
        try:
            found = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return {}
        return cast(dict[str, Any], found) if isinstance(found, dict) else {}


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
        tools: What may be called, in the form of OpenAI's chat completions; empty unless the format
            is native tool calls. Sent with the messages.
        format: Name of the reply format, so that scripted players know how to spell an action.
        reserve: Tokens that the context must have left for the reply; a model that knows its
            context answers `context` where it has not. 0 where what is left will do.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    key: tuple[str, int, int]
    peek: Peek = field(repr=False)
    tools: tuple[Mapping[str, Any], ...] = ()
    format: str = "fence"
    reserve: int = 0


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        text: The reply, verbatim.
        reasoning: The server's separate reasoning field, "" if it has none.
        stop_reason: `stop`, `length` (cut at `max_tokens`), `context` (the prompt did not fit),
            `provider_error` (nothing usable came back after all retries) or `cost_limit` (the run's
            money is spent, and nothing was sent).
        error: One sentence when `stop_reason` is one of the last three, else "".
        prompt_tokens: Tokens of the prompt; None where the backend does not say.
        completion_tokens: Tokens of the reply; None where the backend does not say.
        seconds_waiting: Time in queues and between retries.
        seconds_generating: Time the backend worked on the reply.
        retries: How often the request was sent again.
        tool_calls: Native tool calls, in order.
        faults: How often each transient fault was met before this reply, by name: "429", "500",
            "timeout", "connection", "not a completion", "empty"; and "without NAME", once, where
            the server takes no such parameter, which nobody but us asked for.
        prompt_ids: Token ids of the prompt; only where asked for and the backend tells.
        completion_ids: Token ids of the reply; likewise.
        logprobs: Natural logarithms of the probabilities of `completion_ids`; likewise.
        cached: It came from the reply cache; its times are those of the first time.
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
    tool_calls: tuple[ToolCall, ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict[str, int])
    prompt_ids: tuple[int, ...] | None = None
    completion_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    cached: bool = False


@dataclass
class Gauge:
    """Where a model's requests stand now; shown while a run goes on, never recorded.

    Attributes:
        in_flight: Sent, not answered.
        waiting: Held back: no slot is free, or a pause before a retry.
        retries: Sent again, since the start.
        limit: Requests that may be in flight now; changes where it adapts.
    """

    in_flight: int = 0
    waiting: int = 0
    retries: int = 0
    limit: int = 0


class Model(Protocol):
    """Anything that answers requests; many may be in flight at once.

    Attributes:
        name: As given to `--model`.
        concurrency: How many requests it serves well at once.
        settings: What a second person needs to repeat it (weights, sampling); goes into `run.json`.
        gauge: Where its requests stand now.
    """

    name: str
    concurrency: int
    settings: dict[str, Any]
    gauge: Gauge

    async def reply(self, request: Request) -> Reply:
        """Answer one request; never raises for a fault of the provider, reports it in the reply."""
        ...

    async def close(self) -> None:
        """Free servers, connections and memory."""
        ...
