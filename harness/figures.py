"""The report's figures as SVG whose colours are the page's, so that they follow its dark mode."""

from __future__ import annotations

import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator, PercentFormatter

from harness import score
from harness.record import Result
from harness.verdicts import Trace, Verdict

_MOST_LINES = 80
_MOST_BINS = 6
# Colours that matplotlib writes and the page's style sheet gives their meaning to.
_INK, _FAINT, _GOOD, _BAD, _LIMIT, _OTHER, _QUIET = (f"#0102{k:02x}" for k in range(7))
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


class Figure(NamedTuple):
    """A figure of the report.

    Attributes:
        title: What it shows.
        svg: The drawing, an SVG element; "" where there is nothing to draw.
        text: How to read it, or why it is not there.
    """

    title: str
    svg: str
    text: str


def draw(traces: Sequence[Trace]) -> list[Figure]:
    """All figures of one environment's episodes."""
    return [
        _success_by_length(traces),
        _endings(traces),
        _costs(traces),
        _actions(traces),
        _first_mistakes(traces),
        _tokens(traces),
    ]


def _svg(title: str, paint: Callable[[Any], None]) -> str:
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": title}):
        canvas = Canvas(figsize=(4.5, 2.7), layout="constrained")
        axes = canvas.add_subplot()
        paint(axes)
        file = io.StringIO()
        canvas.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"([^>]*?) width="[^"]*"', r"\1\2", text, count=1)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"([^>]*?) height="[^"]*"', r"\1\2", text, count=1)
    return re.sub(r"#0102(0\d)", r"var(--figure-\1)", text)


def _grid(axes: Any, axis: str = "y") -> None:
    axes.grid(axis=axis, color=_FAINT, alpha=0.35, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


def _success_by_length(traces: Sequence[Trace]) -> Figure:
    title = "Success against optimal length"
    known = [each for each in traces if math.isfinite(each.costs[0])]
    if not known:
        return Figure(title, "", "The oracle gives no distance to a win at the start.")
    bins = _bins([each.costs[0] for each in known])
    groups = [[each for each in known if low <= each.costs[0] <= high] for low, high in bins]
    estimates = [_success(group) for group in groups]

    def paint(axes: Any) -> None:
        at = np.arange(len(bins))
        axes.vlines(at, [e.low for e in estimates], [e.high for e in estimates], _GOOD, alpha=0.5)
        axes.plot(at, [e.mean for e in estimates], "o", color=_GOOD, clip_on=False)
        names = [f"{low:g}" if low == high else f"{low:g}-{high:g}" for low, high in bins]
        counts = (e.instances for e in estimates)
        axes.set_xticks(at, [f"{name}\nn={n}" for name, n in zip(names, counts, strict=True)])
        axes.set_xlim(-0.5, len(bins) - 0.5)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xlabel("fewest turns to a win from the start")
        axes.set_ylabel("success")
        _grid(axes)

    text = "Dots are means, lines 95 % intervals over the n instances of each range."
    return Figure(title, _svg(title, paint), text)


def _bins(values: Sequence[float]) -> list[tuple[float, float]]:
    """Ranges that hold about equally many values; each value has one where there are few."""
    distinct = sorted(set(values))
    if len(distinct) <= _MOST_BINS:
        return [(value, value) for value in distinct]
    ordered = sorted(values)
    starts = {ordered[len(ordered) * k // _MOST_BINS] for k in range(_MOST_BINS)}
    firsts = sorted(starts)
    lasts = [max(v for v in distinct if v < first) for first in firsts[1:]]
    return list(zip(firsts, [*lasts, distinct[-1]], strict=True))


def _success(traces: Sequence[Trace]) -> score.Estimate:
    groups: dict[str, list[float]] = defaultdict(list)
    for each in traces:
        groups[each.instance].append(float(each.success))
    return score.estimate(list(groups.values()), score.SHARE)


_ENDS = {
    "won": (_GOOD, (Result.WON,)),
    "lost or dead end": (_BAD, (Result.LOST, Result.DEAD_END)),
    "turn limit": (_LIMIT, (Result.STEP_LIMIT,)),
}


def _endings(traces: Sequence[Trace]) -> Figure:
    title = "Where episodes end"
    named = {result for _, results in _ENDS.values() for result in results}
    groups = {
        name: (colour, [each.turns for each in traces if each.result in results])
        for name, (colour, results) in _ENDS.items()
    }
    groups["other"] = (_OTHER, [each.turns for each in traces if each.result not in named])
    groups = {name: group for name, group in groups.items() if group[1]}
    last = max(each.turns for each in traces)
    width = max(1, math.ceil(last / 30))

    def paint(axes: Any) -> None:
        axes.hist(
            [turns for _, turns in groups.values()],
            bins=np.arange(0, last + 2 * width, width) - 0.5,
            stacked=True,
            color=[colour for colour, _ in groups.values()],
            label=list(groups),
            rwidth=0.88,
        )
        axes.set_xlabel("turns played")
        axes.set_ylabel("episodes")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(axes, len(groups))
        _grid(axes)

    return Figure(
        title, _svg(title, paint), "How many episodes ended after how many turns, and why."
    )


def _legend(axes: Any, columns: int) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        borderaxespad=0.2,
        handlelength=1.2,
        columnspacing=1.2,
    )


def _costs(traces: Sequence[Trace]) -> Figure:
    title = "Distance to a win along episodes"
    known = [each for each in traces if np.isfinite(each.costs).any()]
    if not known:
        return Figure(title, "", "The oracle gives no distance to a win in this game.")
    shown = [known[i] for i in _spread(len(known), _MOST_LINES)]

    def paint(axes: Any) -> None:
        for name, colour, won in (("won", _GOOD, True), ("not won", _LIMIT, False)):
            for number, each in enumerate(t for t in shown if t.success is won):
                costs = np.where(np.isfinite(each.costs), each.costs, np.nan)
                label = name if number == 0 else None
                axes.plot(costs, color=colour, alpha=0.6, linewidth=1.1, label=label)
        dead = [
            t for t in shown if t.first_dead_end and math.isfinite(t.costs[t.first_dead_end - 1])
        ]
        if dead:
            at = [t.first_dead_end - 1 for t in dead if t.first_dead_end]
            costs = [t.costs[i] for t, i in zip(dead, at, strict=True)]
            axes.plot(at, costs, "x", color=_BAD, markersize=5, label="next turn is a dead end")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("turns played")
        axes.set_ylabel("fewest turns to a win")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(axes, 3)
        _grid(axes)

    part = f" {len(shown)} of {len(known)} episodes." if len(shown) < len(known) else ""
    return Figure(
        title, _svg(title, paint), f"A line per episode; best play falls by 1 a turn.{part}"
    )


def _spread(n: int, most: int) -> list[int]:
    """At most so many of the numbers below n, evenly spread."""
    return list(range(n)) if n <= most else [n * k // most for k in range(most)]


_VERDICTS = {
    Verdict.BEST: ("best", _GOOD),
    Verdict.FINE: ("nothing lost", _GOOD),
    Verdict.BLUNDER: ("blunder", _LIMIT),
    Verdict.FATAL: ("into a dead end", _BAD),
    Verdict.INVALID: ("no valid action", _OTHER),
    Verdict.LOST: ("in a dead end", _QUIET),
    Verdict.UNKNOWN: ("not judged", _QUIET),
}


def _actions(traces: Sequence[Trace]) -> Figure:
    title = "What the oracle says of the actions"
    total = sum(each.turns for each in traces)
    if not total:
        return Figure(title, "", "No turn was played.")
    counts = {v: sum(each.verdicts.get(v, 0) for each in traces) for v in _VERDICTS}
    shown = [verdict for verdict in reversed(_VERDICTS) if counts[verdict]]

    def paint(axes: Any) -> None:
        shares = [counts[verdict] / total for verdict in shown]
        colours = [_VERDICTS[verdict][1] for verdict in shown]
        bars = axes.barh([_VERDICTS[v][0] for v in shown], shares, height=0.6, color=colours)
        axes.bar_label(bars, [f"{share:.0%}" for share in shares], padding=4)
        axes.set_xlim(0, max(shares) * 1.15)
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(length=0)

    text = f"Share of all {total:,} turns; a blunder puts the win further off than a best action."
    return Figure(title, _svg(title, paint), text)


def _first_mistakes(traces: Sequence[Trace]) -> Figure:
    title = "First blunder and first dead end"
    if all(math.isnan(cost) for each in traces for cost in each.costs) and not any(
        each.blunders for each in traces
    ):
        return Figure(title, "", "The record holds no oracle's notes.")
    last = max(each.turns for each in traces)
    curves = (
        ("blunder", _LIMIT, [each.first_blunder for each in traces]),
        ("dead end", _BAD, [each.first_dead_end for each in traces]),
    )

    def paint(axes: Any) -> None:
        for name, colour, firsts in curves:
            met = np.bincount([f for f in firsts if f is not None], minlength=last + 1)
            share = np.cumsum(met) / len(traces)
            axes.step(range(last + 1), share, where="post", color=colour, label=name, linewidth=1.6)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xlabel("turn")
        axes.set_ylabel("episodes that met one")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(axes, 2)
        _grid(axes)

    return Figure(
        title, _svg(title, paint), "Share of episodes that had met their first by each turn."
    )


def _tokens(traces: Sequence[Trace]) -> Figure:
    counted = all(each.counted for each in traces)
    unit = "tokens" if counted else "characters"
    title = f"Reply {unit} per turn"
    last = max(each.turns for each in traces)
    if last == 0:
        return Figure(title, "", "No turn was played.")
    by_turn = [[each.tokens[turn] for each in traces if turn < each.turns] for turn in range(last)]
    low, middle, high = np.array([np.percentile(each, (25, 50, 75)) for each in by_turn]).T

    def paint(axes: Any) -> None:
        at = np.arange(1, last + 1)
        axes.fill_between(at, low, high, color=_GOOD, alpha=0.2, linewidth=0, label="middle half")
        axes.plot(at, middle, color=_GOOD, linewidth=1.6, label="median")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("turn")
        axes.set_ylabel(unit)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(axes, 2)
        _grid(axes)

    text = "Over the episodes that were still going on."
    return Figure(
        title, _svg(title, paint), text if counted else f"{text} This model counts no tokens."
    )
