"""Everything a model is sent, as pure text functions.

The layout is CAST's (arXiv 2607.25308; `rllm/agents/game_agent.py`), in our own words. A system
message: the game's instructions, then the reply format. Then one user message per turn:

    Turn <zero-based index>
    <observation>
    <blank line>
    The game is not over yet.
    <after a turn that changed nothing: what was wrong, or that it changed nothing>
    <if asked for: the legal actions>
    <turns left, and the request for an action>

The rules come first and the board last, so that a server can reuse the prompt's beginning. Two
histories: `stateless` sends the system message and the current turn (ProAct, arXiv 2602.05327),
`full` also all earlier turns with their replies (CAST).

These functions see only texts and numbers that a player may know. They take no `info`, so they
cannot show an oracle or a milestone. What becomes of the reply is `harness.replies`' part.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple, get_args

from agentgym.errors import UnknownName
from harness.replies import RULES, Extracted, extract
from harness.request import Message

__all__ = ["Exchange", "Extracted", "Shown", "Style", "extract", "first", "later", "messages"]

History = Literal["stateless", "full"]

_FORMAT = (
    "How to reply: first reason briefly in plain words. Then end with exactly one action, alone "
    "between two lines of three back-ticks, like this:\n```\n{example}\n```"
)
_NOT_OVER = "The game is not over yet."
_INVALID = "Your last reply changed nothing: {error}"
_UNCHANGED = "Your last action changed nothing. Choose a different action this time."
_LEGAL = "Legal actions: {actions}"
_ASK = "{turns}Reason briefly, then end with your next action between lines of three back-ticks."

PROBLEMS = {
    "no_action": "no action was found; end the reply with one action between lines of three "
    "back-ticks.",
    "empty_fence": "there was nothing between the back-ticks; put one action there.",
    "ambiguous": "there was more than one action between the back-ticks; put exactly one there.",
    "unclosed_think": "the reply ended inside <think>; think for less long, then give one action "
    "between lines of three back-ticks.",
}
"""What a player is told about each problem of `harness.replies`; goes where `error` goes."""


@dataclass(frozen=True)
class Style:
    """The choices that shape a prompt and the reading of the reply.

    Attributes:
        history: `stateless` or `full`.
        list_actions: Show the legal actions each turn.
        lenient: Read a bare action off a reply without a fence (see `harness.replies`).

    Raises:
        UnknownName: No such history.
    """

    history: History = "stateless"
    list_actions: bool = False
    lenient: bool = True

    def __post_init__(self) -> None:
        """Check the history's name."""
        if self.history not in get_args(History):
            raise UnknownName.of("history", self.history, get_args(History))


@dataclass(frozen=True)
class Shown:
    """What a player may know at one turn.

    Attributes:
        turn: Actions taken so far.
        max_turns: The turn limit; 0 for none.
        observation: The state as text.
        error: What was wrong with the last action, "" if nothing.
        unchanged: The last action was valid and the observation stayed as it was.
        legal_actions: Canonical texts; empty where they are not listed.
    """

    turn: int
    max_turns: int
    observation: str
    error: str = ""
    unchanged: bool = False
    legal_actions: tuple[str, ...] = ()


class Exchange(NamedTuple):
    """A turn that is over: the user message that was sent, and the reply, verbatim."""

    user: str
    reply: str


def system(instructions: str, example: str = "your action") -> str:
    """The system message: the rules of the game, then the reply format.

    Args:
        instructions: The rules as told to a player.
        example: An action in canonical spelling to show the format with; the same in every
            instance, so that it hints at nothing.
    """
    return f"{instructions.strip()}\n\n{_FORMAT.format(example=example)}"


def first(shown: Shown, style: Style) -> str:
    """The user message of the first turn."""
    return _user(shown, style, ())


def later(shown: Shown, style: Style) -> str:
    """The user message of any later turn, with what was wrong with the last one."""
    feedback = [_INVALID.format(error=shown.error)] if shown.error else []
    if shown.unchanged and not shown.error:
        feedback = [_UNCHANGED]
    return _user(shown, style, feedback)


def _user(shown: Shown, style: Style, feedback: Sequence[str]) -> str:
    legal: list[str] = []
    if style.list_actions and shown.legal_actions:
        legal = [_LEGAL.format(actions=", ".join(shown.legal_actions))]
    asked = _ASK.format(turns=_turns_left(shown.max_turns - shown.turn))
    lines = [f"Turn {shown.turn}", shown.observation, "", _NOT_OVER, *feedback, *legal, asked]
    return "\n".join(lines)


def _turns_left(turns: int) -> str:
    if turns < 1:
        return ""
    return "1 turn left. " if turns == 1 else f"{turns} turns left. "


def messages(
    system_text: str, past: Sequence[Exchange], current: str, style: Style
) -> tuple[Message, ...]:
    """The whole prompt of a turn.

    Args:
        system_text: From `system`.
        past: The turns that are over, in order.
        current: From `first` or `later`.
        style: Its history decides what of the past is sent.
    """
    prompt: list[Message] = [{"role": "system", "content": system_text}]
    if style.history == "full":
        for user, reply in past:
            prompt.append({"role": "user", "content": user})
            prompt.append({"role": "assistant", "content": reply})
    return (*prompt, {"role": "user", "content": current})


def prompt_hash(style: Style) -> str:
    """Sixteen hex digits that change whenever a prompt, or the reading of a reply, would.

    It is the digest of a made-up conversation, written by the functions above, with the parser's
    rules, so that a changed layout shows as well as a changed sentence. The game's instructions
    are not in it; the environment's version stands for them.
    """
    begin = Shown(0, 3, "<board>", legal_actions=("<a>", "<b>"))
    wrong = Shown(1, 3, "<board>", error="<error>", legal_actions=("<a>", "<b>"))
    still = Shown(2, 3, "<board>", unchanged=True, legal_actions=("<a>", "<b>"))
    users = [first(begin, style), later(wrong, style), later(still, style)]
    past = [Exchange(user, "<reply>") for user in users[:2]]
    sent = messages(system("<rules>", "<example>"), past, users[2], style)
    content = json.dumps([sent, users, PROBLEMS, RULES, asdict(style)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
