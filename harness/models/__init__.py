"""Every model that can play: one table from a name to what answers for it.

`load` is all that the rest of the harness needs. A model's packages are imported when it is
loaded, never before, so that `--model oracle` needs none of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

from agentgym.errors import AgentGymError, InvalidOption, MissingExtra, UnknownName
from harness.request import Model

OPENAI = "openai/"
"""What a model name begins with whose replies come from an OpenAI-compatible server."""


class FatalProviderError(AgentGymError):
    """The server refuses and will go on refusing (key, address, name): the run should end."""


class WeightsUnavailable(AgentGymError):
    """A local model's weights cannot be had, or are not the ones that they should be."""


class EngineUnavailable(AgentGymError):
    """An engine in this process does not start on the weights: no memory, or no such machine."""


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


class Entry(NamedTuple):
    """A row of the table.

    Attributes:
        description: One line for the user.
        loader: `module:function` that takes an `Order` and returns a `Model`.
        package: What the loader imports beyond the core, "" if nothing.
        extra: The extra of agentgym-suite that installs the package.
    """

    description: str
    loader: str
    package: str = ""
    extra: str = ""


TABLE = {
    "oracle": Entry(
        "plays the first of the best actions that the built-in oracle knows; the upper bound",
        "harness.models.scripted:load_oracle",
    ),
    "random": Entry(
        "draws among the legal actions with equal chance; the lower bound",
        "harness.models.scripted:load_random",
    ),
    "greedy": Entry(
        "takes the legal action with the largest score one step ahead, looking into the true state",
        "harness.models.scripted:load_greedy",
    ),
    "human": Entry("you, in this terminal", "harness.models.human:load_human", "rich", "harness"),
    "smollm2-135m": Entry(
        "SmolLM2-135M-Instruct on the CPU through llama.cpp; fetches 98 MB at first use",
        "harness.models.local_llamacpp:load_smollm2",
        "xllamacpp",
        "local",
    ),
    OPENAI: Entry(
        "openai/NAME: the model NAME of any OpenAI-compatible server, with --base-url URL or"
        " OPENAI_BASE_URL; the key is read from OPENAI_API_KEY",
        "harness.models.openai_api:load_openai",
        "openai",
        "harness",
    ),
}


def describe() -> dict[str, str]:
    """One line on each model, by name, in the table's order."""
    return {name: entry.description for name, entry in TABLE.items()}


def load(
    name: str,
    *,
    base_url: str | None = None,
    sampling: Sampling | None = None,
    concurrency: int | None = None,
) -> Model:
    """Make a model ready to answer.

    Args:
        name: A name of the table, or `openai/NAME`.
        base_url: Address of the server, for `openai/NAME` only.
        sampling: How replies are drawn; the model's own defaults if None.
        concurrency: Requests in flight at once; the model's own default if None.

    Raises:
        UnknownName: No such model.
        InvalidOption: An argument with a value that cannot be, or one that this model has not.
        MissingExtra: A package is not installed.
        WeightsUnavailable: The weights cannot be fetched.
    """
    entry = _entry(name)
    if base_url is not None and not name.startswith(OPENAI):
        raise InvalidOption(f"base_url goes with a model named openai/NAME, got {name!r}.")
    if concurrency is not None and concurrency < 1:
        raise InvalidOption(f"concurrency is at least 1, got {concurrency!r}.")
    try:
        return _loader(entry)(Order(name, base_url, sampling or Sampling(), concurrency))
    except ModuleNotFoundError as fault:
        if (fault.name or "").partition(".")[0] != entry.package:
            raise
        raise MissingExtra.of(f"The model {name}", entry.package, entry.extra) from fault


def _entry(name: str) -> Entry:
    row = OPENAI if name.startswith(OPENAI) else name
    if name == OPENAI or row not in TABLE:
        known = [f"{OPENAI}NAME" if row == OPENAI else row for row in TABLE]
        raise UnknownName.of("model", name, known)
    return TABLE[row]


def _loader(entry: Entry) -> Callable[[Order], Model]:
    module, _, function = entry.loader.partition(":")
    return getattr(import_module(module), function)


def request_digest(seed: int, key: tuple[str, int, int]) -> int:
    """A 128-bit number from the run's seed and a request's key: the same in every process.

    Args:
        seed: Of the run.
        key: `(instance, rollout, turn)`.
    """
    text = json.dumps([seed, *key], ensure_ascii=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")
