"""One episode: the requests it makes, the turns it records, and every way it ends."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentgym.errors import InvalidOption, UnknownName
from harness.episode import Settings, make, play
from harness.formats.fence import extract
from harness.prompts import Style
from harness.record import Episode, Result
from harness.request import Reply

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


def test_a_provider_that_fails_ends_it(assignment, finish):
    failed = Reply("", stop_reason="provider_error", error="The server answered 500 five times.")

    played, _ = finish(assignment(), lambda request: failed)

    assert (played.result, played.error) == (Result.PROVIDER_ERROR, failed.error)
    assert played.turns == ()


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
