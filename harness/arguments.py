"""The command line of `python -m harness.eval`: its arguments, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from harness import models, suites

_ABOUT = """Let a model play text games, record every reply, and print scores with intervals.

The run goes into a folder: run.json says how to repeat it, episodes.jsonl holds every turn. The \
same command again goes on where an earlier one stopped, for whatever reason."""

_EXAMPLES = """
examples:
  python -m harness.eval --model smollm2-135m
      a real small model on the CPU, a few instances of each game, minutes
  python -m harness.eval --model oracle --suite core --env agentgym/Sokoban-v0
      the upper bound on one game of the suite core
  python -m harness.eval --model qwen3-4b --suite cast
      an open model on this machine's GPU, sampled as in the papers
  python -m harness.eval --model qwen3-4b --suite cast --base-url http://127.0.0.1:8000/v1
      the same on a server that has it, or one of our own with --serve in place of --base-url
  python -m harness.eval --model openai/gpt-5 --suite cast --temperature 1 --top-p 1 --max-cost 20
      a model of a provider; the key is read from OPENAI_API_KEY
  python -m harness.eval --model random --env agentgym/2048-v0 --instances 100
      environments of your own choice, without a suite
  python -m harness.eval --list
      suites, environments, levels and models, a line each
"""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The command line."""

    model: str
    """Who plays; see models below."""
    suite: str | None = None
    """What is played; see suites below. quick, if neither this nor --env is given."""
    env: tuple[str, ...] = ()
    """Only these ids of the suite; without --suite, these ids, 20 instances each."""
    instances: int | None = None
    """Instances of each environment, in place of the suite's number."""
    rollouts: int | None = None
    """Episodes of each instance, in place of the suite's number."""
    split: Literal["train", "validation", "test"] | None = None
    """Which instances; a suite's are test."""
    format: Literal["fence", "move", "tags", "tool"] | None = None
    """How the model is asked to give its action; a suite's is fence, and move in proact."""
    parsing: Literal["strict", "lenient"] | None = None
    """Whether an action is also looked for in a reply that misses the format; lenient in every
    suite, and the score by strict parsing is shown beside it."""
    history: Literal["stateless", "full"] | int | None = None
    """What of the earlier turns the model is sent: nothing, everything, or the last so many."""
    list_actions: bool = False
    """Show the model the legal actions each turn."""
    max_tokens: int | None = None
    """Upper limit of one reply, in tokens."""
    max_turns: int | None = None
    """Turn limit of an episode, in place of the environment's own."""
    episode_tokens: int | None = None
    """Reply tokens of an episode, after which it ends."""
    episode_seconds: float | None = None
    """Seconds of an episode, waiting, generating and playing, after which it ends."""
    context_policy: Literal["stop", "drop"] | None = None
    """When a prompt does not fit into the model's context: end the episode, or leave the oldest
    turns out and say so in the record; a suite's is stop."""
    max_invalid: int | None = None
    """So many turns in a row without a valid action end an episode."""
    max_unparseable: int | None = None
    """So many replies in a row without an action end an episode."""
    end_on_dead_end: bool = False
    """End an episode where the oracle has proven that no win is possible."""
    out: Path | None = None
    """Folder of the run; runs/MODEL-SUITE if not given."""
    base_url: str | None = None
    """Address of a server, for openai/NAME and open weights; else OPENAI_BASE_URL."""
    engine: Literal["vllm", "transformers", "llama.cpp", "server"] | None = None
    """What open weights run on; what this machine has if not given."""
    serve: bool = False
    """Start a vLLM server for the weights, and stop it at the end."""
    tensor_parallel: int = 1
    """Devices that one copy of the weights is split over."""
    data_parallel: int = 1
    """Copies of the weights."""
    context: int | None = None
    """Tokens of prompt and reply together, in place of the preset's; for vLLM and Transformers."""
    logprobs: bool = False
    """Record token ids and log-probabilities of the replies, where the model gives them."""
    temperature: float | None = None
    """Of the sampling; the suite's or else the model's own if not given."""
    top_p: float | None = None
    """Of the sampling; the suite's or else the model's own if not given."""
    seed: int = 0
    """Of the sampling. Instances do not depend on it."""
    concurrency: int | None = None
    """Requests in flight at once; the model's own number if not given."""
    episodes: int | None = None
    """Episodes live at once; twice the requests in flight if not given."""
    max_cost: float | None = None
    """Money that the run may spend, over all its sessions; then no more requests are sent."""
    price: str | None = None
    """PROMPT,COMPLETION: price of a million tokens each, in place of the table's."""
    cache: Path | None = None
    """Folder of replies, of this and other runs, which an equal request takes in place of asking
    the model."""
    ray: str | None = None
    """Ray cluster over which the episodes are spread: auto, HOST:PORT, or local for a new one."""


def parse(given: Sequence[str], console: Console) -> Arguments:
    """The arguments that were given.

    Args:
        given: Without the name of the program.
        console: Where `--help` goes.

    Raises:
        SystemExit: `--help` was asked for (0), or the arguments are wrong (2).
    """
    try:
        return tyro.cli(
            Arguments,
            prog="python -m harness.eval",
            description=_ABOUT,
            args=given,
            config=(tyro.conf.DisallowNone,),
        )
    except SystemExit as end:
        if end.code == 0:  # --help was asked for; tyro has no place of its own for what follows.
            _print_more_help(console)
        raise


def _print_more_help(console: Console) -> None:
    console.print(_EXAMPLES, markup=False, highlight=False, soft_wrap=True)
    played = {suite.name: suite.description for suite in suites.SUITES.values()}
    for title, table in (("models", models.describe()), ("suites", played)):
        console.print(f"{title}:")
        for name, text in table.items():
            shown = Padding(Text(f"{name}: {text}"), (0, 0, 0, 2))
            console.print(shown)
        console.print()
