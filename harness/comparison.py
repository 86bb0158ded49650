"""What a comparison of runs finds: the common instances, the pairs of runs, the ties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from agentgym.errors import InvalidOption, UnknownName
from harness import paired, record, run_folder, score
from harness.paired import Comparison
from harness.score import Estimate


class Instance(NamedTuple):
    """What is paired.

    Attributes:
        environment: As `score.name` gives it.
        name: The environment's stable id of the instance.
    """

    environment: str
    name: str


@dataclass(frozen=True)
class Run:
    """What of a run is compared.

    Attributes:
        label: "A", "B" and so on, as given.
        folder: Where it is.
        model: Who played.
        prompts: The hashes of the prompts by environment.
        values: The metric's numbers, one per rollout, by instance.
        seeds: Of each instance.
        spoilt: Episodes left out because the provider failed or the money was spent.
    """

    label: str
    folder: Path
    model: str
    prompts: Mapping[str, frozenset[str]]
    values: Mapping[Instance, Sequence[float]]
    seeds: Mapping[Instance, int]
    spoilt: int


@dataclass(frozen=True)
class Pair:
    """Two runs.

    Attributes:
        first: The label of the run from whose numbers the other's are taken.
        second: The label of the other.
        environments: By name.
        overall: Over the environments; None if there is but one, or the metric is no share.
    """

    first: str
    second: str
    environments: Mapping[str, Comparison]
    overall: Comparison | None

    @property
    def verdict(self) -> Comparison:
        """The comparison that stands for the pair: over all environments, else the only one's."""
        return self.overall or next(iter(self.environments.values()))


@dataclass(frozen=True)
class Found:
    """Everything that is shown.

    Attributes:
        metric: Its name.
        runs: As given.
        common: Instances that all runs played and that the metric says something about, in order.
        played: How many instances any of the runs played.
        means: The mean of each run and environment on the common instances, by label.
        pairs: Every two runs.
        tied: The sets of mutually tied runs by environment, "all" for the overall one; a metric
            that cannot be averaged over environments has no "all".
    """

    metric: str
    runs: tuple[Run, ...]
    common: tuple[Instance, ...]
    played: int
    means: Mapping[str, Mapping[str, Estimate]]
    pairs: tuple[Pair, ...]
    tied: Mapping[str, Sequence[tuple[str, ...]]]

    def differ_most(self, most: int) -> list[tuple[Instance, list[float]]]:
        """Instances with each run's mean, the widest apart first; none on which all agree."""
        rows = [(each, [mean(run.values[each]) for run in self.runs]) for each in self.common]
        rows = [row for row in rows if max(row[1]) > min(row[1])]
        rows.sort(key=lambda row: min(row[1]) - max(row[1]))
        return rows[:most]


def load(folder: Path, label: str, metric: str, env_ids: Sequence[str] = ()) -> Run:
    """What is compared of one run.

    Raises:
        RecordError: It cannot be read.
        UnknownName: An environment that the run did not play.
    """
    header = run_folder.read_header(folder)
    read = {e.key: (score.outcome(e), e.prompt_hash) for e in record.read(folder / record.EPISODES)}
    played = {key.env_id for key in read}
    for env_id in env_ids:
        if env_id not in played:
            raise UnknownName.of(f"environment of {folder}", env_id, played)
    values: dict[Instance, list[float]] = defaultdict(list)
    prompts: dict[str, set[str]] = defaultdict(set)
    seeds: dict[Instance, int] = {}
    chosen = [each for each in read.items() if not env_ids or each[0].env_id in env_ids]
    stand = [each for each in chosen if each[1][0].result not in record.SPOILT]
    for key, (outcome, prompt_hash) in sorted(stand, key=lambda item: item[0].rollout):
        instance = Instance(score.name(key), outcome.instance)
        value = outcome.values[metric]
        prompts[instance.environment].add(prompt_hash)
        seeds[instance] = key.seed
        values[instance] += [] if value is None else [value]
    hashes = {name: frozenset(found) for name, found in prompts.items()}
    spoilt = len(chosen) - len(stand)
    return Run(label, folder, header.configuration.model, hashes, values, seeds, spoilt)


def check_prompts(runs: Sequence[Run]) -> None:
    """Refuse runs whose models were prompted differently.

    Raises:
        InvalidOption: With the environment and the folders.
    """
    first = runs[0]
    for other in runs[1:]:
        for name in first.prompts.keys() & other.prompts.keys():
            if first.prompts[name] != other.prompts[name]:
                one, two = (", ".join(sorted(run.prompts[name])) for run in (first, other))
                raise InvalidOption(
                    f"The prompts of {name} are not the same: hash {one} in {first.folder}, {two} "
                    f"in {other.folder}; a difference could come from either model or prompt. Play "
                    "one of them again, or compare all the same with --across-prompts."
                )


def judge(runs: Sequence[Run], metric: str) -> Found:
    """Compare every two runs on what all have in common.

    Raises:
        InvalidOption: They have nothing in common.
    """
    everything = {each for run in runs for each in run.values}
    common = [each for each in everything if all(run.values.get(each) for run in runs)]
    if not common:
        raise InvalidOption(
            f"The runs have no instance in common with a number for {metric!r}: "
            + "; ".join(f"{run.folder} has {_listed(run)}" for run in runs)
            + ". Give runs of the same suite and split."
        )
    seeds = {each: seed for run in runs for each, seed in run.seeds.items()}
    order = {name: number for run in reversed(runs) for number, name in enumerate(run.prompts)}
    common.sort(key=lambda each: (order[each.environment], seeds[each], each.name))
    pairs = tuple(_pair(a, b, common, metric) for a, b in combinations(runs, 2))
    means = {run.label: _means(run, common, metric) for run in runs}
    tied = _tied(runs, pairs, means)
    return Found(metric, tuple(runs), tuple(common), len(everything), means, pairs, tied)


def _listed(run: Run) -> str:
    held = sum(bool(values) for values in run.values.values())
    return f"{held} of {', '.join(run.prompts) or 'no environment'}"


def mean(values: Sequence[float]) -> float:
    """Of an instance's rollouts."""
    return sum(values) / len(values)


def _by_environment(common: Sequence[Instance]) -> dict[str, list[Instance]]:
    groups: dict[str, list[Instance]] = defaultdict(list)
    for each in common:
        groups[each.environment].append(each)
    return groups


def _pair(first: Run, second: Run, common: Sequence[Instance], metric: str) -> Pair:
    share = score.METRICS[metric].bounds is score.SHARE
    differences = {
        name: [mean(first.values[each]) - mean(second.values[each]) for each in instances]
        for name, instances in _by_environment(common).items()
    }
    environments = {name: paired.compare([d], share=share) for name, d in differences.items()}
    averaged = share and len(environments) > 1
    overall = paired.compare(list(differences.values()), share=share) if averaged else None
    return Pair(first.label, second.label, environments, overall)


def _means(run: Run, common: Sequence[Instance], metric: str) -> dict[str, Estimate]:
    bounds = score.METRICS[metric].bounds
    found = {
        name: score.estimate([run.values[each] for each in instances], bounds)
        for name, instances in _by_environment(common).items()
    }
    overall = score.average(list(found.values())) if bounds is score.SHARE else None
    return {**found, "all": overall} if overall and len(found) > 1 else found


def _tied(
    runs: Sequence[Run], pairs: Sequence[Pair], means: Mapping[str, Mapping[str, Estimate]]
) -> dict[str, list[tuple[str, ...]]]:
    """The sets of mutually tied runs, for each column of the means, the highest mean first."""

    def sets(column: str, which: Callable[[Pair], Comparison]) -> list[tuple[str, ...]]:
        ranked = sorted((run.label for run in runs), key=lambda label: -means[label][column].mean)
        tied = {frozenset((pair.first, pair.second)): which(pair).tied for pair in pairs}
        return paired.tied_sets(ranked, tied)

    found: dict[str, list[tuple[str, ...]]] = {}
    for column in means[runs[0].label]:
        if column == "all":
            found[column] = sets(column, lambda pair: pair.verdict)
        else:
            found[column] = sets(column, lambda pair, name=column: pair.environments[name])
    return found
