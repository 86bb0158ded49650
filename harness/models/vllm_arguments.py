"""What vLLM is told, the same in this process and as a server of our own."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.models.order import Order

CONCURRENCY, CPU_CONCURRENCY = 256, 32
"""Requests in one batch, for each copy of the model, if the user does not say."""
CPU_CACHE = 4 << 30
"""Bytes for the cache of a CPU; by itself vLLM would take nearly all memory."""
PARSERS = (
    ("<function=", "qwen3_coder"),
    ("<tool_call>", "hermes"),
    ("[TOOL_CALLS]", "mistral"),
    ("<|python_tag|>", "llama3_json"),
)
"""Marks of chat templates, and vLLM's parser that reads their tool calls; the first one counts."""
UNTRACKED = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
"""Environment in which vLLM reports to nobody, read when it is imported."""


def concurrency(order: Order, *, on_cpu: bool) -> int:
    """Requests in flight at once.

    Args:
        order: Hardware, and perhaps how many.
        on_cpu: vLLM's build is for the CPU.
    """
    usual = CPU_CONCURRENCY if on_cpu else CONCURRENCY
    return order.concurrency or usual * order.hardware.data_parallel


def engine_arguments(order: Order, folder: Path, *, on_cpu: bool) -> dict[str, Any]:
    """The engine's arguments by the names of its own.

    Args:
        order: Hardware, context and requests at once count.
        folder: Of the weights.
        on_cpu: vLLM's build is for the CPU.
    """
    copies = order.hardware.data_parallel
    arguments: dict[str, Any] = {
        "model": str(folder),
        "max_model_len": order.context,
        "max_num_seqs": math.ceil(concurrency(order, on_cpu=on_cpu) / copies),  # Of each copy.
        "tensor_parallel_size": order.hardware.tensor_parallel,
        "data_parallel_size": copies,
        "enable_prefix_caching": True,
        "language_model_only": True,
    }
    if on_cpu:
        # Compiling takes a CPU a minute and makes it faster by a tenth.
        arguments["enforce_eager"] = True
    if on_cpu and not os.environ.get("VLLM_CPU_KVCACHE_SPACE"):
        arguments["kv_cache_memory_bytes"] = CPU_CACHE
    return arguments


def tool_parser(source: str, otherwise: str) -> str:
    """Name of vLLM's reader of native tool calls; "" where calls stay in the text.

    Args:
        source: The chat template's text.
        otherwise: The name where that holds none of the marks of `PARSERS`.
    """
    return next((name for mark, name in PARSERS if mark in source), otherwise)


def flags(arguments: Mapping[str, Any]) -> list[str]:
    """Arguments as a server's command line has them; None leaves one to vLLM.

    Args:
        arguments: True for a switch, else a value.
    """
    named = {f"--{name.replace('_', '-')}": value for name, value in arguments.items()}
    given = ((flag, value) for flag, value in named.items() if value is not None)
    return [flag if value is True else f"{flag}={value}" for flag, value in given]


def server_environment() -> dict[str, str]:
    """This process's environment for a server, which then reports to nobody and asks for no key."""
    environment = {**UNTRACKED, **os.environ}
    # With it the server would ask for a key, and our client sends another.
    environment.pop("VLLM_API_KEY", None)
    return environment
