"""What an engine's processes run first: each leaves the group that the terminal's Ctrl-C goes to.

Ctrl-C is for the run, which then ends the engine in its own order. `harness.models.vllm_engine`
gives this file to them by its path, in place of the module that this process was started with, so
it must import nothing of ours.
"""

import os

if __name__ == "__mp_main__":
    os.setpgid(0, 0)
