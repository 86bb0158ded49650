"""The OpenAI-compatible client against a server that injects faults, over real HTTP."""

import asyncio
import base64
import json
import socket
import time
import traceback
from collections.abc import Callable
from email.utils import formatdate

import pytest

from agentgym.errors import InvalidOption
from harness import models
from harness.models import FatalProviderError, Order, Sampling
from harness.models.openai_api import OpenAIModel, Patience
from harness.request import Reply
from tests.harness.fault_server import (
    QUICK,
    REQUEST,
    Answer,
    Dribble,
    Echo,
    Half,
    Hang,
    completion,
    one_by_one,
    refusal,
)

KEY = "sk-secret-1234567890"


@pytest.fixture(autouse=True)
def key(bare_environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


GOOD = Answer(body=completion())


def ask(url: str, patience: Patience = QUICK, **order: object) -> Reply:
    """One reply from a fresh model, which is closed."""
    return one_by_one(OpenAIModel(Order("openai/tiny", url, **order), patience))[0]


def test_a_reply_with_its_counts_and_times(serve) -> None:
    server = serve(GOOD)
    reply = ask(server.url)
    assert (reply.text, reply.reasoning, reply.stop_reason) == ("```\nUp\n```", "", "stop")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.retries) == (11, 5, 0)
    assert reply.seconds_generating > 0
    assert reply.error == ""


def test_what_is_sent(serve) -> None:
    server = serve(GOOD)
    ask(server.url, sampling=Sampling(temperature=0.6, top_p=0.9, seed=1))
    ask(server.url)
    (path, headers, body, _), (_, _, plain, _) = server.asked
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == f"Bearer {KEY}"
    seed = models.request_digest(1, REQUEST.key) % 2**31
    messages = [{"role": "user", "content": "P__"}]
    expected = {"model": "tiny", "messages": messages, "max_tokens": 77, "seed": seed}
    assert body == {**expected, "temperature": 0.6, "top_p": 0.9}
    assert plain == {**expected, "seed": models.request_digest(0, REQUEST.key) % 2**31}


def test_a_server_without_a_key_gets_none(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server = serve(GOOD)
    ask(server.url)
    assert server.asked[0][1]["authorization"] == "Bearer none"


def test_the_address_may_come_from_the_environment(serve, monkeypatch) -> None:
    server = serve(GOOD)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/")
    model = models.load("openai/org/tiny")
    assert one_by_one(model)[0].text == "```\nUp\n```"
    assert server.asked[0][2]["model"] == "org/tiny"
    assert model.settings["base_url"] == server.url


TRANSIENT = {
    **{
        str(status): Answer(status, refusal("busy"))
        for status in (408, 409, 429, 500, 502, 503, 504, 508, 520, 524, 529, 599)
    },
    "an empty body": Answer(200, ""),
    "no JSON": Answer(200, "<html>Bad gateway</html>"),
    "half a body": Half(body=completion()),
    "JSON of another shape": Answer(200, "[1, 2]"),
    "no choices key": Answer(200, "{}"),
    "empty choices": Answer(200, '{"choices": []}'),
    "null choices": Answer(200, '{"choices": null}'),
    "null message": Answer(200, '{"choices": [{"message": null}]}'),
    "null content": Answer(200, completion(content=None)),
}


@pytest.mark.parametrize("answer", TRANSIENT.values(), ids=TRANSIENT)
def test_transient_faults_are_retried(answer: Answer, serve) -> None:
    server = serve(answer, answer, GOOD)
    reply = ask(server.url)
    assert (reply.text, reply.retries, len(server.asked)) == ("```\nUp\n```", 2, 3)
    assert reply.seconds_waiting > 0.03  # Two pauses, of 0.01 and 0.02 seconds.


@pytest.mark.parametrize("answer", TRANSIENT.values(), ids=TRANSIENT)
def test_retries_are_bounded(answer: Answer, serve) -> None:
    server = serve(GOOD, answer)
    model = OpenAIModel(Order("openai/tiny", server.url), QUICK)
    _, reply = one_by_one(model, REQUEST, REQUEST)
    assert reply.stop_reason == "provider_error"
    assert (reply.text, reply.retries, len(server.asked)) == ("", 3, 1 + 4)
    assert reply.error.startswith(f"{server.url} gave no usable reply in 4 attempts; last: ")
    assert reply.error.count("\n") == 0


def test_a_server_that_only_fails_is_a_provider_error_not_fatal(serve) -> None:
    assert ask(serve(Answer(500, "oops")).url).stop_reason == "provider_error"


@pytest.mark.parametrize("answer", [Hang(), Dribble()])
def test_a_server_that_hangs_is_given_up(answer: Answer, serve) -> None:
    server = serve(answer)
    patience = Patience(retries=1, timeout=1.5, pause=0.01)
    with pytest.raises(FatalProviderError, match=r"no answer within 1\.5 seconds"):
        ask(server.url, patience)
    assert len(server.asked) == 2


def test_a_server_that_hangs_once_is_asked_again(serve) -> None:
    reply = ask(serve(Hang(), GOOD).url, Patience(retries=1, timeout=2.0, pause=0.01))
    assert (reply.text, reply.retries) == ("```\nUp\n```", 1)


def test_no_server_at_all_ends_the_run() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(FatalProviderError) as caught:
        ask(f"http://127.0.0.1:{port}/v1")
    assert str(caught.value).startswith(f"No server answers at http://127.0.0.1:{port}/v1 (no conn")
    assert str(caught.value).endswith("start it, or check --base-url.")


def test_a_server_that_goes_away_spoils_the_episode_only(serve) -> None:
    server = serve(Answer(body=completion(), headers={"connection": "close"}))

    async def twice() -> Reply:
        model = OpenAIModel(Order("openai/tiny", server.url), QUICK)
        await model.reply(REQUEST)
        server.shutdown()
        server.server_close()
        reply = await model.reply(REQUEST)
        await model.close()
        return reply

    reply = asyncio.run(twice())
    assert (reply.stop_reason, reply.retries) == ("provider_error", 3)
    assert "no connection" in reply.error


def gap(after: str, patience: Patience, serve) -> float:
    """Seconds between a refusal with this header and the next request."""
    server = serve(Answer(429, refusal("slow down"), {"retry-after": after}), GOOD)
    ask(server.url, patience)
    (_, _, _, first), (_, _, _, second) = server.asked
    return second - first


@pytest.mark.parametrize(
    ("after", "least"),
    [
        (lambda: "0.3", 0.3),
        (lambda: formatdate(time.time() + 2, usegmt=True), 0.5),
        # So says asctime, which HTTP allows too; it names no zone.
        (lambda: time.asctime(time.gmtime(time.time() + 2)), 0.5),
        (lambda: "600", 0.5),
    ],
    ids=["seconds", "date", "date without zone", "longest pause"],
)
def test_retry_after_is_followed(after: Callable[[], str], least: float, serve) -> None:
    assert gap(after(), Patience(retries=1, pause=0.0, longest_pause=0.5), serve) >= least


@pytest.mark.parametrize("after", ["0", "-5", "nan", formatdate(0, usegmt=True), "0.01"])
def test_retry_after_makes_no_pause_shorter(after: str, serve) -> None:
    assert gap(after, Patience(retries=1, pause=0.1), serve) >= 0.39  # Four times, for a 429.


def test_a_nonsense_retry_after_leaves_the_pause_as_it_is(serve) -> None:
    server = serve(Answer(503, "", {"retry-after": "soon"}), GOOD)
    assert ask(server.url).retries == 1


FATAL = {
    "401": (Answer(401, refusal("Incorrect API key")), "set OPENAI_API_KEY to a key of this"),
    "403": (Answer(403, refusal("not allowed")), "may not use this model"),
    "404": (Answer(404, refusal("no such model")), "check --base-url"),
    "404 of a web server": (Answer(404, "<h1>Not here</h1>"), "check --base-url"),
    "400": (Answer(400, refusal("unknown field 'messages'")), "check the model's name"),
    "501": (Answer(501, refusal("no such method")), "check the model's name"),
    "505": (Answer(505, refusal("no such version")), "check the model's name"),
    "422": (Answer(422, '{"detail": [1]}'), "check the model's name"),
    "a spent quota": (Answer(429, refusal("Pay!", "insufficient_quota")), "add credit"),
}


@pytest.mark.parametrize(("answer", "advice"), FATAL.values(), ids=FATAL)
def test_refusals_end_the_run_at_once(answer: Answer, advice: str, serve) -> None:
    server = serve(answer)
    with pytest.raises(FatalProviderError) as caught:
        ask(server.url)
    assert len(server.asked) == 1
    assert advice in str(caught.value)
    assert f"{server.url} refuses 'openai/tiny' (status {answer.status}: " in str(caught.value)


TOO_LONG = {
    "llama.cpp": refusal(
        "request (3031 tokens) exceeds the available context size (2048 tokens)",
        400,
        "exceed_context_size_error",
    ),
    "OpenAI": refusal("too many", "context_length_exceeded", "invalid_request_error"),
    "vLLM": refusal("This model's maximum context length is 2048 tokens.", 400, "BadRequestError"),
    "Anthropic": refusal("prompt is too long: 210000 tokens > 200000 maximum"),
}


@pytest.mark.parametrize("body", TOO_LONG.values(), ids=TOO_LONG)
def test_a_prompt_that_does_not_fit_is_context(body: str, serve) -> None:
    server = serve(Answer(400, body))
    reply = ask(server.url)
    assert (reply.stop_reason, reply.text, len(server.asked)) == ("context", "", 1)
    assert reply.error.startswith("The prompt is too long: ")


def test_a_reply_cut_off_is_length(serve) -> None:
    reply = ask(serve(Answer(body=completion("I th", "length"))).url)
    assert (reply.text, reply.stop_reason, reply.retries) == ("I th", "length", 0)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart(field: str, serve) -> None:
    reply = ask(serve(Answer(body=completion("```up```", **{field: "I think so."}))).url)
    assert (reply.text, reply.reasoning) == ("```up```", "I think so.")


def test_reasoning_alone_is_a_reply(serve) -> None:
    reply = ask(serve(Answer(body=completion(None, reasoning="Up."))).url)
    assert (reply.text, reply.reasoning, reply.retries) == ("", "Up.", 0)


def test_reasoning_cut_off_before_any_content_is_length(serve) -> None:
    reply = ask(serve(Answer(body=completion(None, "length", reasoning="Hmm, I"))).url)
    assert (reply.text, reply.reasoning, reply.stop_reason) == ("", "Hmm, I", "length")


def test_reasoning_that_the_server_hides_cut_off_is_length(serve) -> None:
    reply = ask(serve(Answer(body=completion(None, "length"))).url)
    assert (reply.text, reply.stop_reason, reply.retries) == ("", "length", 0)


def test_an_empty_reply_is_a_reply(serve) -> None:
    reply = ask(serve(Answer(body=completion(""))).url)
    assert (reply.text, reply.stop_reason, reply.retries) == ("", "stop", 0)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "many"}])
def test_counts_that_are_not_told_are_none(usage: object, serve) -> None:
    body = json.loads(completion()) | {"usage": usage}
    reply = ask(serve(Answer(body=json.dumps(body))).url)
    assert (reply.prompt_tokens, reply.completion_tokens) == (None, None)


def test_the_key_is_nowhere(serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    server = serve(
        Echo(200, completion("The key is KEY.", reasoning="KEY")),
        Echo(400, refusal("context length exceeded for KEY")),
        Echo(500, refusal("crashed for KEY")),
    )

    async def thrice() -> list[object]:
        model = OpenAIModel(Order("openai/tiny", server.url), QUICK)
        replies = [await model.reply(REQUEST) for _ in range(3)]
        await model.close()
        return [*replies, model, model.settings, model.__dict__["settings"]]

    seen = asyncio.run(thrice())
    assert seen[0].text == "The key is [key]."
    assert [reply.stop_reason for reply in seen[:3]] == ["stop", "context", "provider_error"]
    assert KEY not in repr(seen)
    assert KEY not in json.dumps(seen[4])
    assert KEY not in caplog.text


def test_a_dummy_key_is_not_looked_for_in_replies(serve, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "p")
    assert ask(serve(GOOD).url).text == "```\nUp\n```"


def test_the_key_is_not_in_a_fatal_error_or_its_traceback(serve) -> None:
    server = serve(Echo(401, refusal("Incorrect API key provided: KEY")))
    with pytest.raises(FatalProviderError) as caught:
        ask(server.url)
    assert "Incorrect API key provided: [key]" in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_passwords_in_the_address_are_not_kept() -> None:
    order = Order("openai/tiny", "https://me:hush@example.org:8443/v1?token=hush")
    model = OpenAIModel(order)
    assert model.settings["base_url"] == "https://example.org:8443/v1"
    asyncio.run(model.close())


def test_passwords_in_the_address_are_sent_and_parameters_too(serve) -> None:
    server = serve(GOOD)
    ask(server.url.replace("//", "//me:hu%40sh@") + "?token=a%26b")
    path, headers, _, _ = server.asked[0]
    assert path == "/v1/chat/completions?token=a%26b"
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")) == b"me:hu@sh"


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://x/v1", "http://", "http://[::1", "http://x:99999/v1", "/v1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidOption, match="base_url is an address such as"):
        models.load("openai/tiny", base_url=url)


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    with pytest.raises(InvalidOption, match="set the environment variable OPENAI_API_KEY"):
        models.load("openai/gpt")


def test_openai_itself_is_asked_by_the_new_name_of_the_limit() -> None:
    model = models.load("openai/gpt")
    assert model._limit == "max_completion_tokens"
    asyncio.run(model.close())
