"""Anthropic's client against a local server that speaks its wire format, faults among it."""

import asyncio
import json

import pytest

pytest.importorskip("anthropic", reason="The extra [anthropic] is not installed.")

from agentgym.errors import InvalidOption
from harness import models
from harness.models import FatalProviderError, Order, Sampling
from harness.models.anthropic_api import AnthropicModel, conversation
from harness.models.gate import START
from harness.request import Reply, Request, ToolCall
from tests.harness.fault_server import QUICK, REQUEST, Answer, Echo, Half, one_by_one

KEY = "sk-ant-secret-1234567890"


@pytest.fixture(autouse=True)
def environment(bare_environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def said(*blocks: dict, stop: str | None = "end_turn", **usage: int) -> str:
    """The body of a message."""
    counts = {"input_tokens": 11, "output_tokens": 5} | usage
    return json.dumps(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": list(blocks),
            "stop_reason": stop,
            "usage": counts,
        }
    )


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def refusal(kind: str, message: str) -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}})


GOOD = Answer(body=said(text("```\nUp\n```")))


def ask(server, *requests: Request, **order: object) -> list[Reply]:
    url = server.url.removesuffix("/v1")
    return one_by_one(AnthropicModel(Order("anthropic/claude", url, **order), QUICK), *requests)


def test_what_is_sent_and_what_comes_back(serve) -> None:
    server = serve(GOOD)
    messages = ({"role": "system", "content": "Rules."}, *REQUEST.messages)
    request = Request(messages, 77, REQUEST.key, REQUEST.peek)
    (reply,) = ask(server, request, sampling=Sampling(temperature=0.6))
    path, headers, body, _ = server.asked[0]
    assert path == "/v1/messages"
    assert KEY in (headers.get("x-api-key"), headers.get("authorization", "")[len("Bearer ") :])
    assert headers["anthropic-version"] == "2023-06-01"
    assert body == {
        "model": "claude",
        "max_tokens": 77,
        "system": "Rules.",
        "messages": [{"role": "user", "content": [text("P__")]}],
        "temperature": 0.6,
    }
    assert (reply.text, reply.stop_reason, reply.faults) == ("```\nUp\n```", "stop", {})
    assert (reply.prompt_tokens, reply.completion_tokens) == (11, 5)


def test_sampling_that_changes_nothing_is_not_sent_any_other_is(serve) -> None:
    server = serve(GOOD)
    for temperature, top_p in ((1.0, 1.0), (0.0, 1.0), (1.0, 0.9)):
        ask(server, sampling=Sampling(temperature, top_p))
    sent = [
        {k: body[k] for k in ("temperature", "top_p") if k in body}
        for _, _, body, _ in server.asked
    ]
    assert sent == [{}, {"temperature": 0.0}, {"top_p": 0.9}]


def test_a_model_that_takes_no_sampling_says_what_to_do(serve) -> None:
    refused = refusal("invalid_request_error", "temperature: Extra inputs are not permitted")
    with pytest.raises(FatalProviderError, match=r"Extra inputs .*--temperature 1 --top-p 1"):
        ask(serve(Answer(400, refused)), sampling=Sampling(temperature=0.6))


def test_the_record_says_that_there_is_no_seed() -> None:
    model = models.load("anthropic/claude", sampling=Sampling(seed=3))
    asyncio.run(model.close())
    assert model.settings["sampling"]["seed"] is None
    assert model.settings["base_url"] == "https://api.anthropic.com"


def test_cached_prompt_tokens_count(serve) -> None:
    body = said(text("Up"), cache_creation_input_tokens=100, cache_read_input_tokens=1000)
    assert ask(serve(Answer(body=body)))[0].prompt_tokens == 1111


def test_thinking_is_kept_apart_and_calls_are_read_back(serve) -> None:
    blocks = (
        {"type": "thinking", "thinking": "Left is a wall.", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        text("I go "),
        text("up."),
        {"type": "tool_use", "id": "t1", "name": "act", "input": {"action": "Up"}},
    )
    (reply,) = ask(serve(Answer(body=said(*blocks, stop="tool_use"))))
    assert (reply.text, reply.reasoning) == ("I go up.", "Left is a wall.")
    assert reply.tool_calls == (ToolCall("act", '{"action": "Up"}'),)
    assert reply.stop_reason == "stop"


def test_tools_and_earlier_calls_are_sent_in_its_own_form(serve) -> None:
    server = serve(GOOD)
    schema = {"type": "object", "properties": {"action": {"type": "string"}}}
    tool = {
        "type": "function",
        "function": {"name": "act", "description": "Acts.", "parameters": schema},
    }
    ask(server, Request(REQUEST.messages, 77, REQUEST.key, REQUEST.peek, tools=(tool,)))
    assert server.asked[0][2]["tools"] == [
        {"name": "act", "description": "Acts.", "input_schema": schema}
    ]


def test_a_conversation_in_its_form() -> None:
    call = {"id": "c0", "type": "function"}
    good = call | {"function": {"name": "act", "arguments": '{"action": "Up"}'}}
    bad = call | {"function": {"name": "act", "arguments": "no JSON"}}
    turns = conversation(
        (
            {"role": "system", "content": "Rules."},
            {"role": "user", "content": "board 0"},
            {"role": "assistant", "content": "I go.", "tool_calls": [good, bad]},
            {"role": "tool", "content": "moved", "tool_call_id": "c0"},
            {"role": "user", "content": "board 1"},
            {"role": "assistant", "content": " "},
        )
    )
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant"]
    use = {"type": "tool_use", "id": "c0", "name": "act"}
    assert turns[1]["content"] == [
        text("I go."),
        use | {"input": {"action": "Up"}},
        use | {"input": {}},
    ]
    assert turns[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c0", "content": "moved"},
        text("board 1"),
    ]
    # It refuses empty blocks of text, and messages without a block.
    assert turns[3]["content"] == [text("(nothing)")]


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
def test_a_reply_cut_off_is_length(stop: str, serve) -> None:
    assert ask(serve(Answer(body=said(text("I th"), stop=stop))))[0].stop_reason == "length"


def test_a_turn_ended_at_once_is_an_empty_reply(serve) -> None:
    (reply,) = ask(serve(Answer(body=said(stop="refusal"))))
    assert (reply.text, reply.stop_reason, reply.retries) == ("", "stop", 0)


TRANSIENT = {
    "429": Answer(429, refusal("rate_limit_error", "slow down")),
    "500": Answer(500, refusal("api_error", "oops")),
    "529": Answer(529, refusal("overloaded_error", "Overloaded")),
    "not a completion": Answer(200, '{"content": [{}]}'),
    "empty": Answer(200, said(stop=None)),
    "connection": Half(body=said(text("Up"))),
}


@pytest.mark.parametrize(("name", "answer"), TRANSIENT.items(), ids=TRANSIENT)
def test_transient_faults_are_counted_and_the_request_sent_again(name, answer, serve) -> None:
    server = serve(answer, answer, GOOD)
    (reply,) = ask(server)
    assert (reply.text, reply.retries, reply.faults) == ("```\nUp\n```", 2, {name: 2})
    assert len(server.asked) == 3


def test_an_overloaded_server_is_sent_less(serve) -> None:
    server = serve(TRANSIENT["529"], GOOD)
    model = AnthropicModel(Order("anthropic/x", server.url.removesuffix("/v1")), QUICK)
    one_by_one(model)
    assert model.gauge.limit == START // 2


def test_retries_are_bounded(serve) -> None:
    server = serve(GOOD, TRANSIENT["529"])
    _, reply = ask(server, REQUEST, REQUEST)
    assert (reply.stop_reason, reply.faults) == ("provider_error", {"529": 4})
    assert "last: status 529, Overloaded." in reply.error


def test_a_prompt_that_does_not_fit_is_context(serve) -> None:
    said = "prompt is too long: 210000 tokens > 200000 maximum"
    (reply,) = ask(serve(Answer(400, refusal("invalid_request_error", said))))
    assert (reply.stop_reason, reply.error) == ("context", f"The prompt is too long: {said}")


def test_a_prompt_that_fits_gets_the_room_that_is_left(serve) -> None:
    said = "input length and `max_tokens` exceed context limit: 190 + 77 > 200, decrease input"
    server = serve(Answer(400, refusal("invalid_request_error", said)), GOOD)
    assert ask(server)[0].stop_reason == "stop"
    assert [body["max_tokens"] for _, _, body, _ in server.asked] == [77, 10]


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "set ANTHROPIC_API_KEY to"), (404, "the model's name"), (400, "sampling options")],
)
def test_refusals_end_the_run_without_the_key(status: int, advice: str, serve) -> None:
    server = serve(Echo(status, refusal("error", "no, not for KEY")))
    with pytest.raises(FatalProviderError, match=advice) as caught:
        ask(server)
    assert "no, not for [key]" in str(caught.value)
    assert len(server.asked) == 1


def test_it_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(InvalidOption, match="set the environment variable ANTHROPIC_API_KEY"):
        models.load("anthropic/claude")
