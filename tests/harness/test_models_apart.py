"""Processes of an engine, with a plain process in the engine's place."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHILD = """
import os, sys, time

def say(path):
    ours = [name for name in sys.modules if name.split(".")[0] in ("agentgym", "harness")]
    with open(path + ".part", "w") as file:
        print(os.getpid(), os.getpgrp(), *ours, file=file)
    os.replace(path + ".part", path)
    time.sleep(300)
"""

START = """
import multiprocessing, os, sys, time
from harness.models.vllm_engine import started_apart
import engine_process

if __name__ == "__main__":
    with started_apart():
        target = engine_process.say
        multiprocessing.get_context("spawn").Process(target=target, args=sys.argv[1:]).start()
    print(sys.modules["__main__"].__file__, flush=True)
    time.sleep(300)
"""


def wait_for(happened):
    """Whether it happens within a minute."""
    end = time.monotonic() + 60
    while not happened() and time.monotonic() < end:
        time.sleep(0.05)
    return happened()


def lives(pid):
    """Whether a process runs; one that only waits to be asked how it ended does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs /proc, to look at processes"
)
def test_a_process_of_an_engine_goes_its_own_way_and_ends_with_the_run(tmp_path):
    (tmp_path / "engine_process.py").write_text(CHILD)
    (tmp_path / "run.py").write_text(START)
    said = tmp_path / "said"
    root = Path(__file__).parents[2]
    run = subprocess.Popen(
        [sys.executable, str(tmp_path / "run.py"), str(said)],
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert wait_for(said.exists)
        pid, group, *ours = said.read_text().split()
        assert (group, ours) == (pid, [])
        assert lives(pid)
        assert run.stdout.readline().decode().strip() == str(tmp_path / "run.py")
    finally:
        run.kill()
        run.wait()
        run.stdout.close()
    ended = wait_for(lambda: not lives(pid))
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(pid), 9)
    assert ended
