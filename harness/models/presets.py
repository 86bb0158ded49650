"""Presets: short names of open models, each with all that must be the same in every evaluation.

A preset fixes weights, thinking mode, sampling, context and reply limit, since a score without them
cannot be compared: Qwen3-4B's depends on an undeclared thinking mode (arena-hard-auto issue 69).
Temperature 0.6 and top-p 0.95 are what CAST evaluates its open models with (arXiv 2607.25308).
"""

from __future__ import annotations

from typing import NamedTuple


class Preset(NamedTuple):
    """An open model, as it is evaluated.

    Attributes:
        weights: Name on the hub.
        description: One line: what it is, and which paper uses it.
        thinking: Whether the chat template is asked for a thinking part; None where it has no such
            switch.
        temperature: Of the sampling.
        top_p: Of the sampling.
        context: Tokens of prompt and reply together.
        max_tokens: Upper limit of one reply where the suite sets none below it.
    """

    weights: str
    description: str
    thinking: bool | None = None
    temperature: float = 0.6
    top_p: float = 0.95
    context: int = 32_768
    max_tokens: int = 16_384


PRESETS = {
    "qwen3-4b": Preset(
        "Qwen/Qwen3-4B-Instruct-2507",
        "Qwen3-4B-Instruct-2507, the base of CAST and ProAct; does not think",
    ),
    "qwen2.5-1.5b": Preset(
        "Qwen/Qwen2.5-1.5B-Instruct", "Qwen2.5-1.5B-Instruct, the small base of BEACON"
    ),
    "qwen2.5-7b": Preset(
        "Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct, the large base of BEACON"
    ),
    "qwen3-30b-a3b": Preset(
        "Qwen/Qwen3-30B-A3B-Instruct-2507",
        "Qwen3-30B-A3B-Instruct-2507, ProAct's middle Qwen; does not think",
    ),
    "qwen3.5-9b": Preset(
        "Qwen/Qwen3.5-9B", "Qwen3.5-9B without thinking, of Progress Advantage", thinking=False
    ),
}
"""Every preset by name."""
