"""Ctrl-C: once ends a run in order, twice at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.console import Console

from harness.commands import STOPPED

_AT_ONCE = "Stopped at once; the same command goes on from here.\n"


@contextmanager
def ctrl_c(console: Console) -> Generator[None]:
    """Let the second Ctrl-C end this process, whatever it is doing; for use in a coroutine.

    The first one is left to asyncio, which cancels the coroutine; then requests are given up, games
    in the middle of a step and lines half written end, and the display closes. The second one waits
    for none of that: the record is whole up to its last line break, and goes on from there.

    Args:
        console: Its cursor, which a bar hides, is shown again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first: Any = signal.getsignal(signal.SIGINT)
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            console.show_cursor()
            sys.stderr.write(_AT_ONCE)
            sys.stderr.flush()
            os._exit(STOPPED)
        pressed = True
        if callable(first):
            first(number, frame)

    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, first)
