"""The conversation of one episode: what was said so far, and what of it is still sent."""

from __future__ import annotations

from collections.abc import Sequence

from harness import prompts
from harness.prompts import Exchange, Shown, Style
from harness.request import Message, Reply


class Conversation:
    """Grows by a turn at a time, and forgets its oldest turns where it must.

    Attributes:
        system: The system message.
        asked: What the latest prompt said after the observation.
    """

    def __init__(self, system: str, style: Style) -> None:
        """Begin with the system message alone."""
        self.system = system
        self.asked = ""
        self._style = style
        self._past: list[Exchange] = []
        self._forgotten = 0
        self._user = ""

    def prompt(self, shown: Shown) -> tuple[Message, ...]:
        """The prompt for the turn that is shown."""
        write = prompts.later if self._past else prompts.first
        self._user = write(shown, self._style)
        self.asked = self._user.removeprefix(prompts.opening(shown))
        return prompts.messages(self.system, self._remembered(), self._user, self._style)

    def answered(self, reply: Reply) -> None:
        """Take in the reply to the latest prompt."""
        self._past.append(Exchange(self._user, reply.text, reply.tool_calls))

    def drop(self) -> bool:
        """Forget the oldest turn that is still sent; False if there is none."""
        still = self.sent
        if still:
            self._forgotten = len(self._past) - still + 1
        return still > 0

    @property
    def sent(self) -> int:
        """How many turns that are over the latest prompt holds."""
        return prompts.sent(self._style, len(self._remembered()))

    @property
    def dropped(self) -> int:
        """How many more it would hold if none had been dropped."""
        return prompts.sent(self._style, len(self._past)) - self.sent

    def _remembered(self) -> Sequence[Exchange]:
        return self._past[self._forgotten :]
