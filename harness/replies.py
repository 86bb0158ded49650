r"""Takes the one action out of a reply.

The rules, in order. "Line" means a line without its surrounding blanks.

Thinking
    1. Text between `<think>` and `</think>` is dropped (also `<thinking>`; upper or lower case). A
       closing tag without an opening one drops all before it: some chat templates write the
       opening tag themselves. An opening tag that is never closed means that the reply broke off
       while thinking: no action, problem `unclosed_think`, whatever else the reply holds.

Fences
    2. A mark is three or more back-ticks in a row. Two neighbouring marks make a fence; marks are
       paired from the start of the reply.
    3. If their number is odd, one mark is no fence: the first that stands alone amid prose (text
       before and behind it on its line, no other mark on that line), else the last (the reply
       broke off, or the closing mark was forgotten).
    4. The last fence with something in it counts; what follows it does not matter.
    5. The text on the opening mark's own line is a language tag, and dropped, if it is one of
       `TAGS` and something follows in the fence; else it is content. In a fence of one line, one
       of `INLINE_TAGS` before the action goes too (`text up`).
    6. If lines inside carry a label (rule 8), only those count. `||` separates like a line break.
       Each line is undressed (rule 7); two lines that then differ in more than case and blanks are
       more than one action: no action, problem `ambiguous`. Nothing is ever chosen among them.

Undressing
    7. Up to eight times: blanks and a final `.` or `!` go, and one pair around the whole:
       back-ticks, `**`, `__`, `*`, `_`, straight or curly quotes, `[]`, `()`, `{}`, `<>`. It is a
       pair only if the first half closes at the very end, so `search[red]` and `*up* or *down*`
       stay as they are.
    8. A label is `action:` or `move:` at the start of a line, in any case, perhaps in bold or after
       `#`; it goes too. Where nothing follows it on its line, the next line is meant.

These rules are strict: an action found by them alone has `strict=True`. A reply without an action
in a fence has the problem `no_action`, or `empty_fence` if its fences are empty.

Lenient
    Where no fence has anything in it, three more are tried, with every mark as a line break.
    9. Lines with a label: if all of them hold the same action, that one. If they differ:
       `ambiguous`.
    10. Else the last line, if it is a pair of rule 7 around one to six words.
    11. Else the only line of the reply, or the only line behind a last mark that was never closed,
        if it is one to three words.
    A word is made of letters, digits and `+ - _ '`. So prose is never mined for action words, and
    `thought: ok move: left` on one line is none.

What the action means is the game's business; a wrong one comes back as its `info["error"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

RULES = 1
"""Raised by one with every change to what is taken out of some reply."""
INLINE_TAGS = frozenset({"action", "bash", "python", "text"})
"""Language tags that are dropped from a fence of one line; CAST's four."""
TAGS = INLINE_TAGS | frozenset(
    {"answer", "console", "game", "json", "markdown", "md", "move", "output", "plain"}
    | {"plaintext", "py", "sh", "shell", "txt"}
)
"""Language tags that are dropped from a fence of several lines."""

_MARK = re.compile(r"`{3,}")
_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_LABEL = re.compile(r"[#\s*_]*(?:action|move)[\s*_]*:[\s*_]*", re.IGNORECASE)
_WORDS = re.compile(r"[\w+'-]+(?:\s+[\w+'-]+)*")
_PAIRS = (
    *((mark, mark) for mark in ("**", "__", "*", "_", "`", '"', "'")),
    *(("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb")),
    *(("[", "]"), ("(", ")"), ("{", "}"), ("<", ">")),
)


class Extracted(NamedTuple):
    """What was found in a reply.

    Attributes:
        action_text: The action as the model spelt it; None if there is none.
        problem: "" if there is one, else `no_action`, `empty_fence`, `ambiguous` or
            `unclosed_think`.
        strict: The strict rules sufficed.
    """

    action_text: str | None
    problem: str
    strict: bool


def extract(reply_text: str, *, lenient: bool = True) -> Extracted:
    """Find the action in a reply by the rules of this module; never raises.

    Args:
        reply_text: The reply, verbatim.
        lenient: Try the lenient rules where the strict ones find no fence with something in it.
    """
    said = _without_thinking(reply_text)
    if said is None:
        return _problem("unclosed_think")
    fences = _fences(said)
    filled = [fence for fence in fences if _actions(_content(fence))]
    if filled:
        return _one(_actions(_content(filled[-1])), strict=True)
    found = _unfenced(said) if lenient else []
    return (
        _one(found, strict=False) if found else _problem("empty_fence" if fences else "no_action")
    )


def _problem(name: str) -> Extracted:
    return Extracted(None, name, strict=False)


def _one(actions: Sequence[str], *, strict: bool) -> Extracted:
    different = {" ".join(action.lower().split()) for action in actions}
    if len(different) > 1:
        return _problem("ambiguous")
    return Extracted(actions[0], "", strict)


def _without_thinking(text: str) -> str | None:
    """Rule 1; None where thinking was left open."""
    kept: list[str] = []
    end, thinking = 0, False
    for tag in _THINK.finditer(text):
        closing = bool(tag[1])
        if closing and not thinking:
            kept.clear()
        elif not closing and not thinking:
            kept.append(text[end : tag.start()])
        thinking = not closing
        end = tag.end()
    return None if thinking else "".join([*kept, text[end:]])


def _fences(text: str) -> list[str]:
    """Rules 2 and 3: what is inside each fence."""
    marks = list(_MARK.finditer(text))
    if len(marks) % 2:
        lone = next((mark for mark in marks if _amid_prose(text, mark)), marks[-1])
        marks.remove(lone)
    return [
        text[opening.end() : closing.start()]
        for opening, closing in zip(marks[::2], marks[1::2], strict=True)
    ]


def _amid_prose(text: str, mark: re.Match[str]) -> bool:
    start = text.rfind("\n", 0, mark.start()) + 1
    before = text[start : mark.start()]
    behind = text[mark.end() :].partition("\n")[0]
    return all(part.strip() and "```" not in part for part in (before, behind))


def _content(fence: str) -> str:
    """Rule 5: a fence without its language tag."""
    line, _, rest = fence.partition("\n")
    if rest.strip():
        return rest if line.strip(" :*\t\r").lower() in TAGS else fence
    tag, _, action = line.strip().partition(" ")
    return action if tag.lower() in INLINE_TAGS and action.strip() else fence


def _actions(content: str) -> list[str]:
    """Rule 6: every line that is left, undressed."""
    lines = content.replace("||", "\n").splitlines()
    return _labelled(lines) or [line for line in map(_undress, lines) if line]


def _labelled(lines: Iterable[str]) -> list[str]:
    """Rule 8: what each label is followed by."""
    bare = [line for line in map(_undress, lines) if line]
    found: list[str] = []
    for line, following in zip_longest(bare, bare[1:], fillvalue=""):
        label = _LABEL.match(line)
        if label:
            found.append(_undress(line[label.end() :].strip(" *")) or following)
    return [action for action in found if action]


def _undress(line: str) -> str:
    """Rule 7."""
    for _ in range(8):
        bare = line.strip()
        bare = bare[:-1] if bare.endswith((".", "!")) else bare
        bare = _inside_pair(bare)
        if bare == line:
            break
        line = bare
    return line


def _inside_pair(text: str) -> str:
    """The text inside the pair around the whole, or the text itself if there is none."""
    for opening, closing in _PAIRS:
        inside = text[len(opening) : len(text) - len(closing)]
        if (
            len(text) >= len(opening) + len(closing)
            and text.startswith(opening)
            and text.endswith(closing)
            and _closes_last(inside, opening, closing)
        ):
            return inside
    return text


def _closes_last(inside: str, opening: str, closing: str) -> bool:
    """Nothing inside closes the first half of the pair before the end."""
    if opening == closing:
        return opening not in inside
    depth = 0
    for char in inside:
        depth += (char == opening) - (char == closing)
        if depth < 0:
            return False
    return depth == 0


def _unfenced(text: str) -> list[str]:
    """Rules 9 to 11."""
    lines = _lines(_MARK.sub("\n", text))
    labelled = _labelled(lines)
    if labelled or not lines:
        return labelled
    last = _undress(lines[-1])
    if last != lines[-1].rstrip(".! ") and _is_words(last, most=6):
        return [last]
    marks = list(_MARK.finditer(text))
    lone = _lines(text[marks[-1].end() :]) if len(marks) % 2 else lines
    return [last] if len(lone) == 1 and _is_words(last, most=3) else []


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _is_words(text: str, most: int) -> bool:
    return bool(_WORDS.fullmatch(text)) and len(text.split()) <= most
