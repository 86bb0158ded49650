"""How every command ends: its exit status, and one sentence where it cannot go on."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from agentgym.errors import AgentGymError
from harness.models import PlayerQuit

STOPPED = 130
"""Exit status of an interrupted command, as shells have it."""


def run(work: Callable[[], int], *, stopped: str = "Stopped.") -> int:
    """Do a command's work; its exit status: that of the work, 1 for an error, 130 if interrupted.

    Args:
        work: Gives the exit status; an error of ours that it raises is said in its one sentence.
        stopped: What to say after Ctrl-C, or where the human at the terminal wants to stop.
    """
    faults = Console(stderr=True)
    try:
        return work()
    except AgentGymError as fault:
        faults.print(f"Error: {fault}", style="red", markup=False, highlight=False, soft_wrap=True)
        return 1
    except (KeyboardInterrupt, PlayerQuit):
        faults.print(stopped, markup=False, highlight=False, soft_wrap=True)
        return STOPPED
