"""The last of these tests, since it ends the engine."""

import pytest

from harness.models import FatalProviderError

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_a_dead_engine_ends_the_run(loop, greedy, request_of, workers):
    assert loop.run(greedy.reply(request_of())).text
    assert workers()
    for process in workers():
        process.kill()
    with pytest.raises(FatalProviderError, match="vLLM has died"):
        loop.run(greedy.reply(request_of()))
    loop.run(greedy.close())
    assert workers() == []
    loop.run(greedy.close())
