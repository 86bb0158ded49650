"""What of its earlier turns an episode sends, and what it does where they do not fit."""

import pytest

from harness import formats, prompts
from harness.prompts import Style
from harness.record import Result
from harness.request import Reply, ToolCall


def test_history_full_sends_the_earlier_turns_and_stateless_does_not(assignment, finish, fenced):
    _, alone = finish(assignment(style=Style(history="stateless")), lambda r: fenced("Right"))
    _, whole = finish(assignment(style=Style(history="full")), lambda r: fenced("Right"))

    assert [len(request.messages) for request in alone] == [2, 2, 2, 2]
    assert [len(request.messages) for request in whole] == [2, 4, 6, 8]
    assert whole[3].messages[2]["content"] == fenced("Right")


def test_a_prompt_that_does_not_fit_ends_it(assignment, finish, fenced):
    said = iter([fenced("Right"), Reply("", stop_reason="context", error="900 of 512 tokens.")])

    played, _ = finish(assignment(), lambda request: next(said))

    assert (played.result, played.error) == (Result.CONTEXT_OVERFLOW, "900 of 512 tokens.")
    assert len(played.turns) == 1
    assert played.score == 1.0


class Small:
    """A model whose context holds so many messages."""

    def __init__(self, limit, answer):
        self.limit, self.answer = limit, answer

    def __call__(self, request):
        if len(request.messages) > self.limit:
            spent = {"seconds_waiting": 0.25, "faults": {"429": 1}}
            return Reply("", stop_reason="context", error="Too long.", **spent)
        return Reply(self.answer(request), seconds_waiting=0.5, faults={"500": 1})


def turns_sent(request):
    """The numbers of the turns that a prompt holds."""
    asked = [m["content"] for m in request.messages if m["role"] in ("user", "tool")]
    return [int(text.split()[1]) for text in asked]


def test_the_oldest_turns_are_dropped_where_that_is_asked(assignment, finish, fenced):
    model = Small(6, lambda request: fenced("Left"))
    given = assignment(style=Style(history="full"), max_turns=5, context_policy="drop")

    played, requests = finish(given, model)

    # Three turns fit; what was dropped stays dropped, so each later turn asks twice.
    assert [turns_sent(request) for request in requests] == [
        [0],
        [0, 1],
        [0, 1, 2],
        [0, 1, 2, 3],
        [1, 2, 3],
        [1, 2, 3, 4],
        [2, 3, 4],
    ]
    assert [turn.dropped for turn in played.turns] == [0, 0, 0, 1, 2]
    assert {request.messages[0]["role"] for request in requests} == {"system"}
    assert [request.key[2] for request in requests] == [0, 1, 2, 3, 3, 4, 4]
    assert played.result is Result.STEP_LIMIT
    # What the refusals took is not lost.
    assert [turn.seconds_waiting for turn in played.turns] == [0.5, 0.5, 0.5, 0.75, 0.75]
    assert played.turns[-1].faults == {"429": 1, "500": 1}
    assert (played.turns[0].faults, played.faults) == ({"500": 1}, {})


def test_a_history_of_some_turns_drops_among_these(assignment, finish, fenced):
    model = Small(4, lambda request: fenced("Left"))
    given = assignment(style=Style(history=2), max_turns=4, context_policy="drop")

    played, requests = finish(given, model)

    assert [turns_sent(request) for request in requests] == [
        [0],
        [0, 1],
        [0, 1, 2],
        [1, 2],
        [1, 2, 3],
        [2, 3],
    ]
    assert [turn.dropped for turn in played.turns] == [0, 0, 1, 1]


@pytest.mark.parametrize("history", ["stateless", "full"])
def test_where_nothing_is_left_to_drop_the_context_is_too_small(assignment, finish, history):
    model = Small(1, lambda request: "never asked")
    given = assignment(style=Style(history=history), context_policy="drop")

    played, requests = finish(given, model)

    assert (played.result, played.error) == (Result.CONTEXT_OVERFLOW, "Too long.")
    assert (len(requests), played.turns) == (1, ())
    assert played.faults == {"429": 1}


def test_all_older_turns_are_dropped_before_it_is_given_up(assignment, finish, fenced):
    left = iter([99, 99, 1, 1, 1])

    def answer(request):
        return Small(next(left), lambda request: fenced("Left"))(request)

    given = assignment(style=Style(history="full"), context_policy="drop")

    played, requests = finish(given, answer)

    assert [turns_sent(request) for request in requests] == [[0], [0, 1], [0, 1, 2], [1, 2], [2]]
    assert played.result is Result.CONTEXT_OVERFLOW
    assert played.faults == {"429": 3}


def test_dropping_keeps_tool_results_with_their_calls(assignment, finish):
    def answer(request):
        if len(request.messages) > 4:
            return Reply("", stop_reason="context")
        return formats.write("tool", "Left")

    style = Style(history="full", format="tool")
    played, requests = finish(assignment(style=style, max_turns=4, context_policy="drop"), answer)

    fitting = [r for r in requests if len(r.messages) <= 4]
    roles = [[message["role"] for message in request.messages] for request in fitting]
    assert roles == [["system", "user"], *[["system", "user", "assistant", "tool"]] * 3]
    assert [turn.dropped for turn in played.turns] == [0, 0, 1, 2]


def test_room_for_the_reply_is_reserved_as_long_as_a_turn_could_be_dropped(
    assignment, finish, fenced
):
    how = {"style": Style(history="full"), "max_turns": 3, "max_tokens": 50, "episode_tokens": 130}
    answer = Reply(fenced("Left"), completion_tokens=45)

    _, dropping = finish(assignment(context_policy="drop", **how), lambda request: answer)
    _, stopping = finish(assignment(**how), lambda request: answer)

    assert [request.reserve for request in dropping] == [0, 50, 40]
    assert [request.max_tokens for request in dropping] == [50, 50, 40]
    assert {request.reserve for request in stopping} == {0}


@pytest.mark.parametrize("name", formats.FORMATS)
@pytest.mark.parametrize("history", ["stateless", "full", 2])
def test_every_prompt_can_be_rebuilt_from_the_record(assignment, finish, name, history):
    style = Style(history=history, format=name, list_actions=True)
    said = [Reply("nothing"), formats.write(name, "Left"), formats.write(name, "Right")]
    last = {}

    def answer(request):
        last[request.key[2]] = request.messages
        if len(request.messages) > 8:
            return Reply("", stop_reason="context")
        return said[request.key[2] % 3]

    played, _ = finish(assignment(style=style, max_turns=8, context_policy="drop"), answer)

    past = [
        prompts.Exchange(
            f"Turn {number}\n{turn.observation}\n\n{turn.asked}",
            turn.reply,
            [ToolCall(*call) for call in turn.tool_calls],
        )
        for number, turn in enumerate(played.turns)
    ]
    for number, turn in enumerate(played.turns):
        shown = past[number - turn.sent : number]
        whole = Style(history="full", format=name)
        rebuilt = prompts.messages(played.system, shown, past[number].user, whole)
        assert rebuilt == last[number]
    assert any(turn.dropped for turn in played.turns) == (history == "full")


def test_without_the_policy_nothing_is_dropped(assignment, finish, fenced):
    model = Small(4, lambda request: fenced("Left"))

    played, requests = finish(assignment(style=Style(history="full")), model)

    assert (played.result, len(requests)) == (Result.CONTEXT_OVERFLOW, 3)
