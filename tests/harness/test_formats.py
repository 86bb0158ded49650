"""What all reply formats must satisfy; the rules of each are in a file of its own."""

from dataclasses import asdict
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.errors import UnknownName
from harness import arguments, formats, prompts, record, run_folder
from harness import eval as evaluation
from harness.formats import FORMATS, Extracted
from harness.prompts import Style
from harness.record import Result
from harness.request import Reply, ToolCall


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
            *("```", "``", "`", "\n", " ", "[", "]", "**", ". ", "move:", "up", "down"),
            *("<think>", "</think>", "<action>", "</action>", "<tool_call>", "</tool_call>"),
            '{"name": "act", "arguments": {"action": "up"}}',
        ]
    ),
    max_size=30,
).map("".join)
_REPLIES = st.builds(
    Reply,
    _TEXTS | st.text(max_size=200),
    tool_calls=st.lists(
        st.builds(ToolCall, st.sampled_from(["act", "", "x"]), _TEXTS | st.text(max_size=20))
        | _ACTIONS.map(lambda action: formats.write("tool", action).tool_calls[0]),
        max_size=2,
    ).map(tuple),
)


@settings(max_examples=1000)
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
