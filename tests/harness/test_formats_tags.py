"""The rules of the format `tags`, by literal."""

import pytest

from harness.formats import Extracted, tags

TAGS_STRICT = {
    "the format": ("<think>it is free</think>\n<action>up</action>", "up"),
    "one line": ("<think>it is free</think><action>up</action>", "up"),
    "line breaks inside": ("<think>\nit is free\n</think>\n<action>\nup\n</action>\n", "up"),
    "upper case": ("<THINK>x</THINK><Action>Up</ACTION>", "Up"),
    "opened by the template": ("it is free</think><action>up</action>", "up"),
    "an action in thinking": ("<think><action>down</action></think><action>up</action>", "up"),
    "an empty thought": ("<think></think><action>reveal 1 2</action>", "reveal 1 2"),
    "words around it": ("<think>x</think>So I say <action>up</action>, as asked.", "up"),
}

TAGS_LENIENT = {
    "no think block": ("<action>up</action>", "no_think", "up"),
    "cut off": ("<think>x</think><action>up", "no_action", "up"),
    "brackets": ("<think>x</think><action>[up]</action>", "not_bare", "up"),
    "full stop": ("<think>x</think><action>Up.</action>", "not_bare", "Up"),
    "a label inside": ("<think>x</think><action>action: up</action>", "not_bare", "up"),
    "a label before it": ("<think>x</think>Action: <action>[up]</action>", "not_bare", "up"),
    "the same twice": (
        "<think>x</think><action>up</action> yes <action>Up</action>",
        "ambiguous",
        "up",
    ),
    "an empty one and one": (
        "<think>x</think><action></action><action>up</action>",
        "ambiguous",
        "up",
    ),
    "a fence in its place": ("<think>x</think>```\nup\n```", "no_action", "up"),
    "a move line in its place": ("<think>x</think>move: up", "no_action", "up"),
    "a closing tag too many": ("<think>x</think><action>up</action></action>", "no_action", "up"),
}

TAGS_PROBLEMS = {
    "nothing": ("", "no_action", "no_action"),
    "prose": ("<think>x</think>I would like to go up there.", "no_action", "no_action"),
    "the request itself (seen of a small model)": (
        tags.FORMAT.ask,
        "empty_action",
        "empty_action",
    ),
    "an empty element": ("<think>x</think><action> </action>", "empty_action", "empty_action"),
    "two actions": (
        "<think>x</think><action>up</action><action>down</action>",
        "ambiguous",
        "ambiguous",
    ),
    "two in one": ("<think>x</think><action>up\ndown</action>", "ambiguous", "ambiguous"),
    "two joined": ("<think>x</think><action>up || down</action>", "ambiguous", "ambiguous"),
    "an action and another fence": (
        "<action>up</action>\n```\ndown\n```",
        "no_think",
        "ambiguous",
    ),
    "only in thinking": ("<think><action>up</action></think>", "no_action", "no_action"),
    "thinking left open": ("<think><action>up</action>", "unclosed_think", "unclosed_think"),
}


@pytest.mark.parametrize("lenient", [True, False])
@pytest.mark.parametrize(("reply", "action"), TAGS_STRICT.values(), ids=TAGS_STRICT)
def test_strict_rules_of_tags(reply: str, action: str, lenient: bool) -> None:
    assert tags.extract(reply, lenient=lenient) == Extracted(action, "", strict=True)


def test_reasoning_that_the_server_keeps_apart_is_the_think_block() -> None:
    found = tags.extract("<action>up</action>", reasoning="it is free", lenient=False)
    assert found == Extracted("up", "", strict=True)
    assert tags.extract("<action>up</action>", reasoning=" ", lenient=False).problem == "no_think"


@pytest.mark.parametrize(("reply", "problem", "action"), TAGS_LENIENT.values(), ids=TAGS_LENIENT)
def test_lenient_rules_of_tags(reply: str, problem: str, action: str) -> None:
    assert tags.extract(reply, lenient=False) == Extracted(None, problem, strict=False)
    assert tags.extract(reply) == Extracted(action, "", strict=False)


@pytest.mark.parametrize(("reply", "strict", "lenient"), TAGS_PROBLEMS.values(), ids=TAGS_PROBLEMS)
def test_no_action_of_tags(reply: str, strict: str, lenient: str) -> None:
    assert tags.extract(reply, lenient=False) == Extracted(None, strict, strict=False)
    assert tags.extract(reply) == Extracted(None, lenient, strict=False)
