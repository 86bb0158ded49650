"""`python -m harness.eval`: let a model play a suite, record it, and print its scores."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from agentgym.errors import MissingExtra
from harness import (
    commands,
    listing,
    models,
    prices,
    record,
    report,
    run_folder,
    scheduler,
    score,
    stopping,
    suites,
)
from harness.arguments import Arguments, parse
from harness.episode import prepare
from harness.models import Hardware, Sampling
from harness.prices import Purse
from harness.progress import Counts, Display
from harness.record import Episode
from harness.request import Model
from harness.scheduler import Gates
from harness.suites import Suite
from harness.terms import Terms
from harness.timing import Times

if TYPE_CHECKING:  # Needs Ray, which few runs need.
    from harness.cluster import Cluster

_Play = Callable[..., Awaitable[None]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status.

    0: played to the end. 1: it cannot go on. 2: the arguments are wrong. 3: played to the end, but
    some episodes ended by a provider error. 4: the money of `--max-cost` is spent before the end.
    130: interrupted.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    console = Console()
    if "--list" in given:  # Needs no --model, which tyro would ask for.
        listing.show(console)
        return 0
    arguments = parse(given, console)
    stopped = "Stopped; the same command goes on from here."
    return commands.run(partial(_evaluate, arguments, given, console), stopped=stopped)


@dataclass(frozen=True)
class _Run:
    suite: Suite
    model: Model | Cluster
    play: _Play
    purse: Purse
    terms: Terms
    console: Console


def _evaluate(arguments: Arguments, given: Sequence[str], console: Console) -> int:
    """Play, report, and say why episodes are missing; the exit status."""
    suite = _suite(arguments)
    price = prices.find(arguments.model, arguments.base_url, arguments.price)
    purse = Purse(price, arguments.max_cost)
    gates = Gates(episodes=1 if arguments.model == "human" else arguments.episodes)
    terms = Terms(_load(arguments, suite), gates, price, arguments.max_cost, arguments.cache)
    run = _Run(suite, *_player(arguments.ray, terms, purse), purse, terms, console)
    folder = arguments.out or Path("runs") / _folder_name(arguments)
    made = run_folder.configuration_of(suite, run.model.name, run.model.settings)
    enter = partial(run_folder.enter, folder, made, given)
    path, counts = asyncio.run(_play(run, enter))
    _report(run, path)
    return _closing(run, counts, Console(stderr=True))


def _load(arguments: Arguments, suite: Suite) -> partial[Model]:
    """What makes the model, here or in another process."""
    return partial(
        models.load,
        arguments.model,
        base_url=arguments.base_url,
        sampling=_sampling(arguments, suite),
        concurrency=arguments.concurrency,
        engine=arguments.engine,
        hardware=Hardware(arguments.tensor_parallel, arguments.data_parallel),
        context=arguments.context,
        logprobs=arguments.logprobs,
        serve=arguments.serve,
    )


def _player(address: str | None, terms: Terms, purse: Purse) -> tuple[Model | Cluster, _Play]:
    """Who plays, and what plays assignments: the scheduler here, or those of a Ray cluster."""
    if address is None:
        model = terms.model(purse)
        return model, partial(scheduler.play_all, model=model, gates=terms.gates, price=terms.price)
    try:
        from harness.cluster import connect
    except ModuleNotFoundError as fault:
        if fault.name != "ray":
            raise
        raise MissingExtra.of("--ray", "ray", "ray") from fault
    cluster = connect(address, terms)
    return cluster, partial(cluster.play_all, purse=purse)


def _suite(arguments: Arguments) -> Suite:
    """The suite that the command line asks for, with its changes."""
    if arguments.suite is None and arguments.env:
        suite = suites.custom(arguments.env)
    else:
        suite = suites.find(arguments.suite or "quick")
        suite = suites.only(suite, arguments.env) if arguments.env else suite
    changes = suites.Changes(
        instances=arguments.instances,
        rollouts=arguments.rollouts,
        split=arguments.split,
        format=arguments.format,
        lenient=None if arguments.parsing is None else arguments.parsing == "lenient",
        history=arguments.history,
        list_actions=arguments.list_actions or None,
        max_tokens=arguments.max_tokens,
        max_turns=arguments.max_turns,
        episode_tokens=arguments.episode_tokens,
        episode_seconds=arguments.episode_seconds,
        context_policy=arguments.context_policy,
        max_invalid=arguments.max_invalid,
        max_unparseable=arguments.max_unparseable,
        end_on_dead_end=arguments.end_on_dead_end or None,
    )
    return suites.changed(suites.at_most(suite, models.reply_limit(arguments.model)), changes)


def _sampling(arguments: Arguments, suite: Suite) -> Sampling:
    temperature, top_p = arguments.temperature, arguments.top_p
    return Sampling(
        temperature=suite.temperature if temperature is None else temperature,
        top_p=suite.top_p if top_p is None else top_p,
        seed=arguments.seed,
        max_tokens=max(row.settings.max_tokens for row in suite.rows),
    )


def _folder_name(arguments: Arguments) -> str:
    """The same for the same command, so that the command goes on where it stopped."""
    short = "+".join(env_id.rpartition("/")[2] for env_id in arguments.env)
    played = arguments.suite or short or "quick"
    return re.sub(r"[^\w.+-]+", "-", f"{arguments.model}-{played}")


async def _play(run: _Run, enter: Callable[[], Path]) -> tuple[Path, Counts]:
    """Play what the record lacks; the path of the record."""
    with stopping.ctrl_c(run.console):
        try:
            path = enter()
            said = f"{run.model.name} plays {run.suite.name}; the record is in {path.parent}"
            run.console.print(said, markup=False, highlight=False, soft_wrap=True)
            with record.Writer(path) as writer:
                try:
                    return path, await _play_missing(run, path, writer.append)
                finally:
                    if run.purse.spent:
                        run_folder.note_spent(path.parent, run.purse.spent)
        finally:
            await run.model.close()


async def _play_missing(run: _Run, path: Path, keep: Callable[[Episode], None]) -> Counts:
    played = record.playable(run.purse.over(record.read(path)))
    done = {each.key: each.success for each in played}
    run.purse.remember(max(each.spent for each in run_folder.read_header(path.parent).sessions))
    all_of_them = suites.assignments(run.suite)
    missing = [each for each in all_of_them if each.key not in done and not run.purse.empty]
    counts = Counts(len(all_of_them), len(done), sum(done.values()))
    counts.independent = all(row.rollouts == 1 for row in run.suite.rows)
    live = run.model.name != "human"
    prepare(missing)  # Not in a thread: that could not be left at the second Ctrl-C.
    with Display(run.console, counts, gauge=run.model.gauge, live=live) as display:
        ticking = asyncio.create_task(display.tick())
        try:
            await run.play(missing, keep=keep, watch=display.watch())
        finally:
            ticking.cancel()
    return counts


def _report(run: _Run, path: Path) -> None:
    """Print the scores, what the games took, and what the model cost."""
    order = dict.fromkeys(score.name(each.key) for each in suites.assignments(run.suite))
    times = Times()
    report.show(score.score(times.over(record.read(path)), tuple(order)), run.console)
    lines = [times.sentence, f"Record: {path}"]
    if run.terms.price is not None or prices.sold(run.model.name):
        lines.insert(1, run.purse.bill)
    for line in lines:
        run.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _closing(run: _Run, counts: Counts, faults: Console) -> int:
    """Say why episodes are missing, if any are; the exit status."""
    left = counts.total - counts.done
    if left and run.purse.empty:
        faults.print(
            f"{run.purse.sentence} {left} episodes are left; the same command with a larger "
            "--max-cost plays them.",
            soft_wrap=True,
        )
        return 4
    if counts.provider_errors:
        faults.print(
            f"{counts.provider_errors} episodes ended by a provider error and are left out; the "
            "same command plays them again. What the provider said stands in the record, under "
            "error.",
            soft_wrap=True,
        )
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
