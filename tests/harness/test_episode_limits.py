"""The limits of an episode: turns, replies, tokens, seconds and money."""

import pytest

from agentgym.errors import InvalidOption
from harness.episode import Settings
from harness.prices import Price
from harness.record import Result
from harness.request import Reply


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


@pytest.mark.parametrize("name", ["max_tokens", "max_turns", "max_invalid", "episode_tokens"])
def test_limits_below_one_are_refused(name):
    with pytest.raises(InvalidOption, match=f"{name} is at least 1, got 0"):
        Settings(**{name: 0})
