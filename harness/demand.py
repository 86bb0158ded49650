"""What the actors of a Ray cluster need, by the model that they run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentgym.errors import InvalidOption
from harness.models import SMALL, TABLE

_PROGRAMS = ("oracle", "random", "greedy")


@dataclass(frozen=True)
class Demand:
    """What one actor takes of a cluster, and with that how many there are.

    Each takes one CPU besides.

    Attributes:
        gpus: For an engine of its own; 0 if the model runs on the CPU or on a server.
        per_node: One actor on each node; else as many as there are CPUs or GPUs.
        requests: In flight at once in each, where nothing else is asked for; None for the model's
            own number.
    """

    gpus: int = 0
    per_node: bool = False
    requests: int | None = None

    def actors(self, nodes: Iterable[Mapping[str, float]]) -> int:
        """How many actors fit.

        Args:
            nodes: Resources of each, with Ray's names: "CPU", "GPU".
        """
        return sum(self._on(node) for node in nodes)

    def _on(self, node: Mapping[str, float]) -> int:
        fit = int(node.get("CPU", 0))
        if self.gpus:
            fit = min(fit, int(node.get("GPU", 0)) // self.gpus)
        return min(fit, 1) if self.per_node else fit

    def fitted(self, nodes: Iterable[Mapping[str, float]]) -> Demand:
        """The demand on these nodes: without any GPU among them, one actor on each."""
        if self.gpus and not any(node.get("GPU", 0) for node in nodes):
            return Demand(per_node=True)
        return self

    def __str__(self) -> str:
        """As a sentence needs it."""
        return "a CPU" + (f" and {self.gpus} GPU" if self.gpus else "")


def demand(name: str, wishes: Mapping[str, Any]) -> Demand:
    """What an actor needs for a model.

    A program is as fast as its CPU, so there is one for each; a server is asked from each node; an
    engine has the GPUs of its own that its weights are spread over.

    Args:
        name: As `harness.models.load` takes it.
        wishes: Its other arguments.

    Raises:
        InvalidOption: The model is a person.
    """
    if name == "human":
        raise InvalidOption("--ray plays in other processes, where no human is; leave it out.")
    if name in _PROGRAMS:
        return Demand(requests=2)
    engine, serve = wishes.get("engine"), wishes.get("serve", False)
    ours = engine in ("vllm", "transformers") or serve
    address = wishes.get("base_url") or os.environ.get("OPENAI_BASE_URL")
    provider = f"{name.partition('/')[0]}/" in TABLE
    if not ours and (engine or address or provider or name == SMALL):
        return Demand(per_node=True)
    hardware = wishes.get("hardware")
    return Demand(gpus=hardware.tensor_parallel * hardware.data_parallel if hardware else 1)
