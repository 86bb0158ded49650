"""What requests cost: the table, what is unknown, and the purse that closes."""

import asyncio
from datetime import date

import pytest

from agentgym.errors import InvalidOption
from harness import prices
from harness.models.scripted import Scripted
from harness.prices import CostUnknown, Metered, Price, Purse
from harness.record import Result
from harness.request import Peek, Reply, Request

REQUEST = Request((), 10, ("instance", 0, 0), Peek(None, {}))
PAID = Reply("Right", prompt_tokens=1_000_000, completion_tokens=500_000)


def test_a_cost_is_the_two_counts_times_their_prices():
    assert Price(2, 8).cost(1_000_000, 500_000) == 6
    assert Price(0.4, 1.6).cost(3000, 100) == pytest.approx(0.00136)
    assert Price(0, 0).cost(5, 5) == 0


@pytest.mark.parametrize("counts", [(None, 5), (5, None), (None, None), (200_001, 5)])
def test_what_cannot_be_told_is_unknown_and_never_zero(counts):
    assert Price(2, 8, longest=200_000).cost(*counts) is None


@pytest.mark.parametrize("numbers", [(-1, 1), (1, float("nan")), (float("inf"), 1)])
def test_a_price_is_a_number(numbers):
    with pytest.raises(InvalidOption, match="tokens is 0 or more, got"):
        Price(*numbers)


@pytest.mark.parametrize(
    ("name", "base_url", "expected"),
    [
        ("openai/gpt-4.1", "https://api.openai.com/v1", (2, 8, None)),
        ("openai/gpt-4.1-2025-04-14", "https://api.openai.com/v1", (2, 8, None)),
        ("openai/gpt-4o-2024-05-13", "https://api.openai.com/v1", (5, 15, None)),
        ("openai/gpt-6-sol", None, (2, 10, 272_000)),
        ("anthropic/claude-haiku-4-5-20251001", None, (1, 5, None)),
        ("google/gemini-2.5-pro", None, (1.25, 10, 200_000)),
    ],
)
def test_the_table_knows_models_by_name_and_snapshot(name, base_url, expected):
    found = prices.find(name, base_url)

    assert (found.prompt, found.completion, found.longest) == expected
    assert (found.currency, found.date) == ("USD", prices.DATE)
    assert found.source.startswith("https://")


@pytest.mark.parametrize(
    ("name", "base_url"),
    [
        ("openai/gpt-4.1", "http://127.0.0.1:8000/v1"),
        ("openai/gpt-4.1", "https://api.openai.com.example/v1"),
        ("openai/gpt-4.1-turbo", None),
        ("openai/qwen3-4b", None),
        ("qwen3-4b", None),
        ("random", None),
        ("anthropic/gpt-4.1", None),
    ],
)
def test_other_servers_and_other_names_have_no_known_price(name, base_url):
    assert prices.find(name, base_url) is None


def test_every_row_is_a_price_of_a_day_that_has_been():
    for vendor in prices._VENDORS:
        for name in vendor.prices:
            found = prices.find(vendor.prefix + name)
            assert 0 < found.prompt < found.completion
            assert found.longest is None or found.longest >= 100_000
    assert date.fromisoformat(prices.DATE).year == 2026


@pytest.mark.parametrize("text", ["0.4", "a,b", "1,2,3", "", "1;2"])
def test_a_price_of_the_users_own_is_two_numbers(text):
    with pytest.raises(InvalidOption, match=r"such as 0\.4,1\.6, got"):
        prices.given(text)


def test_a_price_of_the_users_own_comes_before_the_table():
    assert prices.given("0.5, 2") == Price(0.5, 2)
    assert prices.find("openai/gpt-4.1", own="0.5,2") == Price(0.5, 2)
    assert prices.find("qwen3-4b", own="0.5,2") == Price(0.5, 2)


def test_an_address_in_the_environment_is_another_server(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")

    assert prices.find("openai/gpt-4.1") is None
    assert prices.find("openai/gpt-4.1", "https://api.openai.com/v1") is not None
    assert prices.find("google/gemini-2.5-pro") is not None


def test_what_is_sold_is_known_by_its_name():
    assert prices.sold("anthropic/anything")
    assert not prices.sold("qwen3-4b")
    assert not prices.sold("random")


def test_a_limit_without_a_price_is_refused_with_the_way_to_give_one():
    with pytest.raises(CostUnknown, match="--price PROMPT,COMPLETION"):
        Purse(None, 3.0)
    with pytest.raises(InvalidOption, match="above 0, got 0"):
        Purse(Price(1, 1), 0)


def replies(purse, *given):
    model = Metered(Scripted(given), purse)
    requests = (Request((), 10, ("i", 0, turn), REQUEST.peek) for turn in range(len(given)))

    async def ask():
        return [(await model.reply(request)).stop_reason for request in requests]

    return asyncio.run(ask())


def test_an_empty_purse_sends_nothing():
    purse = Purse(Price(2, 8), 11.0)

    assert replies(purse, PAID, PAID, PAID) == ["stop", "stop", "cost_limit"]
    assert purse.spent == 12
    assert purse.sentence == "The run's money is spent (11 USD, --max-cost)."


def test_without_a_limit_the_purse_never_closes():
    purse = Purse(Price(2, 8), None)

    assert replies(purse, *[PAID] * 5) == ["stop"] * 5
    assert purse.spent == 30


def test_replies_of_the_cache_and_refusals_are_not_paid_for():
    purse = Purse(Price(2, 8), 5.0)

    replies(
        purse,
        Reply("Right", prompt_tokens=10**7, completion_tokens=10**7, cached=True),
        Reply("", stop_reason="provider_error", error="500."),
        Reply("", stop_reason="context", error="Too long."),
    )

    assert purse.spent == 0


def test_a_limit_that_cannot_be_kept_is_an_error_and_no_guess():
    with pytest.raises(CostUnknown, match="does not count the tokens"):
        replies(Purse(Price(2, 8), 5.0), Reply("Right"))

    purse = Purse(Price(2, 8, date="2026-01-02"), None)
    assert replies(purse, Reply("Right"), PAID) == ["stop", "stop"]
    assert purse.bill == (
        "Cost 6.0000 USD, at 2 and 8 a million prompt and reply tokens (--price, 2026-01-02); that "
        "of 1 replies is unknown."
    )
    assert Purse(None, None).bill.startswith("Cost unknown: the model's price is not in the table")


def test_earlier_sessions_are_paid_for_spoilt_episodes_too(assignment, finish):
    def answer(request):
        if request.key[2] == 3:
            return Reply("", stop_reason="cost_limit", error="Spent.")
        return Reply("```\nRight\n```", prompt_tokens=10**6, completion_tokens=0, cached=turn_zero)

    turn_zero = False
    episode, _ = finish(assignment(), answer)
    purse = Purse(Price(2, 8), 100.0)

    assert list(purse.over([episode])) == [episode]

    assert episode.result is Result.COST_LIMIT
    assert purse.spent == 6
    turn_zero = True
    list(purse.over([finish(assignment(), answer)[0]]))
    assert purse.spent == 6


def test_what_was_written_down_then_counts_and_not_the_price_of_today(assignment, finish):
    def answer(request):
        return Reply("```\nRight\n```", prompt_tokens=10**6, completion_tokens=0)

    episode, _ = finish(assignment(), answer)
    turns = tuple(turn.model_copy(update={"cost": 0.25}) for turn in episode.turns)
    purse = Purse(Price(2, 8), 100.0)

    list(purse.over([episode.model_copy(update={"turns": turns})]))

    assert purse.spent == 1
