"""The three kinds of servers play whole episodes by native tool calls, and leave equal records."""

import asyncio
import base64
import json

import pytest

pytest.importorskip("anthropic", reason="The extra [anthropic] is not installed.")
pytest.importorskip("google.genai", reason="The extra [google] is not installed.")

from harness import models, scheduler
from harness.prompts import Style
from harness.record import Episode, Result
from tests.harness.fault_server import QUICK, Answer, completion, one_by_one, scripted

KEY = "key-secret-1234567890"
GIVEN = {"action": "Right"}
CALLS = {
    "openai/x": completion(
        None,
        "tool_calls",
        tool_calls=[{"id": "a", "function": {"name": "act", "arguments": json.dumps(GIVEN)}}],
        reasoning_content="To the right.",
    ),
    "anthropic/x": json.dumps(
        {
            "content": [
                {"type": "thinking", "thinking": "To the right.", "signature": ""},
                {"type": "tool_use", "id": "a", "name": "act", "input": GIVEN},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 11, "output_tokens": 5},
        }
    ),
    "google/x": json.dumps(
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [
                            {"text": "To the right.", "thought": True},
                            {"functionCall": {"name": "act", "args": GIVEN}},
                        ],
                    },
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 5},
        }
    ),
}


@pytest.fixture(autouse=True)
def environment(bare_environment, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)


def played(name: str, assignment, *faults: Answer) -> tuple[Episode, list[dict]]:
    """The episode, and the bodies that the server was sent."""
    with scripted() as start:
        server = start(*faults, Answer(body=CALLS[name]))
        url = server.url if name.startswith("openai") else server.url.removesuffix("/v1")
        model = models.load(name, base_url=url)
        model._patience = QUICK
        kept: list[Episode] = []

        async def play() -> None:
            try:
                task = assignment(style=Style(history="full", format="tool"))
                await scheduler.play_all([task], model, keep=kept.append)
            finally:
                await model.close()

        asyncio.run(play())
        return kept[0], [body for _, _, body, _ in server.asked]


def plain(episode: Episode) -> dict:
    """What does not depend on the time and on who was asked."""
    found = episode.model_dump(exclude={"model", "sampling"})
    found["start"].pop("seconds_game")
    for turn in found["turns"]:
        for name in [name for name in turn if name.startswith("seconds")]:
            del turn[name]
    return found


def test_an_episode_of_each_is_recorded_alike(assignment) -> None:
    first, *others = [played(name, assignment)[0] for name in CALLS]
    assert first.result == Result.WON
    turn = first.turns[0]
    assert (turn.action, turn.strict, turn.reply) == ("Right", True, "")
    assert turn.tool_calls == (("act", json.dumps(GIVEN)),)
    assert (turn.reasoning, turn.prompt_tokens, turn.completion_tokens) == ("To the right.", 11, 5)
    for other in others:
        assert plain(other) == plain(first)


@pytest.mark.parametrize("name", CALLS)
def test_the_whole_history_goes_out_with_its_calls(name: str, assignment) -> None:
    _, bodies = played(name, assignment)
    *_, last = bodies
    said = last.get("messages") or last["contents"]
    # Four turns to win: the last request holds three calls, each with its result.
    assert json.dumps(said).count('"Right') >= 3
    results = {"openai/x": '"tool"', "anthropic/x": '"tool_result"', "google/x": "functionResponse"}
    assert json.dumps(said).count(results[name]) == 3
    assert KEY not in json.dumps(last)


@pytest.mark.parametrize("name", CALLS)
def test_faults_before_a_reply_are_counted_in_its_turn(name: str, assignment) -> None:
    busy = Answer(503, "busy", {"retry-after": "0"})
    episode, bodies = played(name, assignment, busy, busy)
    assert [turn.faults for turn in episode.turns] == [{"503": 2}, {}, {}, {}]
    assert [turn.retries for turn in episode.turns] == [2, 0, 0, 0]
    assert len(bodies) == 6


@pytest.mark.parametrize("name", CALLS)
def test_a_login_and_parameters_of_the_address_go_out_and_are_not_recorded(
    name: str, assignment
) -> None:
    with scripted() as start:
        server = start(Answer(body=CALLS[name]))
        url = server.url if name.startswith("openai") else server.url.removesuffix("/v1")
        model = models.load(name, base_url=url.replace("//", "//me:hu%40sh@") + "?token=a%26b")
        one_by_one(model)
    (path, headers, _, _), login = server.asked[0], base64.b64encode(b"me:hu@sh").decode()
    assert path.startswith("/v1")
    assert path.endswith("?token=a%26b")
    assert headers["authorization"] == f"Basic {login}"
    assert model.settings["base_url"] == url
