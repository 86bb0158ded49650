"""Nothing is lost: a server that fails at random, runs that are killed, and runs that are large."""

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from harness import eval as evaluation
from harness.models import Order
from harness.models.openai_api import OpenAIModel, Patience
from harness.record import EPISODES, Result, latest, read
from tests.harness.fault_server import Answer, Half, completion, refusal
from tests.harness.processes import lines, start, wait_for_lines
from tests.harness.records import timeless

GOOD = Answer(body=completion("```\nRight\n```"))


class Nothing(Answer):
    """Closes the connection without a word."""

    def send(self, handler):
        handler.close_connection = True


FAULTS = {
    "429": (Answer(429, refusal("slow down"), {"retry-after": "0.01"}), Answer(429, refusal("no"))),
    "500": (Answer(500, refusal("oops")), Answer(500, "<html>oops</html>")),
    "connection": (Nothing(), Half(body=completion())),
    "not a completion": (
        Answer(body="<html>What?</html>"),
        Answer(body=completion()[:30]),
        Answer(body='{"choices": []}'),
    ),
    "empty": (Answer(body=completion(content=None)),),
}
"""By the name that the record has for it."""


class AtRandom(Answer):
    """Answers well or, to such a share of the requests, with a random fault; counts the faults."""

    def __init__(self, seed, share):
        super().__init__()
        self.share, self.did = share, Counter()
        self._random, self._guard = random.Random(seed), threading.Lock()

    def send(self, handler):
        self._choose().send(handler)

    def _choose(self):
        with self._guard:
            if self._random.random() >= self.share:
                return GOOD
            name = self._random.choice(list(FAULTS))
            self.did[name] += 1
            return self._random.choice(FAULTS[name])


@pytest.fixture
def command(walk, tmp_path, monkeypatch, capsys):
    """Runs the command against a server, with short pauses; the exit status."""
    monkeypatch.chdir(tmp_path)
    patience = Patience(retries=2, timeout=30.0, pause=0.001, longest_pause=0.01)

    def run(server, *arguments):
        def load(name, **given):
            return OpenAIModel(Order(name, server.url, concurrency=16), patience)

        monkeypatch.setattr(evaluation.models, "load", load)
        return evaluation.main(
            ["--model", "openai/m", "--env", walk, "--out", "r", "--price", "1,1", *arguments]
        )

    return run


def episodes():
    return list(read(Path("r", EPISODES)))


def met(played):
    """All faults in the record, by name."""
    found = Counter()
    for episode in played:
        found.update(episode.faults)
        for turn in episode.turns:
            found.update(turn.faults)
    return found


@pytest.mark.parametrize(
    "instances", [40, pytest.param(500, marks=[pytest.mark.slow])], ids=["some", "500"]
)
def test_every_episode_ends_truly_and_every_fault_of_the_server_is_counted(
    command, serve, instances
):
    answer = AtRandom(seed=os.getpid(), share=0.4)
    server = serve(answer)

    status = command(server, "--instances", str(instances))

    played = episodes()
    keys = [episode.key for episode in played]
    assert len(keys) == len(set(keys)) == instances
    assert met(played) == answer.did
    assert set(answer.did) == set(FAULTS)
    ended = Counter(episode.result for episode in played)
    assert set(ended) == {Result.WON, Result.PROVIDER_ERROR}
    assert status == 3
    # Each request got an answer: a reply that stands in the record, or a fault that does.
    turns = sum(len(episode.turns) for episode in played)
    assert len(server.asked) == turns + answer.did.total()
    assert all(len(each.turns) == 4 for each in played if each.result is Result.WON)
    spoilt = [each for each in played if each.result is Result.PROVIDER_ERROR]
    assert all("in 3 attempts; last: " in each.error for each in spoilt)
    assert all(sum(each.faults.values()) == 3 for each in spoilt)

    answer.share = 0.0
    assert command(server, "--instances", str(instances)) == 0

    again = episodes()
    assert len(again) == instances + len(spoilt)
    assert {episode.key for episode in again} == set(keys)
    assert {episode.result for episode in latest(again)} == {Result.WON}


COMMAND = ("--model", "random", "--env", "agentgym/Sokoban-v0", "agentgym/Minesweeper-v0")


def play(*arguments):
    return start("-m", "harness.eval", *arguments, stdout=subprocess.DEVNULL)


def without_times(path):
    """The lines of a record in the order of their keys, with every time as 0."""
    text = timeless(path.read_text(encoding="utf-8"))
    return sorted(text.splitlines(), key=lambda line: json.dumps(json.loads(line)["key"]))


@pytest.mark.parametrize(
    ("pieces", "instances"), [(2, 40), pytest.param(10, 220, marks=[pytest.mark.slow])]
)
def test_a_run_in_pieces_with_a_kill_after_each_has_the_bytes_of_the_whole(
    tmp_path, pieces, instances
):
    games = (*COMMAND, "--concurrency", "2", "--rollouts", "2", "--instances", str(instances // 2))
    whole = play(*games, "--out", str(tmp_path / "whole"))
    assert whole.communicate(timeout=600)[1] == ""
    path = tmp_path / "pieces" / EPISODES

    for piece in range(pieces):
        process = play(*games, "--out", str(path.parent))
        goal = lines(path) + random.Random(os.urandom(4)).randint(1, instances // 7)
        wait_for_lines(path, goal, process)
        assert process.poll() is None, f"piece {piece} came to the end of the run"
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
    last = play(*games, "--out", str(path.parent))
    assert last.communicate(timeout=600)[1] == ""

    assert lines(path) == 2 * instances
    assert without_times(path) == without_times(tmp_path / "whole" / EPISODES)


@pytest.mark.parametrize(
    "episodes", [80, pytest.param(10_000, marks=[pytest.mark.slow])], ids=["some", "10000"]
)
def test_many_episodes_in_one_run_stay_small_and_can_be_read_while_they_grow(tmp_path, episodes):
    path = tmp_path / "r" / EPISODES
    core = ("--suite", "core", "--instances", str(episodes // 16), "--out", str(path.parent))
    process = play("--model", "random", *core)
    peak = 0
    for goal in (1, episodes // 10, episodes // 2, episodes):
        while lines(path) < goal and process.poll() is None:
            time.sleep(0.05)
            peak = max(peak, peak_kib(process.pid))
        assert len(list(read(path))) >= goal
    assert process.communicate(timeout=3600)[1] == ""

    keys = Counter(episode.key for episode in read(path))
    assert process.returncode == 0
    assert len(keys) == keys.total() == episodes
    assert peak < 2**20
    assert peak or not Path("/proc/self/status").exists()


def peak_kib(pid):
    """The most memory that a process held so far, as Linux says it; 0 once it has ended.

    Not `getrusage`: there a child begins with the peak of the process that forked it.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) if found else 0
