"""The live display of a run: a bar in a terminal, plain lines elsewhere.

Events only count; what is shown is made ten times a second, or once in ten seconds without a
terminal, so that showing costs nothing per turn and a server that hangs can be seen to hang.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from harness.record import SPOILT, Episode, Key, Result
from harness.request import Gauge, Reply
from harness.scheduler import Watch
from harness.score import wilson

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass
class Counts:
    """What is shown.

    Attributes:
        total: Episodes of the whole run.
        done: Episodes that stand, those of earlier sessions included.
        won: Of these.
        independent: Each is of an instance of its own, so that success has a simple interval.
        provider_errors: Episodes that ended by a provider error, in this session.
        unpaid: Episodes that ended because the money was spent, in this session.
        turns: In this session.
        tokens: Of replies, in this session; those of the reply cache are not counted.
    """

    total: int
    done: int = 0
    won: int = 0
    independent: bool = False
    provider_errors: int = 0
    unpaid: int = 0
    turns: int = 0
    tokens: int = 0


class Display:
    """Counts what happens and shows it; a context manager around the run."""

    def __init__(
        self,
        console: Console,
        counts: Counts,
        *,
        gauge: Gauge | None = None,
        live: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin at what an earlier session has played.

        Args:
            console: Where to show it; its `is_terminal` chooses between bar and lines.
            counts: Where the run stands.
            gauge: Where the model's requests stand.
            live: Show it while it goes on; not where a human plays in the same terminal.
            clock: Seconds from any origin; only shown, never recorded.
        """
        self._console = console
        self._clock = clock
        self._counts = counts
        self._gauge = gauge or Gauge()
        self._done_before = counts.done
        self._live = live
        self._begun = self._last_line = clock()
        self._bar = Progress(
            TextColumn("episodes"),
            BarColumn(),
            MofNCompleteColumn(),
            _Status(self.status),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            disable=not (console.is_terminal and live),
        )
        self._task = self._bar.add_task("", total=counts.total, completed=counts.done)

    def watch(self) -> Watch:
        """What the scheduler tells."""
        return Watch(on_reply=self._on_reply, on_episode=self._on_episode)

    def status(self) -> str:
        """Success so far, turns, tokens a second, and where the requests stand, in one line."""
        counts, seconds = self._counts, max(self._clock() - self._begun, 1e-9)
        parts = [self._success(), f"{counts.turns} turns", f"{counts.turns / seconds:.1f}/s"]
        if counts.tokens:
            parts.append(f"{counts.tokens / seconds:.0f} tokens/s")
        return ", ".join([*parts, *self._troubles()])

    def _success(self) -> str:
        counts = self._counts
        if not counts.done:
            return "success -"
        rate = counts.won / counts.done
        if not counts.independent:
            return f"success {rate:.2f}"
        low, high = wilson(rate, counts.done)
        # Rounding may leave the lower end a hair below 0.
        return f"success {rate:.2f} [{max(low, 0.0):.2f}, {high:.2f}]"

    def _troubles(self) -> list[str]:
        shown = (
            (self._gauge.in_flight, "in flight"),
            (self._gauge.waiting, "waiting"),
            (self._gauge.retries, "retries"),
            (self._counts.provider_errors, "provider errors"),
            (self._counts.unpaid, "unpaid"),
        )
        return [f"{count} {name}" for count, name in shown if count]

    def line(self) -> str:
        """The whole state as one plain line."""
        return f"{self._counts.done}/{self._counts.total} episodes, {self.status()}{self._left()}"

    def _left(self) -> str:
        played = self._counts.done - self._done_before
        missing = self._counts.total - self._counts.done
        if not played or not missing:
            return ""
        seconds = (self._clock() - self._begun) / played * missing
        return (
            f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"
        )

    def _on_reply(self, key: Key, reply: Reply) -> None:
        self._counts.turns += reply.stop_reason in ("stop", "length")
        self._counts.tokens += 0 if reply.cached else reply.completion_tokens or 0

    def _on_episode(self, episode: Episode) -> None:
        if episode.result is Result.COST_LIMIT:
            self._counts.unpaid += 1
        elif episode.result in SPOILT:
            self._counts.provider_errors += 1
        else:
            self._counts.done += 1
            self._counts.won += episode.success
        self._bar.update(self._task, completed=self._counts.done)

    async def tick(self) -> None:
        """Print a line now and then where there is no terminal; runs until it is cancelled."""
        while True:
            self.show()
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    def show(self) -> None:
        """Print a line, if there is no terminal and it is time for one."""
        if not self._live or self._console.is_terminal:
            return
        if self._clock() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = self._clock()
            self._console.print(self.line(), markup=False, highlight=False)

    def __enter__(self) -> Display:
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last state on the screen."""
        self._bar.stop()
        if not (self._console.is_terminal and self._live):
            self._console.print(self.line(), markup=False, highlight=False)


class _Status(ProgressColumn):
    """The status as it is whenever the bar is drawn."""

    def __init__(self, status: Callable[[], str]) -> None:
        super().__init__()
        self._status = status

    def render(self, task: Task) -> Text:
        return Text(self._status())
