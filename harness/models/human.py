"""A human at the terminal, who sees what a model would see."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from harness import formats
from harness.models import Order, PlayerQuit
from harness.request import Gauge, Reply, Request

QUIT = frozenset({"quit", "exit"})
_ASK = "Your action, as it is (quit to stop): "
_MOST_LISTED = 40


def load_human(order: Order) -> Human:
    """You, at standard input and output."""
    return Human(order.name)


class Human:
    """Shows each prompt and the legal actions, and reads one line for the action.

    Attributes:
        name: As given to `--model`.
        concurrency: 1.
        settings: Empty.
        gauge: Never moves.
    """

    def __init__(
        self, name: str = "human", console: Console | None = None, lines: TextIO | None = None
    ) -> None:
        """Play on a console.

        Args:
            name: As given to `--model`.
            console: Where it is shown; standard output if None.
            lines: Where the actions come from; the keyboard if None.
        """
        self.name = name
        self.concurrency = 1
        self.settings: dict[str, Any] = {}
        self.gauge = Gauge()
        self._console = console or Console()
        self._lines = lines
        self._instance = ("", -1)

    async def reply(self, request: Request) -> Reply:
        """Ask for an action. Blocks the event loop: nobody else plays meanwhile.

        Raises:
            PlayerQuit: The player typed `quit`, closed the input or pressed Ctrl-C.
        """
        self._show(request)
        return formats.write(request.format, self._read())

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
        try:
            with _interruptible():
                line = self._console.input(_ASK, stream=self._lines)
        except (EOFError, KeyboardInterrupt):
            return ""
        return line if self._lines else f"{line}\n"

    async def close(self) -> None:
        """Nothing to free."""


@contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C end the reading; asyncio would only note it and read on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
