"""Any OpenAI-compatible server, through the official client.

The client's own retries are off; the loop here sends again after the faults that are named below,
a bounded number of times, and after nothing else. The key comes from `OPENAI_API_KEY` alone, goes
to the given address, and stands in no setting, no file, no `repr` and no error text: where a server
repeats it, it is cut out.

What becomes of each answer:

- a reply: `stop`, or `length` if it was cut at `max_tokens`;
- a connection error, a time-out, status 408, 409, 429, 500, 502, 503 or 504, a body that is no
  JSON, no choice in it, or neither content nor reasoning: sent again after a pause that doubles, or
  as long as `Retry-After` says; after the last attempt `provider_error`;
- a refusal because the prompt is too long: `context`;
- any other refusal (a wrong key, address or model name, a spent quota, a parameter that the server
  does not know), and a server that has never answered anything after all attempts:
  `FatalProviderError`, since the next request would fare no better.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import os
import re
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit, urlunsplit

import openai

from agentgym.errors import InvalidOption
from harness.models import OPENAI, FatalProviderError, Order, request_digest
from harness.request import Gauge, Reply, Request

DEFAULT_URL = "https://api.openai.com/v1"
CONCURRENCY = 32
"""Requests in flight at once if the user does not say."""
_NO_KEY = "none"
_SECRET = 12
_MOST_CONNECTIONS = 1000  # The client's own limit, of which it makes no option.
_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504})
_TOO_LONG = re.compile(
    r"context.?(length|size|window)|maximum context|(prompt|input) is too long|input token count"
    r"|max_new_tokens` must be",
    re.IGNORECASE,
)
_ADVICE = {
    401: "set OPENAI_API_KEY to a key of this server",
    403: "the key in OPENAI_API_KEY may not use this model",
    404: "check --base-url (most end in /v1) and the model's name",
    429: "the account's quota is spent; add credit and give the same command again",
}


@dataclass(frozen=True)
class Patience:
    """How long a server is borne with.

    Attributes:
        retries: Attempts after the first.
        timeout: Seconds that one attempt may take.
        connect: Seconds of them for the connection.
        pause: Seconds before the first retry; doubles each time.
        longest_pause: Seconds; also the most that a `Retry-After` is followed.
    """

    retries: int = 5
    timeout: float = 600.0
    connect: float = 10.0
    pause: float = 0.5
    longest_pause: float = 60.0


def load_openai(order: Order) -> OpenAIModel:
    """The model NAME of the name `openai/NAME`.

    Raises:
        InvalidOption: The address is no URL, the key is missing where it is needed, or the
            concurrency is beyond the client's connections.
    """
    return OpenAIModel(order)


class OpenAIModel:
    """A model behind an OpenAI-compatible server.

    Attributes:
        name: As given to `--model`.
        concurrency: Requests in flight at once.
        settings: Address without any password in it, model name and sampling, for `run.json`.
        gauge: Where its requests stand now.
    """

    def __init__(self, order: Order, patience: Patience | None = None) -> None:
        """Read the key from the environment; nothing is sent yet."""
        url = (order.base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/")
        self.name = order.name
        self.concurrency = _connections(order)
        self.settings: dict[str, Any] = {
            "base_url": _public(url),
            "model": order.name.removeprefix(OPENAI),
            "sampling": order.sampling.settings(None, None),
        }
        self.gauge = Gauge(limit=self.concurrency)
        self._seed = order.sampling.seed
        self._patience = patience or Patience()
        self._key = _key(url)
        # OpenAI's newer models refuse the old name; other servers know the old one.
        self._limit = "max_completion_tokens" if url == DEFAULT_URL else "max_tokens"
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=url,
            max_retries=0,
            timeout=openai.Timeout(self._patience.timeout, connect=self._patience.connect),
        )
        self._slots = asyncio.Semaphore(self.concurrency)
        self._reached = False

    async def reply(self, request: Request) -> Reply:
        """Answer one request, with retries.

        Raises:
            FatalProviderError: The server refuses and will go on refusing, or is not there.
        """
        asked = time.perf_counter()
        async with self._slots:
            fault, began = _Fault(""), asked
            for attempt in range(self._patience.retries + 1):
                if attempt:
                    await asyncio.sleep(self._pause(attempt, fault))
                began = time.perf_counter()
                answer = await self._attempt(request)
                if isinstance(answer, Reply):
                    worked = time.perf_counter() - began
                    return replace(
                        answer,
                        seconds_waiting=began - asked,
                        seconds_generating=worked,
                        retries=attempt,
                    )
                fault = answer
        return self._give_up(fault, time.perf_counter() - asked)

    def _give_up(self, fault: _Fault, waited: float) -> Reply:
        retries, where = self._patience.retries, self.settings["base_url"]
        if not self._reached:
            raise FatalProviderError(
                f"No server answers at {where} ({fault.sentence}); start it, or check --base-url."
            )
        error = f"{where} gave no usable reply in {retries + 1} attempts; last: {fault.sentence}."
        return Reply(
            "", stop_reason="provider_error", error=error, seconds_waiting=waited, retries=retries
        )

    def _pause(self, attempt: int, fault: _Fault) -> float:
        doubled = self._patience.pause * 2 ** (attempt - 1)
        wanted = doubled if fault.retry_after is None else fault.retry_after
        return min(wanted, self._patience.longest_pause)

    async def _attempt(self, request: Request) -> Reply | _Fault:
        try:
            async with asyncio.timeout(self._patience.timeout):
                body = await self._send(request)
        except (openai.APITimeoutError, TimeoutError):
            return _Fault(f"no answer within {self._patience.timeout:g} seconds")
        except openai.APIConnectionError as fault:
            cause = fault.__cause__ or fault
            return _Fault(f"no connection: {self._clean(str(cause) or type(cause).__name__)}")
        except openai.APIStatusError as fault:
            self._reached = True
            return self._refused(fault)
        self._reached = True
        found = _read(body)
        if isinstance(found, Reply):
            text, reasoning = self._without_key(found.text), self._without_key(found.reasoning)
            return replace(found, text=text, reasoning=reasoning)
        return found

    async def _send(self, request: Request) -> str:
        sampling = self.settings["sampling"]
        chosen = {name: sampling[name] for name in ("temperature", "top_p")}
        raw = await self._client.chat.completions.with_raw_response.create(
            model=self.settings["model"],
            messages=cast(Any, list(request.messages)),
            seed=request_digest(self._seed, request.key) % 2**31,
            extra_body={
                self._limit: request.max_tokens,
                **{name: value for name, value in chosen.items() if value is not None},
            },
        )
        return raw.http_response.text

    def _refused(self, fault: openai.APIStatusError) -> Reply | _Fault:
        status, said = fault.status_code, self._clean(_message(fault))
        if status not in _TRANSIENT and _TOO_LONG.search(f"{said} {fault.code} {fault.type}"):
            return Reply("", stop_reason="context", error=f"The prompt is too long: {said}")
        if status in _TRANSIENT and fault.code != "insufficient_quota":
            return _Fault(f"status {status}, {said}", _retry_after(fault.response.headers))
        advice = _ADVICE.get(status, "check the model's name and the sampling options")
        where, whom = self.settings["base_url"], self.name
        # Not chained: the cause would repeat the server's text, and that may repeat the key.
        raise FatalProviderError(
            f"{where} refuses {whom!r} (status {status}: {said}); {advice}."
        ) from None

    def _clean(self, text: str) -> str:
        """A server's own words in one line of at most 300 characters, without the key."""
        words = " ".join(self._without_key(text).split()).rstrip(".")
        return words if len(words) <= 300 else f"{words[:297]}..."

    def _without_key(self, text: str) -> str:
        # A short key is a local server's dummy, and its letters may stand in any reply.
        return text.replace(self._key, "[key]") if len(self._key) >= _SECRET else text

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


class _Fault(NamedTuple):
    """Why there is no reply this time."""

    sentence: str
    retry_after: float | None = None


def _connections(order: Order) -> int:
    wanted = order.concurrency or CONCURRENCY
    if wanted > _MOST_CONNECTIONS:
        raise InvalidOption(
            f"concurrency is at most {_MOST_CONNECTIONS} with openai/NAME, got {wanted}."
        )
    return wanted


def _key(url: str) -> str:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and url == DEFAULT_URL:
        raise InvalidOption(
            f"{DEFAULT_URL} needs a key; set the environment variable OPENAI_API_KEY, or give the "
            "address of another server with --base-url."
        )
    return key or _NO_KEY


def _public(url: str) -> str:
    """The address without user, password and query, which may be secret."""
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        named, parts = False, urlsplit("")
    if not named:
        raise InvalidOption(
            f"base_url is an address such as http://127.0.0.1:8000/v1, got {url!r}."
        )
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _message(fault: openai.APIStatusError) -> str:
    body = fault.body
    if isinstance(body, dict):
        said = cast(dict[str, Any], body).get("message")
        return str(said or body)
    return str(body or "no reason given")


def _retry_after(headers: Any) -> float | None:
    """Seconds that the header `Retry-After` asks for, given as such or as a date."""
    value = str(headers.get("retry-after", ""))
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def _read(body: str) -> Reply | _Fault:
    """A chat completion as a reply."""
    try:
        answer = json.loads(body)
        choice = answer["choices"][0]
        message, cut = choice["message"], choice.get("finish_reason") == "length"
        content = message.get("content")
        reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
        usage = answer.get("usage") or {}
        prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    except (ValueError, LookupError, TypeError, AttributeError):
        return _Fault("a body that is no chat completion")
    if content is None and not reasoning and not cut:
        return _Fault("a choice without content")
    return Reply(
        str(content or ""),
        reasoning=str(reasoning),
        stop_reason="length" if cut else "stop",
        prompt_tokens=prompt,
        completion_tokens=completion,
    )


def _count(usage: dict[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) else None
