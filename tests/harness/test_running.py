"""How a run stops and goes on: money, the reply cache, Ctrl-C, a pipe that closes, a full disk."""

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from harness import eval as evaluation
from harness.models import FatalProviderError
from harness.record import EPISODES, Result, latest, read
from harness.request import Gauge, Reply
from harness.run_folder import read_header
from tests.harness.processes import WALK, start, wait_for_lines


@pytest.fixture
def command(walk, tmp_path, capsys, monkeypatch):
    """Runs the command with a model of the test's own: exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(model, *arguments):
        monkeypatch.setattr(evaluation.models, "load", lambda name, **given: model)
        status = evaluation.main(["--model", model.name, "--env", walk, "--out", "r", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


class Million:
    """Goes right; a reply has a million prompt tokens and half a million of its own."""

    concurrency = 1

    def __init__(self, name="openai/million", count=True):
        self.name, self.settings, self.gauge = name, {}, Gauge()
        self.asked, self._count = 0, count

    async def reply(self, request):
        self.asked += 1
        counts = (1_000_000, 500_000) if self._count else (None, None)
        return Reply("```\nRight\n```", prompt_tokens=counts[0], completion_tokens=counts[1])

    async def close(self):
        pass


def results():
    return [episode.result for episode in read(Path("r", EPISODES))]


def test_when_the_money_is_spent_the_run_ends_and_more_money_goes_on(command):
    first = Million()
    status, out, err = command(first, "--instances", "5", "--price", "1,2", "--max-cost", "20")

    assert status == 4
    assert first.asked == 10  # Two USD each.
    assert err == (
        "The run's money is spent (20 USD, --max-cost). 3 episodes are left; the same command with "
        "a larger --max-cost plays them.\n"
    )
    assert "Cost 20.0000 USD, at 1 and 2 a million prompt and reply tokens (--price)." in out
    assert results().count(Result.WON) == 2
    assert results().count(Result.COST_LIMIT) in (1, 2)

    again = Million()
    assert command(again, "--instances", "5", "--price", "1,2", "--max-cost", "20")[0] == 4
    assert again.asked == 0

    more = Million()
    status, out, err = command(more, "--instances", "5", "--price", "1,2", "--max-cost", "99")
    assert (status, err) == (0, "")
    assert more.asked == 12
    assert len(latest(read(Path("r", EPISODES)))) == 5
    assert "Cost 44.0000 USD" in out
    assert "episodes 5" in " ".join(out.split())


def test_what_an_interrupted_episode_cost_is_not_forgotten(command):
    class Failing(Million):
        async def reply(self, request):
            if self.asked == 6:
                raise FatalProviderError("The server refuses the key.")
            return await super().reply(request)

    money = ("--instances", "5", "--price", "1,2", "--max-cost", "20", "--episodes", "1")
    assert command(Failing(), *money)[0] == 1
    assert results() == [Result.WON]
    assert [each.spent for each in read_header(Path("r")).sessions] == [12.0]

    again = Million()
    status, out, _ = command(again, *money)

    assert (status, again.asked) == (4, 4)
    assert "Cost 20.0000 USD" in out


def test_money_that_just_suffices_is_no_fault(command):
    status, _, err = command(
        Million(), "--instances", "2", "--price", "1,2", "--max-cost", "16", "--episodes", "1"
    )

    assert (status, err) == (0, "")


def test_a_limit_without_a_known_price_is_refused_before_anything_is_played(command):
    model = Million("qwen3-4b")

    status, _, err = command(model, "--max-cost", "3")

    assert status == 1
    assert "give it as --price PROMPT,COMPLETION" in err
    assert (model.asked, Path("r").exists()) == (0, False)


def test_a_limit_that_cannot_be_kept_ends_the_run(command):
    status, _, err = command(Million(count=False), "--price", "1,2", "--max-cost", "3")

    assert status == 1
    assert "--max-cost cannot be kept" in err


def test_an_unknown_price_is_said_and_never_zero(command):
    status, out, _ = command(Million("openai/unheard-of"), "--instances", "2")

    assert status == 0
    assert "Cost unknown: the model's price is not in the table; --price gives one." in out
    assert {turn.cost for each in read(Path("r", EPISODES)) for turn in each.turns} == {None}


def test_a_model_that_nobody_sells_has_no_line_on_cost(command):
    assert "Cost" not in command(Million("own-weights"), "--instances", "1")[1]


def test_the_list_price_reaches_the_record(command, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    status, out, _ = command(Million("openai/gpt-4.1"), "--instances", "1")

    assert status == 0
    assert "Cost 24.0000 USD, at 2 and 8 a million prompt and reply tokens (https://" in out
    [episode] = read(Path("r", EPISODES))
    assert [turn.cost for turn in episode.turns] == [6.0] * 4


def test_replies_of_the_cache_are_not_asked_for_nor_paid_again(command, tmp_path):
    cache = ("--cache", str(tmp_path / "cache"), "--price", "1,2", "--instances", "3")
    first, second = Million(), Million()
    assert command(first, *cache)[0] == 0
    before = [tuple(turn.reply for turn in each.turns) for each in read(Path("r", EPISODES))]

    status, out, _ = command(second, *cache, "--out", "s", "--max-cost", "0.01")

    assert (status, first.asked, second.asked) == (0, 12, 0)
    played = list(read(Path("s", EPISODES)))
    assert [tuple(turn.reply for turn in each.turns) for each in played] == before
    assert {(turn.cached, turn.cost) for each in played for turn in each.turns} == {(True, 0.0)}
    assert "Cost 0.0000 USD" in out
    assert "No turn was played, but for replies out of the cache." in out


def test_with_another_prompt_the_cache_is_not_believed(command, tmp_path):
    cache = ("--cache", str(tmp_path / "cache"), "--instances", "2")
    command(Million(), *cache)
    other = Million()

    command(other, *cache, "--out", "s", "--history", "full")

    # The first prompt of an episode has no history, so that is the equal question.
    played = [turn.cached for each in read(Path("s", EPISODES)) for turn in each.turns]
    assert other.asked == played.count(False) > 0


def test_the_last_lines_say_what_the_games_took_of_the_models_time(command):
    class Timed(Million):
        async def reply(self, request):
            return Reply("```\nRight\n```", seconds_generating=2.0)

    _, out, _ = command(Timed(), "--instances", "2")

    [line] = [line for line in out.splitlines() if line.startswith("The games took")]
    assert line.endswith(" % of the model's 2000 ms.")
    assert 0 < float(line.split()[7]) < 50


def test_more_turns_than_the_environment_allows_are_refused(command):
    status, _, err = command(Million(), "--max-turns", "13")

    assert status == 1
    assert "max_turns is at most 12, the limit of agentgym/HarnessWalk-v0 itself, got 13" in err
    assert command(Million(), "--max-turns", "12", "--instances", "1")[0] == 0


@pytest.mark.parametrize("wrong", [("--episodes", "0"), ("--price", "5"), ("--max-cost", "-1")])
def test_numbers_that_cannot_be_are_one_sentence(command, wrong):
    status, _, err = command(Million(), "--price", "1,1", *wrong)

    assert status == 1
    assert "got" in err
    assert err.count("\n") == 1


def test_a_full_disk_ends_with_a_sentence_and_a_readable_run(command):
    """A limit on the size of files stands in for the disk's end; the kernel refuses alike."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, before[1]))
        status, _, err = command(Million(), "--instances", "20")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)

    assert status == 1
    assert "the episodes before are kept. Make room and give the same command again." in err
    assert Path("r", EPISODES).read_bytes().endswith(b"\n")
    kept = results()
    assert 0 < len(kept) < 20

    assert command(Million(), "--instances", "20")[0] == 0
    assert len(results()) == 20


def test_a_fault_that_ends_the_run_is_no_matter_of_money(command):
    class Refusing(Million):
        async def reply(self, request):
            raise FatalProviderError("The server says 401.")

    status, _, err = command(Refusing(), "--price", "1,1", "--max-cost", "1")

    assert (status, err) == (1, "Error: The server says 401.\n")


START = """
import asyncio, sys, time
from harness import eval as evaluation
from harness.models import scripted
from tests.harness.processes import register_walk

register_walk()
choose = scripted.random_action

class Slow(scripted.Player):
    async def reply(self, request):
        await asyncio.sleep(0.02)
        return await super().reply(request)

    async def close(self):
        if sys.argv[1] == "stuck":
            print("closing", file=sys.stderr, flush=True)
            time.sleep(60)

evaluation.models.load = lambda name, **given: Slow(evaluation.models.Order(name), lambda request:
    choose(request, 0))
sys.exit(evaluation.main(sys.argv[2:]))
"""


def start_slow(how, *arguments, **options):
    many = ("--model", "random", "--env", WALK, "--instances", "400")
    return start("-c", START, how, *many, *arguments, **options)


def test_ctrl_c_twice_ends_at_once(tmp_path):
    path = tmp_path / "r" / EPISODES
    process = start_slow("stuck", "--out", str(path.parent), stdout=subprocess.DEVNULL)
    wait_for_lines(path, 2, process)

    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == "closing\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert err == "Stopped at once; the same command goes on from here.\n"
    assert 2 <= len(latest(read(path))) < 400


def test_a_pipe_that_closes_ends_the_run_without_a_traceback(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    process = start_slow("quick", "--out", str(tmp_path / "r"), stdout=writing)
    os.close(writing)

    _, err = process.communicate(timeout=60)

    assert process.returncode == 1
    assert err == ""
