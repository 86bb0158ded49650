"""Python processes that tests start, and what is waited for in them."""

import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import pytest

ROOT = Path(__file__).parents[2]
"""Of this checkout."""
WALK = "agentgym/HarnessWalk-v0"
"""The id of the game of `tests/agentgym/walk_game.py`: "Right" four times wins."""


def register_walk():
    gym.register(
        id=WALK,
        entry_point="agentgym.env:TextGameEnv",
        kwargs={"game": "tests.agentgym.walk_game", "level": "short", "max_turns": 12},
    )


def start(*arguments, stderr=subprocess.PIPE, **options):
    """Python with these arguments, in this checkout."""
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stderr=stderr, text=True, **options)


def lines(path):
    """Whole lines of a file so far."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_lines(path, count, process):
    """Wait until a file has so many; the process that writes it must go on till then."""
    while lines(path) < count:
        if process.poll() is not None:
            pytest.fail(f"The process ended by itself: {process.communicate()}")
        time.sleep(0.002)


def take_terminal():
    """Make standard input the terminal of the process, as its first act."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
