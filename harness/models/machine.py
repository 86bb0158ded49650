"""What this machine can run a model with, found out without importing anything heavy."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

_DEVICES = ("nvidia[0-9]*", "kfd")  # NVIDIA's cards; AMD's common interface.
_HIDDEN = ("", "-1", "none", "NoDevFiles")


def has_gpu() -> bool:
    """Whether there is a GPU, and it is not hidden from this process.

    The device files of the two drivers tell; where they are elsewhere, as in WSL, `nvidia-smi`.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in _HIDDEN:
        return False
    return any(next(Path("/dev").glob(name), None) for name in _DEVICES) or _nvidia_smi()


def _nvidia_smi() -> bool:
    program = shutil.which("nvidia-smi")
    if program is None:
        return False
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and listed.stdout.startswith(b"GPU ")


def installed(*packages: str) -> bool:
    """Whether all of these packages are there; none is imported.

    Args:
        packages: Their top-level modules.
    """
    return all(find_spec(package) is not None for package in packages)
