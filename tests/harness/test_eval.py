"""The command: from arguments to a folder, a table and an exit status; given again, interrupted."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness import __main__ as program
from harness import eval as evaluation
from harness.models import FatalProviderError, PlayerQuit
from harness.record import EPISODES, Result
from harness.request import Gauge, Reply
from harness.run_folder import read_header
from tests.harness.processes import start, wait_for_lines
from tests.harness.records import read_all


@pytest.fixture
def command(walk, tmp_path, capsys, monkeypatch):
    """Runs the command in an empty working folder: exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, env=walk):
        try:
            status = evaluation.main([*(("--env", env) if env else ()), *arguments])
        except SystemExit as end:
            status = end.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_a_run_leaves_a_record_and_prints_a_table(command):
    status, out, err = command("--model", "oracle", "--instances", "3", "--rollouts", "2")

    folder = Path("runs/oracle-HarnessWalk-v0")
    assert (status, err) == (0, "")
    played = read_all(folder / EPISODES)
    assert len(played) == 6
    assert all(each.success and len(each.turns) == 4 for each in played)
    assert str(folder / EPISODES) in out
    assert "episodes 6" in " ".join(out.split())
    assert "success" in out
    assert "regret" in out
    header = read_header(folder)
    assert header.configuration.suite["rows"][0]["rollouts"] == 2
    assert header.sessions[0].arguments[-2:] == ("--rollouts", "2")


def test_the_same_command_again_plays_nothing_twice(command):
    first = command("--model", "random", "--instances", "3")
    before = Path("runs/random-HarnessWalk-v0", EPISODES).read_bytes()

    again = command("--model", "random", "--instances", "3")

    assert (first[0], again[0]) == (0, 0)
    assert Path("runs/random-HarnessWalk-v0", EPISODES).read_bytes() == before
    assert first[1].splitlines()[2:] == again[1].splitlines()[2:]


def test_a_half_written_record_is_completed(command):
    command("--model", "random", "--instances", "5")
    path = Path("runs/random-HarnessWalk-v0", EPISODES)
    whole = {each.key: each for each in read_all(path)}
    path.write_bytes(path.read_bytes()[:-900])
    kept = path.read_bytes().count(b"\n")

    status, _, _ = command("--model", "random", "--instances", "5")

    assert status == 0
    assert kept < 5
    completed = read_all(path)
    assert path.read_bytes().count(b"\n") == 5
    assert {each.key for each in completed} == set(whole)
    for each in completed:
        assert [t.action for t in each.turns] == [t.action for t in whole[each.key].turns]


def test_provider_errors_are_played_again(command):
    command("--model", "random", "--instances", "3")
    path = Path("runs/random-HarnessWalk-v0", EPISODES)
    played = read_all(path)
    spoilt = played[0].model_copy(update={"result": Result.PROVIDER_ERROR, "turns": ()})
    path.write_text("".join(f"{each.model_dump_json()}\n" for each in [spoilt, *played[1:]]))

    status, out, _ = command("--model", "random", "--instances", "3")

    assert status == 0
    assert "provider" not in out
    assert {each.key: each.result for each in read_all(path)} == {
        each.key: each.result for each in played
    }
    assert path.read_bytes().count(b"\n") == 4


class Unreliable:
    """A provider that fails at every second rollout."""

    name, concurrency = "unreliable", 1

    def __init__(self):
        self.settings, self.gauge = {}, Gauge()
        self.closed = False

    async def reply(self, request):
        if request.key[1] % 2:
            return Reply("", stop_reason="provider_error", error="The server said 500 five times.")
        return Reply("```\nRight\n```")

    async def close(self):
        self.closed = True


def test_provider_errors_that_are_left_are_said_and_give_a_status_of_their_own(
    command, monkeypatch
):
    model = Unreliable()
    monkeypatch.setattr(evaluation.models, "load", lambda name, **given: model)

    status, out, err = command("--model", "unreliable", "--instances", "3", "--rollouts", "2")

    assert status == 3
    assert "3 episodes ended by a provider error" in " ".join(err.split())
    assert "episodes 3 instances 3" in " ".join(out.split())
    assert model.closed


def test_a_fatal_fault_of_the_provider_is_one_sentence_and_keeps_what_was_played(
    command, monkeypatch
):
    class Refusing(Unreliable):
        async def reply(self, request):
            if request.key[1] == 2:
                raise FatalProviderError("The server says 401: wrong key; set OPENAI_API_KEY.")
            return Reply("```\nRight\n```")

    model = Refusing()
    monkeypatch.setattr(evaluation.models, "load", lambda name, **given: model)

    status, _, err = command("--model", "refusing", "--instances", "1", "--rollouts", "3")

    assert (status, err) == (1, "Error: The server says 401: wrong key; set OPENAI_API_KEY.\n")
    assert len(read_all(Path("runs/refusing-HarnessWalk-v0", EPISODES))) == 2
    assert model.closed


def test_a_human_who_quits_keeps_what_was_played(command, monkeypatch):
    class Quitting(Unreliable):
        name = "human"

        async def reply(self, request):
            if request.key[1] == 1:
                raise PlayerQuit
            return Reply("```\nRight\n```")

    monkeypatch.setattr(evaluation.models, "load", lambda name, **given: Quitting())

    status, _, err = command("--model", "human", "--instances", "1", "--rollouts", "2")

    assert (status, err) == (130, "Stopped; the same command goes on from here.\n")
    assert len(read_all(Path("runs/human-HarnessWalk-v0", EPISODES))) == 1


@pytest.mark.parametrize(
    ("arguments", "env", "says"),
    [
        (("--model", "orcale"), None, "Unknown model 'orcale'. Did you mean 'oracle'?"),
        (("--model", "random", "--suite", "cors"), None, "Did you mean 'core'?"),
        (("--model", "random"), "agentgym/HarnesWalk-v0", "Did you mean 'agentgym/HarnessWalk"),
        (("--model", "random"), "CartPole-v1", "none of agentgym's environments"),
        (("--model", "random", "--suite", "quick"), "agentgym/Sokban-v0", "'agentgym/Sokoban-v0'?"),
        (("--model", "random", "--instances", "0"), "walk", "instances must be at least 1, got 0"),
        (("--model", "random", "--rollouts", "-1"), "walk", "rollouts must be at least 1, got -1"),
        (("--model", "random", "--max-tokens", "0"), "walk", "max_tokens is at least 1, got 0"),
        (("--model", "random", "--temperature", "9"), "walk", "temperature is from 0 to 5"),
        (("--model", "random", "--concurrency", "0"), "walk", "concurrency is at least 1, got 0"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_a_status(command, walk, arguments, env, says):
    status, out, err = command(*arguments, env=walk if env == "walk" else env)

    assert status == 1
    assert says in err
    assert err.count("\n") == 1
    assert "Traceback" not in err + out
    assert os.listdir(".") == []


def test_wrong_options_are_explained(command):
    status, out, err = command("--model", "random", "--splitt", "test")

    assert status == 2
    assert "--split" in out + err


def test_the_folder_of_another_run_is_refused_with_the_difference(command):
    command("--model", "random", "--instances", "2", "--out", "r")

    status, _, err = command("--model", "random", "--instances", "3", "--out", "r")

    assert status == 1
    assert "r holds another run: suite.rows.0.instances is 2 there, 3 now." in err
    assert len(read_all(Path("r", EPISODES))) == 2


def test_a_record_of_another_schema_is_refused_and_kept(command):
    command("--model", "random", "--instances", "2", "--out", "r")
    path = Path("r", EPISODES)
    newer = path.read_text().replace('{"schema":1,', '{"schema":2,')
    path.write_text(newer)

    status, _, err = command("--model", "random", "--instances", "2", "--out", "r")

    assert status == 1
    assert f"{path}:1 has schema 2, this version reads 1; upgrade agentgym" in err
    assert path.read_text() == newer


def test_every_option_reaches_the_record(command):
    options = {"--split": "train", "--history": "full", "--max-tokens": "9", "--max-turns": "3"}
    options |= {"--temperature": "0.5", "--top-p": "0.7", "--seed": "4", "--concurrency": "2"}
    options |= {"--max-invalid": "7", "--max-unparseable": "5"}

    status, _, _ = command(
        *("--model", "random", "--instances", "1", "--end-on-dead-end"),
        *(word for option in options.items() for word in option),
    )

    header = read_header(Path("runs/random-HarnessWalk-v0")).configuration
    [played] = read_all(Path("runs/random-HarnessWalk-v0", EPISODES))
    row = header.suite["rows"][0]
    assert status == 0
    assert (row["split"], played.key.split) == ("train", "train")
    assert row["settings"]["style"]["history"] == "full"
    assert (row["settings"]["max_tokens"], row["settings"]["max_turns"]) == (9, 3)
    assert (row["settings"]["max_invalid"], row["settings"]["max_unparseable"]) == (7, 5)
    assert row["settings"]["end_on_dead_end"] is True
    assert len(played.turns) == 3
    assert header.model_settings["sampling"]["seed"] == 4


def test_sampling_comes_from_the_command_line_else_from_the_suite(monkeypatch, tmp_path):
    asked = []

    def load(name, **given):
        asked.append(given)
        raise FatalProviderError("Enough.")

    monkeypatch.setattr(evaluation.models, "load", load)
    monkeypatch.chdir(tmp_path)

    for more in ((), ("--temperature", "0", "--top-p", "1", "--base-url", "u")):
        assert evaluation.main(["--model", "m", "--suite", "cast", *more]) == 1

    found = [(g["sampling"].temperature, g["sampling"].top_p, g["base_url"]) for g in asked]
    assert found == [(0.6, 0.95, None), (0.0, 1.0, "u")]
    assert asked[0]["sampling"].max_tokens == 16_384


def test_help_teaches(command):
    status, out, _ = command("--help", env=None)

    assert status == 0
    for word in ("--model", "examples:", "models:", "suites:", "quick:", "core:", "smollm2-135m:"):
        assert word in out


def test_agentgym_eval_is_the_same_command(walk, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    status = program.main(["eval", "--model", "oracle", "--env", walk, "--instances", "1"])

    assert status == 0
    assert len(read_all(Path("runs/oracle-HarnessWalk-v0", EPISODES))) == 1
    capsys.readouterr()
    assert program.main(["evil"]) == 2
    assert "Did you mean 'eval'?" in capsys.readouterr().err
    assert program.main(["--help"]) == 0
    assert "eval" in capsys.readouterr().out
    assert program.main([]) == 2


START = """
import sys, time
from harness import eval as evaluation
from harness.models import scripted
from tests.harness.processes import register_walk

register_walk()
choose = scripted.random_action
scripted.random_action = lambda *given: (time.sleep(float(sys.argv[1])), choose(*given))[1]
sys.exit(evaluation.main(sys.argv[2:]))
"""
ARGUMENTS = ("--model", "random", "--env", "agentgym/HarnessWalk-v0", "--instances", "40")


def test_ctrl_c_leaves_a_run_that_goes_on(tmp_path):
    path = tmp_path / "r" / EPISODES
    slow = ("-c", START, "0.004")  # Seconds that each reply takes.
    process = start(*slow, *ARGUMENTS, "--out", str(path.parent), stdout=subprocess.PIPE)
    wait_for_lines(path, 5, process)

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert err == "Stopped; the same command goes on from here.\n"
    assert 5 <= len(read_all(path)) < 40
    assert path.read_bytes().endswith(b"\n")
