"""Playing by hand: what is recorded, how it ends, and whole games in a real pseudo-terminal."""

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import __main__ as program
from harness import play, score
from harness.record import EPISODES, Note, Result, Start, latest, read
from harness.run_folder import read_header
from tests.harness.processes import ROOT, take_terminal


@pytest.fixture
def command(walk, tmp_path, capsys, monkeypatch):
    """Plays in an empty working folder with the lines typed: exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(typed, *arguments, env=walk):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in typed)))
        try:
            status = play.main([env, *arguments])
        except SystemExit as end:
            status = end.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def _played(folder="runs/human-HarnessWalk-v0"):
    return list(read(Path(folder, EPISODES)))


def test_an_episode_is_recorded_like_a_models(command):
    status, out, err = command(["Right"] * 4)

    [played] = _played()
    assert (status, err) == (0, "")
    assert (played.model, played.result, len(played.turns)) == ("human", Result.WON, 4)
    header = read_header(Path("runs/human-HarnessWalk-v0"))
    assert header.configuration.model_settings == {"hints": True}
    assert header.configuration.suite["rows"][0]["env_id"] == played.key.env_id
    assert score.score([played]).overall.metrics["success"].mean == 1
    assert "Won after 4 turns" in out
    assert "The optimum is 4 turns." in out
    assert "No blunder." in out
    assert "Hints on 0 of 4 turns." in out


def test_hints_are_shown_and_recorded_with_their_turn(command):
    status, out, _ = command(["Right", "?", "Right", "Right", "?", "?", "Right"])

    [played] = _played()
    assert status == 0
    hint = "Hint: best Right; 3 turns to a win."
    assert out.count(hint) == 1
    assert [turn.reasoning for turn in played.turns] == [
        "",
        hint,
        "",
        "Hint: best Right; 1 turn to a win.",
    ]
    assert [turn.action for turn in played.turns] == ["Right"] * 4
    assert all(turn.strict for turn in played.turns)
    assert "Hints on 2 of 4 turns." in out


def test_the_first_blunder_is_named(command):
    status, out, _ = command(["Right", "nonsense", "Left", "Left", "Right", "Right", "Right"] * 2)

    assert status == 0
    assert "First blunder: turn 3, Left; best was Right." in out
    assert [turn.valid for turn in _played()[0].turns][:3] == [True, False, True]


def test_the_same_command_plays_the_next_instance_and_a_seed_once_more(command):
    for arguments in ((), ("--seed", "2"), (), (), ("--seed", "0")):
        assert command(["Right"] * 4, *arguments)[0] == 0

    keys = [(each.key.seed, each.key.rollout) for each in _played()]
    assert keys == [(0, 0), (2, 0), (1, 0), (3, 0), (0, 1)]
    assert len(latest(_played())) == 5


@pytest.mark.parametrize("typed", [["Right", "quit"], ["Right", "exit"], ["Right"]])
def test_quit_and_the_end_of_input_stop_without_an_episode(command, typed):
    status, _, err = command(typed)

    assert status == 130
    assert "not recorded" in err
    assert _played() == []
    assert command(["Right"] * 4)[0] == 0
    assert _played()[0].key.seed == 0


def test_level_options_split_and_turns_are_those_of_the_record(command):
    arguments = ("--option", "slippery=false", "--split", "train", "--max-turns", "2")
    status, out, _ = command(["Left", "Left"], "--level", "short", *arguments)

    folder = "runs/human-HarnessWalk-v0-short-slippery=false-train-2-turns"
    [played] = _played(folder)
    assert status == 0
    assert json.loads(played.key.kwargs) == {"level": "short", "slippery": False}
    assert (played.key.split, played.result) == ("train", Result.STEP_LIMIT)
    assert "Out of turns after 2 turns" in out


def test_a_folder_of_another_game_is_refused(command):
    command(["Right"] * 4, "--out", "mine")
    status, _, err = command([], "--out", "mine", "--split", "train")
    assert status == 1
    assert "holds another run" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--level", "nonsense"), "level is"),
        (("--option", "slippery"), "--option takes NAME=VALUE"),
        (("--option", "nonsense=1"), "Unknown keyword argument"),
        (("--max-turns", "0"), "max_turns is at least 1, got 0"),
    ],
)
def test_what_cannot_be_played_is_said_before_a_folder_is_made(command, arguments, said):
    status, _, err = command([], *arguments)
    assert status == 1
    assert said in " ".join(err.split())
    assert not Path("runs").exists()


def test_an_unknown_id_names_the_nearest(command):
    status, _, err = command([], env="agentgym/Sokoban")
    assert status == 1
    assert "Did you mean 'agentgym/Sokoban-v0'?" in " ".join(err.split())
    assert command([], "--seed", "x")[0] == 2


def test_the_program_has_the_command(command, capsys):
    assert program.COMMANDS["play"] is play.main
    assert program.main(["--help"]) == 0
    assert "harness.play" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"result": Result.LOST}, "Lost after 1 turn; score 1. The optimum is 4 turns."),
        ({"result": Result.DEAD_END}, "Ended by dead_end after 1 turn; score 1."),
        ({"result": Result.STEP_LIMIT, "success": True}, "after 1 turn, won on the way; score 1."),
    ],
)
def test_other_endings(assignment, finish, fenced, changes, said):
    episode, _ = finish(assignment(max_turns=1), lambda request: fenced("Right"))
    assert said in play.summary(episode.model_copy(update=changes))[0]


def test_no_optimum_where_the_oracle_knows_none_and_about_where_it_is_unsure(
    assignment, finish, fenced
):
    episode, _ = finish(assignment(max_turns=1), lambda request: fenced("Right"))

    def first_line(**changes):
        note = Note(**(episode.start.note.model_dump() | changes)) if changes else None
        start = Start(**(episode.start.model_dump() | {"note": note}))
        return play.summary(episode.model_copy(update={"start": start}))[0]

    assert "optimum" not in first_line()
    assert "optimum" not in first_line(cost_to_go=float("nan"))
    assert "The optimum is about 4 turns." in first_line(exact=False)


class Terminal:
    """The program in a pseudo-terminal."""

    def __init__(self, folder, *arguments):
        pty = pytest.importorskip("pty", reason="Pseudo-terminals exist on POSIX systems only.")
        self._outer, inner = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.play", *arguments, "--out", str(folder)],
            cwd=ROOT,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env={**os.environ, "TERM": "dumb"},
            start_new_session=True,
            preexec_fn=take_terminal,
        )
        os.close(inner)
        self.shown = ""

    def until_prompt(self):
        """What is shown up to the next question; None if the program ends instead."""
        before = len(self.shown)
        while not self.shown[before:].endswith("quit to stop): "):
            assert select.select([self._outer], [], [], 60)[0], "it neither asked nor ended"
            try:
                chunk = os.read(self._outer, 65536)
            except OSError:  # Linux says so when the other end has closed.
                chunk = b""
            if not chunk:
                return None
            self.shown += chunk.decode()
        return self.shown[before:]

    def press(self, keys):
        os.write(self._outer, keys)

    def __enter__(self):
        return self

    def __exit__(self, *fault):
        self.process.kill()
        self.process.wait()
        os.close(self._outer)


@pytest.mark.parametrize(
    ("game", "turns"), [("Sokoban", 30), ("RushHour", 20), ("Minesweeper", 30), ("2048", 4)]
)
def test_a_game_is_played_in_a_terminal_to_its_end_by_the_hints(tmp_path, game, turns):
    with Terminal(tmp_path, f"agentgym/{game}-v0", "--max-turns", str(turns)) as terminal:
        while terminal.until_prompt() is not None:
            terminal.press(b"?\n")
            best = re.search(r"Hint: best ([^,;.]+)", terminal.until_prompt())[1]
            terminal.press(f"{best}\n".encode())
        assert terminal.process.wait(timeout=60) == 0, terminal.shown

    [played] = read(tmp_path / EPISODES)
    assert played.result is (Result.STEP_LIMIT if game == "2048" else Result.WON)
    assert all(turn.valid and turn.reasoning.startswith("Hint: ") for turn in played.turns)
    assert "No blunder." in terminal.shown
    if game != "2048":
        assert len(played.turns) == played.start.note.cost_to_go
        assert f"The optimum is {len(played.turns)} turns." in terminal.shown


@pytest.mark.parametrize("key", [b"\x03", b"\x04"], ids=["ctrl-c", "ctrl-d"])
def test_keys_stop_it(tmp_path, key):
    with Terminal(tmp_path, "agentgym/Sokoban-v0") as terminal:
        terminal.until_prompt()
        terminal.press(key)
        assert terminal.until_prompt() is None
        assert terminal.process.wait(timeout=60) == 130, terminal.shown
    assert "Stopped" in terminal.shown
    assert "Traceback" not in terminal.shown


def test_a_signal_stops_it_too(tmp_path):
    with Terminal(tmp_path, "agentgym/Sokoban-v0") as terminal:
        terminal.until_prompt()
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.until_prompt() is None
        assert terminal.process.wait(timeout=60) == 130, terminal.shown
