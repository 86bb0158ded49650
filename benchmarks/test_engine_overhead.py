"""Tokens per second of the harness against what the same engine gives a bare batch, in one run.

Both sides send the same prompts to the same engine, with as many in flight. The harness has the
games, the chat template, the record and the dependence of each prompt on the reply before it; the
bare batch has all prompts at once, as the engine itself takes them. The engine is vLLM where it is
installed, else llama.cpp, with the small real model.
"""

import asyncio
import time
from importlib.util import find_spec

import pytest

from harness import models, record, scheduler
from harness.episode import Assignment, Settings
from harness.models import Sampling
from harness.record import Key

IN_FLIGHT, TURNS, TOKENS = 16, 4, 32
EPISODES = {"vllm": 32, "llama.cpp": 16}  # llama.cpp is several times slower at so many at once.
LIMIT = 0.95
ROUNDS = 3


class Watched:
    """The model, and every request that it was sent."""

    def __init__(self, model):
        self.model = model
        self.requests = []

    def __getattr__(self, name):
        return getattr(self.model, name)

    async def reply(self, request):
        self.requests.append(request)
        return await self.model.reply(request)


async def harness_rate(model, folder, count):
    """Reply tokens per second of the harness over so many episodes, and the requests it made."""
    watched, tokens = Watched(model), []
    settings = Settings(max_tokens=TOKENS, max_turns=TURNS)
    episodes = [
        Assignment(Key(env_id="agentgym/Sokoban-v0", kwargs="{}", seed=seed, rollout=0), settings)
        for seed in range(count)
    ]
    watch = scheduler.Watch(on_reply=lambda key, reply: tokens.append(reply.completion_tokens))
    gates = scheduler.Gates(requests=IN_FLIGHT)
    begun = time.perf_counter()
    with record.Writer(folder / f"{begun}.jsonl") as writer:
        await scheduler.play_all(episodes, watched, keep=writer.append, watch=watch, gates=gates)
    return sum(tokens) / (time.perf_counter() - begun), watched.requests


async def bare_rate(answer, prepared):
    """Reply tokens per second of the engine alone; `answer` gives a request's number of tokens."""
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def one(prompt):
        async with slots:
            return await answer(prompt)

    begun = time.perf_counter()
    tokens = await asyncio.gather(*map(one, prepared))
    return sum(tokens) / (time.perf_counter() - begun)


def bare_vllm(model, requests):
    """The engine of vLLM, given token ids."""

    async def answer(prepared):
        number, (request, prompt) = prepared
        inputs = {"type": "token", "prompt_token_ids": prompt.ids}
        parameters = model._parameters(request, request.max_tokens)
        async for output in model._engine.generate(inputs, parameters, f"bare-{number}"):
            last = output
        return len(last.outputs[0].token_ids)

    async def forget():
        await model._engine.reset_prefix_cache()

    prompts = [(request, model._template.render(request)) for request in requests]
    return answer, list(enumerate(prompts)), forget


def bare_llamacpp(model, requests):
    """The engine of llama.cpp, given messages, from as many threads as the harness uses."""

    def ask(body):
        return model._server.handle_chat_completions(body)["usage"]["completion_tokens"]

    async def answer(body):
        return await asyncio.get_running_loop().run_in_executor(model._threads, ask, body)

    async def forget():
        pass

    return answer, [model._body(request, request.max_tokens) for request in requests], forget


@pytest.mark.parametrize("engine", ["vllm" if find_spec("vllm") else "llama.cpp"])
def test_tokens_per_second_of_the_harness_and_of_a_bare_batch(engine, board, tmp_path):
    model = models.load(
        "smollm2-135m", engine=engine, sampling=Sampling(temperature=0.0), concurrency=IN_FLIGHT
    )
    with asyncio.Runner() as runner:
        count = EPISODES[engine]
        _, requests = runner.run(harness_rate(model, tmp_path, count))  # Warm.
        bare = (bare_vllm if engine == "vllm" else bare_llamacpp)(model, requests)
        answer, prepared, forget = bare
        ours, theirs = [], []
        for _ in range(ROUNDS):  # By turns, so that other load on the machine meets both.
            runner.run(forget())
            theirs.append(runner.run(bare_rate(answer, prepared)))
            runner.run(forget())
            ours.append(runner.run(harness_rate(model, tmp_path, count))[0])
        runner.run(model.close())
    what = f"reply tokens through {engine}"
    board.add(what, max(ours), max(theirs), "per second", "bare batch")
    board.add(what, max(ours), LIMIT * max(theirs), "per second", "95% of a bare batch")
