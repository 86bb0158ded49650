"""A human at the terminal, who sees what a model would see, and hints where they are allowed."""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TextIO

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from harness import formats
from harness.models import Order, PlayerQuit
from harness.request import Gauge, Reply, Request

QUIT = frozenset({"quit", "exit"})
HINT = "?"
"""What the player types for a hint, where hints are allowed."""
_ASK = "Your action, as it is (quit to stop): "
_ASK_OR_HINT = "Your action, as it is (? for a hint, quit to stop): "
_MOST_LISTED = 40


def load_human(order: Order) -> Human:
    """You, at standard input and output."""
    return Human(order.name)


class Human:
    """Shows each prompt and the legal actions, and reads one line for the action.

    A hint that the player asked for stands in the reply's `reasoning`, and so in the record.

    Attributes:
        name: As given to `--model`.
        concurrency: 1.
        settings: Whether hints are allowed; empty if not.
        gauge: Never moves.
    """

    def __init__(
        self,
        name: str = "human",
        console: Console | None = None,
        lines: TextIO | None = None,
        *,
        hints: bool = False,
    ) -> None:
        """Play on a console.

        Args:
            name: As given to `--model`.
            console: Where it is shown; standard output if None.
            lines: Where the actions come from; the keyboard if None.
            hints: Show what the oracle says when the player types `?`.
        """
        self.name = name
        self.concurrency = 1
        self.settings: dict[str, Any] = {"hints": True} if hints else {}
        self.gauge = Gauge()
        self._console = console or Console()
        self._lines = lines
        self._hints = hints
        self._instance = ("", -1)

    async def reply(self, request: Request) -> Reply:
        """Ask for an action. Blocks the event loop: nobody else plays meanwhile.

        Raises:
            PlayerQuit: The player typed `quit`, closed the input or pressed Ctrl-C.
        """
        self._show(request)
        typed, asked = self._read(), ""
        while self._hints and typed == HINT:
            asked = hint(request.peek.info.get("oracle"))
            self._console.print(Text(asked, style="cyan"), soft_wrap=True)
            typed = self._read()
        reply = formats.write(request.format, typed)
        return replace(reply, reasoning=asked) if asked else reply

    def _show(self, request: Request) -> None:
        instance = request.key[:2]
        if instance != self._instance:
            self._instance = instance
            self._print(request.messages[0]["content"], "Rules")
        self._print(request.messages[-1]["content"], f"Turn {request.key[2]}")
        legal = request.peek.info.get("legal_actions", ())
        listed = ", ".join(legal[:_MOST_LISTED]) + (", ..." if len(legal) > _MOST_LISTED else "")
        # As Text: a board's brackets are no markup.
        self._console.print(Text(f"Legal actions: {listed}" if legal else "Any action."))

    def _print(self, text: str, title: str) -> None:
        self._console.print(Panel(Text(text), title=title, title_align="left", expand=False))

    def _read(self) -> str:
        """The next line that is not blank."""
        line = "\n"
        while line and not line.strip():
            line = self._line()
        if not line or line.strip().lower() in QUIT:
            raise PlayerQuit
        return line.strip()

    def _line(self) -> str:
        """One line with its line break; "" where the input has ended or Ctrl-C was pressed."""
        ask = _ASK_OR_HINT if self._hints else _ASK
        try:
            with _interruptible():
                self._console.print(ask, end="", highlight=False, soft_wrap=True)
                self._console.file.flush()
                if self._lines is None:
                    _wait_for_line()
                return (self._lines or sys.stdin).readline()
        except KeyboardInterrupt:
            return ""

    async def close(self) -> None:
        """Nothing to free."""


def hint(note: Mapping[str, Any] | None) -> str:
    """What the oracle says of the state, in one sentence.

    Args:
        note: `info["oracle"]`; None where the environment was made without one.
    """
    if note is None:
        return "Hint: there is none, the environment was made with oracle=False."
    if note["dead_end"]:
        return "Hint: dead end, no win is possible any more."
    best = ", ".join(note["best_actions"]) or "not known"
    return f"Hint: best {best}{_distance(note)}."


def _distance(note: Mapping[str, Any]) -> str:
    about = "" if note["exact"] else "about "
    if math.isfinite(note["cost_to_go"]):
        turns = round(note["cost_to_go"])
        return f"; {about}{turns} {'turn' if turns == 1 else 'turns'} to a win"
    if math.isfinite(note["value"]):
        return f"; value {about}{note['value']:.4g}"
    return ""


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C end the reading; asyncio would only note it and read on."""
    if not _on_main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _wait_for_line() -> None:
    """Return when the terminal has a line; at once where it is no terminal.

    A Ctrl-C that comes just before the system's own read would be noticed only at the next key;
    here it also writes a byte, which ends the waiting. Only a terminal hands out one line at a
    time, so that no second one lies unseen in a buffer.
    """
    if sys.platform == "win32" or not sys.stdin.isatty() or not _on_main_thread():
        return
    noted, note = os.pipe()
    os.set_blocking(note, False)
    before = signal.set_wakeup_fd(note, warn_on_full_buffer=False)
    try:
        select.select([sys.stdin, noted], [], [])
    finally:
        signal.set_wakeup_fd(before)
        os.close(noted)
        os.close(note)


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
