"""Any OpenAI-compatible server, through the official client; `harness.models.remote` has the rules.

Sent are the messages, the limit of the reply, a seed, and the sampling that was asked for, which is
never left out; only OpenAI itself is not sent a temperature or top-p of 1, its default, which its
newer models refuse to be told. Other parameters are ours, so a server that refuses one gets the
request again without it, from then on, and each reply says so: `seed`, which OpenAI's newer models
refuse;
`return_token_ids`, which is vLLM's; and for open weights what turns off the cuts and penalties that
servers add by default, from the weights' `generation_config.json` (vLLM, SGLang) or of their own
(llama.cpp). Where a server wants the limit under its newer name it gets that.

The reasoning field goes by two names: `reasoning_content` (llama.cpp, SGLang, vLLM before 0.12) and
`reasoning` (vLLM, OpenRouter).
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai

from agentgym.errors import MissingExtra, UnknownName
from harness.models import FatalProviderError, Order, request_digest
from harness.models.refusals import Fault, Refusal, retry_after, words
from harness.models.remote import Errors, Patience, Remote, count, limits, one_line, unless_one
from harness.models.service import Service, hidden, loopback, public, secrets
from harness.request import Reply, Request, ToolCall

__all__ = ["CONCURRENCY", "SERVICE", "OpenAIModel", "Patience", "load_openai", "load_server"]

CONCURRENCY = 64
"""Requests in flight at once, at most, to a server with open weights if the user does not say."""

SERVICE = Service(
    prefix="openai/",
    url="https://api.openai.com/v1",
    url_variable="OPENAI_BASE_URL",
    key_variables=("OPENAI_API_KEY",),
    hint=" (most end in /v1)",
)
_NEUTRAL = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
_OURS = ("seed", "return_token_ids", *_NEUTRAL)
_OLD_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"
_RENAMED = re.compile(rf"\buse\W+{_NEW_LIMIT}", re.IGNORECASE)
_BROKEN = frozenset({"error", "abort"})  # How vLLM and SGLang end a reply that failed half-way.


def load_openai(order: Order) -> OpenAIModel:
    """The model NAME of the name `openai/NAME`.

    Raises:
        InvalidOption: The address is no URL, the key is missing where it is needed, or the system
            does not allow as many connections.
    """
    return OpenAIModel(order)


def load_server(order: Order) -> OpenAIModel:
    """Open weights behind a server that somebody has started.

    The server is asked which models it has: the weights' own name, else the name that was given to
    `--model`, else the only one that there is. `run.json` says which, beside the weights.

    Raises:
        InvalidOption: As for `load_openai`.
        UnknownName: The server has several models, and none of these.
        FatalProviderError: It is not there, or refuses.
    """
    served = _served(order, SERVICE.address(order.base_url))
    return OpenAIModel(replace(order, concurrency=order.concurrency or CONCURRENCY), served=served)


class OpenAIModel(Remote):
    """A model behind an OpenAI-compatible server.

    Attributes:
        name: As given to `--model`.
        concurrency: Requests in flight at once, at most.
        settings: Address without any password in it, model name, sampling, and for open weights
            which and in which thinking mode, for `run.json`.
        gauge: Where its requests stand now.
    """

    def __init__(
        self, order: Order, patience: Patience | None = None, *, served: str | None = None
    ) -> None:
        """Read the key from the environment; nothing is sent yet.

        Args:
            order: What was asked for.
            patience: How long the server is borne with.
            served: The server's name of the model; None takes it from the order's.
        """
        super().__init__(order, SERVICE, patience)
        if served is not None:
            folder = Path(order.weights).expanduser()
            named = folder.name if folder.is_dir() else order.weights
            self.settings |= {"model": served, "weights": named, "thinking": order.thinking}
            self.settings["sampling"] |= _NEUTRAL
        # OpenAI's newer models refuse the old name; other servers know the old one.
        self._limit = _NEW_LIMIT if self._url == SERVICE.url else _OLD_LIMIT
        self._sampling = self._sent_sampling()
        self._tool_choice: dict[str, str] = {}
        self._refuses: set[str] = set()
        login = secrets(self._url)
        self._address = f"{public(self._url)}/chat/completions"
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=public(self._url),
            default_headers=login.headers,
            default_query=login.query,
            max_retries=0,
            timeout=openai.Timeout(None, connect=self._patience.connect),
            http_client=_http_client(self.concurrency, self._url),
        )

    @property
    def _errors(self) -> Errors:
        return Errors(openai.APIConnectionError, openai.APIStatusError)

    async def _ask(self, request: Request) -> Reply | Fault:
        # The client's typed method takes three times as long, most of it to check the messages.
        # The whole address, since the client takes time to put one together for each request.
        whole = self._body(request)
        sent = {name: value for name, value in whole.items() if name not in self._refuses}
        answer = read(await self._client.post(self._address, cast_to=str, body=sent))
        if len(sent) == len(whole) or isinstance(answer, Fault):
            return answer
        return replace(answer, faults={f"without {name}": 1 for name in whole if name not in sent})

    def _body(self, request: Request) -> dict[str, Any]:
        order = self._order
        body: dict[str, Any] = {
            "model": self.settings["model"],
            "messages": request.messages,
            self._limit: request.max_tokens,
            **self._sampling,
            "seed": request_digest(order.sampling.seed, request.key) % 2**31,
        }
        if request.tools:
            body |= {"tools": request.tools, **self._tool_choice}
        if order.thinking is not None:
            body["chat_template_kwargs"] = {"enable_thinking": order.thinking}
        if order.logprobs:
            body |= {"logprobs": True, "return_token_ids": True}
        return body

    def _sent_sampling(self) -> dict[str, float]:
        sampling = self.settings["sampling"]
        if self._url == SERVICE.url:
            return unless_one(sampling)
        names = ("temperature", "top_p", *_NEUTRAL)
        return {name: sampling[name] for name in names if sampling.get(name) is not None}

    def _refusal(self, fault: Any) -> Refusal:
        said = self._clean(words(fault.body))
        return Refusal(
            fault.status_code,
            said,
            f"{fault.code} {fault.type}",
            retry_after(fault.response.headers),
            _ours(fault, said),
        )

    def _amended(self, refusal: Refusal, request: Request) -> Request | None:
        if refusal.ours == _OLD_LIMIT:
            self._limit = _NEW_LIMIT
        elif refusal.ours:
            self._refuses.add(refusal.ours)
        return request if refusal.ours else super()._amended(refusal, request)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _http_client(connections: int, url: str) -> Any:
    """The client's own one on aiohttp, which needs half the time for a request of that on httpx."""
    room = limits(type(openai.DEFAULT_CONNECTION_LIMITS), connections)
    try:
        return openai.DefaultAioHttpClient(limits=room, trust_env=not loopback(url))
    except RuntimeError as fault:  # So says the client where the package is missing.
        raise MissingExtra.of("A model of a server", "aiohttp", "harness") from fault


def _ours(fault: Any, said: str) -> str:
    """Which of our parameters the refused request held, and the refusal names."""
    try:
        sent = json.loads(fault.request.content)
    except ValueError:
        return ""
    for name in _OURS:
        if name in sent and (fault.param == name or re.search(rf"\b{name}\b", said)):
            return name
    return _OLD_LIMIT if _OLD_LIMIT in sent and _RENAMED.search(said) else ""


def _served(order: Order, url: str) -> str:
    """The server's name for the weights."""
    where, key, login = public(url), SERVICE.key(url), secrets(url)
    client = openai.OpenAI(
        api_key=key,
        base_url=where,
        default_headers=login.headers,
        default_query=login.query,
        timeout=30.0,
        http_client=openai.DefaultHttpxClient(trust_env=not loopback(url)),
    )
    try:
        with client:
            names = [str(model.id) for model in client.models.list()]
    except openai.NotFoundError:
        return order.weights  # A server without such a list knows its model by the common name.
    except (openai.APIError, ValueError, TypeError) as fault:
        cause = fault.__cause__ if isinstance(fault, openai.APIConnectionError) else None
        said = one_line(str(cause or fault), hidden(url, key))
        raise FatalProviderError(
            f"{where} does not say which models it has ({said}); "
            "start the server, or check --base-url (most end in /v1) and OPENAI_API_KEY."
        ) from None
    for name in (order.weights, order.name):
        if name in names:
            return name
    if len(names) == 1:
        return names[0]
    raise UnknownName.of(f"model of the server, asked for as {order.weights};", order.name, names)


def read(body: str) -> Reply | Fault:
    """A chat completion as a reply."""
    try:
        answer = json.loads(body)
        choice = answer["choices"][0]
        reply = _reply(choice, answer.get("usage") or {})
        if choice.get("finish_reason") in _BROKEN:
            return Fault("not a completion", "a reply that the server broke off")
        if choice["message"].get("content") is None and _empty(reply):
            return Fault("empty", "a choice without content")
        return _with_tokens(reply, answer, choice)
    except (ValueError, LookupError, TypeError, AttributeError):
        return Fault("not a completion", "a body that is no chat completion")


def _empty(reply: Reply) -> bool:
    return not (reply.reasoning or reply.tool_calls or reply.stop_reason == "length")


def _reply(choice: dict[str, Any], usage: dict[str, Any]) -> Reply:
    said = choice["message"]
    return Reply(
        str(said.get("content") or ""),
        reasoning=str(said.get("reasoning_content") or said.get("reasoning") or ""),
        stop_reason="length" if choice.get("finish_reason") == "length" else "stop",
        prompt_tokens=count(usage, "prompt_tokens"),
        completion_tokens=count(usage, "completion_tokens"),
        tool_calls=tuple(_call(call["function"]) for call in said.get("tool_calls") or ()),
    )


def _call(function: dict[str, Any]) -> ToolCall:
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(str(function["name"]), text)


def _with_tokens(reply: Reply, answer: dict[str, Any], choice: dict[str, Any]) -> Reply:
    """The reply with token ids and log-probabilities, as far as the server gave them."""
    prompt, ids = answer.get("prompt_token_ids"), choice.get("token_ids")
    listed = (choice.get("logprobs") or {}).get("content")
    if prompt is None and ids is None and listed is None:
        return reply
    logprobs = None if listed is None else tuple(float(token["logprob"]) for token in listed)
    if ids is not None and logprobs is not None and len(ids) != len(logprobs):
        logprobs = None  # Nobody could say which token each belongs to.
    return replace(
        reply,
        prompt_ids=None if prompt is None else tuple(prompt),
        completion_ids=None if ids is None else tuple(ids),
        logprobs=logprobs,
    )
