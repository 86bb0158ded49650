"""What an engine's processes run first: each goes its own way, and none outlives the run.

Each leaves the group that the terminal's Ctrl-C goes to: Ctrl-C is for the run, which then ends the
engine in its own order. And each watches whether the process that started it is still there, which
nobody could say after a `kill -9`; if not it ends at once, and the device's memory is free.

`harness.models.vllm_engine` gives this file to them by its path, in place of the module that this
process was started with, so it must import nothing of ours.
"""

import os
import signal
import threading
import time


def end_with(parent: int) -> None:
    """End this process, in whatever state it is, once its parent has ended.

    Args:
        parent: Process id.
    """
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__mp_main__":
    os.setpgid(0, 0)
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
