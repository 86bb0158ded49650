"""Runs a program for as long as its standard input is open: `python guard.py PROGRAM ARGUMENT...`.

Whoever starts it holds the other end. That end closes with its process, however that ends, so the
program, and all that it has started, never outlives it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

PATIENCE = 20.0
"""Seconds between asking the program to end and ending it."""


def main(command: list[str]) -> int:
    """Run the command in a process group of its own; its exit status.

    Args:
        command: Program and arguments.
    """
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_end_with_input, args=(program,), daemon=True).start()
    status = program.wait()
    _signal(program, signal.SIGKILL)  # What it started and left behind.
    return status


def _end_with_input(program: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1):
        pass
    _signal(program, signal.SIGTERM)
    time.sleep(PATIENCE)
    _signal(program, signal.SIGKILL)


def _signal(program: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(program.pid, number)
    except (ProcessLookupError, PermissionError):
        return  # All of them have ended.


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
