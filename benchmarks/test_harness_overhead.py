"""Turns per second of the harness, against a model and a server that answer at once.

What is timed is the processor time of this process, which has one interpreter and so at most one
core to itself; the server is another process. Beside each rate over HTTP stands that of the bare
client in the same run, since its own work for a request is most of a turn's.
"""

import asyncio
import subprocess
import sys
import time

import openai
import pytest

from harness import models, record, scheduler
from harness.episode import Assignment, Settings
from harness.prompts import Style
from harness.record import Key
from harness.request import Gauge, Reply

LIMIT = 1000
IN_FLIGHT, EPISODES, TURNS, ROUNDS = 32, 100, 30, 3
GAMES = ("Sokoban-v0", "Minesweeper-v0", "2048-v0")

SERVER = r"""
import asyncio, json

BODY = json.dumps({
    "choices": [{"message": {"content": "```\nRight\n```"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 5},
}).encode()
HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY)


class AtOnce(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        self.rest += data
        while (end := self.rest.find(b"\r\n\r\n")) >= 0:
            length = int(self.rest[:end].lower().partition(b"content-length:")[2].split()[0])
            if len(self.rest) < end + 4 + length:
                return
            self.rest = self.rest[end + 4 + length :]
            self.transport.write(HEAD.encode() + BODY)


async def main():
    server = await asyncio.get_running_loop().create_server(AtOnce, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def url():
    """Address of a server that answers every POST with one chat completion, at once."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    process.kill()
    process.communicate()


class Instant:
    """A model in this process that answers at once."""

    name, concurrency = "instant", IN_FLIGHT

    def __init__(self):
        self.settings, self.gauge = {"sampling": {}}, Gauge()

    async def reply(self, request):
        return Reply("```\nRight\n```", prompt_tokens=100, completion_tokens=5)

    async def close(self):
        pass


def best(once):
    """Events per second of processor time, of the fastest round."""
    once()
    rates = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        count = once()
        rates.append(count / (time.process_time() - begun))
    return max(rates)


def play(env_id, load, history, folder):
    """Play with a model that `load` makes; how many turns that were."""
    settings = Settings(style=Style(history=history), max_tokens=64, max_turns=TURNS)
    episodes = [
        Assignment(Key(env_id=f"agentgym/{env_id}", seed=seed), settings)
        for seed in range(EPISODES)
    ]
    turns = []
    watch = scheduler.Watch(on_reply=lambda key, reply: turns.append(key))

    async def run():
        model = load()
        try:
            with record.Writer(folder / "episodes.jsonl") as writer:
                await scheduler.play_all(episodes, model, keep=writer.append, watch=watch)
        finally:
            await model.close()

    asyncio.run(run())
    return len(turns)


def ask_bare(url):
    """As many requests by the client alone, with one prompt; how many that were."""
    prompt = [{"role": "system", "content": "x" * 1500}, {"role": "user", "content": "y" * 600}]
    body = {"model": "m", "messages": prompt, "max_tokens": 64, "seed": 1}
    rest = iter(range(EPISODES * TURNS))

    async def one_after_another(client):
        for _ in rest:
            await client.post("/chat/completions", cast_to=str, body=body)

    async def run():
        transport = openai.DefaultAioHttpClient()
        async with openai.AsyncOpenAI(
            api_key="none", base_url=url, max_retries=0, http_client=transport
        ) as client:
            await asyncio.gather(*(one_after_another(client) for _ in range(IN_FLIGHT)))

    asyncio.run(run())
    return EPISODES * TURNS


@pytest.mark.parametrize("env_id", [*GAMES, "RushHour-v0"])
def test_turns_with_a_model_in_this_process(board, tmp_path, env_id):
    rate = best(lambda: play(env_id, Instant, "stateless", tmp_path))

    board.add(f"{env_id}: turns, instant model", rate, LIMIT, "per second", "limit")


@pytest.mark.parametrize("history", ["stateless", "full"])
@pytest.mark.parametrize("env_id", GAMES)
def test_turns_over_http(board, tmp_path, url, env_id, history):
    def load():
        return models.load("openai/m", base_url=url, concurrency=IN_FLIGHT)

    rate = best(lambda: play(env_id, load, history, tmp_path))
    bare = best(lambda: ask_bare(url))

    board.add(f"{env_id}, {history}: turns over HTTP", rate, LIMIT, "per second", "limit")
    board.add(f"{env_id}, {history}: turns over HTTP", rate, bare, "per second", "bare client")
