"""Anthropic's models, through the official client; `harness.models.remote` has the rules.

Two things differ from an OpenAI-compatible server. There is no seed, so `run.json` says none. And
models after Claude 4.6 take no sampling, nor do older ones take temperature and top-p together; the
API's version 2026-10-21, which the client asks for since its release 2, takes none for any model.
So the version before is asked for, which lets older models have it, and a temperature or top-p of
1, which changes nothing, is not sent: `--temperature 1 --top-p 1` plays every model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anthropic

from harness.models import Order
from harness.models.refusals import Fault, Refusal, retry_after, words
from harness.models.remote import Errors, Patience, Remote, count, limits, unless_one
from harness.models.service import Service, public, secrets
from harness.request import Message, Reply, Request, ToolCall

SERVICE = Service(
    prefix="anthropic/",
    url="https://api.anthropic.com",
    url_variable="ANTHROPIC_BASE_URL",
    key_variables=("ANTHROPIC_API_KEY",),
)
_VERSION = {"anthropic-version": "2023-06-01"}


def load_anthropic(order: Order) -> AnthropicModel:
    """The model NAME of the name `anthropic/NAME`.

    Raises:
        InvalidOption: The address is no URL, the key is missing, or the system does not allow as
            many connections.
    """
    return AnthropicModel(order)


class AnthropicModel(Remote):
    """A model of Anthropic; its attributes are those of `Remote`."""

    def __init__(self, order: Order, patience: Patience | None = None) -> None:
        """Read the key from the environment; nothing is sent yet."""
        super().__init__(order, SERVICE, patience)
        self.settings["sampling"]["seed"] = None
        login = secrets(self._url)
        self._client = anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=public(self._url),
            default_headers=_VERSION | login.headers,
            default_query=login.query,
            max_retries=0,
            timeout=anthropic.Timeout(None, connect=self._patience.connect),
            http_client=anthropic.DefaultAsyncHttpxClient(
                limits=limits(type(anthropic.DEFAULT_CONNECTION_LIMITS), self.concurrency)
            ),
        )

    @property
    def _errors(self) -> Errors:
        return Errors(anthropic.APIConnectionError, anthropic.APIStatusError)

    async def _ask(self, request: Request) -> Reply | Fault:
        return read(await self._client.post("/v1/messages", cast_to=str, body=self._body(request)))

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.settings["model"],
            "max_tokens": request.max_tokens,
            "system": "\n\n".join(m["content"] for m in request.messages if m["role"] == "system"),
            "messages": conversation(request.messages),
            "tools": [_tool(tool["function"]) for tool in request.tools],
        }
        body |= unless_one(self.settings["sampling"])
        return {name: value for name, value in body.items() if value not in ("", [])}

    def _refusal(self, fault: Any) -> Refusal:
        headers = fault.response.headers
        said = self._clean(words(fault.body))
        return Refusal(fault.status_code, said, "", retry_after(headers))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def conversation(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages but for the system's, in Anthropic's form.

    Args:
        messages: In the form of OpenAI's chat completions.
    """
    turns: list[dict[str, Any]] = []
    for each in messages:
        if each["role"] == "system":
            continue
        role, blocks = ("user" if each["role"] == "tool" else each["role"]), _blocks(each)
        if turns and turns[-1]["role"] == role:  # A call's result and what the user says after it.
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(said: Message) -> list[dict[str, Any]]:
    if said["role"] == "tool":
        result = {"tool_use_id": said.get("tool_call_id", ""), "content": said["content"]}
        return [{"type": "tool_result", **result}]
    calls = [_use(call) for call in said.get("tool_calls", ())]
    # An empty block of text is refused; a message must have some block, though.
    text = [{"type": "text", "text": said["content"]}] if said["content"].strip() else []
    return text + calls or [{"type": "text", "text": "(nothing)"}]


def _use(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    given = ToolCall(function["name"], function["arguments"]).given()
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": given}


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    described = {"name": function["name"], "input_schema": function["parameters"]}
    return described | {"description": function.get("description", "")}


def read(body: str) -> Reply | Fault:
    """A message of Anthropic's as a reply."""
    try:
        answer = json.loads(body)
        blocks: list[dict[str, Any]] = answer["content"]
        calls = (block for block in blocks if block["type"] == "tool_use")
        cut = answer.get("stop_reason") in ("max_tokens", "model_context_window_exceeded")
        reply = Reply(
            _joined(blocks, "text"),
            reasoning=_joined(blocks, "thinking"),
            stop_reason="length" if cut else "stop",
            prompt_tokens=_prompt_tokens(answer.get("usage") or {}),
            completion_tokens=count(answer.get("usage") or {}, "output_tokens"),
            tool_calls=tuple(ToolCall(call["name"], json.dumps(call["input"])) for call in calls),
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return Fault("not a completion", "a body that is no message")
    # A model that refuses, or has nothing to add, may end its turn at once.
    if not blocks and not answer.get("stop_reason"):
        return Fault("empty", "a message without content")
    return reply


def _joined(blocks: Sequence[dict[str, Any]], kind: str) -> str:
    return "".join(block[kind] for block in blocks if block["type"] == kind)


def _prompt_tokens(usage: dict[str, Any]) -> int | None:
    """All of the prompt: what was new, what was put into the cache and what came out of it."""
    new = count(usage, "input_tokens")
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    return None if new is None else new + sum(count(usage, name) or 0 for name in cached)
