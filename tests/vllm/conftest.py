"""One real engine with the small real model for all these tests; skipped where vLLM is missing."""

import asyncio
import os

import pytest

from harness.episode import Assignment, Settings, make, play
from harness.models import Order, Sampling
from harness.models.vllm_engine import load_vllm
from harness.record import Key

# What these tests say takes half a gigabyte; the rest of the memory belongs to others.
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")


@pytest.fixture(scope="session", autouse=True)
def vllm():
    """The package."""
    return pytest.importorskip("vllm", reason="needs vLLM; tox -e vllm installs it where it can")


@pytest.fixture(scope="session")
def loop():
    """The one event loop that the engine lives in."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def greedy(loop, vllm):
    """The engine, taking the likeliest token each time, with token ids and log-probabilities."""
    order = Order(
        "smollm2-135m",
        sampling=Sampling(temperature=0.0, top_p=0.9),
        concurrency=8,
        context=2048,
        logprobs=True,
    )
    model = load_vllm(order)
    yield model
    loop.run(model.close())


@pytest.fixture(scope="session")
def request_of():
    """Builds the first request of an episode of Sokoban."""

    def build(seed=0, rollout=0, max_tokens=24):
        key = Key(env_id="agentgym/Sokoban-v0", kwargs="{}", seed=seed, rollout=rollout)
        assignment = Assignment(key, Settings(max_tokens=max_tokens))
        return next(play(make(assignment), assignment))

    return build


@pytest.fixture
def workers(vllm):
    """Finds the processes of engines in this process that live."""
    import psutil

    def find():
        return [
            process
            for process in psutil.Process().children(recursive=True)
            if process.status() != psutil.STATUS_ZOMBIE and process.name().startswith("VLLM")
        ]

    return find
