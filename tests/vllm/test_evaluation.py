"""The harness's own command, with the engine in this process."""

import json

import pytest

from harness import eval as evaluation
from harness import record

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_an_evaluation_plays_and_ends_the_engine(tmp_path, workers):
    before = {process.pid for process in workers()}
    command = ["--model", "smollm2-135m", "--engine", "vllm", "--env", "agentgym/Sokoban-v0"]
    short = ["--instances", "1", "--rollouts", "2", "--max-turns", "3", "--max-tokens", "24"]
    assert evaluation.main([*command, *short, "--out", str(tmp_path / "run")]) == 0
    assert {process.pid for process in workers()} == before
    episodes = list(record.read(tmp_path / "run" / "episodes.jsonl"))
    turns = [turn for episode in episodes for turn in episode.turns]
    assert (len(episodes), len(turns)) == (2, 6)
    assert all(turn.reply and 0 < turn.completion_tokens <= 24 for turn in turns)
    assert all(turn.seconds_generating > 0 for turn in turns)
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert "vllm 0." in json.dumps(settings)
