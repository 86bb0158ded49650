"""`python -m harness.report RUN`: a run as one HTML file, with figures and a replay viewer.

The page holds everything it needs and asks no network. A record may be larger than memory: it is
read twice, once for scores and figures, once for the episodes that the page embeds.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro
from rich.console import Console

from agentgym.errors import InvalidOption, MissingExtra
from harness import commands, record, run_folder, score, verdicts
from harness.prompts import Style
from harness.record import SPOILT, Episode, Key, Note, RecordError
from harness.run_folder import RunHeader
from harness.score import Estimate, SuiteResults
from harness.timing import Times
from harness.verdicts import Judged, Trace

REPORT = "report.html"
_ABOUT = """Write a run as one HTML file: scores, figures, and a viewer to step through episodes.

The file needs no network and opens from the disk."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The command line."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of the run."""
    out: Path | None = None
    """The file to write; report.html in the folder of the run if not given."""
    max_mb: float = 45.0
    """Megabytes of episodes to embed; beyond, a part of each environment's episodes."""


class Embedded(NamedTuple):
    """The episodes that the page holds.

    Attributes:
        json: One JSON text per episode, in the order of the viewer.
        systems: Their system messages, by the name that the episodes have for them.
        said: How they were chosen, "" if all are there.
    """

    json: Sequence[str]
    systems: Mapping[str, str]
    said: str


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status.

    0: written. 1: the run cannot be read or the file not written. 2: the arguments are wrong.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    arguments = tyro.cli(Arguments, prog="python -m harness.report", description=_ABOUT, args=given)
    return commands.run(partial(_write, arguments))


def _write(arguments: Arguments) -> int:
    path = write(arguments.run, arguments.out, max_bytes=int(arguments.max_mb * 1e6))
    Console().print(f"Report: {path}", markup=False, highlight=False, soft_wrap=True)
    return 0


def write(folder: Path, out: Path | None = None, *, max_bytes: int = 45_000_000) -> Path:
    """Write the report of a run; its path.

    Args:
        folder: Of the run.
        out: The file; `report.html` in the folder if None.
        max_bytes: Of embedded episodes; what else the page holds is small.

    Raises:
        RecordError: The run cannot be read, has no episode, or the file cannot be written.
        InvalidOption: `max_bytes` is negative.
        MissingExtra: A package of the extra `report` is not installed.
    """
    if max_bytes < 0:
        raise InvalidOption(f"max_mb is 0 or more, got {max_bytes / 1e6:g}.")
    header = run_folder.read_header(folder)
    path = folder / record.EPISODES
    times = Times()
    traces, sizes, results = _survey(times.over(record.read(path)))
    if not traces:
        raise RecordError(f"{path} holds no finished episode yet; play some first.")
    chosen = choose(sizes, max_bytes)
    found, systems = _embed(record.read(path), chosen)
    embedded = Embedded(found, systems, _selection(len(chosen), len(sizes)))
    facts = _facts(header) | {"time": times.sentence}
    text = _page(header, facts, results, list(traces.values()), embedded)
    target = out or folder / REPORT
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise RecordError(f"Cannot write {target}: {fault.strerror}.") from fault
    return target


def _survey(
    episodes: Iterable[Episode],
) -> tuple[dict[Key, Trace], dict[Key, int], SuiteResults]:
    """What scores, figures and selection need; each episode is let go before the next."""
    traces: dict[Key, Trace] = {}
    sizes: dict[Key, int] = {}

    def watched() -> Iterator[Episode]:
        for each in episodes:
            traces.pop(each.key, None)
            sizes.pop(each.key, None)
            if each.result not in SPOILT:
                traces[each.key] = verdicts.trace(each)
                sizes[each.key] = len(episode_json(each))
            yield each

    results = score.score(watched())
    return traces, sizes, results


def choose(sizes: Mapping[Key, int], max_bytes: int) -> set[Key]:
    """Which episodes to embed: all, or each environment's first ones within an equal share.

    Args:
        sizes: Bytes of each episode.
        max_bytes: Of all together.
    """
    if sum(sizes.values()) <= max_bytes:
        return set(sizes)
    share = max_bytes / len({score.name(key) for key in sizes})
    taken: Counter[str] = Counter()
    chosen: set[Key] = set()
    for key in sorted(sizes, key=lambda key: (key.rollout, key.seed)):
        name = score.name(key)
        if taken[name] + sizes[key] <= share:
            taken[name] += sizes[key]
            chosen.add(key)
    return chosen


def _selection(chosen: int, total: int) -> str:
    if chosen == total:
        return ""
    return (
        f"{chosen:,} of {total:,} episodes are here, for the file would be too large with all: of "
        "each environment those of the first rollouts and lowest seeds, within equal shares of the "
        "space. Scores and figures rest on all episodes. --max-mb sets the space."
    )


def _embed(episodes: Iterable[Episode], chosen: set[Key]) -> tuple[list[str], dict[str, str]]:
    found: dict[Key, str] = {}
    systems: dict[str, str] = {}
    for each in episodes:
        if each.key in chosen:
            found[each.key] = episode_json(each)
            systems[_system_name(each)] = each.system
    order = sorted(found, key=lambda key: (key.seed, key.rollout))
    names = list(dict.fromkeys(score.name(key) for key in found))
    order.sort(key=lambda key: names.index(score.name(key)))
    return [found[key] for key in order], systems


def _system_name(episode: Episode) -> str:
    """Episodes of one environment have one system message, so the page holds it once."""
    return hashlib.sha256(episode.system.encode()).hexdigest()[:8]


def episode_json(episode: Episode) -> str:
    """An episode as the viewer reads it, safe between the tags of a script."""
    judged = list(verdicts.judged(episode))
    shown = {
        "environment": score.name(episode.key),
        "seed": episode.key.seed,
        "rollout": episode.key.rollout,
        "instance": episode.instance,
        "result": episode.result.value,
        "error": episode.error,
        "success": episode.success,
        "score": episode.score,
        "progress": episode.progress,
        "milestones": [episode.milestones, episode.milestone_total],
        "system": _system_name(episode),
        "start": _note(episode.start.note),
        "final": episode.final_observation,
        "mistakes": sum(each.verdict in verdicts.MISTAKES for each in judged),
        "turns": [_turn(each) for each in judged],
    }
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _in_script(text)


def _in_script(text: str) -> str:
    """JSON that no HTML parser can take for a tag, a comment or a line end of JavaScript."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _turn(judged: Judged) -> dict[str, Any]:
    turn = judged.turn
    return {
        "observation": turn.observation,
        "asked": turn.asked,
        "sent": [turn.sent, turn.dropped],
        "reply": turn.reply,
        "calls": turn.tool_calls,
        "reasoning": turn.reasoning,
        "attempt": turn.attempt,
        "action": turn.action,
        "error": turn.error,
        "strict": turn.strict,
        "cut": turn.stop_reason == "length",
        "reward": _number(turn.reward),
        "score": _number(turn.score),
        "progress": turn.progress,
        "milestones": len(turn.milestones),
        "tokens": [turn.prompt_tokens, turn.completion_tokens],
        "seconds": turn.seconds_waiting + turn.seconds_generating,
        "verdict": judged.verdict.value,
        "loss": _number(judged.loss),
        "note": _note(turn.note),
    }


def _note(note: Note | None) -> dict[str, Any] | None:
    if note is None:
        return None
    return {
        "cost": _number(note.cost_to_go),
        "value": _number(note.value),
        "best": note.best_actions,
        "dead": note.dead_end,
        "exact": note.exact,
    }


def _number(value: float) -> float | None:
    """A number, None if JSON has none for it; the viewer knows a dead end by its own flag."""
    return value if math.isfinite(value) else None


def _page(
    header: RunHeader,
    facts: Mapping[str, str],
    results: SuiteResults,
    traces: Sequence[Trace],
    embedded: Embedded,
) -> str:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        from harness import figures
    except ModuleNotFoundError as fault:
        package = (fault.name or "").partition(".")[0]
        if package not in ("jinja2", "matplotlib"):
            raise
        raise MissingExtra.of("The HTML report", package, "report") from fault
    pages = Environment(
        loader=PackageLoader("harness"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = [found.name for found in results.environments if found.episodes]
    return pages.get_template("report.html.j2").render(
        header=header,
        facts=facts,
        results=results,
        columns=_columns(results),
        metrics={name: m for name, m in score.METRICS.items() if name in _shown(results)},
        estimate=_estimate,
        tiles=_tiles(results, traces),
        figures={n: figures.draw([t for t in traces if t.environment == n]) for n in names},
        episodes="[" + ",\n".join(embedded.json) + "]",
        systems=_in_script(json.dumps(embedded.systems, ensure_ascii=False)),
        selection=embedded.said,
    )


def _columns(results: SuiteResults) -> list[score.Results]:
    found = list(results.environments)
    return [*found, results.overall] if len(found) > 1 else found


def _shown(results: SuiteResults) -> set[str]:
    return {name for each in _columns(results) for name in each.metrics}


def _estimate(estimate: Estimate | None) -> tuple[str, str]:
    """Mean and interval as text."""
    if estimate is None:
        return "-", ""
    digits = 3 if abs(estimate.mean) < 10 else 1
    if math.isnan(estimate.low):
        return f"{estimate.mean:.{digits}f}", ""
    between = f"{estimate.low:.{digits}f} to {estimate.high:.{digits}f}"
    return f"{estimate.mean:.{digits}f}", between


def _facts(header: RunHeader) -> dict[str, str]:
    """What was played and how, by name."""
    made, last = header.configuration, header.sessions[-1]
    settings = json.dumps(made.model_settings, sort_keys=True, ensure_ascii=False)
    return {
        "suite": str(made.suite.get("name", "")),
        "agentgym": made.agentgym,
        "model settings": settings,
        "prompts": "; ".join(_styles(made.suite)),
        "prompt hashes": ", ".join(dict.fromkeys(made.prompt_hashes)),
        "last command": " ".join((_program(made.suite), *last.arguments)),
        "started": ", ".join(each.started for each in header.sessions[-3:]),
        "machine": f"{last.cpu}, {last.cores} cores, {last.python}, {last.platform}",
    }


def _program(suite: Mapping[str, Any]) -> str:
    """The command that made the run; one of `harness.play` has that for its suite's name."""
    return f"python -m harness.{'play' if suite.get('name') == 'play' else 'eval'}"


def _styles(suite: Mapping[str, Any]) -> list[str]:
    """How the suite's rows ask and read, each way once."""
    found: dict[str, None] = {}
    for row in suite.get("rows", ()):
        style = Style(**row["settings"]["style"])
        listed = ", legal actions listed" if style.list_actions else ""
        parsing = "lenient" if style.lenient else "strict"
        found[f"format {style.format}, {parsing} parsing, history {style.history}{listed}"] = None
    return list(found)


def _tiles(results: SuiteResults, traces: Sequence[Trace]) -> list[tuple[str, str, str]]:
    """The numbers on top: name, number, and a word on it."""
    overall = _columns(results)[-1]
    tiles = [("episodes", f"{overall.episodes:,}", f"of {overall.instances:,} instances")]
    for name, title in (("success", "success"), ("dead ends", "met a dead end")):
        found = overall.metrics.get(name)
        if found is not None:
            between = f"{100 * found.low:.0f} to {100 * found.high:.0f} %"
            tiles.append((title, f"{100 * found.mean:.0f} %", between))
    blundered = sum(each.blunders > 0 for each in traces)
    mistakes = sum(each.blunders for each in traces)
    tiles.append(("blunders", f"{mistakes:,}", f"in {blundered:,} of {len(traces):,} episodes"))
    if overall.spoilt:
        tiles.append(("left out", f"{overall.spoilt:,}", "provider errors, money spent"))
    return tiles
