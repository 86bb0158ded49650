"""One episode: the requests it makes, the turns it records, and every way it ends."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentgym.errors import InvalidOption, UnknownName
from harness import episode, formats, prompts
from harness.episode import Settings, make, play
from harness.formats.fence import extract
from harness.prices import Price
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


def test_the_turn_limit_of_the_environment_ends_it(assignment, finish, fenced):
    played, _ = finish(assignment(), lambda request: fenced("Left"))

    assert (played.result, played.truncated, len(played.turns)) == (Result.STEP_LIMIT, True, 12)
    assert not played.success
    assert played.turns[0].error == "There is no cell to the left."
    assert not played.turns[0].valid


def test_a_tighter_turn_limit_ends_it_and_is_told_to_the_player(assignment, finish, fenced):
    played, requests = finish(assignment(max_turns=2), lambda request: fenced("Right"))

    assert (played.result, len(played.turns)) == (Result.STEP_LIMIT, 2)
    assert "2 turns left" in requests[0].messages[-1]["content"]
    assert "1 turn left" in requests[1].messages[-1]["content"]


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


def test_history_full_sends_the_earlier_turns_and_stateless_does_not(assignment, finish, fenced):
    _, alone = finish(assignment(style=Style(history="stateless")), lambda r: fenced("Right"))
    _, whole = finish(assignment(style=Style(history="full")), lambda r: fenced("Right"))

    assert [len(request.messages) for request in alone] == [2, 2, 2, 2]
    assert [len(request.messages) for request in whole] == [2, 4, 6, 8]
    assert whole[3].messages[2]["content"] == fenced("Right")


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


def test_the_seconds_of_an_episode_end_it(assignment, finish, fenced):
    answer = Reply(fenced("Left"), seconds_waiting=1.0, seconds_generating=2.0)

    played, _ = finish(assignment(episode_seconds=8.5), lambda request: answer)

    assert (played.result, played.error) == (Result.TIME_LIMIT, "8.5 seconds were spent.")
    assert len(played.turns) == 3


def test_the_games_own_time_counts_too(assignment, finish, fenced):
    played, _ = finish(assignment(episode_seconds=1e-9), lambda request: fenced("Left"))

    assert (played.result, len(played.turns)) == (Result.TIME_LIMIT, 1)


def test_a_win_in_the_last_second_is_a_win(assignment, finish, fenced):
    answer = Reply(fenced("Right"), seconds_generating=1.0)

    played, _ = finish(assignment(episode_seconds=4.0), lambda request: answer)

    assert played.result is Result.WON


def test_each_turn_has_its_cost_where_the_price_is_known(assignment, finish, fenced):
    counts = iter([(100, 10), (200, None), (300, 30), (400, 40)])

    def answer(request):
        prompt, completion = next(counts)
        return Reply(fenced("Right"), prompt_tokens=prompt, completion_tokens=completion)

    played, _ = finish(assignment(), answer, price=Price(prompt=1e6, completion=2e6))
    free, _ = finish(assignment(), lambda request: fenced("Right"))

    assert [turn.cost for turn in played.turns] == [120.0, None, 360.0, 480.0]
    assert {turn.cost for turn in free.turns} == {None}


def test_money_that_is_spent_ends_it(assignment, finish, fenced):
    said = iter([fenced("Right"), Reply("", stop_reason="cost_limit", error="2 of 2 USD.")])

    played, _ = finish(assignment(), lambda request: next(said))

    assert (played.result, played.error) == (Result.COST_LIMIT, "2 of 2 USD.")
    assert len(played.turns) == 1


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


def test_replies_without_an_action_are_endured_unless_a_limit_is_set(assignment, finish):
    patient, _ = finish(assignment(), lambda request: "word after word after word of it")
    strict, _ = finish(assignment(max_unparseable=3), lambda request: "no fence, many more words")

    assert (patient.result, len(patient.turns)) == (Result.STEP_LIMIT, 12)
    assert (strict.result, len(strict.turns)) == (Result.UNPARSEABLE, 3)
    assert strict.error == "3 replies in a row had no action."


def test_replies_that_were_all_cut_off_are_told_apart_from_wrong_ones(assignment, finish):
    cut = Reply("<think>and so on and so", stop_reason="length")
    said = iter([cut, Reply("many words without any action"), cut])

    all_cut, _ = finish(assignment(max_unparseable=3), lambda request: cut)
    mixed, _ = finish(assignment(max_unparseable=3), lambda request: next(said))

    assert all_cut.result is Result.OUTPUT_TRUNCATED
    assert mixed.result is Result.UNPARSEABLE


def test_only_replies_in_a_row_count(assignment, finish, fenced):
    said = iter(["no words of use in this one", fenced("Right")] * 6)

    played, _ = finish(assignment(max_unparseable=2, max_invalid=2), lambda request: next(said))

    assert (played.result, len(played.turns)) == (Result.WON, 8)


def test_turns_in_a_row_without_effect_end_it_as_a_limit_on_turns(assignment, finish, fenced):
    played, _ = finish(assignment(max_invalid=3), lambda request: fenced("Left"))

    assert (played.result, played.truncated, len(played.turns)) == (Result.STEP_LIMIT, False, 3)
    assert played.error == "3 turns in a row had no valid action."


def test_the_budget_of_reply_tokens_ends_it(assignment, finish, fenced):
    answer = Reply(fenced("Left"), completion_tokens=40)

    played, requests = finish(assignment(max_tokens=64, episode_tokens=100), lambda request: answer)

    assert [request.max_tokens for request in requests] == [64, 60, 20]
    assert (played.result, played.error) == (Result.BUDGET, "100 reply tokens were spent.")


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


@pytest.mark.parametrize("name", ["max_tokens", "max_turns", "max_invalid", "episode_tokens"])
def test_limits_below_one_are_refused(name):
    with pytest.raises(InvalidOption, match=f"{name} is at least 1, got 0"):
        Settings(**{name: 0})


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
