"""What requests cost: one table of list prices with its date, and the purse of a run.

A price that is not in the table is unknown, which is said and never taken for zero; `--price` gives
one. Left out are prices that end on a set day, discounts (cached prompts, batches, off-peak hours)
and taxes, so a bill is at most what is said here, but for taxes.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from agentgym.errors import AgentGymError, InvalidOption
from harness.record import Episode, Turn
from harness.request import Gauge, Model, Reply, Request

DATE = "2026-11-30"
"""When the table was last compared with its sources."""
_MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """What a million tokens cost.

    Attributes:
        prompt: Of a million prompt tokens.
        completion: Of a million reply tokens, thinking included.
        currency: Of both.
        date: Of the price, ISO 8601; "" if a user gave it.
        source: Where it stands.
        longest: Prompts of more tokens cost more, so their cost is unknown here; None for no limit.

    Raises:
        InvalidOption: A price that is negative or no number.
    """

    prompt: float
    completion: float
    currency: str = "USD"
    date: str = ""
    source: str = "--price"
    longest: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("prompt", "completion"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InvalidOption(f"The price of {name} tokens is 0 or more, got {value!r}.")

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """What a request costs; None where a count is unknown or the prompt is beyond `longest`."""
        if prompt_tokens is None or completion_tokens is None:
            return None
        if self.longest is not None and prompt_tokens > self.longest:
            return None
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION


class _Vendor(NamedTuple):
    """Whose prices: the model name's beginning, the only host they hold for, and their page.

    `variable` is what the vendor's client takes its address from, where none is given.
    """

    prefix: str
    host: str
    variable: str
    source: str
    prices: Mapping[str, tuple[float, float] | tuple[float, float, int]]


# USD per million prompt and completion tokens; the longest prompt they hold for, where one is set.
_OPENAI = _Vendor(
    "openai/",
    "api.openai.com",
    "OPENAI_BASE_URL",
    "https://developers.openai.com/api/docs/pricing",
    {
        "gpt-4.1": (2, 8),
        "gpt-4.1-mini": (0.4, 1.6),
        "gpt-4.1-nano": (0.1, 0.4),
        "gpt-4o": (2.5, 10),
        "gpt-4o-2024-05-13": (5, 15),
        "gpt-4o-mini": (0.15, 0.6),
        "gpt-5": (1.25, 10),
        "gpt-5-mini": (0.25, 2),
        "gpt-5-nano": (0.05, 0.4),
        "gpt-5.1": (1.25, 10),
        "gpt-5.2": (1.75, 14),
        "gpt-5.4": (2.5, 15, 272_000),
        "gpt-5.4-mini": (0.75, 4.5),
        "gpt-5.4-nano": (0.2, 1.25),
        "gpt-5.5": (5, 30, 272_000),
        "gpt-6-astra": (10, 50, 272_000),
        "gpt-6-luna": (0.1, 0.5, 272_000),
        "gpt-6-sol": (2, 10, 272_000),
        "gpt-6.1-sol": (2, 10, 272_000),
        "gpt-6.1-terra": (1, 5, 272_000),
        "o3": (2, 8),
        "o4-mini": (1.1, 4.4),
    },
)
_ANTHROPIC = _Vendor(
    "anthropic/",
    "api.anthropic.com",
    "ANTHROPIC_BASE_URL",
    "https://platform.claude.com/docs/en/models/overview",
    {
        "claude-fable-5-1": (10, 50),
        "claude-fable-5-2": (8, 40),
        "claude-haiku-4-5": (1, 5),
        "claude-haiku-5-5": (0.1, 0.5, 100_000),
        "claude-opus-4-5": (5, 25),
        "claude-opus-4-6": (5, 25),
        "claude-opus-4-7": (5, 25),
        "claude-opus-4-8": (5, 25),
        "claude-opus-5": (5, 25),
        "claude-opus-5-5": (4, 20),
        "claude-sonnet-4-5": (3, 15, 200_000),
        "claude-sonnet-4-6": (3, 15),
        "claude-sonnet-5": (2, 10),
        "claude-sonnet-5-5": (2, 10),
    },
)
_GOOGLE = _Vendor(
    "google/",
    "generativelanguage.googleapis.com",
    "GOOGLE_GEMINI_BASE_URL",
    "https://ai.google.dev/gemini-api/docs/pricing",
    {
        "gemini-2.5-flash": (0.3, 2.5),
        "gemini-2.5-flash-lite": (0.1, 0.4),
        "gemini-2.5-pro": (1.25, 10, 200_000),
        "gemini-3-flash-preview": (0.5, 3),
        "gemini-3.1-flash-lite": (0.25, 1.5),
        "gemini-3.1-pro-preview": (2, 12, 200_000),
        "gemini-3.5-flash": (1.5, 9),
        "gemini-3.5-flash-lite": (0.3, 2.5),
    },
)
# Each vendor's page as collected in genai-prices 0.2.3 (github.com/pydantic/genai-prices).
_VENDORS = (_OPENAI, _ANTHROPIC, _GOOGLE)
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


def find(name: str, base_url: str | None = None, own: str | None = None) -> Price | None:
    """The price of a model: the user's own, else the list price, else None.

    Args:
        name: As given to `--model`. A snapshot's date at its end may be there or not.
        base_url: Where the requests go, if the user says; other hosts than the vendor's own set
            their own prices.
        own: `PROMPT,COMPLETION`, of a million tokens.

    Raises:
        InvalidOption: `own` is not two numbers.
    """
    if own is not None:
        return given(own)
    vendor = _vendor(name)
    return _listed(vendor, name.removeprefix(vendor.prefix), base_url) if vendor else None


def sold(name: str) -> bool:
    """Whether somebody sends a bill for this model's tokens, as far as its name tells."""
    return _vendor(name) is not None


def _vendor(name: str) -> _Vendor | None:
    return next((vendor for vendor in _VENDORS if name.startswith(vendor.prefix)), None)


def _listed(vendor: _Vendor, name: str, base_url: str | None) -> Price | None:
    address = base_url or os.environ.get(vendor.variable)
    if address and urlsplit(address).hostname != vendor.host:
        return None
    row = vendor.prices.get(name, vendor.prices.get(_SNAPSHOT.sub("", name)))
    if row is None:
        return None
    prompt, completion, *rest = row
    longest = int(rest[0]) if rest else None
    return Price(prompt, completion, "USD", DATE, vendor.source, longest)


def given(text: str) -> Price:
    """The price that a user gives: `PROMPT,COMPLETION`, of a million tokens.

    Raises:
        InvalidOption: The text is not two numbers with a comma between them.
    """
    try:
        prompt, completion = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidOption(
            f"--price is two numbers, of a million prompt and reply tokens, such as 0.4,1.6, got "
            f"{text!r}."
        ) from None
    return Price(prompt, completion)


class CostUnknown(AgentGymError):
    """A run's money has a limit, and what a request costs cannot be told."""


class Purse:
    """The money of a run: what is spent of it, and whether any is left.

    Attributes:
        spent: So far, in the price's currency; requests of earlier sessions included.
        untold: How many replies more there were, whose cost cannot be told.
    """

    def __init__(self, price: Price | None, limit: float | None) -> None:
        """Nothing is spent yet.

        Args:
            price: Of the model; None if unknown.
            limit: The most that may be spent before no more requests are sent; None for no limit.

        Raises:
            CostUnknown: There is a limit, and no price.
            InvalidOption: The limit is not above 0.
        """
        if limit is not None and not limit > 0:
            raise InvalidOption(f"--max-cost is above 0, got {limit!r}.")
        if limit is not None and price is None:
            raise CostUnknown(
                "--max-cost needs the model's price, which is not in the table; give it as --price "
                "PROMPT,COMPLETION, of a million tokens each."
            )
        self.spent = 0.0
        self.untold = 0
        self._price, self._limit = price, limit

    @property
    def empty(self) -> bool:
        """Whether the limit is reached."""
        return self._limit is not None and self.spent >= self._limit

    @property
    def sentence(self) -> str:
        """What is said when it is empty."""
        currency = self._price.currency if self._price else ""
        return f"The run's money is spent ({self._limit:g} {currency}, --max-cost)."

    @property
    def bill(self) -> str:
        """What is said when the run is over."""
        price = self._price
        if price is None:
            return "Cost unknown: the model's price is not in the table; --price gives one."
        more = f"; that of {self.untold} replies is unknown" if self.untold else ""
        dated = f", {price.date}" if price.date else ""
        return (
            f"Cost {self.spent:.4f} {price.currency}, at {price.prompt:g} and {price.completion:g} "
            f"a million prompt and reply tokens ({price.source}{dated}){more}."
        )

    def pay(self, reply: Reply) -> None:
        """Take out what a reply cost.

        Raises:
            CostUnknown: There is a limit, and the cost cannot be told.
        """
        if reply.stop_reason in ("stop", "length") and not reply.cached:
            self._take(self._cost(reply.prompt_tokens, reply.completion_tokens))

    def over(self, episodes: Iterable[Episode]) -> Iterator[Episode]:
        """Hand on what earlier sessions played, and take out what it cost.

        What they wrote down counts, else today's price.

        Raises:
            CostUnknown: There is a limit, and the cost of a turn cannot be told.
        """
        for episode in episodes:
            for turn in episode.turns:
                if not turn.cached:
                    self._take(self._noted(turn))
            yield episode

    def remember(self, spent: float) -> None:
        """Know of what earlier sessions spent, also on episodes that they did not record."""
        self.spent = max(self.spent, spent)

    def _noted(self, turn: Turn) -> float | None:
        if turn.cost is not None:
            return turn.cost
        return self._cost(turn.prompt_tokens, turn.completion_tokens)

    def _cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        return self._price.cost(prompt_tokens, completion_tokens) if self._price else None

    def _take(self, cost: float | None) -> None:
        if cost is not None:
            self.spent += cost
            return
        self.untold += 1
        if self._limit is not None:
            raise CostUnknown(
                "--max-cost cannot be kept: the server does not count the tokens of a reply, or a "
                "prompt is longer than the price holds for; give the command without it."
            )


class Metered:
    """A model whose requests are paid for from a purse; with an empty one nothing is sent.

    Requests in flight when the purse runs empty are still paid, so what is spent may exceed the
    limit by as much as those cost.

    Attributes:
        name: Of the model within, like all below.
        concurrency: How many requests it serves well at once.
        settings: What a second person needs to repeat it.
        gauge: Where its requests stand now.
    """

    def __init__(self, model: Model, purse: Purse) -> None:
        """Wrap a model."""
        self.name = model.name
        self.concurrency = model.concurrency
        self.settings: dict[str, Any] = model.settings
        self.gauge: Gauge = model.gauge
        self._model, self._purse = model, purse

    async def reply(self, request: Request) -> Reply:
        """Answer one request, or say `cost_limit`.

        Raises:
            CostUnknown: There is a limit, and the cost of the reply cannot be told.
        """
        if self._purse.empty:
            return Reply("", stop_reason="cost_limit", error=self._purse.sentence)
        reply = await self._model.reply(request)
        self._purse.pay(reply)
        return reply

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()
