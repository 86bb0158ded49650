"""What a reply format is, and what reading a reply gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from harness.request import Reply


class Extracted(NamedTuple):
    """What was found in a reply.

    Attributes:
        action_text: The action as the model spelt it; None if there is none.
        problem: "" if there is one, else a name of the format's `problems`.
        strict: The strict rules sufficed.
    """

    action_text: str | None
    problem: str
    strict: bool


class Read(Protocol):
    """Finds the action in a reply; never raises."""

    def __call__(self, reply: Reply, *, lenient: bool) -> Extracted:
        """Read one reply.

        Args:
            reply: What came back.
            lenient: Try the lenient rules where the strict ones find no action.
        """
        ...


class Write(Protocol):
    """Writes an action as the format asks for it, for players that are programs."""

    def __call__(self, action: str) -> Reply:
        """A reply that is read back, by the strict rules, as this action."""
        ...


@dataclass(frozen=True)
class Format:
    """One way in which a model is asked to give its action.

    Attributes:
        how: The end of the system message; `{example}` stands for an action.
        ask: The last sentence of every user message.
        problems: What the model is told about each problem that `read` can find.
        read: From a reply to the action.
        write: From an action to a reply.
        rules: Raised by one with every change to what `read` finds in some reply.
        tools: What may be called, in the form of OpenAI's chat completions.
    """

    how: str
    ask: str
    problems: Mapping[str, str]
    read: Read
    write: Write
    rules: int
    tools: tuple[Mapping[str, Any], ...] = ()
