"""Results as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from harness.score import METRICS, Estimate, Results, SuiteResults

_SHOWN = tuple(metric for metric in METRICS if metric not in ("strict", "prompt tokens"))
_MOST_COLUMNS = 3
"""Environments side by side that 80 characters hold."""


def show(found: SuiteResults, console: Console) -> None:
    """Print the results: a row per metric, a column per environment, and a legend."""
    if not found.environments:
        console.print("No episode was played.")
        return
    columns = (*found.environments, *((found.overall,) if len(found.environments) > 1 else ()))
    tables = math.ceil(len(columns) / _MOST_COLUMNS)
    size = math.ceil(len(columns) / tables)
    for begin in range(0, len(columns), size):
        console.print(_table(columns[begin : begin + size]))
    console.print(_legend(columns), style="dim", markup=False, highlight=False)


def _table(columns: Sequence[Results]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for results in columns:
        table.add_column(_heading(results), justify="right", overflow="fold")
    table.add_row("episodes", *(str(results.episodes) for results in columns))
    table.add_row("instances", *(str(results.instances) for results in columns))
    for metric in _SHOWN:
        if any(metric in results.metrics for results in columns):
            table.add_row(metric, *(_cell(results.metrics.get(metric)) for results in columns))
        if metric == "success":
            _add_pass_at(table, columns)
    table.add_row("ended", *(_endings(results) for results in columns))
    return table


def _heading(results: Results) -> str:
    return results.name.removeprefix("agentgym/").replace(" (", "\n(").replace(", ", ",\n")


def _add_pass_at(table: Table, columns: Sequence[Results]) -> None:
    for k in sorted({k for results in columns for k in results.pass_at}):
        table.add_row(f"pass@{k}", *(_cell(results.pass_at.get(k)) for results in columns))


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


def _legend(columns: Sequence[Results]) -> str:
    shown = [m for m in _SHOWN if any(m in results.metrics for results in columns)]
    lines = [f"{metric}: {METRICS[metric].meaning}" for metric in shown]
    lines.append("[low, high]: 95 % interval of the mean, clustered by instance; none where all")
    lines.append("instances gave one number; for rates with one rollout each it is Wilson's")
    if len(columns) > 1:
        lines.append("all: shares averaged over the environments with equal weight")
    return "\n".join(lines)


if __name__ == "__main__":
    from harness import report_html

    raise SystemExit(report_html.main())
