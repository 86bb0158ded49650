"""The harness's own command, with the engine in this process."""

import json
import subprocess
import sys

import pytest

from harness import record

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_an_evaluation_plays_and_ends_the_engine(tmp_path):
    command = ["--model", "smollm2-135m", "--engine", "vllm", "--env", "agentgym/Sokoban-v0"]
    short = ["--instances", "1", "--rollouts", "2", "--max-turns", "3", "--max-tokens", "24"]
    python = [sys.executable, "-m", "harness.eval", "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [*python, *command, *short], capture_output=True, text=True, start_new_session=True
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "reply tokens" in done.stdout or "success" in done.stdout
    episodes = list(record.read(tmp_path / "run" / "episodes.jsonl"))
    turns = [turn for episode in episodes for turn in episode.turns]
    assert (len(episodes), len(turns)) == (2, 6)
    assert all(turn.reply and 0 < turn.completion_tokens <= 24 for turn in turns)
    assert all(turn.seconds_generating > 0 for turn in turns)
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert "vllm 0." in json.dumps(settings)
