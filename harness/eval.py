"""`python -m harness.eval`: let a model play a suite, record it, and print its scores."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

import agentgym
from agentgym.errors import AgentGymError
from harness import listing, models, prompts, record, report, run_folder, scheduler, score, suites
from harness.models import PlayerQuit, Sampling
from harness.progress import Counts, Display
from harness.request import Model
from harness.suites import Suite

_ABOUT = """Let a model play text games, record every reply, and print scores with intervals.

The run goes into a folder: run.json says how to repeat it, episodes.jsonl holds every turn. The \
same command again goes on where an earlier one stopped, for whatever reason."""

_EXAMPLES = """
examples:
  python -m harness.eval --model smollm2-135m
      a real small model on the CPU, a few instances of each game, minutes
  python -m harness.eval --model oracle --suite core --env agentgym/Sokoban-v0
      the upper bound on one game of the suite core
  python -m harness.eval --model openai/qwen3-4b --base-url http://127.0.0.1:8000/v1 --suite cast
      any OpenAI-compatible server; the key is read from OPENAI_API_KEY
  python -m harness.eval --model random --env agentgym/2048-v0 --instances 100
      environments of your own choice, without a suite
  python -m harness.eval --list
      suites, environments, levels and models, a line each
"""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The command line."""

    model: str
    """Who plays; see models below."""
    suite: str | None = None
    """What is played; see suites below. quick, if neither this nor --env is given."""
    env: tuple[str, ...] = ()
    """Only these ids of the suite; without --suite, these ids, 20 instances each."""
    instances: int | None = None
    """Instances of each environment, in place of the suite's number."""
    rollouts: int | None = None
    """Episodes of each instance, in place of the suite's number."""
    split: Literal["train", "validation", "test"] | None = None
    """Which instances; a suite's are test."""
    history: Literal["stateless", "full"] | None = None
    """What of the earlier turns the model is sent: nothing, or everything."""
    max_tokens: int | None = None
    """Upper limit of one reply, in tokens."""
    max_turns: int | None = None
    """Turn limit of an episode, in place of the environment's own."""
    out: Path | None = None
    """Folder of the run; runs/MODEL-SUITE if not given."""
    base_url: str | None = None
    """Address of the server, for openai/NAME; else OPENAI_BASE_URL."""
    temperature: float | None = None
    """Of the sampling; the suite's or else the model's own if not given."""
    top_p: float | None = None
    """Of the sampling; the suite's or else the model's own if not given."""
    seed: int = 0
    """Of the sampling. Instances do not depend on it."""
    concurrency: int | None = None
    """Episodes at once; the model's own number if not given."""


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
    arguments = _read(given, console)
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


def _read(given: Sequence[str], console: Console) -> Arguments:
    try:
        return tyro.cli(
            Arguments,
            prog="python -m harness.eval",
            description=_ABOUT,
            args=given,
            config=(tyro.conf.DisallowNone,),
        )
    except SystemExit as end:
        if end.code == 0:  # --help was asked for; tyro has no place of its own for what follows.
            _print_more_help(console)
        raise


def _print_more_help(console: Console) -> None:
    console.print(_EXAMPLES, markup=False, highlight=False, soft_wrap=True)
    played = {suite.name: suite.description for suite in suites.SUITES.values()}
    for title, table in (("models", models.describe()), ("suites", played)):
        console.print(f"{title}:")
        for name, text in table.items():
            shown = Padding(Text(f"{name}: {text}"), (0, 0, 0, 2))
            console.print(shown)
        console.print()


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
        history=arguments.history,
        max_tokens=arguments.max_tokens,
        max_turns=arguments.max_turns,
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
