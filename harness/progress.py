"""The live display of a run: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness.record import SPOILT, Episode, Key
from harness.request import Reply
from harness.scheduler import Watch

_SECONDS_BETWEEN_LINES = 10.0


@dataclass
class Counts:
    """What is shown.

    Attributes:
        total: Episodes of the whole run.
        done: Episodes that stand, those of earlier sessions included.
        won: Of these.
        spoilt: Episodes that ended by a provider error, in this session.
        turns: In this session.
        tokens: Of replies, in this session.
    """

    total: int
    done: int = 0
    won: int = 0
    spoilt: int = 0
    turns: int = 0
    tokens: int = 0


class Display:
    """Counts what happens and shows it; a context manager around the run."""

    def __init__(
        self,
        console: Console,
        counts: Counts,
        *,
        live: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin at what an earlier session has played.

        Args:
            console: Where to show it; its `is_terminal` chooses between bar and lines.
            counts: Where the run stands.
            live: Show it while it goes on; not where a human plays in the same terminal.
            clock: Seconds from any origin; only shown, never recorded.
        """
        self._console = console
        self._clock = clock
        self._counts = counts
        self._done_before = counts.done
        self._live = live
        self._begun = self._last_line = clock()
        self._bar = Progress(
            TextColumn("episodes"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            disable=not (console.is_terminal and live),
        )
        self._task = self._bar.add_task("", total=counts.total, completed=counts.done, status="")

    def watch(self) -> Watch:
        """What the scheduler tells."""
        return Watch(on_reply=self._on_reply, on_episode=self._on_episode)

    def status(self) -> str:
        """Success so far, turns, and tokens a second, in one line."""
        counts, seconds = self._counts, max(self._clock() - self._begun, 1e-9)
        rate = f"success {counts.won / counts.done:.2f}" if counts.done else "success -"
        parts = [rate, f"{counts.turns} turns", f"{counts.turns / seconds:.1f}/s"]
        if counts.tokens:
            parts.append(f"{counts.tokens / seconds:.0f} tokens/s")
        if counts.spoilt:
            parts.append(f"{counts.spoilt} provider errors")
        return ", ".join(parts)

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
        self._counts.turns += 1
        self._counts.tokens += reply.completion_tokens or 0
        self._refresh()

    def _on_episode(self, episode: Episode) -> None:
        if episode.result in SPOILT:
            self._counts.spoilt += 1
        else:
            self._counts.done += 1
            self._counts.won += episode.success
        self._refresh()

    def _refresh(self) -> None:
        if not self._live:
            return
        if self._console.is_terminal:
            self._bar.update(self._task, completed=self._counts.done, status=self.status())
        elif self._clock() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = self._clock()
            self._console.print(self.line(), highlight=False)

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
            self._console.print(self.line(), highlight=False)
