"""What is sent to an OpenAI-compatible server and read back beside text: tools, tokens, faults."""

import asyncio
import json
import threading
from dataclasses import replace

import openai
import pytest

from agentgym.errors import InvalidOption, MissingExtra, UnknownName
from harness import models
from harness.models import FatalProviderError, Order, Sampling
from harness.models.openai_api import CONCURRENCY, OpenAIModel
from harness.request import Reply, Request, ToolCall
from tests.harness.fault_server import (
    QUICK,
    REQUEST,
    Answer,
    Half,
    completion,
    one_by_one,
    refusal,
)

GOOD = Answer(body=completion())
TOOL = {
    "type": "function",
    "function": {"name": "act", "parameters": {"type": "object", "properties": {}}},
}


pytestmark = pytest.mark.usefixtures("bare_environment")


def ask(url: str, *requests: Request, **order: object) -> list[Reply]:
    """Replies to requests one after another, from one model."""
    return one_by_one(OpenAIModel(Order("openai/tiny", url, **order), QUICK), *requests)


def bodies(server) -> list[dict]:
    return [body for _, _, body, _ in server.asked]


def test_tools_are_sent_and_calls_read_back(serve) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "act", "arguments": '{"a": "Up"'}}
    loose = {"function": {"name": "act", "arguments": {"a": "Up"}}}
    server = serve(Answer(body=completion(None, "tool_calls", tool_calls=[call, loose])))
    request = Request(REQUEST.messages, 77, REQUEST.key, REQUEST.peek, tools=(TOOL,))
    (reply,) = ask(server.url, request)
    assert bodies(server)[0]["tools"] == [TOOL]
    assert (reply.text, reply.stop_reason, reply.retries) == ("", "stop", 0)
    # The first call's arguments are verbatim, though they are no JSON.
    assert reply.tool_calls == (ToolCall("act", '{"a": "Up"'), ToolCall("act", '{"a": "Up"}'))


def test_earlier_tool_calls_are_sent_as_they_are(serve) -> None:
    server = serve(GOOD)
    call = {"id": "c0", "type": "function", "function": {"name": "act", "arguments": "{}"}}
    messages = (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "done", "tool_call_id": "c0"},
    )
    ask(server.url, Request(messages, 77, REQUEST.key, REQUEST.peek))
    assert bodies(server)[0]["messages"] == list(messages)


@pytest.mark.parametrize("body", [completion(None, tool_calls=[]), completion(None)])
def test_neither_content_nor_calls_is_empty(body: str, serve) -> None:
    (reply,) = ask(serve(Answer(body=body), GOOD).url)
    assert (reply.faults, reply.text) == ({"empty": 1}, "```\nUp\n```")


def test_a_call_without_a_name_is_no_completion(serve) -> None:
    server = serve(Answer(body=completion(None, tool_calls=[{"function": {}}])), GOOD)
    assert ask(server.url)[0].faults == {"not a completion": 1}


@pytest.mark.parametrize("finish", ["error", "abort"])
def test_a_reply_that_the_server_broke_off_is_asked_for_again(finish: str, serve) -> None:
    (reply,) = ask(serve(Answer(body=completion("I th", finish)), GOOD).url)
    assert (reply.text, reply.faults) == ("```\nUp\n```", {"not a completion": 1})


def test_every_fault_is_counted_by_name(serve) -> None:
    faults = [
        Answer(429, refusal("slow down")),
        Answer(500, "oops"),
        Answer(200, "<html>"),
    ]
    again = [Half(body=completion()), Answer(200, completion(None)), Answer(500, "oops")]
    first, second = ask(serve(*faults, GOOD, *again, GOOD).url, REQUEST, REQUEST)
    assert first.faults == {"429": 1, "500": 1, "not a completion": 1}
    assert second.faults == {"connection": 1, "empty": 1, "500": 1}


def test_faults_are_counted_where_no_reply_comes_at_all(serve) -> None:
    (reply,) = ask(serve(Answer(503, "busy"), Answer(503, "busy"), Answer(500, "oops")).url)
    assert (reply.stop_reason, reply.faults) == ("provider_error", {"503": 2, "500": 2})


@pytest.mark.parametrize(
    "answer",
    [
        Answer(400, refusal("Unsupported value", param="seed")),
        Answer(400, refusal("Unrecognized request argument supplied: seed")),
        Answer(422, '{"detail": "extra field: seed"}'),
    ],
)
def test_a_server_that_refuses_seed_is_asked_without_from_then_on(answer, serve) -> None:
    server = serve(answer, GOOD, GOOD)
    replies = ask(server.url, REQUEST, REQUEST, sampling=Sampling(temperature=0.5))
    assert ["seed" in body for body in bodies(server)] == [True, False, False]
    assert [body["temperature"] for body in bodies(server)] == [0.5] * 3
    # The record shows that neither was drawn with the seed; nothing was tried again.
    assert [(reply.retries, reply.faults) for reply in replies] == [(0, {"without seed": 1})] * 2


class RefusesSeed(Answer):
    """Refuses the first five once all of them are here."""

    gate = threading.Barrier(5)

    def send(self, handler) -> None:
        if "seed" not in handler.asked:
            return GOOD.send(handler)
        self.gate.wait(60)
        return Answer(400, refusal("no seed here", param="seed")).send(handler)


def test_requests_refused_at_the_same_time_are_all_sent_again(serve) -> None:
    server = serve(RefusesSeed())

    async def at_once() -> list[Reply]:
        model = OpenAIModel(Order("openai/tiny", server.url), QUICK)
        replies = await asyncio.gather(*(model.reply(REQUEST) for _ in range(5)))
        await model.close()
        return replies

    assert [reply.text for reply in asyncio.run(at_once())] == ["```\nUp\n```"] * 5
    assert len(server.asked) == 10


@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_sampling_that_was_asked_for_is_never_left_out(name: str, serve) -> None:
    server = serve(Answer(400, refusal(f"{name} is not supported", param=name)), GOOD)
    with pytest.raises(FatalProviderError, match=f"{name} is not supported"):
        ask(server.url, sampling=Sampling(temperature=0.5, top_p=0.5))
    assert len(server.asked) == 1


def test_a_second_refusal_is_final(serve) -> None:
    server = serve(Answer(400, refusal("no seed")), Answer(400, refusal("no seed, no nothing")))
    with pytest.raises(FatalProviderError, match="no nothing"):
        ask(server.url)
    assert len(server.asked) == 2


def test_the_limit_goes_under_its_newer_name_where_the_older_is_refused(serve) -> None:
    said = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    server = serve(Answer(400, refusal(said, param="max_tokens")), GOOD)
    ask(server.url, REQUEST, REQUEST)
    limits = [(b.get("max_tokens"), b.get("max_completion_tokens")) for b in bodies(server)]
    assert limits == [(77, None), (None, 77), (None, 77)]


ROOM = {
    "vLLM": "'max_tokens' or 'max_completion_tokens' is too large: 77. This model's maximum context"
    " length is 64 tokens and your request has 50 input tokens (77 > 64 - 50).",
    "OpenAI": "This model's maximum context length is 64 tokens. However, you requested 127 tokens"
    " (50 in the messages, 77 in the completion). Please reduce the length of the messages.",
    "SGLang": "Requested token count exceeds the model's maximum context length of 64 tokens. You"
    " requested a total of 127 tokens: 50 tokens from the input messages and 77 tokens for the"
    " completion.",
    "Anthropic": "input length and `max_tokens` exceed context limit: 50 + 77 > 64, decrease input"
    " length or `max_tokens` and try again",
}


@pytest.mark.parametrize("said", ROOM.values(), ids=ROOM)
def test_a_prompt_that_fits_gets_the_room_that_is_left(said: str, serve) -> None:
    server = serve(Answer(400, refusal(said)), Answer(body=completion("I th", "length")), GOOD)
    first, second = ask(server.url, REQUEST, REQUEST)
    assert (first.text, first.stop_reason, first.retries) == ("I th", "length", 0)
    assert [body["max_tokens"] for body in bodies(server)] == [77, 14, 77]
    assert second.text == "```\nUp\n```"


def test_a_prompt_that_leaves_no_room_is_context(serve) -> None:
    server = serve(Answer(400, refusal(ROOM["vLLM"].replace("50 input", "64 input"))))
    assert ask(server.url)[0].stop_reason == "context"
    assert len(server.asked) == 1


def dropping(reserve: int) -> Request:
    return replace(REQUEST, reserve=reserve)


def test_where_turns_may_be_dropped_less_room_than_a_reply_is_context(serve) -> None:
    server = serve(Answer(400, refusal(ROOM["vLLM"])), Answer(body=completion("I", "length")))
    assert ask(server.url, dropping(77))[0].stop_reason == "context"
    assert len(server.asked) == 1
    assert ask(serve(Answer(400, refusal(ROOM["vLLM"])), GOOD).url, dropping(14))[0].text


def test_a_reply_that_the_server_shortened_by_itself_is_context_likewise(serve) -> None:
    # The body says that five tokens were made.
    server = serve(Answer(body=completion("I th", "length", reasoning="Hm")))
    long, short, any_length = ask(server.url, dropping(6), dropping(5), REQUEST)
    assert (long.stop_reason, long.text, long.reasoning) == ("context", "", "")
    assert long.error == "The context had room for 5 tokens of the reply beside the prompt."
    assert (short.stop_reason, any_length.stop_reason) == ("length", "length")


def with_tokens(**changes: object) -> str:
    body = json.loads(completion())
    listed = [{"token": "U", "logprob": -0.25}, {"token": "p", "logprob": -1.5}]
    body["choices"][0] |= {"logprobs": {"content": listed}, "token_ids": [7, 8]}
    return json.dumps(body | {"prompt_token_ids": [1, 2, 3]} | changes)


def test_token_ids_and_log_probabilities_only_where_asked_for(serve) -> None:
    server = serve(Answer(body=with_tokens()), GOOD)
    told, silent = ask(server.url, REQUEST, REQUEST, logprobs=True)
    assert (told.prompt_ids, told.completion_ids) == ((1, 2, 3), (7, 8))
    assert told.logprobs == (-0.25, -1.5)
    assert (silent.prompt_ids, silent.completion_ids, silent.logprobs) == (None, None, None)
    assert bodies(server)[0]["logprobs"] is True
    assert bodies(server)[0]["return_token_ids"] is True
    ask(server.url)
    assert bodies(server)[-1].keys().isdisjoint({"logprobs", "return_token_ids"})


def test_log_probabilities_of_other_tokens_are_not_taken(serve) -> None:
    body = json.loads(with_tokens())
    body["choices"][0]["token_ids"] = [7]
    (reply,) = ask(serve(Answer(body=json.dumps(body))).url, logprobs=True)
    assert (reply.completion_ids, reply.logprobs) == ((7,), None)


def test_a_server_without_token_ids_still_gives_log_probabilities(serve) -> None:
    refused = Answer(400, refusal("Unrecognized request argument supplied: return_token_ids"))
    server = serve(refused, Answer(body=with_tokens(prompt_token_ids=None)))
    (reply,) = ask(server.url, logprobs=True)
    assert (reply.prompt_ids, reply.logprobs) == (None, (-0.25, -1.5))
    assert bodies(server)[1]["logprobs"] is True
    assert reply.faults == {"without return_token_ids": 1}


@pytest.mark.parametrize("thinking", [True, False, None])
def test_the_thinking_mode_goes_to_the_chat_template(thinking: bool | None, serve) -> None:
    server = serve(GOOD)
    ask(server.url, thinking=thinking)
    expected = None if thinking is None else {"enable_thinking": thinking}
    assert bodies(server)[0].get("chat_template_kwargs") == expected


def test_the_key_is_cut_out_of_tool_calls(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1234567890")
    call = {"function": {"name": "act", "arguments": '{"a": "sk-secret-1234567890"}'}}
    (reply,) = ask(serve(Answer(body=completion(None, tool_calls=[call]))).url)
    assert reply.tool_calls[0].arguments == '{"a": "[key]"}'


# Open weights behind a server


@pytest.mark.parametrize(
    ("listed", "asked"),
    [
        (("other", "Qwen/Qwen3-4B-Instruct-2507"), "Qwen/Qwen3-4B-Instruct-2507"),
        (("other", "qwen3-4b"), "qwen3-4b"),
        (("/models/qwen.gguf",), "/models/qwen.gguf"),
        (None, "Qwen/Qwen3-4B-Instruct-2507"),
    ],
)
def test_a_preset_finds_its_name_at_the_server(listed, asked: str, serve) -> None:
    server = serve(GOOD)
    server.models = listed
    model = models.load("qwen3-4b", base_url=server.url)
    one_by_one(model)
    assert bodies(server)[0]["model"] == asked
    assert model.settings["model"] == asked
    assert model.settings["weights"] == "Qwen/Qwen3-4B-Instruct-2507"
    # What the command left open is the preset's, and is sent; so is what undoes the server's own.
    sent = {"temperature": 0.6, "top_p": 0.95, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    assert bodies(server)[0].items() >= sent.items()
    assert model.settings["sampling"].items() >= sent.items()


def test_what_a_server_does_not_know_it_need_not_be_told_to_leave_off(serve) -> None:
    server = serve(
        Answer(400, refusal("unknown field: top_k")),
        Answer(400, refusal("unknown field: min_p")),
        Answer(503, "busy"),
        GOOD,
    )
    server.models = ("tiny",)
    model = models.load("qwen3-4b", base_url=server.url)
    model._patience = QUICK
    replies = one_by_one(model, REQUEST, REQUEST)
    without = {"without top_k": 1, "without min_p": 1}
    assert [reply.faults for reply in replies] == [{"503": 1, **without}, without]
    assert [reply.retries for reply in replies] == [1, 0]
    assert len(server.asked) == 5
    assert bodies(server)[-1].keys().isdisjoint({"top_k", "min_p"})
    assert bodies(server)[-1]["temperature"] == 0.6


def test_openai_itself_is_not_told_its_own_default() -> None:
    sampling = Sampling(temperature=1.0, top_p=1.0)
    key = {"base_url": None, "sampling": sampling}

    def sent(url: str | None) -> dict:
        model = OpenAIModel(Order("openai/x", **key | {"base_url": url}))
        asyncio.run(model.close())
        return model._body(REQUEST)

    assert sent("http://127.0.0.1:1/v1").items() >= {"temperature": 1.0, "top_p": 1.0}.items()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-secret-1234567890")
        assert sent(None).keys().isdisjoint({"temperature", "top_p"})


def test_a_server_with_other_models_only_says_which(serve) -> None:
    server = serve(GOOD)
    server.models = ("one", "two")
    with pytest.raises(UnknownName, match=r"Qwen/Qwen3-4B-Instruct-2507.*Known: one, two"):
        models.load("qwen3-4b", base_url=server.url)


def test_a_server_that_is_not_there_says_so_at_once() -> None:
    with pytest.raises(FatalProviderError) as caught:
        models.load("qwen3-4b", base_url="http://me:hush@127.0.0.1:1/v1")
    assert str(caught.value).startswith(
        "http://127.0.0.1:1/v1 does not say which models it has ([Errno"
    )


def test_an_address_that_is_none_is_refused_before_it_is_asked() -> None:
    with pytest.raises(InvalidOption, match="base_url is an address such as"):
        models.load("qwen3-4b", base_url="127.0.0.1:8000")


def test_a_list_of_models_that_is_none_says_so(serve) -> None:
    server = serve(GOOD)
    server.models = "nonsense"
    with pytest.raises(FatalProviderError, match="does not say which models it has"):
        models.load("qwen3-4b", base_url=server.url)


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
def test_no_proxy_stands_between_us_and_this_machine(name: str, serve, monkeypatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    server = serve(GOOD)
    server.models = ("tiny",)
    model = models.load("qwen3-4b", base_url=server.url)
    assert one_by_one(model)[0].retries == 0
    assert model.concurrency == CONCURRENCY


def test_without_the_fast_transport_the_way_to_install_it_is_said(monkeypatch) -> None:
    class Missing:
        def __init__(self, **options: object) -> None:
            raise RuntimeError("you must have installed the package with the `aiohttp` extra")

    monkeypatch.setattr(openai, "DefaultAioHttpClient", Missing)
    with pytest.raises(MissingExtra, match=r"aiohttp.*pip install 'agentgym-suite\[harness\]'"):
        OpenAIModel(Order("openai/tiny", "http://127.0.0.1:1/v1"))
