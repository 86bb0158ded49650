"""One episode: the requests it makes, the turns it records, and how it ends by itself."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentgym.errors import InvalidOption, UnknownName
from harness import episode, formats
from harness.episode import make, play
from harness.formats.fence import extract
from harness.prompts import Style
from harness.record import Episode, Result
from harness.request import Reply, ToolCall

QUIET = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def test_a_won_episode_records_every_turn_and_the_start(assignment, finish, fenced):
    played, requests = finish(assignment(), lambda request: fenced("right"))

    assert (played.result, played.success, played.terminated, played.truncated) == (
        Result.WON,
        True,
        True,
        False,
    )
    assert (played.score, played.progress) == (4.0, 1.0)
    assert (played.milestones, played.milestone_total) == (2, 2)
    assert (played.level, played.key.split) == ("short", "test")
    assert played.instance.startswith("Walk-v0/short/test/0/")
    assert played.start.observation == "P____"
    assert played.start.note.cost_to_go == 4.0
    assert played.start.note.best_actions == ("Right",)
    assert [turn.observation for turn in played.turns] == ["P____", "_P___", "__P__", "___P_"]
    assert [turn.note.cost_to_go for turn in played.turns] == [3.0, 2.0, 1.0, 0.0]
    assert [turn.milestones for turn in played.turns] == [(), (0,), (), (1,)]
    assert [turn.reward for turn in played.turns] == [0.0, 0.0, 0.0, 1.0]
    assert [(turn.attempt, turn.action, turn.valid) for turn in played.turns] == [
        ("right", "Right", True)
    ] * 4
    assert [request.key for request in requests] == [
        (played.instance, 0, turn) for turn in range(4)
    ]


def test_what_the_reply_says_of_itself_is_recorded(assignment, finish):
    said = Reply(
        "```\nRight\n```",
        reasoning="Hm.",
        stop_reason="length",
        prompt_tokens=70,
        completion_tokens=9,
        seconds_waiting=0.5,
        seconds_generating=1.5,
        retries=2,
    )

    played, _ = finish(assignment(), lambda request: said, model="m", sampling={"seed": 3})

    turn = played.turns[0]
    assert (turn.reply, turn.reasoning, turn.stop_reason) == (said.text, "Hm.", "length")
    assert (turn.prompt_tokens, turn.completion_tokens, turn.retries) == (70, 9, 2)
    assert (turn.seconds_waiting, turn.seconds_generating) == (0.5, 1.5)
    assert turn.seconds_game > 0
    assert (played.model, played.sampling) == ("m", {"seed": 3})


def test_a_reply_without_an_action_costs_a_turn_and_is_explained(assignment, finish, fenced):
    said = iter(["I would go right, I think, or perhaps not at all.", *[fenced("Right")] * 4])

    played, requests = finish(assignment(), lambda request: next(said))

    first = played.turns[0]
    assert (first.valid, first.problem, first.attempt, first.action) == (False, "no_action", "", "")
    assert first.error
    assert first.note.cost_to_go == 4.0
    assert "no action was found" in requests[1].messages[-1]["content"]
    assert (played.result, len(played.turns)) == (Result.WON, 5)


def test_an_illegal_action_is_explained_with_the_games_own_words(assignment, finish, fenced):
    said = iter([fenced("Left"), *[fenced("Right")] * 4])

    _, requests = finish(assignment(), lambda request: next(said))

    assert "There is no cell to the left." in requests[1].messages[-1]["content"]
    assert "There is no cell to the left." not in requests[2].messages[-1]["content"]


@pytest.mark.parametrize("history", ["stateless", "full"])
def test_neither_oracle_nor_milestones_reach_the_prompt(assignment, finish, fenced, history):
    actions = ["Left", "junk", *["Right"] * 4]

    def play_with(kwargs):
        given = assignment(kwargs=kwargs, style=Style(history=history, list_actions=True))
        played, requests = finish(given, lambda request: fenced(actions[request.key[2]]))
        return played, [request.messages for request in requests]

    with_oracle, sent = play_with("{}")
    without, sent_without = play_with('{"oracle": false}')

    # Not a byte of a prompt depends on what the oracle knows.
    assert sent == sent_without
    assert with_oracle.start.note is not None
    assert without.start.note is None
    for word in ("oracle", "milestone", "cost_to_go", "best_action", "dead_end", "half"):
        assert word not in repr(sent).lower()


def test_a_tool_call_is_played_recorded_and_sent_back(assignment, finish):
    style = Style(history="full", format="tool")
    replies = {
        0: Reply("I go.", tool_calls=(ToolCall("act", '{"action": "Right"}'),)),
        1: Reply("I forgot, and say many words about it."),
        2: Reply("", tool_calls=(ToolCall("act", "{"),)),
        3: Reply("", tool_calls=tuple(ToolCall("act", f'{{"action": "{a}"}}') for a in "LR")),
    }

    played, requests = finish(assignment(style=style, max_turns=5), lambda r: replies[r.key[2] % 4])

    assert {request.format for request in requests} == {"tool"}
    assert all(request.tools == formats.FORMATS["tool"].tools for request in requests)
    assert [turn.problem for turn in played.turns] == [
        "",
        "no_call",
        "bad_arguments",
        "two_calls",
        "",
    ]
    assert [turn.strict for turn in played.turns] == [True, False, False, False, True]
    assert played.turns[0].tool_calls == (("act", '{"action": "Right"}'),)
    assert [message["role"] for message in requests[4].messages] == [
        *("system", "user", "assistant", "tool", "assistant", "user", "assistant"),
        *("tool", "assistant", "tool", "tool"),
    ]
    told = [request.messages[-1]["content"] for request in requests]
    assert "no tool was called" in told[2]
    assert "the arguments of the call were not as they should be" in told[3]
    assert "more than one tool call was made" in told[4]
    assert Episode.model_validate_json(played.model_dump_json()) == played


def test_other_formats_send_no_tools(assignment, finish, fenced):
    _, requests = finish(assignment(), lambda request: fenced("Right"))

    assert {(request.tools, request.format) for request in requests} == {((), "fence")}


@pytest.mark.parametrize("name", formats.FORMATS)
def test_every_format_wins_by_its_strict_rules(assignment, finish, name):
    given = assignment(style=Style(format=name, lenient=False, history="full"))

    played, _ = finish(given, lambda request: formats.write(request.format, "Right"))

    assert (played.result, played.format) == (Result.WON, name)
    assert all(turn.strict for turn in played.turns)


def test_strict_parsing_takes_nothing_that_misses_the_format(assignment, finish):
    bare = "thought: hm\nmove: [Right]"

    strict, requests = finish(
        assignment(style=Style(format="move", lenient=False), max_turns=2), lambda request: bare
    )
    lenient, _ = finish(assignment(style=Style(format="move")), lambda request: bare)

    assert [turn.problem for turn in strict.turns] == ["not_bare"] * 2
    assert "without brackets" in requests[1].messages[-1]["content"]
    assert strict.turns[0].error in requests[1].messages[-1]["content"]
    assert lenient.result is Result.WON
    assert not any(turn.strict for turn in lenient.turns)


def test_a_provider_that_fails_ends_it(assignment, finish):
    failed = Reply(
        "", stop_reason="provider_error", error="The server answered 500 twice.", faults={"500": 2}
    )

    played, _ = finish(assignment(), lambda request: failed)

    assert (played.result, played.error) == (Result.PROVIDER_ERROR, failed.error)
    assert (played.turns, played.faults) == ((), {"500": 2})


def test_half_a_surrogate_pair_does_not_spoil_the_record(assignment, finish, fenced):
    odd = "\ud83d \U0001f600 " + fenced("Right")

    played, _ = finish(assignment(), lambda request: odd)

    assert played.turns[0].reply == "\ufffd \U0001f600 " + fenced("Right")
    assert played.model_dump_json().encode()


@QUIET
@given(reply=st.text(alphabet=st.characters(exclude_categories=[])) | st.text("`\n<>/thinkRrigtL"))
def test_any_text_is_a_reply(assignment, finish, reply):
    played, _ = finish(assignment(max_turns=2), lambda request: reply)

    assert 1 <= len(played.turns) <= 2
    assert Episode.model_validate_json(played.model_dump_json()) == played
    for turn in played.turns:
        assert turn.valid or turn.error
        assert turn.problem == extract(turn.reply).problem


def test_the_same_replies_give_the_same_bytes(assignment, finish, fenced):
    def once():
        said = iter([fenced("Right"), "nothing of any use at all", fenced("Left")] * 9)
        slippery = assignment(kwargs='{"slippery": true}', seed=4)
        played, requests = finish(slippery, lambda request: next(said))
        turns = [turn.model_copy(update={"seconds_game": 0.0}) for turn in played.turns]
        start = played.start.model_copy(update={"seconds_game": 0.0})
        plain = played.model_copy(update={"turns": tuple(turns), "start": start})
        return plain.model_dump_json(), [request.messages for request in requests]

    assert once() == once()


def test_an_unknown_environment_is_named_with_the_nearest(assignment):
    with pytest.raises(UnknownName, match=r"Did you mean 'agentgym/HarnessWalk-v0'\?"):
        make(assignment("agentgym/HarnesWalk-v0"))


def test_an_environment_of_others_is_refused(assignment):
    with pytest.raises(InvalidOption, match=r"CartPole-v1 is none of agentgym's environments"):
        make(assignment("CartPole-v1"))


def test_nan_and_infinity_of_the_oracle_are_kept(assignment, finish, fenced):
    played, _ = finish(assignment(kwargs='{"slippery": true}'), lambda request: fenced("Right"))

    assert played.turns[-1].note.cost_to_go == 0.0
    assert math.isfinite(played.start.note.value)


def test_a_generator_left_early_leaves_no_trace(assignment):
    given = assignment()
    playing = play(make(given), given)
    next(playing)

    playing.close()

    with pytest.raises(StopIteration):
        playing.send(Reply("late"))


def test_games_are_prepared_once_for_each_environment(assignment, monkeypatch):
    made = []

    def watched(given):
        made.append(given.key.seed)
        return make(given)

    monkeypatch.setattr(episode, "make", watched)
    each = [assignment(seed=seed) for seed in (4, 5, 6)]

    episode.prepare(each)

    assert made == [4]
    episode.prepare([])
    assert made == [4]


@pytest.mark.parametrize("max_turns", [1, 2])
def test_games_that_end_at_once_are_prepared_too(assignment, max_turns):
    episode.prepare([assignment("agentgym/RushHour-v0", max_turns=max_turns)])
