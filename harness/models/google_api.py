"""Google's models, through the official client; `harness.models.remote` has the rules.

Parts that the server marks as thoughts are kept apart as reasoning. Tokens of thoughts count as
reply tokens, as they are paid. A prompt or a reply that a filter blocks is a reply without text:
the next request would fare no better.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import httpx2
from google import genai
from google.genai import errors, types

from agentgym.errors import InvalidOption
from harness.models import Order, request_digest
from harness.models.refusals import Fault, Refusal, retry_after
from harness.models.remote import Errors, Patience, Remote, count, limits
from harness.models.service import Service
from harness.request import Message, Reply, Request, ToolCall

SERVICE = Service(
    prefix="google/",
    url="https://generativelanguage.googleapis.com",
    url_variable="GOOGLE_GEMINI_BASE_URL",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)
_NAME = re.compile(r"[\w.@:-]+(/[\w.@:-]+)*", re.ASCII)
_UNSIGNED = b"skip_thought_signature_validator"
"""What Google documents for a past tool call that comes without the signature of its thoughts; ours
do, since the conversation holds what the player saw and said, and no more."""


def load_google(order: Order) -> GoogleModel:
    """The model NAME of the name `google/NAME`.

    Raises:
        InvalidOption: The name cannot stand in an address, the address is no URL, the key is
            missing or of another kind, or the system does not allow as many connections.
    """
    return GoogleModel(order)


class GoogleModel(Remote):
    """A model of Google; its attributes are those of `Remote`."""

    def __init__(self, order: Order, patience: Patience | None = None) -> None:
        """Read the key from the environment; nothing is sent yet.

        Raises:
            InvalidOption: As for `load_google`.
        """
        super().__init__(order, SERVICE, patience)
        self._check()
        timeout = httpx2.Timeout(None, connect=self._patience.connect)
        self._http = httpx2.AsyncClient(
            limits=limits(httpx2.Limits, self.concurrency), timeout=timeout, follow_redirects=True
        )
        options = types.HttpOptions(base_url=self._url, httpx_async_client=self._http)
        self._client = genai.Client(vertexai=False, api_key=self._key, http_options=options)

    @property
    def _errors(self) -> Errors:
        # Beside transport: a body that cannot be decoded, and redirects without an end.
        return Errors(httpx2.RequestError, errors.APIError)

    def _check(self) -> None:
        """Refuse what the client would refuse with each request, or put into another address."""
        name = self.settings["model"]
        if not _NAME.fullmatch(name) or ".." in name:
            raise InvalidOption(
                "The name of a model of Google is letters, digits and . _ - @ : with / between "
                f"parts, got {name!r}."
            )
        if self._key.startswith("auth_tokens/"):
            raise InvalidOption(
                "The key is a token of Google's live API, which generates nothing here; set "
                f"{SERVICE.key_variables[0]} to an API key."
            )

    async def _ask(self, request: Request) -> Reply | Fault:
        contents: Any = conversation(request.messages)
        config, name = self._config(request), self.settings["model"]
        try:
            answer = await self._client.aio.models.generate_content(
                model=name, contents=contents, config=config
            )
        except UnicodeDecodeError:  # How the client meets a refusal that is no text.
            return Fault("not a completion", "a refusal that is no text")
        # The body as it came: the client's own reading has no error of its own for a broken one.
        response = answer.sdk_http_response
        return read((response and response.body) or "")

    def _config(self, request: Request) -> types.GenerateContentConfig:
        sampling = self.settings["sampling"]
        system = [m["content"] for m in request.messages if m["role"] == "system"]
        declared = [_declaration(tool["function"]) for tool in request.tools]
        return types.GenerateContentConfig(
            system_instruction="\n\n".join(system) or None,
            temperature=sampling["temperature"],
            top_p=sampling["top_p"],
            seed=request_digest(self._order.sampling.seed, request.key) % 2**31,
            max_output_tokens=request.max_tokens,
            tools=[types.Tool(function_declarations=declared)] if declared else None,
            should_return_http_response=True,
        )

    def _refusal(self, fault: Any) -> Refusal:
        said = self._clean(str(fault.message or fault.details or "no reason given"))
        headers = getattr(fault.response, "headers", None) or {}
        wait = retry_after(headers)
        return Refusal(fault.code, said, str(fault.status), _delay(fault) if wait is None else wait)

    async def close(self) -> None:
        """Close the connections."""
        self._client.close()
        await self._http.aclose()


def conversation(messages: Sequence[Message]) -> list[types.Content]:
    """The messages but for the system's, in Google's form.

    Args:
        messages: In the form of OpenAI's chat completions.
    """
    names: dict[str, str] = {}
    turns: list[types.Content] = []
    for said in messages:
        names |= {call["id"]: call["function"]["name"] for call in said.get("tool_calls", ())}
        if said["role"] != "system":
            role = "model" if said["role"] == "assistant" else "user"
            turns.append(types.Content(role=role, parts=_parts(said, names)))
    return turns


def _parts(said: Message, names: dict[str, str]) -> list[types.Part]:
    if said["role"] == "tool":
        name = names.get(said.get("tool_call_id", ""), "")
        result = {"result": said["content"]}
        return [types.Part(function_response=types.FunctionResponse(name=name, response=result))]
    calls = [_call(call["function"]) for call in said.get("tool_calls", ())]
    text = [types.Part(text=said["content"])] if said["content"] or not calls else []
    return text + calls


def _call(function: dict[str, Any]) -> types.Part:
    call = ToolCall(function["name"], function["arguments"])
    made = types.FunctionCall(name=call.name, args=call.given())
    return types.Part(function_call=made, thought_signature=_UNSIGNED)


def _declaration(function: dict[str, Any]) -> types.FunctionDeclaration:
    return types.FunctionDeclaration(
        name=function["name"],
        description=function.get("description"),
        parameters_json_schema=function["parameters"],
    )


def read(body: str) -> Reply | Fault:
    """A generated content as a reply."""
    try:
        answer = json.loads(body)
        candidates = answer.get("candidates") or []
        if not candidates and not (answer.get("promptFeedback") or {}).get("blockReason"):
            return Fault("not a completion", "a body without candidates")
        first = candidates[0] if candidates else {}
        parts = (first.get("content") or {}).get("parts") or []
        if candidates and not parts and first.get("finishReason") is None:
            return Fault("empty", "a candidate without content")
        return _reply(parts, first.get("finishReason"), answer.get("usageMetadata") or {})
    except (ValueError, LookupError, TypeError, AttributeError):
        return Fault("not a completion", "a body that is no content")


def _reply(parts: Sequence[dict[str, Any]], finish: object, used: dict[str, Any]) -> Reply:
    calls = [part["functionCall"] for part in parts if part.get("functionCall")]
    return Reply(
        "".join(part.get("text") or "" for part in parts if not part.get("thought")),
        reasoning="".join(part.get("text") or "" for part in parts if part.get("thought")),
        stop_reason="length" if finish == "MAX_TOKENS" else "stop",
        prompt_tokens=count(used, "promptTokenCount"),
        completion_tokens=_completion_tokens(used),
        tool_calls=tuple(
            ToolCall(call.get("name") or "", json.dumps(call.get("args") or {})) for call in calls
        ),
    )


def _completion_tokens(used: dict[str, Any]) -> int | None:
    counts = [count(used, name) for name in ("candidatesTokenCount", "thoughtsTokenCount")]
    known = [tokens for tokens in counts if tokens is not None]
    return sum(known) if known else None


def _delay(fault: Any) -> float | None:
    """Seconds to wait, which Google writes into the body, for example "34s"."""
    found = re.search(r"""retryDelay['"]:\s*['"](\d+(?:\.\d+)?)s""", str(fault.details))
    return float(found[1]) if found else None
