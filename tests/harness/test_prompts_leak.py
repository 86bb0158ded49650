"""What the oracle knows never reaches a model: markers planted in info are in nothing sent."""

import inspect
import json
from typing import Any, get_type_hints

import gymnasium as gym
import numpy as np
import pytest

from harness import formats, prompts
from harness.episode import make, play
from harness.prompts import History, Style
from harness.request import Reply, Request, ToolCall

MARK = "LEAKED"
INSTANCE = "PLANTED-7"
NUMBER = 987654.25


class Planted(gym.Wrapper):
    """Puts markers in place of all that a player must not be told.

    Those are `info["oracle"]`, `info["milestones"]`, the instance, whose name holds its seed, and
    the numbers of score and progress, which only an observation may show.
    """

    def reset(self, **kwargs: Any) -> Any:
        observation, info = self.env.reset(**kwargs)
        return observation, self._plant(info)

    def step(self, action: Any) -> Any:
        *rest, info = self.env.step(action)
        return *rest, self._plant(info)

    def _plant(self, info: dict[str, Any]) -> dict[str, Any]:
        oracle = dict.fromkeys(("cost_to_go", "value", "progress"), NUMBER)
        oracle |= {"dead_end": False, "exact": True, "best_actions": (MARK,)}
        oracle["action_values"] = np.full(2, NUMBER)
        milestones = info["milestones"] | {"count": int(NUMBER), "total": int(NUMBER), MARK: MARK}
        others = {"instance": INSTANCE, "score": NUMBER, "progress": NUMBER, MARK: MARK}
        return info | others | {"oracle": oracle, "milestones": milestones}


def _drive(playing: Any, replies: list[Reply]) -> tuple[Any, list[Request]]:
    seen = [next(playing)]
    try:
        for reply in replies:
            seen.append(playing.send(reply))
    except StopIteration as end:
        return end.value, seen
    raise AssertionError("the episode did not end")


def _replies(name: str) -> list[Reply]:
    """Right, wrong, without an action, cut off, and one that the context has no room for."""
    wrong = [formats.write(name, action) for action in ("sideways", "Left")]
    odd = [Reply("nothing"), Reply("<think>"), Reply("", stop_reason="context", error=MARK)]
    right = formats.write(name, "Right")
    calls = Reply("", tool_calls=(ToolCall("act", "{"), ToolCall("look", "{}")))
    return [odd[0], wrong[0], wrong[1], odd[1], right, odd[2], calls, *[right, wrong[1]] * 3]


@pytest.mark.parametrize("name", formats.FORMATS)
@pytest.mark.parametrize("history", ["stateless", "full", 2])
@pytest.mark.parametrize("list_actions", [True, False])
@pytest.mark.parametrize("lenient", [True, False])
def test_nothing_that_is_sent_holds_what_a_player_must_not_know(
    name: str, history: History, list_actions: bool, lenient: bool, assignment
) -> None:
    style = Style(history, list_actions=list_actions, lenient=lenient, format=name)
    task = assignment(style=style, max_turns=8, context_policy="drop")
    replies = _replies(name)
    if history == "stateless":  # Nothing could be dropped.
        replies = [reply for reply in replies if reply.stop_reason != "context"]

    episode, seen = _drive(play(Planted(make(task)), task), replies)

    assert episode.start.note.best_actions == (MARK,)
    assert len(episode.turns) == 8
    assert all(request.peek.info["oracle"]["best_actions"] == (MARK,) for request in seen)
    # All that a real model is sent: messages with their calls, and the tools.
    sent = json.dumps([[request.messages, request.tools, request.format] for request in seen])
    for secret in (MARK, INSTANCE, "987654", "half", "oracle", "milestone"):
        assert secret not in sent
    # What the player may know is there.
    assert "Turn 7" in sent
    assert ("Legal actions: " in sent) == list_actions
    assert bool(seen[0].tools) == (name == "tool")


def test_a_request_does_not_show_its_peek(assignment) -> None:
    task = assignment()
    assert MARK not in repr(next(play(Planted(make(task)), task)))


def test_the_prompt_functions_take_only_what_a_player_may_know() -> None:
    assert set(get_type_hints(prompts.Shown)) == {
        "turn",
        "max_turns",
        "observation",
        "error",
        "unchanged",
        "legal_actions",
    }
    for function in (prompts.system, prompts.first, prompts.later, prompts.messages):
        kinds = {
            parameter.annotation for parameter in inspect.signature(function).parameters.values()
        }
        assert kinds <= {"str", "Shown", "Style", "Sequence[Exchange]"}
