"""The rules of the format `move`, by literal; quirks measured of ProAct's parser are marked P12."""

import pytest

from harness.formats import Extracted, move

MOVE_STRICT = {
    "the format": ("thought: the corner is free\nmove: left", "left"),
    "the action line": ("thought: hm\naction: left", "left"),
    "upper case": ("Thought: hm\nMOVE: Left", "Left"),
    "a hash before it": ("# thought: hm\n# move: left", "left"),
    "no thought": ("move: left", "left"),
    "blanks": ("\n  move:   push up  \n\n", "push up"),
    "a thought behind it": ("move: left\nthought: it was free\nso I went", "left"),
    "on the line below": ("move:\nleft", "left"),
    "reasoning before it": (
        "I look.\nThe move is clear.\nthought: hm\nmove: reveal 1 2",
        "reveal 1 2",
    ),
    "thinking": ("<think>move: up</think>\nmove: left", "left"),
    "thinking, no line break after it (P12)": ("<think>hm</think>move: left", "left"),
    "signs": ("move: A+2", "A+2"),
    "inner brackets": ("move: search[red]", "search[red]"),
}

# What the strict rules say of it, and what the lenient ones find.
MOVE_LENIENT = {
    "brackets (P12)": ("move: [up]", "not_bare", "up"),
    "bold (P12)": ("move: **Up**", "not_bare", "Up"),
    "full stop (P12)": ("move: right.", "not_bare", "right"),
    "quotes": ('move: "right"', "not_bare", "right"),
    "a fence": ("move: ```up```", "not_bare", "up"),
    "bold label (P12)": ("**move:** left", "no_action", "left"),
    "the same move twice (P12)": ("move: left\nmove: Left", "ambiguous", "left"),
    "prose behind it": ("move: left\nThat frees the box for me.", "not_last", "left"),
    "a fence in its place": ("I go.\n```\nleft\n```", "no_action", "left"),
    "tags in its place": ("<action>left</action>", "no_action", "left"),
    "a bare action": ("left", "no_action", "left"),
    "bold in its place": ("So I choose:\n**push left**", "no_action", "push left"),
    "a board and a dressed move": ("```\n#P$\n```\nmove: [up]", "not_bare", "up"),
}

MOVE_PROBLEMS = {
    "nothing": ("", "no_action", "no_action"),
    "prose": ("I would like to go left, for the box is there.", "no_action", "no_action"),
    "both on one line (P12)": ("thought: ok move: left", "no_action", "no_action"),
    "two moves (P12)": ("move: left\nmove: up", "ambiguous", "ambiguous"),
    "two moves on a line": ("move: left || up", "ambiguous", "ambiguous"),
    "two dressed moves": ("**move:** left\n**move:** up", "no_action", "ambiguous"),
    "a move and a further action": ("move: left\nup", "not_last", "ambiguous"),
    "a move and a further dressed action": ("move: left\n[up].", "not_last", "ambiguous"),
    "a dressed move and another fence": ("move: [left]\n```\nup\n```", "not_last", "ambiguous"),
    "two bold lines": ("**left**\n**up**", "no_action", "ambiguous"),
    "a fence and a tag": ("```\nleft\n```\n<action>up</action>", "no_action", "ambiguous"),
    "no action behind it": ("thought: hm\nmove:", "empty_action", "empty_action"),
    "thinking left open": ("<think>move: left", "unclosed_think", "unclosed_think"),
    "thinking left open behind it": ("move: left\n<think>or", "unclosed_think", "unclosed_think"),
}


@pytest.mark.parametrize("lenient", [True, False])
@pytest.mark.parametrize(("reply", "action"), MOVE_STRICT.values(), ids=MOVE_STRICT)
def test_strict_rules_of_move(reply: str, action: str, lenient: bool) -> None:
    assert move.extract(reply, lenient=lenient) == Extracted(action, "", strict=True)


@pytest.mark.parametrize(("reply", "problem", "action"), MOVE_LENIENT.values(), ids=MOVE_LENIENT)
def test_lenient_rules_of_move(reply: str, problem: str, action: str) -> None:
    assert move.extract(reply, lenient=False) == Extracted(None, problem, strict=False)
    assert move.extract(reply) == Extracted(action, "", strict=False)


@pytest.mark.parametrize(("reply", "strict", "lenient"), MOVE_PROBLEMS.values(), ids=MOVE_PROBLEMS)
def test_no_action_of_move(reply: str, strict: str, lenient: str) -> None:
    assert move.extract(reply, lenient=False) == Extracted(None, strict, strict=False)
    assert move.extract(reply) == Extracted(None, lenient, strict=False)
