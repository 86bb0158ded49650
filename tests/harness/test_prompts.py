"""The texts that a model is sent, by literal."""

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.errors import InvalidOption, UnknownName
from harness import prompts
from harness.formats import FORMATS, Format
from harness.prompts import Exchange, Shown, Style
from harness.request import ToolCall

BOARD = "####\n#P_#\n####"
STYLE = Style()


def test_the_whole_first_prompt() -> None:
    sent = prompts.messages(
        prompts.system("You play a game.\n", STYLE, example="Up"),
        [],
        prompts.first(Shown(0, 30, BOARD), STYLE),
        STYLE,
    )
    assert sent == (
        {
            "role": "system",
            "content": "You play a game.\n\n"
            "How to reply: first reason briefly in plain words. Then end with exactly one action, "
            "alone between two lines of three back-ticks, like this:\n```\nUp\n```",
        },
        {
            "role": "user",
            "content": f"Turn 0\n{BOARD}\n\nThe game is not over yet.\n"
            "30 turns left. Reason briefly, then end with your next action between lines of three "
            "back-ticks.",
        },
    )


def test_after_an_invalid_action_the_error_is_told() -> None:
    text = prompts.later(Shown(3, 30, BOARD, error="'fly' is no action."), STYLE)
    assert text.splitlines()[:1] == ["Turn 3"]
    assert text.splitlines()[-3:-1] == [
        "The game is not over yet.",
        "Your last reply changed nothing: 'fly' is no action.",
    ]
    assert text.splitlines()[-1].startswith("27 turns left. ")


def test_after_an_action_without_effect_another_one_is_suggested() -> None:
    hint = "Your last action changed nothing. Choose a different action this time."
    assert hint in prompts.later(Shown(1, 30, BOARD, unchanged=True), STYLE)
    assert hint not in prompts.later(Shown(1, 30, BOARD), STYLE)
    assert hint not in prompts.later(Shown(1, 30, BOARD, error="no", unchanged=True), STYLE)


def test_the_first_turn_has_no_feedback() -> None:
    assert prompts.first(Shown(0, 9, BOARD, error="x", unchanged=True), STYLE) == prompts.first(
        Shown(0, 9, BOARD), STYLE
    )


def test_legal_actions_are_shown_only_if_asked_for() -> None:
    shown = Shown(0, 9, BOARD, legal_actions=("Up", "Down"))
    assert "Up" not in prompts.first(shown, STYLE)
    text = prompts.first(shown, Style(list_actions=True))
    assert text.splitlines()[-2] == "Legal actions: Up, Down"
    without = Shown(0, 9, BOARD)
    assert "Legal" not in prompts.first(without, Style(list_actions=True))


@pytest.mark.parametrize(
    ("turn", "limit", "begins"),
    [(0, 2, "2 turns left. Reason"), (1, 2, "1 turn left. Reason"), (5, 0, "Reason")],
)
def test_turns_left(turn: int, limit: int, begins: str) -> None:
    text = prompts.later(Shown(turn, limit, BOARD), STYLE)
    assert text.splitlines()[-1].startswith(begins)


def test_histories() -> None:
    past = [Exchange("u0", "r0 ```up```"), Exchange("u1", "r1")]
    short = prompts.messages("s", past, "u2", STYLE)
    assert [(m["role"], m["content"]) for m in short] == [("system", "s"), ("user", "u2")]
    long = prompts.messages("s", past, "u2", Style(history="full"))
    assert [(m["role"], m["content"]) for m in long] == [
        ("system", "s"),
        ("user", "u0"),
        ("assistant", "r0 ```up```"),
        ("user", "u1"),
        ("assistant", "r1"),
        ("user", "u2"),
    ]


def test_a_number_sends_the_last_so_many_turns() -> None:
    past = [Exchange(f"u{turn}", f"r{turn}") for turn in range(4)]
    last = Style(history=2)
    assert [m["content"] for m in prompts.messages("s", past, "u4", last)] == [
        *("s", "u2", "r2", "u3", "r3", "u4"),
    ]
    assert [m["content"] for m in prompts.messages("s", past[:1], "u1", last)] == [
        *("s", "u0", "r0", "u1"),
    ]


def test_an_unknown_history_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'full'"):
        Style(history="ful")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidOption, match="at least 1 turn, got 0"):
        Style(history=0)


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'tags'"):
        Style(format="tag")


CALL = ToolCall("act", '{"action": "up"}')
TOOL = Style(history="full", format="tool")


def test_a_past_tool_call_is_sent_natively_and_the_turn_after_it_is_its_result() -> None:
    past = [Exchange("u0", "Up it is.", [CALL]), Exchange("u1", "I forgot to call.")]
    assert prompts.messages("s", past, "u2", TOOL) == (
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u0"},
        {
            "role": "assistant",
            "content": "Up it is.",
            "tool_calls": [
                {
                    "id": "t00000c00",
                    "type": "function",
                    "function": {"name": "act", "arguments": '{"action": "up"}'},
                }
            ],
        },
        {"role": "tool", "content": "u1", "tool_call_id": "t00000c00"},
        {"role": "assistant", "content": "I forgot to call."},
        {"role": "user", "content": "u2"},
    )


def test_each_of_several_calls_is_answered_once() -> None:
    *_, said, first, last = prompts.messages("s", [Exchange("u0", "", [CALL] * 2)], "u1", TOOL)
    assert [call["id"] for call in said.get("tool_calls", [])] == ["t00000c00", "t00000c01"]
    assert first == {
        "role": "tool",
        "content": "Only one call counts in a turn.",
        "tool_call_id": "t00000c00",
    }
    assert last == {"role": "tool", "content": "u1", "tool_call_id": "t00000c01"}


def test_a_turn_whose_call_is_no_longer_sent_is_a_user_message() -> None:
    past = [Exchange(f"u{turn}", "", [CALL]) for turn in range(3)]
    sent = prompts.messages("s", past, "u3", Style(history=1, format="tool"))
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert sent[1]["content"] == "u2"


@pytest.mark.parametrize(
    ("call", "name", "arguments"),
    [
        (ToolCall("functions.act", "{"), "functions_act", "{}"),
        (ToolCall("", "[1]"), "act", "{}"),
        (ToolCall("x" * 99, '{"a": 1}'), "x" * 64, '{"a": 1}'),
    ],
)
def test_what_servers_refuse_in_a_past_call_is_mended(
    call: ToolCall, name: str, arguments: str
) -> None:
    said = prompts.messages("s", [Exchange("u0", "", [call])], "u1", TOOL)[2]
    (sent,) = said.get("tool_calls", [])
    assert sent["function"] == {"name": name, "arguments": arguments}


_STYLES = st.builds(
    Style,
    st.sampled_from(["stateless", "full", 1, 2]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(sorted(FORMATS)),
)


@settings(max_examples=50)
@given(_STYLES)
def test_the_hash_is_stable_and_tells_styles_apart(style: Style) -> None:
    assert prompts.prompt_hash(style) == prompts.prompt_hash(style)
    assert (prompts.prompt_hash(style) == prompts.prompt_hash(STYLE)) == (style == STYLE)


@pytest.mark.parametrize("name", ["_NOT_OVER", "_INVALID", "_UNCHANGED", "_LEGAL", "_ASK"])
def test_the_hash_follows_every_template(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompts.prompt_hash(Style(list_actions=True))
    monkeypatch.setattr(prompts, name, getattr(prompts, name) + "1")
    assert prompts.prompt_hash(Style(list_actions=True)) != before


def test_the_hash_follows_what_is_said_of_a_second_call(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompts.prompt_hash(TOOL)
    monkeypatch.setattr(prompts, "_OTHER_CALL", "No.")
    assert prompts.prompt_hash(TOOL) != before


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "change", [{"how": "x"}, {"ask": "x"}, {"problems": {}}, {"rules": 99}, {"tools": ({},)}]
)
def test_the_hash_follows_every_part_of_a_format(
    name: str, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = prompts.prompt_hash(Style(format=name))
    monkeypatch.setitem(cast(dict[str, Format], FORMATS), name, replace(FORMATS[name], **change))
    assert prompts.prompt_hash(Style(format=name)) != before


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        ("fence", "1015c42199b1ae9c"),
        ("move", "fa958b6a24b3d444"),
        ("tags", "8c0491884e52c531"),
        ("tool", "56dcb466cbfe2092"),
    ],
)
def test_the_hash_of_each_format(name: str, digits: str) -> None:
    # Golden values: if one changes, prompts have changed, and runs no longer compare.
    assert prompts.prompt_hash(Style(format=name)) == digits
