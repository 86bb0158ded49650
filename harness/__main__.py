"""`python -m harness` and the console script `agentgym`: one name for the suite's commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agentgym.errors import UnknownName
from harness import compare, play, report_html
from harness import eval as evaluation

COMMANDS = {
    "eval": evaluation.main,
    "compare": compare.main,
    "report": report_html.main,
    "play": play.main,
}
"""What each command calls with the arguments after its name."""
_HELP = """usage: agentgym COMMAND ...

commands:
  eval     let a model play a suite, record it, and print its scores (python -m harness.eval)
  compare  say which of several runs is better (python -m harness.compare)
  report   write a run as one HTML file with a replay viewer (python -m harness.report)
  play     play a game yourself, with hints from the oracle (python -m harness.play)

agentgym COMMAND --help says more.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names; the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or given[0] in ("-h", "--help"):
        sys.stdout.write(_HELP)
        return 0 if given else 2
    if given[0] not in COMMANDS:
        sys.stderr.write(f"{UnknownName.of('command', given[0], COMMANDS)}\n")
        return 2
    return COMMANDS[given[0]](given[1:])


if __name__ == "__main__":
    sys.exit(main())
