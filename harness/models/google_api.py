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

from harness.models import Order, request_digest
from harness.models.refusals import Fault, Refusal, retry_after
from harness.models.remote import Errors, Patience, Remote, arguments, limits
from harness.models.service import Service
from harness.request import Message, Reply, Request, ToolCall

SERVICE = Service(
    prefix="google/",
    url="https://generativelanguage.googleapis.com",
    url_variable="GOOGLE_GEMINI_BASE_URL",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)
_UNSIGNED = b"skip_thought_signature_validator"
"""What Google documents for a past tool call that comes without the signature of its thoughts; ours
do, since the conversation holds what the player saw and said, and no more."""


def load_google(order: Order) -> GoogleModel:
    """The model NAME of the name `google/NAME`.

    Raises:
        InvalidOption: The address is no URL, the key is missing, or the system does not allow as
            many connections.
    """
    return GoogleModel(order)


class GoogleModel(Remote):
    """A model of Google; its attributes are those of `Remote`."""

    def __init__(self, order: Order, patience: Patience | None = None) -> None:
        """Read the key from the environment; nothing is sent yet."""
        super().__init__(order, SERVICE, patience)
        timeout = httpx2.Timeout(None, connect=self._patience.connect)
        self._http = httpx2.AsyncClient(
            limits=limits(httpx2.Limits, self.concurrency), timeout=timeout, follow_redirects=True
        )
        options = types.HttpOptions(base_url=self._url, httpx_async_client=self._http)
        self._client = genai.Client(vertexai=False, api_key=self._key, http_options=options)

    @property
    def _errors(self) -> Errors:
        return Errors(httpx2.TransportError, errors.APIError)

    async def _ask(self, request: Request) -> Reply | Fault:
        contents: Any = conversation(request.messages)
        config, name = self._config(request), self.settings["model"]
        try:
            answer = await self._client.aio.models.generate_content(
                model=name, contents=contents, config=config
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            # How the client meets a body that is no JSON, or JSON of another shape.
            return Fault("not a completion", "a body that is no content")
        return read(answer)

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
    made = types.FunctionCall(name=function["name"], args=arguments(function["arguments"]))
    return types.Part(function_call=made, thought_signature=_UNSIGNED)


def _declaration(function: dict[str, Any]) -> types.FunctionDeclaration:
    return types.FunctionDeclaration(
        name=function["name"],
        description=function.get("description"),
        parameters_json_schema=function["parameters"],
    )


def read(answer: types.GenerateContentResponse) -> Reply | Fault:
    """A generated content as a reply."""
    candidates, feedback = answer.candidates or [], answer.prompt_feedback
    if not candidates and not (feedback and feedback.block_reason):
        return Fault("not a completion", "a body without candidates")
    first = candidates[0] if candidates else types.Candidate()
    parts = (first.content.parts if first.content else None) or []
    if not parts and candidates and first.finish_reason is None:
        return Fault("empty", "a candidate without content")
    used = answer.usage_metadata or types.GenerateContentResponseUsageMetadata()
    calls = [part.function_call for part in parts if part.function_call]
    return Reply(
        "".join(part.text or "" for part in parts if not part.thought),
        reasoning="".join(part.text or "" for part in parts if part.thought),
        stop_reason="length" if first.finish_reason == types.FinishReason.MAX_TOKENS else "stop",
        prompt_tokens=used.prompt_token_count,
        completion_tokens=_completion_tokens(used),
        tool_calls=tuple(ToolCall(call.name or "", json.dumps(call.args or {})) for call in calls),
    )


def _completion_tokens(used: types.GenerateContentResponseUsageMetadata) -> int | None:
    counts = (used.candidates_token_count, used.thoughts_token_count)
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _delay(fault: Any) -> float | None:
    """Seconds to wait, which Google writes into the body, for example "34s"."""
    found = re.search(r"""retryDelay['"]:\s*['"]([\d.]+)s""", str(fault.details))
    return float(found[1]) if found else None
