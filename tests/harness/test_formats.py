"""What all reply formats must satisfy, and the rules of `move`, `tags` and `tool`, by literal.

Those of `fence` are in `test_prompts_replies.py`.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.errors import UnknownName
from harness import arguments, formats, prompts, record, run_folder
from harness import eval as evaluation
from harness.formats import FORMATS, Extracted, move, tags, tool
from harness.prompts import Style
from harness.record import Result
from harness.request import Reply, ToolCall

# --- move: each quirk of ProAct's own parser that was measured is marked (P12) ---

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

# --- tags ---

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


# --- tool ---


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


# --- all of them ---


def test_the_command_line_offers_every_format() -> None:
    choice, _ = get_args(get_type_hints(arguments.Arguments)["format"])
    assert get_args(choice) == tuple(FORMATS)


def test_an_unknown_format_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"Unknown format 'tols'. Did you mean 'tool'"):
        formats.find("tols")


_ACTIONS = st.from_regex(r"[A-Za-z0-9]+( [A-Za-z0-9+-]+){0,3}", fullmatch=True)


@settings(max_examples=50)
@given(_ACTIONS)
def test_what_a_program_writes_is_read_back_to_the_letter(action: str) -> None:
    for name in FORMATS:
        found = formats.extract(name, formats.write(name, action), lenient=False)
        assert found == Extracted(action, "", strict=True)


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_asked_for_shows_the_example_and_is_ended_by_a_full_stop(name: str) -> None:
    asked = FORMATS[name]
    assert "push up" in asked.how.format(example="push up")
    assert asked.ask.endswith(".")
    assert all(text.endswith(".") for text in asked.problems.values())
    assert all(text[0].islower() for text in asked.problems.values())


@pytest.mark.parametrize("name", FORMATS)
def test_a_reply_cut_off_in_reasoning_that_is_kept_apart_ended_inside_its_thinking(
    name: str,
) -> None:
    cut = Reply(" ", reasoning="Let me see, the box", stop_reason="length")
    assert formats.extract(name, cut, lenient=True).problem == "unclosed_think"
    ended = Reply(" ", reasoning="Let me see.", stop_reason="stop")
    assert formats.extract(name, ended, lenient=True).problem != "unclosed_think"


_ANSWERS = ["move: {}", "**Action:** {}", "<action>{}</action>", "<action>\n{}", "```\n{}\n```"]
_FORMS = st.sampled_from(
    [
        *_ANSWERS,
        "**{}**",
        "[{}].",
        "{}",
        "thought: hm",
        "<think>hm</think>",
        "I look at the board, and it is a hard one.",
    ]
)
_LETTERS = st.sampled_from(["left", "Up", "push down"])


@settings(max_examples=400)
@given(st.lists(st.tuples(_FORMS, _LETTERS), min_size=1, max_size=5))
def test_lenient_parsing_never_chooses_between_two_answers(
    parts: list[tuple[str, str]],
) -> None:
    # An answer is what stands in a form that some format asks for; else it may be prose.
    text = "\n".join(form.format(action) for form, action in parts)
    answers = {action for form, action in parts if form in _ANSWERS}
    for name in ("move", "tags", "tool"):
        found = formats.extract(name, Reply(text), lenient=True)
        if len(answers) > 1 and not found.strict:
            assert found.action_text is None


_TEXTS = st.lists(
    st.sampled_from(
        [
            *("```", "\n", " ", "[", "<think>", "</think>", "<action>", "</action>", "move:", "up"),
            *(
                "down",
                "<tool_call>",
                "</tool_call>",
                '{"name": "act", "arguments": {"action": "up"}}',
            ),
        ]
    ),
    max_size=25,
).map("".join)
_REPLIES = st.builds(
    Reply,
    _TEXTS | st.text(max_size=80),
    tool_calls=st.lists(
        st.builds(ToolCall, st.sampled_from(["act", "", "x"]), _TEXTS | st.text(max_size=20))
        | _ACTIONS.map(act),
        max_size=2,
    ).map(tuple),
)


@settings(max_examples=300)
@given(st.sampled_from(sorted(FORMATS)), _REPLIES, st.booleans())
def test_any_reply_gives_one_action_or_a_problem_that_has_a_sentence(
    name: str, reply: Reply, lenient: bool
) -> None:
    found = formats.extract(name, reply, lenient=lenient)
    if found.action_text is None:
        assert found.problem in FORMATS[name].problems
        assert not found.strict
    else:
        assert found.problem == ""
        assert found.action_text.strip() == found.action_text != ""
        assert len(found.action_text.splitlines()) == 1
        assert found.strict or lenient
    # What the strict rules find, the lenient ones find too.
    strict = formats.extract(name, reply, lenient=False)
    assert (strict == found) or not strict.strict


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "piece", ["<action>", "move: up\n", "```\n", "<tool_call>", "{", "<think>"]
)
def test_a_very_long_reply_is_read(name: str, piece: str) -> None:
    text = piece * (60_000 // len(piece))
    found = formats.extract(name, Reply(text, tool_calls=(ToolCall("act", text),)), lenient=True)
    assert found.problem in {"", *FORMATS[name].problems}


@pytest.mark.parametrize("name", FORMATS)
def test_the_oracle_wins_a_run_of_each_format_by_its_strict_rules(
    name: str, walk: str, tmp_path: Path
) -> None:
    how = ("--format", name, "--parsing", "strict", "--history", "2", "--list-actions")
    command = ["--model", "oracle", "--env", walk, "--instances", "2", *how, "--out", str(tmp_path)]

    assert evaluation.main(command) == 0

    played = list(record.read(tmp_path / record.EPISODES))
    assert [each.result for each in played] == [Result.WON] * 2
    assert {each.format for each in played} == {name}
    assert all(turn.strict for each in played for turn in each.turns)
    assert [turn.sent for turn in played[0].turns] == [0, 1, 2, 2]
    assert all("Legal actions: " in turn.asked for turn in played[0].turns)
    style = Style(2, list_actions=True, lenient=False, format=name)
    assert {each.prompt_hash for each in played} == {prompts.prompt_hash(style)}
    (row,) = run_folder.read_header(tmp_path).configuration.suite["rows"]
    assert row["settings"]["style"] == asdict(style)
