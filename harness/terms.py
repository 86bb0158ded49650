"""On what terms a model plays, in this process or in many others."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.cache import Cached
from harness.prices import Metered, Price, Purse
from harness.request import Model
from harness.scheduler import Gates


@dataclass(frozen=True)
class Terms:
    """How every worker plays.

    Attributes:
        load: Makes the model; `harness.models.load` with its arguments.
        gates: How much goes on at once in each worker.
        price: Of the model's tokens; None if unknown.
        max_cost: The most that the run may spend, all workers together; None for no limit.
        cache: Folder of kept replies, the same on every machine; None for none.
    """

    load: partial[Model]
    gates: Gates = field(default_factory=Gates)
    price: Price | None = None
    max_cost: float | None = None
    cache: Path | None = None

    def model(self, purse: Purse) -> Model:
        """The model, paid for from a purse."""
        metered = Metered(self.load(), purse)
        return metered if self.cache is None else Cached(metered, self.cache)
