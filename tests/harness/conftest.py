"""The third party's game under an id that only these tests use, and fake-free drivers."""

import gymnasium as gym
import pytest

from harness import eval as evaluation
from harness.episode import Assignment, Settings, make, play
from harness.record import Key
from harness.request import Reply
from tests.harness.fault_server import scripted
from tests.harness.processes import WALK, register_walk


@pytest.fixture(scope="session", autouse=True)
def walk():
    """The id of the game."""
    register_walk()
    yield WALK
    del gym.registry[WALK]


@pytest.fixture(scope="session")
def scripted_runs(tmp_path_factory):
    """Folders of two runs of three real games, three instances each, by `oracle` and `random`."""
    ids = ("agentgym/Sokoban-v0", "agentgym/RushHour-v0", "agentgym/Minesweeper-v0")
    folders = []
    for model in ("oracle", "random"):
        folders.append(tmp_path_factory.mktemp("runs") / model)
        command = ["--model", model, "--instances", "3", "--out", str(folders[-1]), "--env", *ids]
        assert evaluation.main(command) == 0
    return tuple(folders)


@pytest.fixture
def bare_environment(monkeypatch):
    """None of this machine's keys, addresses and proxies."""
    for provider in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "GOOGLE_GEMINI"):
        for what in ("API_KEY", "BASE_URL"):
            monkeypatch.delenv(f"{provider}_{what}", raising=False)
    others = ("ANTHROPIC_AUTH_TOKEN", "GOOGLE_GENAI_USE_VERTEXAI")
    for name in (*others, "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def serve():
    """Starts a server that gives the answers it is given, in that order."""
    with scripted() as start:
        yield start


@pytest.fixture
def assignment():
    """Builds an assignment."""

    def build(env_id=WALK, seed=0, rollout=0, kwargs="{}", **settings):
        key = Key(env_id=env_id, kwargs=kwargs, seed=seed, rollout=rollout)
        return Assignment(key, Settings(**settings))

    return build


@pytest.fixture
def finish():
    """Plays an assignment to its end with a function from request to reply (or reply text)."""

    def drive(assignment, answer, **identity):
        requests = []
        playing = play(make(assignment), assignment, **identity)
        try:
            request = next(playing)
            while True:
                requests.append(request)
                reply = answer(request)
                request = playing.send(Reply(reply) if isinstance(reply, str) else reply)
        except StopIteration as end:
            return end.value, requests

    return drive


@pytest.fixture
def fenced():
    """A reply in the asked format."""
    return "I go on.\n```\n{}\n```".format


@pytest.fixture
def played(assignment, finish, fenced):
    """Two episodes, one won."""
    won, _ = finish(assignment(), lambda request: fenced("Right"))
    limited, _ = finish(assignment(seed=1), lambda request: "no action in these many words")
    return [won, limited]
