"""Scores: a pure function from episodes to results with 95 % intervals.

What is averaged is one number per episode; what is independent is the instance, since rollouts of
one instance share its difficulty. So the mean is the mean over instances of the mean over an
instance's rollouts, and the interval is

- Student's t over the instance means, n - 1 degrees of freedom (Miller 2024, arXiv 2411.00640,
  section 2.2, with one cluster per instance), cut to [0, 1] where the metric is a share;
- Wilson's (1927) where each instance has one rollout and the metric is yes or no, and with n
  instances also where a share does not vary at all between instances or there is one instance:
  t would then claim a certainty that n instances cannot give;
- over several environments, each with equal weight, Zou and Donner's (2008) MOVER: the distances
  from mean to ends add up in squares.

Episodes that a provider error or the end of the money spoilt are left out and counted.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from harness.endings import seconds_of
from harness.record import SPOILT, Episode, Key, Result

CONFIDENCE = 0.95
Measure = Callable[[Episode], float | None]
"""One number per episode; None where the metric says nothing about it."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % interval.

    Attributes:
        mean: Over instances; nan if there is nothing to average.
        low: Lower end; nan if there is no spread to judge by: one instance, or all alike.
        high: Upper end.
        instances: How many instances it rests on.
    """

    mean: float
    low: float
    high: float
    instances: int


class Bounds(NamedTuple):
    """Between which numbers a metric lies by definition; intervals are cut there."""

    low: float
    high: float


SHARE = Bounds(0.0, 1.0)
"""Comparable between environments, so these are averaged over the suite."""
COUNT = Bounds(0.0, math.inf)
ANY = Bounds(-math.inf, math.inf)


@dataclass(frozen=True)
class Metric:
    """How a number is got from an episode.

    Attributes:
        measure: From an episode to the number.
        bounds: Of the number.
        meaning: One phrase for the table's legend.
    """

    measure: Measure
    bounds: Bounds
    meaning: str


@dataclass(frozen=True)
class Results:
    """The numbers of one environment, or over the suite.

    Attributes:
        name: The id and the keyword arguments, or "all".
        episodes: How many are averaged.
        instances: Of how many instances.
        spoilt: How many more were left out because the provider failed or the money was spent.
        metrics: By the names in `METRICS`; those that say nothing here are absent.
        pass_at: Unbiased pass@k by k: chance that one of k rollouts of an instance succeeds.
        results: How many episodes ended in which way.
    """

    name: str
    episodes: int
    instances: int
    spoilt: int
    metrics: Mapping[str, Estimate]
    pass_at: Mapping[int, Estimate]
    results: Mapping[Result, int]


@dataclass(frozen=True)
class SuiteResults:
    """The results of a run.

    Attributes:
        environments: One each.
        overall: Shares averaged over the environments with equal weight; counts summed.
    """

    environments: tuple[Results, ...]
    overall: Results


@dataclass(frozen=True)
class Outcome:
    """What scoring needs of an episode, so that a record larger than memory can be scored.

    Attributes:
        key: Of the episode.
        instance: Of the episode.
        result: Of the episode.
        success: Of the episode.
        values: Each metric's number, by its name in `METRICS`.
    """

    key: Key
    instance: str
    result: Result
    success: bool
    values: Mapping[str, float | None]


def score(episodes: Iterable[Episode], order: Sequence[str] = ()) -> SuiteResults:
    """All results of a record.

    Args:
        episodes: Each is let go before the next is taken; of two with one key the later counts.
        order: Names of environments, as `name` gives them, that come first.
    """
    outcomes = {episode.key: outcome(episode) for episode in episodes}
    groups: dict[str, list[Outcome]] = {title: [] for title in order}
    for each in outcomes.values():
        groups.setdefault(name(each.key), []).append(each)
    environments = tuple(results(title, group) for title, group in groups.items() if group)
    return SuiteResults(environments, _overall(environments))


def name(key: Key) -> str:
    """The environment of an episode as the table calls it."""
    given = ", ".join(f"{name}={value}" for name, value in json.loads(key.kwargs).items())
    kwargs = f" ({given})" if given else ""
    split = "" if key.split == "test" else f" [{key.split}]"
    return f"{key.env_id}{kwargs}{split}"


def outcome(episode: Episode) -> Outcome:
    """What scoring needs of an episode."""
    values = {title: metric.measure(episode) for title, metric in METRICS.items()}
    return Outcome(episode.key, episode.instance, episode.result, episode.success, values)


def results(title: str, outcomes: Sequence[Outcome]) -> Results:
    """The results of one environment."""
    stand = [each for each in outcomes if each.result not in SPOILT]
    stand.sort(key=lambda each: (each.key.seed, each.key.rollout))
    by_instance: dict[str, list[Outcome]] = defaultdict(list)
    for each in stand:
        by_instance[each.instance].append(each)
    groups = list(by_instance.values())
    metrics = {metric: _measured(groups, metric) for metric in METRICS}
    return Results(
        name=title,
        episodes=len(stand),
        instances=len(groups),
        spoilt=len(outcomes) - len(stand),
        metrics={metric: found for metric, found in metrics.items() if found.instances},
        pass_at=_pass_at(groups),
        results=Counter(each.result for each in outcomes),
    )


def _measured(groups: Sequence[Sequence[Outcome]], metric: str) -> Estimate:
    measured = ([each.values[metric] for each in group] for group in groups)
    values = [[value for value in group if value is not None] for group in measured]
    return estimate([group for group in values if group], METRICS[metric].bounds)


def estimate(groups: Sequence[Sequence[float]], bounds: Bounds = ANY) -> Estimate:
    """Mean and interval of numbers that come in groups, one group per instance.

    Args:
        groups: Numbers of each instance's rollouts; no group is empty.
        bounds: Between which the numbers lie by definition.
    """
    n = len(groups)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    means = np.array([math.fsum(group) / len(group) for group in groups])
    centre = math.fsum(means) / n
    # Equal numbers must not seem to differ by rounding.
    spread = float(means.std(ddof=1)) if means.min() < means.max() else 0.0
    yes_or_no = all(len(group) == 1 and group[0] in (0.0, 1.0) for group in groups)
    if bounds is SHARE and (yes_or_no or spread == 0.0):
        return Estimate(centre, *wilson(centre, n), n)
    if spread == 0.0:
        return Estimate(centre, math.nan, math.nan, n)
    half = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * spread / math.sqrt(n)
    return Estimate(centre, max(centre - half, bounds.low), min(centre + half, bounds.high), n)


def wilson(rate: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate seen in n independent trials (JASA 22, 1927)."""
    z = float(ndtri(0.5 + CONFIDENCE / 2))
    centre = rate + z * z / (2 * n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # Rounding must not put the rate itself outside when it is 0 or 1.
    return min((centre - half) / scale, rate), max((centre + half) / scale, rate)


def pass_at_k(successes: int, rollouts: int, k: int) -> float:
    """Unbiased estimate of the chance that one of k rollouts succeeds (Chen et al. 2021).

    1 - C(n - c, k) / C(n, k), with c successes in n rollouts, k <= n.
    """
    return 1.0 - math.comb(rollouts - successes, k) / math.comb(rollouts, k)


def _pass_at(groups: Sequence[Sequence[Outcome]]) -> dict[int, Estimate]:
    most = max((len(group) for group in groups), default=0)
    ks = [2**power for power in range(1, most.bit_length()) if 2**power <= most]
    return {k: _pass_estimate(groups, k) for k in ks}


def _pass_estimate(groups: Sequence[Sequence[Outcome]], k: int) -> Estimate:
    counts = [(sum(e.success for e in group), len(group)) for group in groups if len(group) >= k]
    return estimate([[pass_at_k(won, played, k)] for won, played in counts], SHARE)


def _overall(environments: Sequence[Results]) -> Results:
    shares = [title for title, metric in METRICS.items() if metric.bounds is SHARE]
    metrics = {title: average([r.metrics.get(title) for r in environments]) for title in shares}
    ks = sorted({k for r in environments for k in r.pass_at})
    counts: Counter[Result] = Counter()
    for r in environments:
        counts.update(r.results)
    return Results(
        name="all",
        episodes=sum(r.episodes for r in environments),
        instances=sum(r.instances for r in environments),
        spoilt=sum(r.spoilt for r in environments),
        metrics={title: found for title, found in metrics.items() if found is not None},
        pass_at={
            k: found for k in ks if (found := average([r.pass_at.get(k) for r in environments]))
        },
        results=counts,
    )


def average(estimates: Sequence[Estimate | None]) -> Estimate | None:
    """Mean of independent estimates with equal weight, and its MOVER interval.

    Args:
        estimates: One per environment; None where it has none, which makes the mean None too.
    """
    found = [each for each in estimates if each is not None]
    if not found or len(found) < len(estimates):
        return None
    mean = math.fsum(each.mean for each in found) / len(found)
    below = math.sqrt(math.fsum((each.mean - each.low) ** 2 for each in found)) / len(found)
    above = math.sqrt(math.fsum((each.high - each.mean) ** 2 for each in found)) / len(found)
    return Estimate(mean, mean - below, mean + above, sum(each.instances for each in found))


def _share_of_milestones(episode: Episode) -> float | None:
    total = episode.milestone_total
    return episode.milestones / total if total else None


def _met_dead_end(episode: Episode) -> float | None:
    notes = [episode.start.note, *(turn.note for turn in episode.turns)]
    known = [note for note in notes if note is not None]
    return float(any(note.dead_end for note in known)) if known else None


def _share_invalid(episode: Episode) -> float | None:
    turns = episode.turns
    return sum(not turn.valid for turn in turns) / len(turns) if turns else None


def _share_strict(episode: Episode) -> float | None:
    turns = episode.turns
    return sum(turn.strict for turn in turns) / len(turns) if turns else None


def _strictly_won(episode: Episode) -> float:
    return float(episode.success and all(turn.strict for turn in episode.turns))


def _share_unclosed(episode: Episode) -> float | None:
    turns = episode.turns
    return sum(turn.problem == "unclosed_think" for turn in turns) / len(turns) if turns else None


def _cost(episode: Episode) -> float | None:
    costs = [turn.cost for turn in episode.turns]
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if known and len(known) == len(costs) else None


def _regret(episode: Episode) -> float | None:
    note = episode.start.note
    if not episode.success or note is None or not math.isfinite(note.cost_to_go):
        return None
    return len(episode.turns) - note.cost_to_go


def _tokens(episode: Episode) -> float | None:
    counts = [turn.completion_tokens for turn in episode.turns]
    return math.fsum(count for count in counts if count) if any(counts) else None


def _prompt_tokens(episode: Episode) -> float | None:
    counts = [turn.prompt_tokens for turn in episode.turns]
    return math.fsum(count for count in counts if count) if any(counts) else None


METRICS: Mapping[str, Metric] = {
    "success": Metric(lambda e: float(e.success), SHARE, "share of episodes won (Avg@k)"),
    "strict success": Metric(
        _strictly_won, SHARE, "share of episodes won with every reply in the asked format"
    ),
    "score": Metric(lambda e: e.score, ANY, "the game's own score at the end"),
    "best score": Metric(
        lambda e: max(e.start.score, *(turn.score for turn in e.turns)) if e.turns else e.score,
        ANY,
        "the highest score at any time of the episode",
    ),
    "progress": Metric(lambda e: e.progress, SHARE, "0 to 1, 1 only when won"),
    "milestones": Metric(_share_of_milestones, SHARE, "share of the instance's milestones reached"),
    "dead ends": Metric(
        _met_dead_end, SHARE, "share of episodes that met a state without a win, lost ones included"
    ),
    "invalid": Metric(_share_invalid, SHARE, "share of an episode's turns without a valid action"),
    "strict": Metric(_share_strict, SHARE, "share of an episode's replies in the asked format"),
    "unclosed thinking": Metric(
        _share_unclosed, SHARE, "share of an episode's replies that ended inside their thinking"
    ),
    "regret": Metric(_regret, COUNT, "turns beyond the fewest possible, won episodes only"),
    "turns": Metric(lambda e: float(len(e.turns)), COUNT, "turns of an episode"),
    "tokens": Metric(_tokens, COUNT, "reply tokens of an episode"),
    "prompt tokens": Metric(_prompt_tokens, COUNT, "prompt tokens of an episode"),
    "cost": Metric(_cost, COUNT, "what an episode cost, in the currency of the model's price"),
    "seconds": Metric(
        lambda e: seconds_of(e.start, e.turns),
        COUNT,
        "waiting, generating and playing, of an episode",
    ),
}
"""Every metric, in the order of the report."""
