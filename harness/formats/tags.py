r"""The format `tags`: `<think>` why `</think>`, `<action>` action `</action>` (GiGPO, BEACON).

Thinking is dropped and undressing is as in `harness.formats.reading`.

Strict
    A. There is a closed think block: in the text, also one whose opening tag the chat template
       wrote, or apart in the server's reasoning field. Else `no_think`. BEACON (and GiGPO, whose
       prompts it takes over) calls a reply without one malformed.
    B. Outside of it there is one `<action>` and one `</action>` after it, in any case: none is
       `no_action`, more are `ambiguous`. What stands around them does not matter.
    C. The content is bare (rule 5 of the shared rules); blanks and line breaks around it do not
       matter.

Lenient
    Rules 6 to 8 of the shared rules; so a reply without a think block, with a closing tag that is
    missing, or with `<action>[up]</action>` is understood.
"""

from __future__ import annotations

import re

from harness.formats.format import Extracted, Format
from harness.formats.reading import bare, loosely, problem, without_thinking
from harness.request import Reply

_CLOSED = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)action>", re.IGNORECASE)


def extract(text: str, *, reasoning: str = "", lenient: bool = True) -> Extracted:
    """Find the action in the text of a reply by the rules of this module; never raises.

    Args:
        text: Verbatim.
        reasoning: The server's separate reasoning field.
        lenient: Try the lenient rules where the strict ones find no action.
    """
    said = without_thinking(text)
    if said is None:
        return problem("unclosed_think")
    found = _strictly(said)
    if found.strict and not (reasoning.strip() or _CLOSED.search(text)):
        found = problem("no_think")
    return found if found.strict or not lenient else loosely(said, found)


def _strictly(said: str) -> Extracted:
    """Rules B and C."""
    tags = list(_TAG.finditer(said))
    if [bool(tag[1]) for tag in tags] != [False, True]:
        several = sum(not tag[1] for tag in tags) > 1
        return problem("ambiguous" if several else "no_action")
    return bare(said[tags[0].end() : tags[1].start()])


def _read(reply: Reply, *, lenient: bool) -> Extracted:
    return extract(reply.text, reasoning=reply.reasoning, lenient=lenient)


def _write(action: str) -> Reply:
    return Reply(f"<think>I play this action.</think>\n<action>{action}</action>")


FORMAT = Format(
    # No tag stands before a word that is no action: a model that repeats this gives none.
    how="How to reply: first reason briefly in <think></think>. Then give exactly one action, "
    "bare, in <action></action>. Like this:\n"
    "<think>why I choose this action</think>\n<action>{example}</action>",
    ask="Reason briefly in <think></think>, then give your next action in <action></action>.",
    problems={
        "no_action": "no action was found; end the reply with one action in <action></action>.",
        "no_think": "there was no reasoning in <think></think>; begin the reply with it.",
        "empty_action": "there was nothing in <action></action>; put one action there.",
        "ambiguous": "there was more than one action; give exactly one in <action></action>.",
        "not_bare": "the action was not bare; put it in <action></action> without brackets, marks "
        "or a full stop.",
        "unclosed_think": "the reply ended inside <think>; think for less long, then give one "
        "action in <action></action>.",
    },
    read=_read,
    write=_write,
    rules=1,
)
