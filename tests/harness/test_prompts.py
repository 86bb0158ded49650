"""The texts that a model is sent, by literal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym.errors import UnknownName
from harness import prompts
from harness.prompts import Exchange, Shown, Style

BOARD = "####\n#P_#\n####"
STYLE = Style()


def test_the_whole_first_prompt() -> None:
    sent = prompts.messages(
        prompts.system("You play a game.\n", "Up"),
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


def test_an_unknown_history_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'full'"):
        Style(history="ful")  # pyright: ignore[reportArgumentType]


def test_every_problem_of_a_reply_has_a_sentence() -> None:
    replies = ["", "```\n```", "```\na\nb\n```", "<think>"]
    problems = [prompts.extract(reply).problem for reply in replies]
    assert sorted(problems) == sorted(prompts.PROBLEMS)


def test_the_example_in_the_system_message_is_itself_understood() -> None:
    found = prompts.extract(prompts.system("Rules.", "reveal 0 0"))
    assert found == prompts.Extracted("reveal 0 0", "", strict=True)


@settings(max_examples=50)
@given(st.builds(Style, st.sampled_from(["stateless", "full"]), st.booleans(), st.booleans()))
def test_the_hash_is_stable_and_tells_styles_apart(style: Style) -> None:
    assert prompts.prompt_hash(style) == prompts.prompt_hash(style)
    assert (prompts.prompt_hash(style) == prompts.prompt_hash(STYLE)) == (style == STYLE)


@pytest.mark.parametrize(
    "name",
    ["_FORMAT", "_NOT_OVER", "_INVALID", "_UNCHANGED", "_LEGAL", "_ASK", "RULES", "PROBLEMS"],
)
def test_the_hash_follows_every_template(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompts.prompt_hash(Style(list_actions=True))
    value = getattr(prompts, name)
    changed = {**value, "x": "y"} if isinstance(value, dict) else value + type(value)("1")
    monkeypatch.setattr(prompts, name, changed)
    assert prompts.prompt_hash(Style(list_actions=True)) != before


def test_the_hash_of_the_default_style() -> None:
    # A golden value: if it changes, prompts have changed, and runs no longer compare.
    assert prompts.prompt_hash(STYLE) == "bbacad7709efe84f"
