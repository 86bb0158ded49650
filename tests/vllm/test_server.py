"""A vLLM server of our own, asked like any other, beside the engine in this process."""

import pytest

from harness import models
from harness.models import Sampling

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_a_server_says_what_the_engine_in_this_process_says(loop, greedy, request_of):
    asked = [request_of(seed) for seed in range(3)]
    ours = [loop.run(greedy.reply(request)) for request in asked]
    model = models.load(
        "smollm2-135m", serve=True, sampling=Sampling(temperature=0.0), logprobs=True
    )
    try:
        theirs = [loop.run(model.reply(request)) for request in asked]
    finally:
        loop.run(model.close())
    assert [reply.text for reply in ours] == [reply.text for reply in theirs]
    assert [reply.stop_reason for reply in ours] == [reply.stop_reason for reply in theirs]
    for here, there in zip(ours, theirs, strict=True):
        assert here.prompt_ids == there.prompt_ids
        assert here.completion_ids == there.completion_ids
        assert here.logprobs == pytest.approx(there.logprobs, abs=0.05)
