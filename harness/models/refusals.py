"""What a server means when it refuses a request, read from its own words.

Servers tell a prompt that is too long from other mistakes by words alone, each by its own. The
patterns are those of OpenAI, vLLM, SGLang, llama.cpp, Text Generation Inference, Anthropic and
Google.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

TRANSIENT = frozenset({408, 409, 429, *range(500, 600)}) - {501, 505}
"""Statuses after which the same request is sent again: among them all by which a server says that
it has failed, also those that no standard names (520 to 530); but not that it never could."""
OVERLOADED = frozenset({429, 503, 529})
"""Those of them which say that there are too many requests; 529 is Anthropic's "overloaded"."""
_SPENT = "insufficient_quota"  # OpenAI sends it with 429, but waiting does not help.

_TOO_LONG = re.compile(
    r"context.?(length|size|window|limit)|maximum context|(prompt|input) is too long"
    r"|input token count|max_new_tokens` must be",
    re.IGNORECASE,
)
_ROOM = (
    # vLLM since 0.10: limit, prompt.
    re.compile(r"maximum context length is (\d+) tokens and your request has (\d+) input tokens"),
    # OpenAI, and vLLM before: limit, prompt.
    re.compile(r"maximum context length is (\d+) tokens.*?\((\d+) in the (?:messages|prompt)"),
    # SGLang: limit, prompt.
    re.compile(r"maximum context length of (\d+) tokens.*?(\d+) tokens from the input"),
)
_ROOM_REVERSED = (
    # Anthropic: prompt, limit.
    re.compile(r"exceed context limit: (\d+) \+ \d+ > (\d+)"),
)


class Fault(NamedTuple):
    """Why there is no reply this time, and the request is worth sending again.

    Attributes:
        name: For the record's counts: a status, "timeout", "connection", "not a completion", or
            "empty".
        sentence: For the user, without a full stop.
        retry_after: Seconds that the server asks to wait; None if it does not say.
        overload: The server has too many requests.
    """

    name: str
    sentence: str
    retry_after: float | None = None
    overload: bool = False


class Refusal(NamedTuple):
    """An answer with an error status.

    Attributes:
        status: Of HTTP.
        said: The server's own words, in one line, without the key.
        kind: Its own codes for the error, "" if there are none.
        retry_after: Seconds that it asks to wait; None if it does not say.
        ours: Name of a parameter that it refuses and that nobody asked for but us, "" if none.
    """

    status: int
    said: str
    kind: str = ""
    retry_after: float | None = None
    ours: str = ""

    def fault(self) -> Fault | None:
        """The fault, if it is one that may be gone the next time."""
        if self.status not in TRANSIENT or _SPENT in self.kind:
            return None
        sentence = f"status {self.status}, {self.said}"
        return Fault(str(self.status), sentence, self.retry_after, self.status in OVERLOADED)

    def too_long(self) -> bool:
        """Prompt and reply do not fit into the context."""
        return bool(_TOO_LONG.search(f"{self.said} {self.kind}"))

    def room(self) -> int | None:
        """Tokens that are left for a reply beside the prompt; None if the server does not say.

        A server may refuse a prompt that fits because the longest reply that was asked for would
        not fit beside it.
        """
        for pattern in _ROOM:
            if found := pattern.search(self.said):
                return int(found[1]) - int(found[2])
        for pattern in _ROOM_REVERSED:
            if found := pattern.search(self.said):
                return int(found[2]) - int(found[1])
        return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the header `Retry-After` asks for, given as such or as a date.

    A date without a zone is in UTC, as HTTP has them all.
    """
    value = str(headers.get("retry-after", ""))
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    zoned = date.replace(tzinfo=date.tzinfo or UTC)
    return max(0.0, (zoned - datetime.now(UTC)).total_seconds())


def words(body: object) -> str:
    """A server's own words in the body of a refusal, as OpenAI's and Anthropic's clients give it.

    Args:
        body: Parsed JSON, else text.
    """
    if not isinstance(body, dict):
        return str(body or "no reason given")
    known = cast(dict[str, Any], body)
    inner = known.get("error")
    said = cast(dict[str, Any], inner).get("message") if isinstance(inner, dict) else None
    return str(said or known.get("message") or known)
