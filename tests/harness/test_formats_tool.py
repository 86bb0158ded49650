"""The rules of the format `tool`, by literal."""

import json
from typing import Any

import pytest

from harness.formats import Extracted, tool
from harness.request import Reply, ToolCall


def act(action: Any = "up", name: str = "act", **more: Any) -> ToolCall:
    return ToolCall(name, json.dumps({"action": action, **more}))


def called(*calls: ToolCall, text: str = "") -> Reply:
    return Reply(text, tool_calls=calls)


WRITTEN = '<tool_call>\n{"name": "act", "arguments": {"action": "up"}}\n</tool_call>'

TOOL_STRICT = {
    "the format": (called(act()), "up"),
    "reasoning beside it": (called(act(), text="I go up, for it is free."), "up"),
    "another action in the text": (called(act(), text="```\ndown\n```"), "up"),
    "thinking before it": (called(act(), text="<think>down</think>"), "up"),
    "blanks": (called(act(" reveal 1 2 ")), "reveal 1 2"),
}

TOOL_LENIENT = {
    "another name": (called(act(name="functions.act")), "wrong_tool", "up"),
    "a further argument": (called(act(why="free")), "bad_arguments", "up"),
    "brackets": (called(act("[up]")), "not_bare", "up"),
    "the same call twice": (called(act(), act("Up")), "two_calls", "up"),
    "written in the text": (Reply(WRITTEN), "no_call", "up"),
    "written and cut off": (Reply(WRITTEN.partition("</")[0]), "no_call", "up"),
    "a fence in its place": (Reply("I go.\n```\nup\n```"), "no_call", "up"),
    "a move line in its place": (Reply("thought: hm\nmove: up"), "no_call", "up"),
    "tags in its place": (Reply("<action>up</action>"), "no_call", "up"),
    "a bare action": (Reply("up"), "no_call", "up"),
}

TOOL_PROBLEMS = {
    "nothing": (Reply(""), "no_call", "no_call"),
    "prose": (Reply("I would like to call the tool now."), "no_call", "no_call"),
    "two calls": (called(act("up"), act("down")), "two_calls", "two_calls"),
    "two calls, one without an action": (called(act("up"), act(3)), "two_calls", "two_calls"),
    "two actions in one": (called(act("up || down")), "ambiguous", "ambiguous"),
    "two written calls": (
        Reply(WRITTEN + WRITTEN.replace('"up"', '"down"')),
        "no_call",
        "two_calls",
    ),
    "a written call that is no JSON": (
        Reply("<tool_call>act(up)</tool_call>"),
        "no_call",
        "bad_arguments",
    ),
    "no JSON": (called(ToolCall("act", "up")), "bad_arguments", "bad_arguments"),
    "cut off": (called(ToolCall("act", '{"action": "u')), "bad_arguments", "bad_arguments"),
    "no object": (called(ToolCall("act", '["up"]')), "bad_arguments", "bad_arguments"),
    "very deep": (called(ToolCall("act", "[" * 99_999)), "bad_arguments", "bad_arguments"),
    "no such argument": (
        called(ToolCall("act", '{"move": "up"}')),
        "bad_arguments",
        "bad_arguments",
    ),
    "a number": (called(act(1)), "bad_arguments", "bad_arguments"),
    "empty": (called(act(" ")), "empty_action", "empty_action"),
    "another tool without an action": (called(ToolCall("look", "{}")), "wrong_tool", "wrong_tool"),
    "two in the text": (Reply("```\nup\n```\nmove: down"), "no_call", "ambiguous"),
    "thinking left open": (called(act(), text="<think>"), "unclosed_think", "unclosed_think"),
}


@pytest.mark.parametrize("lenient", [True, False])
@pytest.mark.parametrize(("reply", "action"), TOOL_STRICT.values(), ids=TOOL_STRICT)
def test_strict_rules_of_tool(reply: Reply, action: str, lenient: bool) -> None:
    assert tool.extract(reply, lenient=lenient) == Extracted(action, "", strict=True)


@pytest.mark.parametrize(("reply", "problem", "action"), TOOL_LENIENT.values(), ids=TOOL_LENIENT)
def test_lenient_rules_of_tool(reply: Reply, problem: str, action: str) -> None:
    assert tool.extract(reply, lenient=False) == Extracted(None, problem, strict=False)
    assert tool.extract(reply) == Extracted(action, "", strict=False)


@pytest.mark.parametrize(("reply", "strict", "lenient"), TOOL_PROBLEMS.values(), ids=TOOL_PROBLEMS)
def test_no_action_of_tool(reply: Reply, strict: str, lenient: str) -> None:
    assert tool.extract(reply, lenient=False) == Extracted(None, strict, strict=False)
    assert tool.extract(reply) == Extracted(None, lenient, strict=False)
