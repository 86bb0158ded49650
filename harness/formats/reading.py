r"""The rules that all formats share, by which an action is taken out of a text.

"Line" means a line without its surrounding blanks.

Thinking
    1. Text between `<think>` and `</think>` is dropped (also `<thinking>`; upper or lower case). A
       closing tag without an opening one drops all before it: some chat templates write the
       opening tag themselves. An opening tag that is never closed means that the reply broke off
       while thinking: no action, problem `unclosed_think`, whatever else the reply holds.

Undressing
    2. Up to eight times: blanks and a final `.` or `!` go, and one pair around the whole:
       back-ticks, `**`, `__`, `*`, `_`, straight or curly quotes, `[]`, `()`, `{}`, `<>`. It is a
       pair only if the first half closes at the very end, so `search[red]` and `*up* or *down*`
       stay as they are.
    3. A label is `action:` or `move:` at the start of a line, in any case, perhaps in bold or after
       `#`; it goes too. Where nothing follows it on its line, the next line is meant.

One action
    4. If lines of a content carry a label, only those count. `||` separates like a line break.
       Each line is undressed; two lines that then differ in more than case and blanks are more
       than one action: no action, problem `ambiguous`. Nothing is ever chosen among them.

Bare
    5. In the formats `move`, `tags` and `tool` the strict rules want the content bare: one line
       with nothing to undress and no fence. Else the problem is `not_bare`; `empty_action` if
       there is no content.

Lenient, for the formats `move`, `tags` and `tool`, where the strict rules find no action
    6. Whatever looks like an answer counts, wherever it stands: what follows each label (rule 3),
       the lines of each `<action>` element (of one that is never closed, those to the end), and
       each fence whose lines hold one action of one to six words. If all of them hold the same
       action, that one. If they differ: `ambiguous`.
    7. Else the last line, if it is a pair of rule 2 around one to six words. If the line before it
       is one too, and so on, all of them must hold the same action; else `ambiguous`.
    8. Else the only line of the reply, or the only line behind a last fence mark that was never
       closed, if it is one to three words.
    A word is made of letters, digits and `+ - _ '`. So prose is never mined for action words, and
    `thought: ok move: left` on one line is none.

What the action means is the game's business; a wrong one comes back as its `info["error"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile, zip_longest

from harness.formats.format import Extracted

MARK = re.compile(r"`{3,}")
"""Three or more back-ticks in a row."""
TAGS = frozenset(
    {"action", "answer", "bash", "console", "game", "json", "markdown", "md", "move", "output"}
    | {"plain", "plaintext", "py", "python", "sh", "shell", "text", "txt"}
)
"""Language tags that are dropped from a fence of several lines."""
INLINE_TAGS = frozenset({"action", "bash", "python", "text"})
"""Language tags that are dropped from a fence of one line; CAST's four."""

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_ELEMENT = re.compile(r"<action>(.*?)(?=<action>|</action>|\Z)", re.IGNORECASE | re.DOTALL)
_BREAK = re.compile(rf"{MARK.pattern}|</?action>", re.IGNORECASE)
_LABEL = re.compile(r"[#\s*_]*(?:action|move)[\s*_]*:[\s*_]*", re.IGNORECASE)
_WORDS = re.compile(r"[\w+'-]+(?:\s+[\w+'-]+)*")
_PAIRS = (
    *((mark, mark) for mark in ("**", "__", "*", "_", "`", '"', "'")),
    *(("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb")),
    *(("[", "]"), ("(", ")"), ("{", "}"), ("<", ">")),
)


def problem(name: str) -> Extracted:
    """No action, and why."""
    return Extracted(None, name, strict=False)


def one(found: Sequence[str], *, strict: bool) -> Extracted:
    """The one action that all of these are, or `ambiguous`.

    Args:
        found: At least one.
        strict: By the strict rules.
    """
    different = {" ".join(action.lower().split()) for action in found}
    return problem("ambiguous") if len(different) > 1 else Extracted(found[0], "", strict)


def without_thinking(text: str) -> str | None:
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


def bare(content: str) -> Extracted:
    """Rule 5."""
    found = actions(content)
    if not found:
        return problem("empty_action")
    only = one(found, strict=True)
    if only.action_text is not None and (only.action_text != content.strip() or "```" in content):
        return problem("not_bare")
    return only


def loosely(said: str, otherwise: Extracted, also: Sequence[str] = ()) -> Extracted:
    """Rules 6 to 8.

    Args:
        said: The reply without its thinking.
        otherwise: What the strict rules found; holds where these find nothing.
        also: What else counts in rule 6, by the format's own rules.
    """
    found = [*_answers(said), *also] or last_resort(said)
    return one(found, strict=False) if found else otherwise


def _answers(said: str) -> list[str]:
    """Rule 6."""
    labels = labelled(_BREAK.sub("\n", said).splitlines())
    follow = [action for label in labels for action in _each(label)]
    inside = [action for element in elements(said) for action in _each(element)]
    held = [_each(without_tag(fence)) for fence in fences(said)]
    alone = [fence[0] for fence in held if fence and one(fence, strict=False).action_text]
    return [*follow, *inside, *(action for action in alone if is_words(action, most=6))]


def _each(content: str) -> list[str]:
    """Every line, undressed and without its label."""
    parts = map(undress, content.replace("||", "\n").splitlines())
    return [line for line in map(_behind_label, parts) if line]


def _behind_label(line: str) -> str:
    label = _LABEL.match(line)
    return undress(line[label.end() :].strip(" *")) if label else line


def elements(text: str) -> list[str]:
    """The content of each `<action>` element; of one that is never closed, the text to the end."""
    return [found[1] for found in _ELEMENT.finditer(text)]


def fences(text: str) -> list[str]:
    """What is inside each fence: the text between neighbouring marks, paired from the start.

    If the number of marks is odd, one is no fence: the first that stands alone amid prose (text
    before and behind it on its line, no other mark on that line), else the last (the reply broke
    off, or the closing mark was forgotten).
    """
    marks = list(MARK.finditer(text))
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


def without_tag(fence: str) -> str:
    """A fence without its language tag.

    The text on the opening mark's own line is one, if it is of `TAGS` and something follows in the
    fence; in a fence of one line, one of `INLINE_TAGS` before the action is (`text up`).
    """
    line, _, rest = fence.partition("\n")
    if rest.strip():
        return rest if line.strip(" :*\t\r").lower() in TAGS else fence
    tag, _, action = line.strip().partition(" ")
    return action if tag.lower() in INLINE_TAGS and action.strip() else fence


def actions(content: str) -> list[str]:
    """Rule 4: every line that counts, undressed."""
    parts = content.replace("||", "\n").splitlines()
    return labelled(parts) or [line for line in map(undress, parts) if line]


def labelled(parts: Iterable[str]) -> list[str]:
    """Rule 3: what each label is followed by."""
    plain = [line for line in map(undress, parts) if line]
    found: list[str] = []
    for line, following in zip_longest(plain, plain[1:], fillvalue=""):
        if _LABEL.match(line):
            found.append(_behind_label(line) or following)
    return [action for action in found if action]


def undress(line: str) -> str:
    """Rule 2."""
    for _ in range(8):
        plain = line.strip()
        plain = plain[:-1] if plain.endswith((".", "!")) else plain
        plain = _inside_pair(plain)
        if plain == line:
            break
        line = plain
    return line


def _inside_pair(text: str) -> str:
    """The text inside the pair around the whole, or the text itself if there is none."""
    for opening, closing in _PAIRS:
        if text.startswith(opening) and text.endswith(closing):
            inside = text[len(opening) : len(text) - len(closing)]
            whole = len(text) >= len(opening) + len(closing)
            if whole and _closes_last(inside, opening, closing):
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


def last_resort(text: str) -> list[str]:
    """Rules 7 and 8; empty where there is no action."""
    plain = lines(MARK.sub("\n", text))
    dressed = [undress(line) for line in takewhile(_is_dressed, reversed(plain))]
    if dressed:
        return dressed
    marks = list(MARK.finditer(text))
    lone = lines(text[marks[-1].end() :]) if len(marks) % 2 else plain
    last = undress(lone[0]) if len(lone) == 1 else ""
    return [last] if is_words(last, most=3) else []


def _is_dressed(line: str) -> bool:
    inside = undress(line)
    return inside != line.rstrip(".! ") and is_words(inside, most=6)


def lines(text: str) -> list[str]:
    """The lines that are not blank."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def is_words(text: str, most: int) -> bool:
    """Whether a text is nothing but words, and how many at most."""
    return bool(_WORDS.fullmatch(text)) and len(text.split()) <= most
