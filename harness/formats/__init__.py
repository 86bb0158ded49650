"""Reply formats: how a model is asked for its action, and how that is taken out of the reply.

One table, `FORMATS`. Each format has a module whose docstring holds its strict and its lenient
rules; `harness.formats.reading` has those that they share. An action that the strict rules find has
`strict=True`, so that both scores can be told from one run: `success` by whatever rules the run
reads with, `strict success` by the strict ones alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentgym.errors import UnknownName
from harness.formats import fence, move, tags, tool
from harness.formats.format import Extracted, Format
from harness.formats.reading import problem
from harness.request import Reply

__all__ = ["FORMATS", "Extracted", "Format", "extract", "find", "write"]

FORMATS: Mapping[str, Format] = {
    "fence": fence.FORMAT,
    "move": move.FORMAT,
    "tags": tags.FORMAT,
    "tool": tool.FORMAT,
}
"""Every format by name."""


def find(name: str) -> Format:
    """The format of that name.

    Raises:
        UnknownName: There is none; the message offers the nearest.
    """
    if name not in FORMATS:
        raise UnknownName.of("format", name, FORMATS)
    return FORMATS[name]


def extract(name: str, reply: Reply, *, lenient: bool) -> Extracted:
    """Find the action in a reply.

    A reply that was cut off while the server still put everything into its reasoning field ended
    inside its thinking, as one with an open think block in its text did.

    Args:
        name: Of the format.
        reply: What came back.
        lenient: Try the lenient rules where the strict ones find no action.

    Raises:
        UnknownName: No such format.
    """
    silent = not reply.text.strip() and not reply.tool_calls
    if silent and reply.reasoning.strip() and reply.stop_reason == "length":
        return problem("unclosed_think")
    return find(name).read(reply, lenient=lenient)


def write(name: str, action: str) -> Reply:
    """A reply in a format, to the letter; for players that are programs.

    Args:
        name: Of the format.
        action: In canonical spelling.

    Raises:
        UnknownName: No such format.
    """
    return find(name).write(action)
