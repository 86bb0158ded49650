"""What the oracle knows never reaches a model: markers planted in info are in no message."""

import inspect
from typing import Any, get_type_hints

import gymnasium as gym
import numpy as np
import pytest

from harness import prompts
from harness.episode import make, play
from harness.prompts import Style
from harness.request import Reply, Request

MARK = "LEAKED"
NUMBER = 987654.25


class Planted(gym.Wrapper):
    """Puts markers in place of everything that `info["oracle"]` and `info["milestones"]` say."""

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
        milestones = info["milestones"] | {"count": int(NUMBER), "total": int(NUMBER)}
        return info | {"oracle": oracle, "milestones": milestones}


def _drive(playing: Any, replies: list[str]) -> tuple[Any, list[Request]]:
    seen = [next(playing)]
    try:
        for reply in replies:
            seen.append(playing.send(Reply(reply)))
    except StopIteration as end:
        return end.value, seen
    raise AssertionError("the episode did not end")


@pytest.mark.parametrize("history", ["stateless", "full"])
@pytest.mark.parametrize("list_actions", [True, False])
def test_no_message_holds_what_the_oracle_or_the_milestones_say(
    history: str, list_actions: bool, assignment, fenced
) -> None:
    task = assignment(style=Style(history=history, list_actions=list_actions), max_turns=8)
    replies = ["nothing", fenced("sideways"), fenced("Left"), "<think>", fenced("Right")] * 2
    episode, seen = _drive(play(Planted(make(task)), task), replies)
    assert episode.start.note.best_actions == (MARK,)
    assert len(seen) == 8
    assert all(request.peek.info["oracle"]["best_actions"] == (MARK,) for request in seen)
    sent = "\n".join(message["content"] for request in seen for message in request.messages)
    for secret in (MARK, "987654", episode.instance, "half"):
        assert secret not in sent
    # What the player may know is there.
    assert "Turn 7" in sent
    assert ("Legal actions: " in sent) == list_actions


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
