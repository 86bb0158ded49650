"""What is left of a run, handed out piece by piece."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from harness.settings import Assignment


class Work:
    """What waits, and how many are not kept yet; for one event loop.

    Attributes:
        waiting: Nobody has them yet.
        missing: How many are not kept yet.
        finished: Set once every assignment is kept.
    """

    def __init__(self, assignments: Iterable[Assignment]) -> None:
        """Let all of them wait."""
        self.waiting = deque(assignments)
        self.finished = asyncio.Event()
        self.missing = len(self.waiting)
        self._check()

    def take(self, most: int) -> list[Assignment]:
        """The next ones, in order; none where `most` is below 1."""
        return [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]

    def give_back(self, orphans: Sequence[Assignment]) -> None:
        """Let those come next, in their order, whose actor died."""
        self.waiting.extendleft(reversed(orphans))

    def kept(self) -> None:
        """One is on disk."""
        self.missing -= 1
        self._check()

    def _check(self) -> None:
        if not self.missing:
            self.finished.set()
