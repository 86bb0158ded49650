"""`python -m harness.compare RUN RUN [...]`: which run is better, where all of them played."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated

import tyro
from rich.console import Console

from agentgym.errors import InvalidOption, UnknownName
from harness import commands, compare_tables, score
from harness.comparison import Found, check_prompts, judge, load

_ABOUT = """Compare runs on the instances that all of them played.

One number per instance, the mean over its rollouts; differences with 95 % intervals and an exact \
paired test; ties called ties; and the instances on which the runs differ most."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The command line."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of runs, two or more."""
    metric: str = "success"
    """What is compared; a row of the table that harness.eval prints."""
    env: tuple[str, ...] = ()
    """Only these environment ids."""
    across_prompts: bool = False
    """Compare runs though their models were prompted differently."""
    instances: int = 10
    """How many of the instances that differ most are shown."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status.

    0: compared. 1: the runs cannot be read or compared. 2: the arguments are wrong. 130: stopped.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    arguments = tyro.cli(
        Arguments, prog="python -m harness.compare", description=_ABOUT, args=given
    )
    return commands.run(partial(_compare, arguments))


def _compare(arguments: Arguments) -> int:
    compare_tables.show(compare(arguments), arguments.instances, Console())
    return 0


def compare(arguments: Arguments) -> Found:
    """Read and compare.

    Raises:
        RecordError: A run cannot be read.
        UnknownName: The metric, or an environment that no run played.
        InvalidOption: Less than two runs, other prompts, or no instance in common.
    """
    if arguments.metric not in score.METRICS:
        raise UnknownName.of("metric", arguments.metric, score.METRICS)
    if not 2 <= len(arguments.runs) <= len(ascii_uppercase):
        raise InvalidOption(
            f"Compare takes 2 to 26 folders of runs, got {len(arguments.runs)}; give another one, "
            "for example: python -m harness.compare runs/oracle-core runs/random-core"
        )
    labelled = zip(ascii_uppercase, arguments.runs, strict=False)
    runs = tuple(load(folder, label, arguments.metric, arguments.env) for label, folder in labelled)
    if not arguments.across_prompts:
        check_prompts(runs)
    return judge(runs, arguments.metric)


if __name__ == "__main__":
    sys.exit(main())
