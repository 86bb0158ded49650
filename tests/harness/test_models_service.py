"""Addresses of servers: what of them may be shown and recorded, and what never is."""

import asyncio
import base64
import json
import traceback

import pytest

from agentgym.errors import InvalidOption
from harness import models
from harness.models import FatalProviderError, Order
from harness.models.openai_api import OpenAIModel
from harness.models.service import hidden, public, without_secrets
from tests.harness.fault_server import QUICK, REQUEST, Answer, completion, refusal

LOGIN, TOKEN = "me:hush-hush%40hush", "token-abcdef-123456"


pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("https://me:hush@example.org:8443/v1?token=hush#hush", "https://example.org:8443/v1"),
        ("https://hush@example.org", "https://example.org"),
        ("https://me:hu@sh@example.org/v1", "https://example.org/v1"),
        ("HTTPS://me:hush@example.org/v1", "HTTPS://example.org/v1"),
        ("http://me:hush@[::1]:80/v1?hush", "http://[::1]:80/v1"),
        ("http://example.org/ai/@cf/meta?mail=hu@sh", "http://example.org/ai/@cf/meta"),
        ("--base-url=https://me:hush@example.org/v1", "--base-url=https://example.org/v1"),
        ("https://me:hu sh\nhush@example.org/v1", "https://example.org/v1"),
        # Not to be read: nobody knows where the password ends.
        ("https://me:hu/sh@example.org/v1", "https://..."),
        ("https://me:hu?sh@example.org/v1", "https://..."),
        ("https://me:hu#sh@example.org/v1", "https://..."),
        ("http://me:hush", "http://..."),
        ("http://", "http://"),
        # No addresses.
        ("agentgym/Sokoban-v0", "agentgym/Sokoban-v0"),
        ("organisation/model@revision?", "organisation/model@revision?"),
    ],
)
def test_what_may_be_shown_of_an_address(url: str, shown: str) -> None:
    assert public(url) == shown


def test_addresses_in_a_text_are_cut_each_for_itself() -> None:
    said = "No way from http://a:hush@b/c?hush to (HTTPS://hush@d), only to e@f."
    assert without_secrets(said) == "No way from http://b/c to (HTTPS://d), only to e@f."


@pytest.mark.parametrize(
    "url",
    [
        "me:hush@localhost:8000/v1",
        "localhost:8000/v1?token=hush",
        "http:/me:hush@localhost/v1",
        "ftp://me:hush@localhost/v1",
        "http://me:hu/sh@localhost/v1",
    ],
)
@pytest.mark.parametrize("name", ["openai/tiny", "qwen3-4b"])
def test_an_address_that_is_none_is_refused_without_its_password(name: str, url: str) -> None:
    with pytest.raises(InvalidOption, match="base_url is an address such as") as caught:
        models.load(name, base_url=url)
    assert "hu" not in str(caught.value).partition("got ")[2]


@pytest.mark.parametrize(
    "url", ["http://a b/v1", "http://a/v1\x7f", "http://999.1.1.1/v1", "http://a..b", "http://ü..x"]
)
@pytest.mark.parametrize("name", ["openai/x", "google/x", "anthropic/x"])
def test_an_address_that_no_client_takes_is_refused(name: str, url: str) -> None:
    pytest.importorskip("google.genai", reason="The extra [google] is not installed.")
    pytest.importorskip("anthropic", reason="The extra [anthropic] is not installed.")
    with pytest.raises(InvalidOption, match="base_url is an address such as"):
        models.load(name, base_url=url)


@pytest.mark.parametrize("key", ["schlüssel-1234567890", "two\nlines-1234567890"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(InvalidOption, match="The key in OPENAI_API_KEY has a char") as caught:
        models.load("openai/x", base_url="http://127.0.0.1:1/v1")
    assert "1234567890" not in str(caught.value)


def test_an_address_that_serve_does_not_take_is_shown_without_its_password() -> None:
    with pytest.raises(InvalidOption, match=r"got 'http://localhost/v1'\."):
        models.load("qwen3-4b", serve=True, base_url="http://me:hush@localhost/v1?token=hush")


def test_what_is_hidden_is_the_key_and_all_secrets_of_the_address() -> None:
    url = f"https://{LOGIN}@example.org/v1?token={TOKEN}&user=me"
    basic = base64.b64encode(b"me:hush-hush@hush").decode()
    found = hidden(url, "sk-secret-1234567890")
    assert set(found) == {
        "sk-secret-1234567890",
        LOGIN,
        "me:hush-hush@hush",
        "hush-hush%40hush",
        "hush-hush@hush",
        basic,
        TOKEN,
    }
    assert list(found) == sorted(found, key=len, reverse=True)
    # Short ones may stand in any reply.
    assert hidden("http://me:hu@localhost/v1?token=hush", "none") == ()


def test_what_a_server_repeats_of_the_address_is_nowhere(serve) -> None:
    echo = f"hush-hush@hush for http://{LOGIN}@h/v1?token={TOKEN} and {TOKEN}"
    server = serve(
        Answer(body=completion(f"I am {TOKEN}.", reasoning=TOKEN)),
        Answer(400, refusal(f"maximum context length: {echo}")),
        Answer(500, refusal(echo)),
        Answer(500, refusal(echo)),
        Answer(500, refusal(echo)),
        Answer(500, refusal(echo)),
        Answer(401, refusal(echo)),
    )
    url = server.url.replace("//", f"//{LOGIN}@") + f"?token={TOKEN}"

    async def ask() -> tuple[list[object], str]:
        model = OpenAIModel(Order("openai/tiny", url), QUICK)
        try:
            replies = [await model.reply(REQUEST) for _ in range(3)]
            with pytest.raises(FatalProviderError, match="status 401") as caught:
                await model.reply(REQUEST)
        finally:
            await model.close()
        return [*replies, model.settings], "".join(traceback.format_exception(caught.value))

    seen, fatal = asyncio.run(ask())
    assert [reply.stop_reason for reply in seen[:3]] == ["stop", "context", "provider_error"]
    assert seen[0].text == "I am [key]."
    assert seen[1].error.endswith("[key] for http://h/v1 and [key]")
    for text in (repr(seen), json.dumps(seen[3]), fatal):
        assert not any(secret in text for secret in hidden(url, ""))


def test_short_parameters_are_not_looked_for_in_replies(serve) -> None:
    server = serve(Answer(body=completion("Up, p")))

    async def ask() -> str:
        model = OpenAIModel(Order("openai/tiny", f"{server.url}?api=p"), QUICK)
        reply = await model.reply(REQUEST)
        await model.close()
        return reply.text

    assert asyncio.run(ask()) == "Up, p"


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(FatalProviderError) as caught:
        models.load("qwen3-4b", base_url=f"http://{LOGIN}@127.0.0.1:1/v1?token={TOKEN}")
    said = "".join(traceback.format_exception(caught.value))
    assert said.count("http://127.0.0.1:1/v1") == 1
    assert "hush" not in said
    assert TOKEN not in said
