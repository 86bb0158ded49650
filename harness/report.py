"""Results as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.score import METRICS, Estimate, Results, SuiteResults

_COLUMNS = (
    "success",
    "score",
    "best score",
    "progress",
    "milestones",
    "dead ends",
    "invalid",
    "regret",
    "turns",
    "tokens",
    "seconds",
)


def show(found: SuiteResults, console: Console) -> None:
    """Print the results, with intervals, how the episodes ended, and what was left out."""
    console.print(render(found))


def render(found: SuiteResults) -> RenderableType:
    """One block per metric would be unreadable, one row per environment too wide: metrics are rows.

    Environments are columns of at most four to a table, so that 80 characters hold them.
    """
    columns = (*found.environments, *((found.overall,) if len(found.environments) > 1 else ()))
    tables = [_table(columns[i : i + 4]) for i in range(0, len(columns), 4)]
    return Group(*tables, *_notes())


def _table(columns: Sequence[Results]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for results in columns:
        table.add_column(results.name.removeprefix("agentgym/"), justify="right", overflow="fold")
    table.add_row("episodes", *(_counts(results) for results in columns))
    for metric in _COLUMNS:
        if any(metric in results.metrics for results in columns):
            table.add_row(metric, *(_cell(results.metrics.get(metric)) for results in columns))
    for k in sorted({k for results in columns for k in results.pass_at}):
        table.add_row(f"pass@{k}", *(_cell(results.pass_at.get(k)) for results in columns))
    table.add_row("ended", *(_endings(results) for results in columns))
    return table


def _counts(results: Results) -> str:
    return f"{results.episodes} of {results.instances} instances"


def _endings(results: Results) -> str:
    return "\n".join(f"{count} {result}" for result, count in sorted(results.results.items()))


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    digits = 3 if abs(estimate.mean) < 10 else 1
    mean = f"{estimate.mean:.{digits}f}"
    if math.isnan(estimate.low):
        return mean
    return f"{mean}\n[{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def _notes() -> list[Text]:
    lines = [
        "In brackets: 95 % intervals, clustered by instance (Wilson's for one rollout each).",
        *(f"{metric}: {METRICS[metric].meaning}." for metric in _COLUMNS),
    ]
    return [Text(line, style="dim") for line in lines]
