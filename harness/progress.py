"""The live display of a run: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness.record import Episode, Key, playable
from harness.request import Reply
from harness.scheduler import Watch

_SECONDS_BETWEEN_LINES = 10.0


class Display:
    """Counts what happens and shows it; a context manager around the run."""

    def __init__(
        self,
        console: Console,
        *,
        total: int,
        done: Iterable[Episode] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin at what an earlier session has played.

        Args:
            console: Where to show it; its `is_terminal` chooses between bar and lines.
            total: Episodes of the whole run.
            done: Those played already.
            clock: Seconds from any origin; only shown, never recorded.
        """
        self._console = console
        self._clock = clock
        self._total = total
        stand = list(playable(done))
        self._done_before = self._done = len(stand)
        self._won = sum(episode.success for episode in stand)
        self._lost_to_provider = self._turns = self._tokens = 0
        self._begun = self._last_line = clock()
        self._bar = Progress(
            TextColumn("episodes"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=total, completed=self._done, status="")

    def watch(self) -> Watch:
        """What the scheduler tells."""
        return Watch(on_reply=self._on_reply, on_episode=self._on_episode)

    def status(self) -> str:
        """Success so far, turns, and tokens a second, in one line."""
        seconds = max(self._clock() - self._begun, 1e-9)
        rate = f"success {self._won / self._done:.2f}" if self._done else "success -"
        parts = [rate, f"{self._turns} turns", f"{self._turns / seconds:.1f}/s"]
        if self._tokens:
            parts.append(f"{self._tokens / seconds:.0f} tokens/s")
        if self._lost_to_provider:
            parts.append(f"{self._lost_to_provider} provider errors")
        return ", ".join(parts)

    def line(self) -> str:
        """The whole state as one plain line."""
        return f"{self._done}/{self._total} episodes, {self.status()}{self._left()}"

    def _left(self) -> str:
        played = self._done - self._done_before
        if not played:
            return ""
        seconds = (self._clock() - self._begun) / played * (self._total - self._done)
        return (
            f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"
        )

    def _on_reply(self, key: Key, reply: Reply) -> None:
        self._turns += 1
        self._tokens += reply.completion_tokens or 0
        self._refresh()

    def _on_episode(self, episode: Episode) -> None:
        stands = any(playable([episode]))
        self._done += stands
        self._won += stands and episode.success
        self._lost_to_provider += not stands
        self._refresh()

    def _refresh(self) -> None:
        if self._console.is_terminal:
            self._bar.update(self._task, completed=self._done, status=self.status())
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
        if not self._console.is_terminal:
            self._console.print(self.line(), highlight=False)
