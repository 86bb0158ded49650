"""What `harness.compare` prints: the runs, their differences, the ties, and where they differ."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.table import Table

from harness.comparison import Found, Pair
from harness.paired import Comparison
from harness.score import METRICS, Estimate

_LEGEND = (
    "difference: of the means over instances, with its 95 % interval over the paired instances;"
    " higher, lower, equal: instances on which the first run's number is so; p: of the exact"
    " paired test, each pair on its own; tied: the interval holds 0, or p is 0.05 or more"
)


def show(found: Found, most: int, console: Console) -> None:
    """Print a comparison.

    Args:
        found: What to print.
        most: How many instances.
        console: Where to.
    """
    _print(console, f"{found.metric}: {METRICS[found.metric].meaning}")
    _print(console, _basis(found))
    _print(console, _names(found))
    console.print(_means(found))
    for name in next(iter(found.means.values())):
        console.print(_pairs(found, name))
        _print(console, _ties(found, name))
    console.print()
    _instances(found, most, console)
    console.print(_LEGEND, style="dim", markup=False, highlight=False)


def _print(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _basis(found: Found) -> str:
    common, played = len(found.common), found.played
    if common == played:
        return f"All {played} instances were played by every run."
    return (
        f"Compared on {common} of {played} instances ({100 * common / played:.0f} %), those which "
        "every run played and the metric says something about."
    )


def _names(found: Found) -> str:
    """A line per run."""
    lines: list[str] = []
    for run in found.runs:
        spoilt = f", {run.spoilt} spoilt episodes left out" if run.spoilt else ""
        lines.append(f"{run.label}: {run.model}, {run.folder}{spoilt}")
    return "\n".join(lines)


def _means(found: Found) -> Table:
    """A row per environment, a column per run."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mean", overflow="fold")
    for run in found.runs:
        table.add_column(run.label, justify="right", overflow="fold")
    for name in next(iter(found.means.values())):
        cells = (_interval(found.means[run.label][name]) for run in found.runs)
        table.add_row(_short(name), *cells)
    return table


def _short(name: str) -> str:
    return name.removeprefix("agentgym/").replace(" (", "\n(")


def _title(name: str) -> str:
    return "all environments, with equal weight" if name == "all" else _short(name)


def _pairs(found: Found, name: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=_title(name), title_justify="left")
    for column in ("pair", "difference", "higher", "lower", "equal", "p", "verdict"):
        table.add_column(column, justify="left" if column in ("pair", "verdict") else "right")
    for pair in found.pairs:
        one = pair.verdict if name == "all" else pair.environments[name]
        counts = (str(one.higher), str(one.lower), str(one.equal))
        difference = _interval(one.difference, signed=True)
        chance = f"{_p(one.test.p)}\n{one.test.method}"
        table.add_row(
            f"{pair.first} - {pair.second}", difference, *counts, chance, _verdict(pair, one)
        )
    return table


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"


def _verdict(pair: Pair, one: Comparison) -> str:
    if one.tied:
        return "tied"
    return f"{pair.first if one.difference.mean > 0 else pair.second} is higher"


def _interval(estimate: Estimate, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    digits = 3 if abs(estimate.mean) < 10 else 1
    mean = f"{estimate.mean:{sign}.{digits}f}"
    if math.isnan(estimate.low):
        return mean
    return f"{mean}\n[{estimate.low:{sign}.{digits}f}, {estimate.high:{sign}.{digits}f}]"


def _ties(found: Found, name: str) -> str:
    """One line; sets that overlap say that being tied does not carry over from pair to pair."""
    sets = [f"{{{', '.join(each)}}}" for each in found.tied[name] if len(each) > 1]
    return f"Tied with each other: {' '.join(sets)}" if sets else "No two runs are tied."


def _instances(found: Found, most: int, console: Console) -> None:
    rows = found.differ_most(most)
    if not rows:
        _print(console, "The runs have the same number on every instance.")
        return
    title = f"Instances on which they differ most: {len(rows)}"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    table.add_column("environment", overflow="fold")
    table.add_column("seed", justify="right")
    for run in found.runs:
        table.add_column(f"{run.label}\n(of {_rollouts(found, run.label)})", justify="right")
    for instance, means in rows:
        seed = found.runs[0].seeds[instance]
        cells = (f"{value:.3g}" for value in means)
        table.add_row(_short(instance.environment), str(seed), *cells)
    console.print(table)


def _rollouts(found: Found, label: str) -> str:
    """How many rollouts a run's numbers are means of."""
    run = next(run for run in found.runs if run.label == label)
    counts = {len(run.values[each]) for each in found.common}
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)}-{max(counts)}"
