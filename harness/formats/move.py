r"""The format `move`: a line `thought:`, then a line `move:` with the action (ProAct).

Thinking is dropped, undressing and labels are as in `harness.formats.reading`.

Strict, as ProAct's own parser (arXiv 2602.05327, `envs/`) but for the thinking
    A. A move line begins with `move:` or `action:`, in any case, perhaps with `# ` before. What
       follows it, to the next line that begins with `thought:` or to the end, is its content; so
       the action may also stand alone on the next line.
    B. There is one move line: none is `no_action`, more are `ambiguous`.
    C. The content is one line, else `not_last`, and bare (rule 5 of the shared rules).
    The thought is not looked for, as ProAct's parser does not.

Lenient
    Rules 6 to 8 of the shared rules; so `move: [up]`, `**move:** up`, `move: up.` and a move line
    with prose after it are understood, all of which ProAct counts as illegal moves or none. Where
    there is one move line, lines of its content that are one to three words count as well, since
    they may be further actions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.formats.format import Extracted, Format
from harness.formats.reading import (
    bare,
    is_words,
    lines,
    loosely,
    problem,
    undress,
    without_thinking,
)
from harness.request import Reply

_MOVE = re.compile(r"(?:#\s*)?(?:move|action):(.*)", re.IGNORECASE)
_THOUGHT = re.compile(r"(?:#\s*)?thought:", re.IGNORECASE)


def extract(text: str, *, lenient: bool = True) -> Extracted:
    """Find the action in the text of a reply by the rules of this module; never raises.

    Args:
        text: Verbatim.
        lenient: Try the lenient rules where the strict ones find no action.
    """
    said = without_thinking(text)
    if said is None:
        return problem("unclosed_think")
    contents = _contents(lines(said))
    found = _strictly(contents)
    if found.strict or not lenient:
        return found
    rest = contents[0] if len(contents) == 1 else []
    return loosely(said, found, [action for action in map(undress, rest) if is_words(action, 3)])


def _contents(said: Sequence[str]) -> list[list[str]]:
    """Rule A: the lines of each move line's content."""
    found: list[list[str]] = []
    inside = False
    for line in said:
        move = _MOVE.match(line)
        if move:
            found.append(lines(move[1]))
            inside = True
        elif _THOUGHT.match(line):
            inside = False
        elif inside:
            found[-1].append(line)
    return found


def _strictly(contents: Sequence[Sequence[str]]) -> Extracted:
    """Rules B and C."""
    if len(contents) != 1:
        return problem("ambiguous" if contents else "no_action")
    content = contents[0]
    return problem("not_last") if len(content) > 1 else bare("".join(content))


def _read(reply: Reply, *, lenient: bool) -> Extracted:
    return extract(reply.text, lenient=lenient)


def _write(action: str) -> Reply:
    return Reply(f"thought: I play this action.\nmove: {action}")


FORMAT = Format(
    how="How to reply: in two lines. The first begins with `thought:` and says briefly why. The "
    "second begins with `move:` and holds exactly one action, bare. Nothing follows it. Like this:"
    "\nthought: why I choose this action\nmove: {example}",
    ask="Reply with a line that begins with `thought:`, then a line that begins with `move:` and "
    "holds your next action.",
    problems={
        "no_action": "no action was found; end the reply with a line that begins with `move:` and "
        "holds one action.",
        "empty_action": "there was no action behind `move:`; put one action there.",
        "ambiguous": "there was more than one action; give one line that begins with `move:` and "
        "holds exactly one action.",
        "not_last": "there was more text behind the action; end the reply with the line that "
        "begins with `move:`.",
        "not_bare": "the action was not bare; put it behind `move:` without brackets, marks or a "
        "full stop.",
        "unclosed_think": "the reply ended inside <think>; think for less long, then give one "
        "action in a line that begins with `move:`.",
    },
    read=_read,
    write=_write,
    rules=1,
)
