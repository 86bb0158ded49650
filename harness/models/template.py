"""From a request to the token ids of its prompt, and from token ids to a reply's text.

A model's chat template is applied here, once, for every engine in this process, so that all of
them read the same tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from agentgym.errors import InvalidOption
from harness.models import EngineUnavailable, FatalProviderError, WeightsUnavailable
from harness.request import Message, Reply, Request

SWITCH = "enable_thinking"
"""The variable by which chat templates turn thinking on and off."""
_OPENED = re.compile(r"<think(?:ing)?>\s*\Z")


class Prompt(NamedTuple):
    """A prompt as the model reads it.

    Attributes:
        ids: Token ids.
        opening: The think tag with which the template ended the prompt, "" if it did not. It
            belongs before the reply's text: without it nobody could tell what is thinking.
    """

    ids: list[int]
    opening: str


class Template:
    """The chat template and tokenizer of a folder of weights.

    Attributes:
        tokenizer: Of Transformers. Not for two threads at once.
        source: The template's text, in Jinja.
    """

    def __init__(self, folder: Path, thinking: bool | None) -> None:
        """Load both.

        Args:
            folder: With the tokenizer's files.
            thinking: Whether the template is asked for a thinking part; None leaves it to that.

        Raises:
            WeightsUnavailable: They cannot be read, or there is no chat template.
            EngineUnavailable: Transformers and what it imports do not fit together.
            InvalidOption: `thinking` is given, but the template has no switch for it.
        """
        self._refusal: type[Exception] = import_module("jinja2").TemplateError
        try:
            load = import_module("transformers").AutoTokenizer.from_pretrained
            self.tokenizer: Any = load(folder)
            self.source: str = self.tokenizer.get_chat_template()
        except (OSError, ValueError) as fault:
            raise WeightsUnavailable(
                f"The tokenizer in {folder} cannot be used: {_line(fault)}; expected an instruct "
                "model with a chat template."
            ) from fault
        except ImportError as fault:
            raise EngineUnavailable(
                f"Transformers is installed but does not load ({_line(fault)}); torchvision and "
                "the like must be of one build with torch, or be uninstalled."
            ) from fault
        if thinking is not None and SWITCH not in self.source:
            raise InvalidOption(
                f"The chat template in {folder} has no switch for thinking, got thinking="
                f"{thinking}; leave it out."
            )
        self._options = {} if thinking is None else {SWITCH: thinking}

    def render(self, request: Request) -> Prompt:
        """The prompt of a request, up to where the model begins to write.

        Raises:
            FatalProviderError: The template refuses messages of this kind, and so would all.
        """
        text = self._text(request.messages, request.tools)
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return Prompt(ids, _opening(text))

    def opening(self) -> str:
        """The opening of every prompt, as `Prompt` has it, where a server renders them."""
        return _opening(self._text([{"role": "user", "content": "."}], ()))

    def _text(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> str:
        try:
            return self.tokenizer.apply_chat_template(
                [_decoded(message) for message in messages],
                tools=[dict(tool) for tool in tools] or None,
                add_generation_prompt=True,
                tokenize=False,
                **self._options,
            )
        except self._refusal as fault:
            raise FatalProviderError(
                f"The model's chat template refuses the prompt: {_line(fault)}; choose another "
                "format, history or model."
            ) from fault


def _opening(text: str) -> str:
    opened = _OPENED.search(text)
    return opened[0] if opened else ""


def no_room(prompt_tokens: int, context: int) -> Reply:
    """The refusal of a prompt that fills the context.

    Args:
        prompt_tokens: Of the prompt.
        context: Tokens of prompt and reply together.
    """
    return Reply(
        "",
        stop_reason="context",
        error=f"The prompt has {prompt_tokens} tokens and the context {context}: no room to reply.",
        prompt_tokens=prompt_tokens,
    )


def _decoded(message: Message) -> dict[str, Any]:
    """A message whose tool calls hold their arguments as templates expect: not as JSON text."""
    calls = message.get("tool_calls")
    if calls is None:
        return dict(message)
    return {**message, "tool_calls": [_call(call) for call in calls]}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except json.JSONDecodeError:  # The model's own broken call: shown as it wrote it.
        return dict(call)
    return {**call, "function": {**function, "arguments": arguments}}


def _line(fault: Exception) -> str:
    return (str(fault).strip() or type(fault).__name__).splitlines()[0].rstrip(".")
