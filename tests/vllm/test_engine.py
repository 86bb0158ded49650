"""The real engine in this process."""

import asyncio
import shutil
import time
from dataclasses import replace

import pytest

from harness.models import EngineUnavailable, Order, WeightsUnavailable, weights
from harness.models.template import Template
from harness.models.vllm_engine import Calls, load_packages, load_vllm
from harness.request import ToolCall

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def small(vllm):
    return weights.find("smollm2-135m").folder


@pytest.fixture(scope="module")
def template(small):
    return Template(small, None)


def cached_tokens():
    """Prompt tokens that the engine did not compute, so far."""
    from vllm.v1.metrics.reader import get_metrics_snapshot

    return sum(m.value for m in get_metrics_snapshot() if m.name == "vllm:prefix_cache_hits")


def test_the_tokens_of_a_reply_spell_its_text(loop, greedy, request_of, template):
    asked = request_of()
    reply = loop.run(greedy.reply(asked))
    spelt = template.tokenizer.decode(reply.completion_ids, skip_special_tokens=True)
    assert reply.text == spelt != ""
    assert list(reply.prompt_ids) == template.render(asked).ids
    assert reply.prompt_tokens == len(reply.prompt_ids)
    assert reply.completion_tokens == len(reply.completion_ids) == len(reply.logprobs)
    assert all(logprob <= 0 for logprob in reply.logprobs)
    assert sum(reply.logprobs) < -0.1
    assert reply.seconds_generating > 0 <= reply.seconds_waiting


def test_a_prompt_is_not_computed_twice(loop, greedy, request_of):
    asked = request_of(seed=1)
    loop.run(greedy.reply(request_of()))
    before = cached_tokens()
    first = loop.run(greedy.reply(asked))
    between = cached_tokens()
    again = loop.run(greedy.reply(asked))
    assert again.text == first.text
    # Whole blocks of 128 tokens are remembered; the rules alone fill two.
    assert cached_tokens() - between >= first.prompt_tokens - 128
    # Another board has the same rules, and its prompt left them behind.
    assert between - before >= 128


def test_replies_come_from_one_batch(loop, greedy, request_of):
    asked = [request_of(seed) for seed in range(8)]

    async def ask():
        replies = asyncio.gather(*map(greedy.reply, asked))
        await asyncio.sleep(0)  # So far that each has begun.
        return greedy.gauge.in_flight, await replies

    begun = time.perf_counter()
    in_flight, replies = loop.run(ask())
    took = time.perf_counter() - begun
    assert in_flight == 8
    assert greedy.gauge.in_flight == 0
    assert all(reply.stop_reason in ("stop", "length") and reply.text for reply in replies)
    # One after the other, they could not generate for longer than all of it took.
    assert sum(reply.seconds_generating for reply in replies) > 2 * took


def test_the_context_is_never_passed(loop, greedy, request_of):
    asked = request_of(max_tokens=500)

    def with_words(count):
        return replace(asked, messages=({"role": "user", "content": "go " * count},))

    head = loop.run(greedy.reply(replace(with_words(1), max_tokens=1))).prompt_tokens
    short = loop.run(greedy.reply(with_words(2048 - head - 4)))
    assert short.prompt_tokens + short.completion_tokens <= 2048
    assert short.completion_tokens <= 5
    full = loop.run(greedy.reply(with_words(3000)))
    assert (full.stop_reason, full.text, full.completion_tokens) == ("context", "", None)
    assert "no room to reply" in full.error


def test_settings_name_all_that_counts(greedy, vllm):
    assert greedy.settings == {
        "weights": weights.find("smollm2-135m").settings,
        "engine": f"vllm {vllm.__version__}",
        "dtype": "bfloat16",
        "context": 2048,
        "thinking": None,
        "logprobs": True,
        "prefix_caching": True,
        "sampling": {"temperature": 0.0, "top_p": 0.9, "seed": 0, "max_tokens": None},
    }


TOOLS = ({"type": "function", "function": {"name": "act", "parameters": {"type": "object"}}},)


@pytest.mark.parametrize(
    ("mark", "said", "text", "calls"),
    [
        (
            "<tool_call>",
            'So.\n<tool_call>\n{"name": "act", "arguments": {"move": "up"}}\n</tool_call>',
            "So.\n",
            (ToolCall("act", '{"move": "up"}'),),
        ),
        (
            "<tool_call><function=",
            "<tool_call>\n<function=act>\n<parameter=move>\nup\n</parameter>\n</function>\n"
            "</tool_call>",
            "",
            (ToolCall("act", '{"move": "up"}'),),
        ),
        ("<tool_call>", "I say nothing of tools.", "I say nothing of tools.", ()),
        ("<tool_call>", '<tool_call>{"name": "act"', '<tool_call>{"name": "act"', ()),
        ("no mark", "<tool_call>{}</tool_call>", "<tool_call>{}</tool_call>", ()),
    ],
)
def test_tool_calls_are_read_by_the_familys_parser(
    small, tmp_path, request_of, mark, said, text, calls
):
    folder = tmp_path / "family"
    shutil.copytree(small, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    (folder / "chat_template.jinja").write_text(mark)
    reader = Calls(Template(folder, None), "", load_packages())
    assert reader.read(said, replace(request_of(), tools=TOOLS)) == (text, calls)
    assert reader.read(said, request_of()) == (said, ())


def test_what_cannot_start():
    with pytest.raises(WeightsUnavailable, match="no folder of weights at"):
        load_vllm(Order("own", weights="/no/such/folder"))
    with pytest.raises(EngineUnavailable, match=r"not start on .* \(User-.*\(9000\) is greater"):
        load_vllm(Order("smollm2-135m", context=9000))


def test_draws_depend_on_the_key_alone(loop, greedy, request_of, monkeypatch):
    monkeypatch.setitem(greedy.settings["sampling"], "temperature", 1.0)
    asked = [request_of(), request_of(), request_of(rollout=1)]
    first, same, other = (loop.run(greedy.reply(request)) for request in asked)
    assert first.text == same.text != other.text
