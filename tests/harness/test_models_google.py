"""Google's client against a local server that speaks its wire format, faults among it."""

import json
import time

import pytest

pytest.importorskip("google.genai", reason="The extra [google] is not installed.")

from agentgym.errors import InvalidOption
from harness import models
from harness.models import FatalProviderError, Order, Sampling, request_digest
from harness.models.gate import START
from harness.models.google_api import GoogleModel
from harness.models.remote import Patience
from harness.request import Reply, Request, ToolCall
from tests.harness.fault_server import QUICK, REQUEST, Answer, Echo, Half, Hang, one_by_one

KEY = "AIza-secret-1234567890"


@pytest.fixture(autouse=True)
def environment(bare_environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


def said(*parts: dict, finish: str | None = "STOP", **usage: int) -> str:
    """The body of a generated content."""
    counts = {"promptTokenCount": 11, "candidatesTokenCount": 5} | usage
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    return json.dumps({"candidates": [candidate], "usageMetadata": counts})


def refusal(code: int, status: str, message: str, *details: dict) -> str:
    found = {"code": code, "status": status, "message": message, "details": list(details)}
    return json.dumps({"error": found})


GOOD = Answer(body=said({"text": "```\nUp\n```"}))


def ask(server, *requests: Request, patience: Patience = QUICK, **order: object) -> list[Reply]:
    url = server.url.removesuffix("/v1")
    return one_by_one(GoogleModel(Order("google/gemini", url, **order), patience), *requests)


def test_what_is_sent_and_what_comes_back(serve) -> None:
    server = serve(GOOD)
    messages = ({"role": "system", "content": "Rules."}, *REQUEST.messages)
    request = Request(messages, 77, REQUEST.key, REQUEST.peek)
    (reply,) = ask(server, request, sampling=Sampling(temperature=0.6, top_p=0.9, seed=2))
    path, headers, body, _ = server.asked[0]
    assert path.endswith("/models/gemini:generateContent")
    assert headers["x-goog-api-key"] == KEY
    assert body["contents"] == [{"role": "user", "parts": [{"text": "P__"}]}]
    assert body["systemInstruction"]["parts"] == [{"text": "Rules."}]
    assert body["generationConfig"] == {
        "temperature": 0.6,
        "topP": 0.9,
        "maxOutputTokens": 77,
        "seed": request_digest(2, REQUEST.key) % 2**31,
    }
    assert (reply.text, reply.stop_reason, reply.faults) == ("```\nUp\n```", "stop", {})
    assert (reply.prompt_tokens, reply.completion_tokens) == (11, 5)


def test_thoughts_are_kept_apart_and_counted(serve) -> None:
    parts = ({"text": "Left is a wall.", "thought": True}, {"text": "I go "}, {"text": "up."})
    (reply,) = ask(serve(Answer(body=said(*parts, thoughtsTokenCount=100))))
    assert (reply.text, reply.reasoning) == ("I go up.", "Left is a wall.")
    assert reply.completion_tokens == 105


def test_tools_are_sent_and_calls_read_back(serve) -> None:
    schema = {"type": "object", "properties": {"action": {"type": "string"}}}
    tool = {
        "type": "function",
        "function": {"name": "act", "description": "Acts.", "parameters": schema},
    }
    made = {"functionCall": {"name": "act", "args": {"action": "Up"}}}
    server = serve(Answer(body=said(made)))
    request = Request(REQUEST.messages, 77, REQUEST.key, REQUEST.peek, tools=(tool,))
    (reply,) = ask(server, request)
    assert reply.tool_calls == (ToolCall("act", '{"action": "Up"}'),)
    assert (reply.text, reply.retries) == ("", 0)
    (declared,) = server.asked[0][2]["tools"][0]["functionDeclarations"]
    assert (declared["name"], declared["description"]) == ("act", "Acts.")
    assert declared["parameters_json_schema"] == schema


def test_earlier_calls_are_sent_in_its_own_form(serve) -> None:
    server = serve(GOOD)
    call = {"id": "c0", "function": {"name": "act", "arguments": '{"action": "Up"}'}}
    messages = (
        {"role": "user", "content": "board 0"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "moved", "tool_call_id": "c0"},
        {"role": "user", "content": "board 1"},
        {"role": "assistant", "content": ""},
    )
    ask(server, Request(messages, 77, REQUEST.key, REQUEST.peek))
    _, made, answered, _, silent = server.asked[0][2]["contents"]
    assert made["role"] == "model"
    assert made["parts"][0]["functionCall"] == {"name": "act", "args": {"action": "Up"}}
    assert made["parts"][0]["thoughtSignature"]
    response = {"name": "act", "response": {"result": "moved"}}
    assert answered == {"role": "user", "parts": [{"functionResponse": response}]}
    assert silent["parts"] == [{"text": ""}]


def test_a_reply_cut_off_is_length(serve) -> None:
    (reply,) = ask(serve(Answer(body=said({"text": "I th"}, finish="MAX_TOKENS"))))
    assert (reply.text, reply.stop_reason) == ("I th", "length")


@pytest.mark.parametrize(
    "body",
    [said(finish="SAFETY"), json.dumps({"promptFeedback": {"blockReason": "SAFETY"}})],
)
def test_what_a_filter_blocks_is_an_empty_reply(body: str, serve) -> None:
    (reply,) = ask(serve(Answer(body=body)))
    assert (reply.text, reply.stop_reason, reply.retries) == ("", "stop", 0)


class Binary(Answer):
    """A body that is no text."""

    def send(self, handler) -> None:
        handler.send_response(self.status)
        handler.send_header("content-length", "3")
        handler.end_headers()
        handler.wfile.write(b'"\xff"')


TRANSIENT = {
    "429": Answer(429, refusal(429, "RESOURCE_EXHAUSTED", "slow down")),
    "500": Answer(500, refusal(500, "INTERNAL", "oops")),
    "503": Answer(503, "<html>busy</html>"),
    "not a completion": Answer(200, "<html>"),
    "not a completion, either": Answer(200, '{"candidates": 3}'),
    "not a completion, nor this": Answer(200, "{}"),
    "not a completion, a list": Answer(200, "[1]"),
    "not a completion, parts of another kind": Answer(200, said("Up")),
    "not a completion, a refusal that is no text": Binary(500),
    "empty": Answer(200, said(finish=None)),
    "connection": Half(body=said({"text": "Up"})),
    "connection, what is not packed": Answer(200, "no gzip at all", {"content-encoding": "gzip"}),
}


@pytest.mark.parametrize(("name", "answer"), TRANSIENT.items(), ids=TRANSIENT)
def test_transient_faults_are_counted_and_the_request_sent_again(name, answer, serve) -> None:
    server = serve(answer, answer, GOOD)
    (reply,) = ask(server)
    counted = {name.partition(",")[0]: 2}
    assert (reply.text, reply.retries, reply.faults) == ("```\nUp\n```", 2, counted)
    assert len(server.asked) == 3


def test_redirects_without_an_end_are_no_server(serve) -> None:
    with pytest.raises(FatalProviderError, match=r"No server answers .*redirects.*--base-url"):
        ask(serve(Answer(307, "", {"location": "/v1beta"})))


def test_a_server_that_hangs_is_asked_again(serve) -> None:
    patience = Patience(retries=1, timeout=2.0, pause=0.01)
    (reply,) = ask(serve(Hang(), GOOD), patience=patience)
    assert (reply.text, reply.faults) == ("```\nUp\n```", {"timeout": 1})


@pytest.mark.parametrize("where", ["header", "body"])
def test_the_wait_that_it_asks_for_is_kept(where: str, serve) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.4s"}
    body = refusal(429, "RESOURCE_EXHAUSTED", "slow", *([info] if where == "body" else []))
    headers = {"retry-after": "0.4"} if where == "header" else {}
    server = serve(Answer(429, body, headers), GOOD)
    begun = time.monotonic()
    ask(server, patience=Patience(retries=1, pause=0.0))
    assert time.monotonic() - begun >= 0.39
    (_, _, _, first), (_, _, _, second) = server.asked
    assert second - first >= 0.39


def test_an_overloaded_server_is_sent_less(serve) -> None:
    server = serve(TRANSIENT["429"], GOOD)
    model = GoogleModel(Order("google/x", server.url.removesuffix("/v1")), QUICK)
    one_by_one(model)
    assert model.gauge.limit == START // 2


def test_a_prompt_that_does_not_fit_is_context(serve) -> None:
    said = "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)"
    (reply,) = ask(serve(Answer(400, refusal(400, "INVALID_ARGUMENT", said))))
    assert (reply.stop_reason, reply.error) == ("context", f"The prompt is too long: {said}")


@pytest.mark.parametrize(
    ("status", "advice"),
    [(400, "the key and the sampling"), (403, "GEMINI_API_KEY may not"), (404, "model's name")],
)
def test_refusals_end_the_run_without_the_key(status: int, advice: str, serve) -> None:
    server = serve(Echo(status, refusal(status, "ERROR", "no, not for KEY")))
    with pytest.raises(FatalProviderError, match=advice) as caught:
        ask(server)
    assert "no, not for [key]" in str(caught.value)
    assert len(server.asked) == 1


def test_either_variable_of_the_key_will_do(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    with pytest.raises(InvalidOption, match="set the environment variable GEMINI_API_KEY"):
        models.load("google/gemini")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    server = serve(GOOD)
    ask(server)
    assert server.asked[0][1]["x-goog-api-key"] == KEY


@pytest.mark.parametrize("usage", [{"promptTokenCount": "many", "candidatesTokenCount": None}, {}])
def test_counts_that_are_not_told_are_none(usage: dict, serve) -> None:
    body = json.loads(said({"text": "Up"})) | {"usageMetadata": usage}
    (reply,) = ask(serve(Answer(body=json.dumps(body))))
    assert (reply.prompt_tokens, reply.completion_tokens) == (None, None)


def test_fields_that_nobody_knows_yet_are_passed_over(serve) -> None:
    body = json.loads(said({"text": "Up", "mood": 1}, finish="A_NEW_REASON")) | {"new": [1]}
    (reply,) = ask(serve(Answer(body=json.dumps(body))))
    assert (reply.text, reply.stop_reason, reply.retries) == ("Up", "stop", 0)


@pytest.mark.parametrize("name", ["x?y", "x#y", "a&b", "a b", "../x", "a//b", "/x", "x%2f", "x\\y"])
def test_a_name_that_would_be_another_address_is_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match="The name of a model of Google is letters") as caught:
        models.load(f"google/{name}")
    assert repr(name) in str(caught.value)


def test_names_of_more_than_one_part_are_all_right(serve) -> None:
    server = serve(GOOD)
    model = models.load("google/tunedModels/my-1.5_x", base_url=server.url.removesuffix("/v1"))
    one_by_one(model)
    assert server.asked[0][0].endswith("/tunedModels/my-1.5_x:generateContent")


def test_a_token_of_the_live_api_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "auth_tokens/abcdefgh")
    with pytest.raises(InvalidOption, match="set GEMINI_API_KEY to an API key") as caught:
        models.load("google/gemini")
    assert "abcdefgh" not in str(caught.value)


def test_a_fault_of_our_own_is_none_of_the_servers(serve, monkeypatch) -> None:
    server = serve(GOOD)
    monkeypatch.setattr(GoogleModel, "_config", lambda *_: {"no": "such option"})
    with pytest.raises(ValueError, match="no"):
        ask(server)
    assert server.asked == []
