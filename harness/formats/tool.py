r"""The format `tool`: the model calls the one tool `act` with its action, natively.

What the reply's text says beside the call does not matter, but that a think block which is left
open is no action here either. Undressing is as in `harness.formats.reading`.

Strict
    A. There is one native tool call: none is `no_call`, more are `two_calls`.
    B. It is of the tool `act`, else `wrong_tool`.
    C. Its arguments are a JSON object that holds `action`, a text, and nothing else; else
       `bad_arguments`.
    D. The action is bare (rule 5 of the shared rules).

Lenient
    E. A call of another name, further arguments, and an action to be undressed are all right.
       Several calls are, if all of them hold the same action; else `two_calls`.
    F. Without a native call, calls written in the text as `<tool_call>` and a JSON object with
       `name` and `arguments` are taken for such; Hermes' and Qwen's models write them, and some
       servers pass them on as text.
    G. Without these either, rules 6 to 8 of the shared rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from harness.formats.format import Extracted, Format
from harness.formats.reading import actions, bare, loosely, one, problem, without_thinking
from harness.request import Reply, ToolCall

NAME = "act"
"""Of the tool."""
ARGUMENT = "action"
"""Of its one argument."""
_WRITTEN = re.compile(r"<tool_call>(.*?)(?=<tool_call>|</tool_call>|\Z)", re.DOTALL)


def extract(reply: Reply, *, lenient: bool = True) -> Extracted:
    """Find the action in a reply by the rules of this module; never raises.

    Args:
        reply: Its text and tool calls are looked at.
        lenient: Try the lenient rules where the strict ones find no action.
    """
    said = without_thinking(reply.text)
    if said is None:
        return problem("unclosed_think")
    found = _strictly(reply.tool_calls)
    if found.strict or not lenient:
        return found
    calls = reply.tool_calls or tuple(written(said))
    return _leniently(calls, found) if calls else loosely(said, found)


def _strictly(calls: Sequence[ToolCall]) -> Extracted:
    """Rules A to D."""
    if len(calls) != 1:
        return problem("two_calls" if calls else "no_call")
    if calls[0].name != NAME:
        return problem("wrong_tool")
    given = calls[0].given()
    action = given.get(ARGUMENT)
    if not isinstance(action, str) or len(given) > 1:
        return problem("bad_arguments")
    return bare(action)


def _leniently(calls: Sequence[ToolCall], otherwise: Extracted) -> Extracted:
    """Rule E."""
    given = [call.given().get(ARGUMENT) for call in calls]
    held = [actions(action) for action in given if isinstance(action, str)]
    if len(held) < len(calls) or not all(held):
        return problem("bad_arguments") if otherwise.problem == "no_call" else otherwise
    found = one([action for each in held for action in each], strict=False)
    return problem("two_calls") if found.problem and len(calls) > 1 else found


def written(text: str) -> Iterator[ToolCall]:
    """Rule F: the calls that a text holds."""
    for found in _WRITTEN.finditer(text):
        call = ToolCall("", found[1]).given()
        yield ToolCall(str(call.get("name", "")), json.dumps(call.get("arguments")))


def _read(reply: Reply, *, lenient: bool) -> Extracted:
    return extract(reply, lenient=lenient)


def _write(action: str) -> Reply:
    given = json.dumps({ARGUMENT: action}, ensure_ascii=False)
    return Reply("", tool_calls=(ToolCall(NAME, given),))


FORMAT = Format(
    how="How to reply: reason briefly, then call the tool `act` exactly once. Its argument "
    "`action` is one action, bare, for example: {example}",
    ask="Reason briefly, then call the tool `act` once with your next action.",
    problems={
        "no_call": "no tool was called; call the tool `act` with one action.",
        "two_calls": "more than one tool call was made; call the tool `act` exactly once.",
        "wrong_tool": "there is no such tool; call the tool `act`.",
        "bad_arguments": "the arguments of the call were not as they should be; give a JSON object "
        "that holds only `action`, a text.",
        "empty_action": "the argument `action` was empty; give one action.",
        "ambiguous": "there was more than one action; give exactly one.",
        "not_bare": "the action was not bare; give it without brackets, marks or a full stop.",
        "unclosed_think": "the reply ended inside <think>; think for less long, then call the tool "
        "`act` with one action.",
    },
    read=_read,
    write=_write,
    rules=1,
    tools=(
        {
            "type": "function",
            "function": {
                "name": NAME,
                "description": "Play one action of the game; the result is the next turn.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        ARGUMENT: {
                            "type": "string",
                            "description": "One action, spelt as the rules of the game say.",
                        }
                    },
                    "required": [ARGUMENT],
                    "additionalProperties": False,
                },
            },
        },
    ),
)
