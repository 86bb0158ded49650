"""`python -m harness.eval`: let a model play a suite, record it, and print its scores."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

import agentgym
from agentgym.errors import AgentGymError
from harness import listing, models, prompts, record, report, run_folder, scheduler, score, suites
from harness.arguments import Arguments, parse
from harness.models import PlayerQuit, Sampling
from harness.progress import Counts, Display
from harness.request import Model
from harness.suites import Suite


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status.

    0: played to the end. 1: it cannot go on. 2: the arguments are wrong. 3: played to the end, but
    some episodes ended by a provider error. 130: interrupted.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    console, faults = Console(), Console(stderr=True)
    if "--list" in given:  # Needs no --model, which tyro would ask for.
        listing.show(console)
        return 0
    arguments = parse(given, console)
    try:
        spoilt = _evaluate(arguments, given, console)
    except AgentGymError as fault:
        faults.print(f"Error: {fault}", style="red", markup=False, highlight=False, soft_wrap=True)
        return 1
    except (KeyboardInterrupt, PlayerQuit):
        faults.print("Stopped; the same command goes on from here.")
        return 130
    if spoilt:
        faults.print(
            f"{spoilt} episodes ended by a provider error and are left out; the same command plays "
            "them again. What the provider said stands in the record, under error."
        )
    return 3 if spoilt else 0


def _evaluate(arguments: Arguments, given: Sequence[str], console: Console) -> int:
    suite = _suite(arguments)
    model = models.load(
        arguments.model,
        base_url=arguments.base_url,
        sampling=_sampling(arguments, suite),
        concurrency=arguments.concurrency,
    )
    folder = arguments.out or Path("runs") / _folder_name(arguments)
    enter = partial(run_folder.enter, folder, _configuration(suite, model), given)
    episodes = asyncio.run(_play(suite, model, enter, console))
    return _report(suite, episodes, console)


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
    )
    return suites.changed(suite, changes)


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


def _configuration(suite: Suite, model: Model) -> run_folder.Configuration:
    return run_folder.Configuration(
        agentgym=agentgym.__version__,
        prompt_hashes=tuple(prompts.prompt_hash(row.settings.style) for row in suite.rows),
        model=model.name,
        model_settings=model.settings,
        suite=suites.plain(suite),
    )


async def _play(suite: Suite, model: Model, enter: Callable[[], Path], console: Console) -> Path:
    """Play what the record lacks; the path of the record."""
    try:
        path = enter()
        said = f"{model.name} plays {suite.name}; the record is in {path.parent}"
        console.print(said, markup=False, highlight=False, soft_wrap=True)
        with record.Writer(path) as writer:
            done = {each.key: each.success for each in record.playable(record.read(path))}
            all_of_them = suites.assignments(suite)
            missing = [each for each in all_of_them if each.key not in done]
            counts = Counts(total=len(all_of_them), done=len(done), won=sum(done.values()))
            with Display(console, counts, live=model.name != "human") as display:
                await scheduler.play_all(missing, model, keep=writer.append, watch=display.watch())
        return path
    finally:
        await model.close()


def _report(suite: Suite, path: Path, console: Console) -> int:
    """Print the scores; how many episodes a provider error spoilt."""
    order = dict.fromkeys(score.name(each.key) for each in suites.assignments(suite))
    found = score.score(record.read(path), tuple(order))
    report.show(found, console)
    console.print(f"Record: {path}", markup=False, highlight=False, soft_wrap=True)
    return found.overall.provider_errors


if __name__ == "__main__":
    sys.exit(main())
