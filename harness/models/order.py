"""What was asked for: the name, the sampling, the machine; and what can go wrong with it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from agentgym.errors import AgentGymError, InvalidOption


class FatalProviderError(AgentGymError):
    """The server refuses and will go on refusing (key, address, name): the run should end."""


class WeightsUnavailable(AgentGymError):
    """A local model's weights cannot be had, or are not the ones that they should be."""


class EngineUnavailable(AgentGymError):
    """No engine runs the weights here: there is none, no memory for it, or no such machine."""


class PlayerQuit(Exception):
    """The human at the terminal wants to stop: nothing went wrong, and what was played counts."""


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn; None leaves the choice to the model.

    Attributes:
        temperature: 0 takes the likeliest token each time.
        top_p: Only the likeliest tokens with this much probability together are drawn.
        seed: Of the run. Each request gets its own, made from this one and its key.
        max_tokens: Upper limit of one reply, for the record; each request carries its own.

    Raises:
        InvalidOption: A value outside its range.
    """

    temperature: float | None = None
    top_p: float | None = None
    seed: int = 0
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.temperature is not None and not 0 <= self.temperature <= 5:
            raise InvalidOption(f"temperature is from 0 to 5, got {self.temperature!r}.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InvalidOption(f"top_p is above 0 and at most 1, got {self.top_p!r}.")
        if self.seed < 0:
            raise InvalidOption(f"seed is 0 or more, got {self.seed!r}.")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InvalidOption(f"max_tokens is at least 1, got {self.max_tokens!r}.")

    def settings(self, temperature: float | None, top_p: float | None) -> dict[str, object]:
        """The record of this sampling, with a model's own defaults in place of None."""
        return {
            "temperature": temperature if self.temperature is None else self.temperature,
            "top_p": top_p if self.top_p is None else self.top_p,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
        }


@dataclass(frozen=True)
class Hardware:
    """How an engine in this process spreads over the machine.

    Attributes:
        tensor_parallel: Devices that one copy of the model is split over.
        data_parallel: Copies of the model.

    Raises:
        InvalidOption: A number below 1.
    """

    tensor_parallel: int = 1
    data_parallel: int = 1

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("tensor_parallel", "data_parallel"):
            if getattr(self, name) < 1:
                raise InvalidOption(f"{name} is at least 1, got {getattr(self, name)!r}.")


@dataclass(frozen=True)
class Order:
    """What was asked for.

    Attributes:
        name: The whole model name.
        base_url: Address of the server; None for the loader's default.
        sampling: How replies are drawn.
        concurrency: Requests in flight at once; None for the loader's default.
        weights: Folder or hub name of the weights, where the model has weights of its own.
        thinking: Whether the chat template is asked for a thinking part; None leaves it to that.
        context: Tokens of prompt and reply together; None for the weights' own limit.
        hardware: How an engine in this process spreads over it.
        logprobs: Return token ids and log-probabilities with each reply.
        tool_parser: Name of vLLM's reader of the weights' native tool calls, "" if they make none.
    """

    name: str
    base_url: str | None = None
    sampling: Sampling = Sampling()
    concurrency: int | None = None
    weights: str = ""
    thinking: bool | None = None
    context: int | None = None
    hardware: Hardware = Hardware()
    logprobs: bool = False
    tool_parser: str = ""


def request_digest(seed: int, key: tuple[str, int, int]) -> int:
    """A 128-bit number from the run's seed and a request's key: the same in every process.

    Args:
        seed: Of the run.
        key: `(instance, rollout, turn)`.
    """
    text = json.dumps([seed, *key], ensure_ascii=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
