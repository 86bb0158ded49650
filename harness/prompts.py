"""Everything a model is sent, as pure text functions.

The layout is CAST's (arXiv 2607.25308; `rllm/agents/game_agent.py`), in our own words. A system
message: the game's instructions, then how to reply. Then one user message per turn:

    Turn <zero-based index>
    <observation>
    <blank line>
    The game is not over yet.
    <after a turn that changed nothing: what was wrong, or that it changed nothing>
    <if asked for: the legal actions>
    <turns left, and the request for an action>

How to reply, and the request, are the format's (`harness.formats`). In the format `tool` what would
be a user message is the result of the call before it, if that is still in the prompt: a message of
the role `tool`.

The rules come first and the board last, so that a server can reuse the prompt's beginning.
Histories: `stateless` sends the system message and the current turn (ProAct, arXiv 2602.05327),
`full` also all earlier turns with their replies (CAST), a number the last so many of them.

These functions see only texts and numbers that a player may know. They take no `info`, so they
cannot show an oracle or a milestone. What becomes of the reply is the format's part.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

from agentgym.errors import InvalidOption, UnknownName
from harness import formats
from harness.formats import tool
from harness.request import Message, ToolCall

__all__ = ["Exchange", "Shown", "Style", "first", "later", "messages", "system"]

Named = Literal["stateless", "full"]
History = Named | int
"""What of the earlier turns is sent; a number sends the last so many, at least 1."""

_NOT_OVER = "The game is not over yet."
_INVALID = "Your last reply changed nothing: {error}"
_UNCHANGED = "Your last action changed nothing. Choose a different action this time."
_LEGAL = "Legal actions: {actions}"
_ASK = "{turns}{request}"
_OTHER_CALL = "Only one call counts in a turn."


@dataclass(frozen=True)
class Style:
    """The choices that shape a prompt and the reading of the reply.

    Attributes:
        history: `stateless`, `full`, or how many of the last turns are sent.
        list_actions: Show the legal actions each turn.
        lenient: Try a format's lenient rules where its strict ones find no action.
        format: Name of the reply format, of `harness.formats`.

    Raises:
        UnknownName: No such history or format.
        InvalidOption: A history of less than one turn.
    """

    history: History = "stateless"
    list_actions: bool = False
    lenient: bool = True
    format: str = "fence"

    def __post_init__(self) -> None:
        """Check the names and the number."""
        formats.find(self.format)
        if isinstance(self.history, str) and self.history not in get_args(Named):
            raise UnknownName.of("history", self.history, get_args(Named))
        if isinstance(self.history, int) and self.history < 1:
            raise InvalidOption(
                f"history is 'stateless', 'full' or at least 1 turn, got {self.history!r}."
            )


@dataclass(frozen=True)
class Shown:
    """What a player may know at one turn.

    Attributes:
        turn: Actions taken so far.
        max_turns: The turn limit; 0 for none.
        observation: The state as text.
        error: What was wrong with the last action, "" if nothing.
        unchanged: The last action was valid and the observation stayed as it was.
        legal_actions: Canonical texts; empty where they are not listed.
    """

    turn: int
    max_turns: int
    observation: str
    error: str = ""
    unchanged: bool = False
    legal_actions: tuple[str, ...] = ()


class Exchange(NamedTuple):
    """A turn that is over.

    Attributes:
        user: The message that was sent.
        reply: The reply's text, verbatim.
        calls: Its native tool calls.
    """

    user: str
    reply: str
    calls: Sequence[ToolCall] = ()


def system(instructions: str, style: Style, *, example: str = "your action") -> str:
    """The system message: the rules of the game, then how to reply.

    Args:
        instructions: The rules as told to a player.
        style: Its format is asked for.
        example: An action in canonical spelling to show the format with; the same in every
            instance, so that it hints at nothing.
    """
    how = formats.find(style.format).how.format(example=example)
    return f"{instructions.strip()}\n\n{how}"


def first(shown: Shown, style: Style) -> str:
    """The user message of the first turn."""
    return _user(shown, style, ())


def later(shown: Shown, style: Style) -> str:
    """The user message of any later turn, with what was wrong with the last one."""
    feedback = [_INVALID.format(error=shown.error)] if shown.error else []
    if shown.unchanged and not shown.error:
        feedback = [_UNCHANGED]
    return _user(shown, style, feedback)


def _user(shown: Shown, style: Style, feedback: Sequence[str]) -> str:
    legal: list[str] = []
    if style.list_actions and shown.legal_actions:
        legal = [_LEGAL.format(actions=", ".join(shown.legal_actions))]
    left = _turns_left(shown.max_turns - shown.turn)
    asked = _ASK.format(turns=left, request=formats.find(style.format).ask)
    return opening(shown) + "\n".join([_NOT_OVER, *feedback, *legal, asked])


def opening(shown: Shown) -> str:
    """How a user message begins: the number of the turn, the observation and a blank line."""
    return f"Turn {shown.turn}\n{shown.observation}\n\n"


def _turns_left(turns: int) -> str:
    if turns < 1:
        return ""
    return "1 turn left. " if turns == 1 else f"{turns} turns left. "


def sent(style: Style, turns: int) -> int:
    """How many of the turns that are over a prompt holds."""
    if isinstance(style.history, int):
        return min(turns, style.history)
    return turns if style.history == "full" else 0


def messages(
    system_text: str, past: Sequence[Exchange], current: str, style: Style
) -> tuple[Message, ...]:
    """The whole prompt of a turn.

    Args:
        system_text: From `system`.
        past: The turns that are over, in order.
        current: From `first` or `later`.
        style: Its history decides what of the past is sent.
    """
    prompt: list[Message] = [{"role": "system", "content": system_text}]
    open_calls: list[str] = []
    for number, exchange in enumerate(past[len(past) - sent(style, len(past)) :]):
        prompt += _asked(exchange.user, open_calls)
        calls = [_call(call, number, index) for index, call in enumerate(exchange.calls)]
        said: Message = {"role": "assistant", "content": exchange.reply}
        if calls:
            said["tool_calls"] = calls
        prompt.append(said)
        open_calls = [call["id"] for call in calls]
    return (*prompt, *_asked(current, open_calls))


def _asked(text: str, open_calls: Sequence[str]) -> list[Message]:
    """A turn as the result of the calls before it; as a user message where there are none."""
    if not open_calls:
        return [{"role": "user", "content": text}]
    told = [*[_OTHER_CALL] * (len(open_calls) - 1), text]
    return [
        {"role": "tool", "content": content, "tool_call_id": call}
        for call, content in zip(open_calls, told, strict=True)
    ]


def _call(call: ToolCall, number: int, index: int) -> dict[str, Any]:
    """A past call in a form that every server takes.

    Servers refuse a prompt whose calls hold odd names or what is no JSON object, and Mistral's
    template wants ids of nine letters and digits.
    """
    name = re.sub(r"[^a-zA-Z0-9_-]+", "_", call.name)[:64] or tool.NAME
    arguments = call.arguments if call.given() else "{}"
    return {
        "id": f"t{number:05}c{index:02}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def prompt_hash(style: Style) -> str:
    """Sixteen hex digits that change whenever a prompt, or the reading of a reply, would.

    It is the digest of a made-up conversation, written by the functions above, with the format's
    tools, sentences and rules, so that a changed layout shows as well as a changed sentence. The
    game's instructions are not in it; the environment's version stands for them.
    """
    asked = formats.find(style.format)
    begin = Shown(0, 3, "<board>", legal_actions=("<a>", "<b>"))
    wrong = Shown(1, 3, "<board>", error="<error>", legal_actions=("<a>", "<b>"))
    still = Shown(2, 3, "<board>", unchanged=True, legal_actions=("<a>", "<b>"))
    users = [first(begin, style), later(wrong, style), later(still, style)]
    calls = asked.write("<action>").tool_calls * 2
    past = [Exchange(users[0], "<reply>", calls[:1]), Exchange(users[1], "<reply>", calls)]
    prompt = messages(system("<rules>", style, example="<example>"), past, users[2], style)
    format_ = [asked.tools, dict(asked.problems), asked.rules]
    content = json.dumps([prompt, users, format_, asdict(style)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
