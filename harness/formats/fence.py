r"""The format `fence`: free reasoning, then one action between lines of three back-ticks (CAST).

Thinking, undressing, labels and "one action" are as in `harness.formats.reading`. The rules of its
own, in order:

Strict
    A. A mark is three or more back-ticks in a row. Two neighbouring marks make a fence; marks are
       paired from the start of the reply.
    B. If their number is odd, one mark is no fence: the first that stands alone amid prose (text
       before and behind it on its line, no other mark on that line), else the last (the reply
       broke off, or the closing mark was forgotten).
    C. The last fence with something in it counts; what follows it does not matter.
    D. The text on the opening mark's own line is a language tag, and dropped, if it is one of
       `TAGS` and something follows in the fence; else it is content. In a fence of one line, one
       of `INLINE_TAGS` before the action goes too (`text up`).
    E. The content holds one action, dressed or not.
    Without an action in a fence the problem is `no_action`, or `empty_fence` if its fences are
    empty.

Lenient, where no fence has anything in it, with every mark as a line break
    F. Lines with a label: if all of them hold the same action, that one. If they differ:
       `ambiguous`.
    G. Else rules 7 and 8 of `harness.formats.reading`.
"""

from __future__ import annotations

from harness.formats.format import Extracted, Format
from harness.formats.reading import (
    MARK,
    actions,
    fences,
    labelled,
    last_resort,
    lines,
    one,
    problem,
    without_tag,
    without_thinking,
)
from harness.request import Reply


def extract(text: str, *, lenient: bool = True) -> Extracted:
    """Find the action in the text of a reply by the rules of this module; never raises.

    Args:
        text: Verbatim.
        lenient: Try the lenient rules where the strict ones find no fence with something in it.
    """
    said = without_thinking(text)
    if said is None:
        return problem("unclosed_think")
    found = [actions(without_tag(fence)) for fence in fences(said)]
    filled = [held for held in found if held]
    if filled:
        return one(filled[-1], strict=True)
    loose = labelled(lines(MARK.sub("\n", said))) or last_resort(said) if lenient else []
    if loose:
        return one(loose, strict=False)
    return problem("empty_fence" if found else "no_action")


def _read(reply: Reply, *, lenient: bool) -> Extracted:
    return extract(reply.text, lenient=lenient)


def _write(action: str) -> Reply:
    return Reply(f"```\n{action}\n```")


FORMAT = Format(
    how="How to reply: first reason briefly in plain words. Then end with exactly one action, "
    "alone between two lines of three back-ticks, like this:\n```\n{example}\n```",
    ask="Reason briefly, then end with your next action between lines of three back-ticks.",
    problems={
        "no_action": "no action was found; end the reply with one action between lines of three "
        "back-ticks.",
        "empty_fence": "there was nothing between the back-ticks; put one action there.",
        "ambiguous": "there was more than one action between the back-ticks; put exactly one "
        "there.",
        "unclosed_think": "the reply ended inside <think>; think for less long, then give one "
        "action between lines of three back-ticks.",
    },
    read=_read,
    write=_write,
    rules=2,
)
