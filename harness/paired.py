"""Two runs compared on the instances that both played: from differences to a verdict.

What is compared is one number per instance, the mean over its rollouts, and the pair of an instance
is its number in the first run less that in the second. On these differences stand

- the interval: Student's t, as `harness.score` clusters; where no two instances differ by another
  amount and the metric is a share, from Wilson's upper limit u of the share of instances that do:
  between d - u (1 + d) and d + u (1 - d), since t would claim a certainty that n instances cannot
  give;
- the test: under the null hypothesis the two runs could change names on any instance, so each
  difference has either sign with equal chance (Fisher 1935). p is the exact chance of a sum as far
  from 0 as the one seen, by convolution; with one rollout each of a yes-or-no metric that is
  McNemar's exact test. Only numbers too irregular to convolve and too many to enumerate are drawn.

Two runs are tied where the interval holds 0 or the test is not below 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from harness import score
from harness.score import CONFIDENCE, Estimate

DRAWS = 100_000
"""Of signs, where the test cannot be exact."""
_MOST_ENUMERATED = 16
_MOST_WORK = 50_000_000
_FINEST = 1_000_000
"""Largest denominator of a difference that is still taken for a fraction."""


class PairedTest(NamedTuple):
    """A two-sided test of "neither is better".

    Attributes:
        p: Chance of a difference at least as large if neither were.
        method: How p was got.
    """

    p: float
    method: str


@dataclass(frozen=True)
class Comparison:
    """The first run less the second.

    Attributes:
        difference: Its mean over instances, or over environments with equal weight.
        test: Whether it can be chance.
        higher: Instances on which the first run's number is the higher one.
        lower: Instances on which it is the lower one.
        equal: All others.
    """

    difference: Estimate
    test: PairedTest
    higher: int
    lower: int
    equal: int

    @property
    def tied(self) -> bool:
        """Neither run is shown to be the higher one."""
        holds_zero = self.difference.low <= 0 <= self.difference.high
        return holds_zero or self.test.p >= 1 - CONFIDENCE


def compare(environments: Sequence[Sequence[float]], *, share: bool) -> Comparison:
    """Judge differences, each environment with equal weight.

    Args:
        environments: For each environment, one difference per instance; none is empty.
        share: The metric is a share, so that differences lie between -1 and 1.
    """
    parts = [difference(each, share=share) for each in environments]
    mean = (score.average(parts) if len(parts) > 1 else None) or parts[0]
    weighted = [d / (len(each) * len(environments)) for each in environments for d in each]
    return Comparison(
        difference=mean,
        test=sign_flip(weighted),
        higher=sum(d > 0 for d in weighted),
        lower=sum(d < 0 for d in weighted),
        equal=sum(d == 0 for d in weighted),
    )


def difference(differences: Sequence[float], *, share: bool) -> Estimate:
    """Mean and interval of one environment's differences.

    Args:
        differences: One per instance, at least one.
        share: They lie between -1 and 1.
    """
    n = len(differences)
    if not share or max(differences) > min(differences):
        bounds = score.Bounds(-1.0, 1.0) if share else score.ANY
        return score.estimate([[d] for d in differences], bounds)
    same = differences[0]
    most = score.wilson(0.0, n)[1]
    return Estimate(same, same - most * (1 + same), same + most * (1 - same), n)


def sign_flip(differences: Sequence[float]) -> PairedTest:
    """The exact two-sided sign-flip test that the sum is 0; see the module for its source."""
    moved = [d for d in differences if d]
    if not moved:
        return PairedTest(1.0, "no difference")
    whole = _whole_numbers(moved)
    if whole is not None:
        same = len({abs(number) for number in whole}) == 1
        return PairedTest(_by_convolution(whole), "exact sign test" if same else "exact sign-flip")
    if len(moved) <= _MOST_ENUMERATED:
        return PairedTest(_by_enumeration(moved), "exact sign-flip")
    return PairedTest(_by_draws(moved), f"sign-flip, {DRAWS:,} draws")


def _whole_numbers(differences: Sequence[float]) -> list[int] | None:
    """The differences in units of their greatest common divisor; None if that is too fine."""
    fractions = [Fraction(d).limit_denominator(_FINEST) for d in differences]
    near = zip(fractions, differences, strict=True)
    if any(abs(float(found) - d) > 1e-12 * abs(d) for found, d in near):
        return None
    unit = math.lcm(*(found.denominator for found in fractions))
    numbers = [int(found * unit) for found in fractions]
    common = math.gcd(*numbers)
    numbers = [number // common for number in numbers]
    total = sum(map(abs, numbers))
    return numbers if total * len(numbers) <= _MOST_WORK else None


def _by_convolution(numbers: Sequence[int]) -> float:
    """The chance, from the distribution of the sum of those that come up positive."""
    sizes = [abs(number) for number in numbers]
    total = sum(sizes)
    chance = np.zeros(total + 1)
    chance[0] = 1.0
    for size in sizes:
        chance *= 0.5
        chance[size:] += chance[:-size].copy()
    sums = 2 * np.arange(total + 1) - total
    return min(1.0, math.fsum(chance[np.abs(sums) >= abs(sum(numbers))]))


def _by_enumeration(differences: Sequence[float]) -> float:
    numbers = np.arange(2 ** len(differences))[:, None]
    signs = 1 - 2 * ((numbers >> np.arange(len(differences))) & 1)
    return float(np.mean(_as_far(signs @ np.asarray(differences), differences)))


def _by_draws(differences: Sequence[float]) -> float:
    """With a fixed seed, and the observed signs as one more draw, so that p is never 0."""
    rng = np.random.default_rng(0)
    values = np.asarray(differences)
    hits = 0
    for _ in range(DRAWS // 1000):
        signs = 1 - 2 * rng.integers(0, 2, (1000, len(values)))
        hits += int(_as_far(signs @ values, differences).sum())
    return (hits + 1) / (DRAWS + 1)


def _as_far(sums: np.ndarray, differences: Sequence[float]) -> np.ndarray:
    seen = abs(math.fsum(differences))
    return np.abs(sums) >= seen - 1e-9 * math.fsum(map(abs, differences))


def tied_sets(names: Sequence[str], tied: Mapping[frozenset[str], bool]) -> list[tuple[str, ...]]:
    """The largest sets of which any two are tied, in the order of the names; a set may be one.

    Args:
        names: Of the runs, the best first.
        tied: For each pair of names, whether the two are tied.
    """
    found: list[tuple[str, ...]] = []

    def grow(clique: tuple[str, ...], others: Sequence[str], seen: Sequence[str]) -> None:
        if not others and not seen:
            found.append(clique)
        left, passed = list(others), list(seen)
        for one in others:
            left.remove(one)
            near = [each for each in left if tied[frozenset((one, each))]]
            grow((*clique, one), near, [each for each in passed if tied[frozenset((one, each))]])
            passed.append(one)

    grow((), names, ())
    return found
