"""What all models behind a network have in common: address, key, retries, and how many at once.

The clients' own retries are off; the loop here sends again after named faults, a bounded number of
times, and after nothing else. The key comes from the environment alone, goes to the given address,
and stands in no setting, no file, no `repr` and no error text: where a server repeats it, it is cut
out. The same holds for what is secret in the address: user, password and parameters.

What becomes of each answer:

- a reply: `stop`, or `length` if it was cut at `max_tokens`;
- a connection error, a time-out, status 408, 409, 429 or 5xx but for 501 and 505, a body that is no
  completion, or one that is empty: sent again after a pause that doubles, and not before
  `Retry-After`, which then holds for all requests; after the last attempt `provider_error`;
- a refusal because prompt and longest reply do not fit into the context together: sent again with
  the room that is left as the limit, where the server says how much;
- a refusal because the prompt is too long: `context`;
- any other refusal (a wrong key, address or model name, a spent quota, a parameter that the server
  does not know), and a server that has never answered anything after all attempts:
  `FatalProviderError`, since the next request would fare no better.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from agentgym.errors import InvalidOption
from harness.models import FatalProviderError, Order
from harness.models.gate import Gate
from harness.models.refusals import Fault, Refusal
from harness.models.service import Service, hidden, public, without_secrets
from harness.request import Reply, Request

CONCURRENCY = 32
"""Requests in flight at once, at most, if the user does not say."""
KEEP_ALIVE = 3.0
"""Seconds that an idle connection is kept. Many servers close theirs after 5, and a request that
is sent at that moment is lost."""
_OVERLOAD_PAUSE = 4
_OTHER_FILES = 64  # Open files of this process besides its connections.
_Limits = TypeVar("_Limits")


@dataclass(frozen=True)
class Patience:
    """How long a server is borne with.

    Attributes:
        retries: Attempts after the first.
        timeout: Seconds that one attempt may take.
        connect: Seconds of them for the connection.
        pause: Seconds before the first retry; doubles each time. Four times as long where there
            were too many requests: together that is a minute, for which many providers count them.
        longest_pause: Seconds; also the most that a `Retry-After` is followed.
    """

    retries: int = 5
    timeout: float = 600.0
    connect: float = 10.0
    pause: float = 0.5
    longest_pause: float = 60.0


class Errors(NamedTuple):
    """The exceptions by which a client says that there is no reply.

    Attributes:
        connection: It cannot be reached, or the connection broke; a time-out of the client's too,
            which can only be one of connecting, since the time of an attempt is limited by us.
        status: It refused.
    """

    connection: type[Exception]
    status: type[Exception]


class Remote(ABC):
    """A model behind a network.

    Attributes:
        name: As given to `--model`.
        concurrency: Requests in flight at once, at most.
        settings: Address without any password in it, model name and sampling, for `run.json`.
        gauge: Where its requests stand now.
    """

    def __init__(self, order: Order, service: Service, patience: Patience | None) -> None:
        """Read address and key from order and environment; nothing is sent yet.

        Raises:
            InvalidOption: The address is no URL, the key is missing where it is needed, or the
                system does not allow as many connections.
        """
        self.name = order.name
        self.concurrency = order.concurrency or CONCURRENCY
        allow_connections(self.concurrency)
        self._order = order
        self._service = service
        self._url = service.address(order.base_url)
        self.settings: dict[str, Any] = {
            "base_url": public(self._url),
            "model": order.name.removeprefix(service.prefix),
            "sampling": order.sampling.settings(None, None),
        }
        self._key = service.key(self._url)
        self._hidden = hidden(self._url, self._key)
        self._patience = patience or Patience()
        self._gate = Gate(self.concurrency)
        self.gauge = self._gate.gauge
        self._reached = False

    @property
    @abstractmethod
    def _errors(self) -> Errors:
        """The client's exceptions."""

    @abstractmethod
    async def _ask(self, request: Request) -> Reply | Fault:
        """Send a request once and read the answer; raises the client's exceptions."""

    @abstractmethod
    def _refusal(self, fault: Any) -> Refusal:
        """What the client's exception for a status says."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""

    def _amended(self, refusal: Refusal, request: Request) -> Request | None:
        """The request in a form that may be accepted after a refusal; None if there is none."""
        room = refusal.room() or 0
        fits = max(1, request.reserve) <= room < request.max_tokens
        return replace(request, max_tokens=room) if fits else None

    async def reply(self, request: Request) -> Reply:
        """Answer one request, with retries.

        Raises:
            FatalProviderError: The server refuses and will go on refusing, or is not there.
        """
        asked = time.perf_counter()
        faults: Counter[str] = Counter()
        fault = Fault("", "")
        for attempt in range(self._patience.retries + 1):
            if attempt:
                await self._rest(attempt, fault)
            answer = await self._pass_gate(request, asked, faults)
            if isinstance(answer, Reply):
                return answer
            fault = answer
            faults[fault.name] += 1
        return self._give_up(fault, faults, time.perf_counter() - asked)

    async def _rest(self, attempt: int, fault: Fault) -> None:
        self.gauge.retries += 1
        # A longer one that the server asks for is the gate's, and runs meanwhile.
        first = self._patience.pause * (_OVERLOAD_PAUSE if fault.overload else 1)
        await self._gate.pause(min(first * 2 ** (attempt - 1), self._patience.longest_pause))

    async def _pass_gate(
        self, request: Request, asked: float, faults: Mapping[str, int]
    ) -> Reply | Fault:
        async with self._gate.slot() as burst:
            began = time.perf_counter()
            answer = await self._attempt(request)
            if isinstance(answer, Reply):
                self._gate.well()
                return replace(
                    answer,
                    seconds_waiting=began - asked,
                    seconds_generating=time.perf_counter() - began,
                    retries=sum(faults.values()),
                    faults={**faults, **answer.faults},
                )
            if answer.overload:
                self._gate.too_many(burst)
            if answer.retry_after is not None:
                self._gate.hold(min(answer.retry_after, self._patience.longest_pause))
            return answer

    async def _attempt(self, request: Request) -> Reply | Fault:
        errors = self._errors
        try:
            async with asyncio.timeout(self._patience.timeout):
                answer = await self._ask(request)
        except TimeoutError:
            return Fault("timeout", f"no answer within {self._patience.timeout:g} seconds")
        except errors.connection as fault:
            cause = fault.__cause__ or fault
            said = self._clean(str(cause) or type(cause).__name__)
            return Fault("connection", f"no connection: {said}")
        except errors.status as fault:
            refusal = self._refusal(fault)
        else:
            self._reached = True
            return self._checked(answer, request) if isinstance(answer, Reply) else answer
        self._reached = True
        return await self._refused(refusal, request)

    def _checked(self, reply: Reply, request: Request) -> Reply:
        """The reply without secrets; `context` if the server shortened it below the reserve."""
        cut, length = reply.stop_reason == "length", reply.completion_tokens
        if cut and length is not None and length < request.reserve:
            error = f"The context had room for {length} tokens of the reply beside the prompt."
            return replace(reply, text="", reasoning="", stop_reason="context", error=error)
        if not self._hidden:
            return reply
        calls = (c._replace(arguments=without(c.arguments, self._hidden)) for c in reply.tool_calls)
        return replace(
            reply,
            text=without(reply.text, self._hidden),
            reasoning=without(reply.reasoning, self._hidden),
            tool_calls=tuple(calls),
        )

    async def _refused(self, refusal: Refusal, request: Request) -> Reply | Fault:
        if fault := refusal.fault():
            return fault
        if amended := self._amended(refusal, request):
            return await self._attempt(amended)
        if refusal.too_long():
            error = f"The prompt is too long: {refusal.said}"
            return Reply("", stop_reason="context", error=error)
        advice, where = self._service.advice(refusal.status), self.settings["base_url"]
        # Not chained: the cause would repeat the server's text, and that may repeat the key.
        raise FatalProviderError(
            f"{where} refuses {self.name!r} (status {refusal.status}: {refusal.said}); {advice}."
        ) from None

    def _give_up(self, fault: Fault, faults: Mapping[str, int], waited: float) -> Reply:
        retries, where = self._patience.retries, self.settings["base_url"]
        if not self._reached:
            raise FatalProviderError(
                f"No server answers at {where} ({fault.sentence}); start it, or check --base-url."
            )
        error = f"{where} gave no usable reply in {retries + 1} attempts; last: {fault.sentence}."
        return Reply(
            "",
            stop_reason="provider_error",
            error=error,
            seconds_waiting=waited,
            retries=retries,
            faults=dict(faults),
        )

    def _clean(self, text: str) -> str:
        return one_line(text, self._hidden)


def one_line(text: str, hidden: Iterable[str]) -> str:
    """A server's or a client's own words in one line of at most 300 characters, without secrets.

    Args:
        text: The words, in which addresses may stand.
        hidden: What `service.hidden` found.
    """
    words = " ".join(without(without_secrets(text), hidden).split()).rstrip(".")
    return words if len(words) <= 300 else f"{words[:297]}..."


def without(text: str, hidden: Iterable[str]) -> str:
    """The text with all that is hidden cut out."""
    for secret in hidden:
        text = text.replace(secret, "[key]")
    return text


def limits(kind: type[_Limits], connections: int) -> _Limits:
    """The limits of an HTTP client, so that it holds back no request that the gate lets through.

    Args:
        kind: The client library's class of such limits.
        connections: As many as there are requests at once.
    """
    make: Any = kind
    return make(
        max_connections=connections,
        max_keepalive_connections=connections,
        keepalive_expiry=KEEP_ALIVE,
    )


def allow_connections(connections: int) -> None:
    """Raise the system's limit of open files, if it is too low, as far as it lets itself be raised.

    Raises:
        InvalidOption: It does not reach.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = math.inf if hard == resource.RLIM_INFINITY else hard
    needed = connections + _OTHER_FILES
    if needed > most:
        raise InvalidOption(
            f"concurrency is at most {hard - _OTHER_FILES} here, where the system allows {hard} "
            f"open files, got {connections}."
        )
    if soft != resource.RLIM_INFINITY and needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def unless_one(sampling: Mapping[str, Any]) -> dict[str, float]:
    """Temperature and top-p as they are sent where 1, the provider's default, may be refused.

    Args:
        sampling: Of a model's settings.
    """
    chosen = {name: sampling[name] for name in ("temperature", "top_p")}
    return {name: value for name, value in chosen.items() if value not in (None, 1)}


def count(usage: Mapping[str, Any], name: str) -> int | None:
    """A number of tokens that a server tells; None where it tells none.

    Args:
        usage: What it tells.
        name: Of the number.
    """
    value = usage.get(name)
    return value if isinstance(value, int) else None
