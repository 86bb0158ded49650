"""The rules of the format `fence`, and each quirk of CAST's and ProAct's parsers, by literal."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.formats.fence import extract
from harness.formats.format import Extracted
from harness.formats.reading import INLINE_TAGS, TAGS

STRICT = {
    "the format": ("I go up.\n```\nup\n```", "up"),
    "upper case is kept": ("```\nUp\n```", "Up"),
    "on the fence's own line": ("So: ```up```", "up"),
    "on the opening line only": ("```up\n```", "up"),
    "on the closing line only": ("```\nup```", "up"),
    "opened at the end of a line": ("Action: ```\nup\n```", "up"),
    "opened amid a line, alone": ("Action: ```up\n```", "up"),
    "reasoning after the fence": ("```\nup\n```\nThis frees the box, so I like it.", "up"),
    "four back-ticks": ("````\nup\n````", "up"),
    "windows line breaks": ("Hm.\r\n```\r\nup\r\n```\r\n", "up"),
    "blank lines inside": ("```\n\n  up  \n\n```", "up"),
    "two fences": ("```\nup\n```\nNo, wait.\n```\ndown\n```", "down"),
    "an empty fence after it": ("```\nup\n```\n```\n```", "up"),
    "a quoted board before it": ("It is ```\n###\n#P#\n```\nso\n```\nup\n```", "up"),
    "prose that mentions a fence (C14)": ("I answer in ``` fences.\n```\nup\n```", "up"),
    "a mention after the action": ("```\nup\n```\nI closed the ``` as asked.", "up"),
    "cut off in a second fence": ("```\nup\n```\nHmm, then\n```\ndow", "up"),
    "an inline fence before it": ("The ```X``` is a box.\n```\nup\n```", "up"),
    "language tag": ("```python\nup\n```", "up"),
    "language tag, upper case": ("```Action\nup\n```", "up"),
    "tag with a colon": ("```Action:\nup\n```", "up"),
    "tag in one line": ("```text up```", "up"),
    "tag on the opening line, with the action": ("```bash up\n```", "up"),
    "a tag word alone is the action": ("```text\n```", "text"),
    "a tag word inside is the action": ("```\nmove\n```", "move"),
    "label inside": ("```\nmove: up\n```", "up"),
    "label on the fence's line": ("```action: up```", "up"),
    "label on its own line inside": ("```\n**Action:**\n[up]\n```", "up"),
    "thought and move inside": ("```\nthought: it is free\nmove: up\n```", "up"),
    "brackets (P12)": ("```\n[up]\n```", "up"),
    "bold (P12)": ("```\n**Up**\n```", "Up"),
    "bold label (P12)": ("```\n**move:** left\n```", "left"),
    "bold label and action": ("```\n**Action:** **left**\n```", "left"),
    "all bold": ("```\n**Action: left**\n```", "left"),
    "full stop (P12)": ("```\nright.\n```", "right"),
    "quotes": ('```\n"up"\n```', "up"),
    "single quotes": ("```\n'up'\n```", "up"),
    "curly quotes": ("```\n\u201cup\u201d\n```", "up"),
    "back-ticks": ("```\n`up`\n```", "up"),
    "all at once": ("```\n**[`Up`]**.\n```", "Up"),
    "parentheses": ("```\n(up)\n```", "up"),
    "inner brackets stay": ("```\nsearch[red shirt]\n```", "search[red shirt]"),
    "two brackets are no pair": ("```\n[a] or [b]\n```", "[a] or [b]"),
    "an unclosed bracket is no pair": ("```\n[[up]\n```", "[[up]"),
    "two stars are no pair": ("```\n*up* or *down*\n```", "*up* or *down*"),
    "numbers": ("```\nreveal 3 4\n```", "reveal 3 4"),
    "a digit and a full stop": ("```\n1.\n```", "1"),
    "plus and minus": ("```\n[A+2]\n```", "A+2"),
    "the same action twice": ("```\nUp\nup\n```", "Up"),
    "the same action twice, joined": ("```\nup || UP\n```", "up"),
    "thinking before it": ("<think>```\ndown\n```</think>\n```\nup\n```", "up"),
    "thinking, no line break after it (P12)": ("<think>hm</think>```up```", "up"),
    "thinking in upper case": ("<THINK>\ndown\n</THINK>\n```\nup\n```", "up"),
    "thinking, other tag": ("<thinking>no</thinking>```up```", "up"),
    "thinking opened by the template": ("Well, ```down```?\n</think>\n```\nup\n```", "up"),
    "thinking twice": ("<think>a</think>b<think>c</think>```up```", "up"),
    "thinking within thinking": ("<think>a<think>b</think>```left```</think>```up```", "up"),
}

LENIENT = {
    "a bare action": ("up", "up"),
    "a bare action, full stop": ("Up.", "Up"),
    "bold": ("I should go up.\n**Up**", "Up"),
    "brackets": ("So:\n[push up]", "push up"),
    "back-ticks, full stop": ("So:\n`reveal 1 2`.", "reveal 1 2"),
    "three bare words": ("\n\nreveal 1 2\n\n", "reveal 1 2"),
    "move line (ProAct)": ("thought: free\nmove: left", "left"),
    "bold move line (P12)": ("thought: free\n**move:** left", "left"),
    "bracketed move line (P12)": ("move: [up]", "up"),
    "move line with bold (P12)": ("move: **Up**", "Up"),
    "move line with full stop (P12)": ("move: right.", "right"),
    "move line with hash": ("# Move: right", "right"),
    "action line, prose after it": ("Action: right\nThat frees the box for me to push.", "right"),
    "two equal move lines": ("move: up\nmove: Up", "up"),
    "label and action on two lines": ("Action:\nup", "up"),
    "a label, a blank line and the action": ("So:\n**Action:**\n\nup\nI hope so.", "up"),
    "the fence was never closed": ("I go up.\n```\nup", "up"),
    "the fence was never closed, one line": ("I go up. ```up", "up"),
    "an empty fence, then the action": ("```\n```\nup", "up"),
    "after thinking (P12)": ("<think>x</think>move: up", "up"),
}

PROBLEMS = {
    "nothing": ("", "no_action"),
    "blanks": (" \n\t\n", "no_action"),
    "prose": ("I would like to go up because the box is there.", "no_action"),
    "prose about actions": ("You can go up, down, left or right.", "no_action"),
    "label amid a line (P12)": ("thought: ok move: left", "no_action"),
    "two words of action in bold prose": ("I go **up** or **down** now", "no_action"),
    "a list": ("Options:\n- up\n- down or left", "no_action"),
    "bare words after prose": ("You can't go there.\n\nYou can", "no_action"),
    "four bare words": ("I would go up", "no_action"),
    "seven words in bold": ("**I think I would like to go**", "no_action"),
    "a sentence in bold": ("**Up, I think**", "no_action"),
    "a fence cut off in prose": ("So:\n```\nI think that we", "no_action"),
    "a fence cut off behind two lines": ("```\nup\nor", "no_action"),
    "an empty fence": ("```\n```", "empty_fence"),
    "an empty fence in one line": ("``` ```", "empty_fence"),
    "two actions": ("```\nup\ndown\n```", "ambiguous"),
    "two actions, joined (C3)": ("```\nUp || Down\n```", "ambiguous"),
    "a label alone": ("Action:", "no_action"),
    "two labels": ("```\nmove: up\nmove: down\n```", "ambiguous"),
    "two move lines (P12)": ("move: up\nmove: down", "ambiguous"),
    "prose and action inside": ("```\nI go there\nup\n```", "ambiguous"),
    "a board in the last fence": ("```\nup\n```\n```\n###\n#P#\n```", "ambiguous"),
    "all before a closing tag is thinking": (
        "Say ```up```.</think>I stop here and now.",
        "no_action",
    ),
    "all before a stray closing tag": (
        "```up```<think>a</think>b</think>I stop here and now.",
        "no_action",
    ),
    "thinking, other tag, left open": ("```up```<THINKING>hm", "unclosed_think"),
    "a fence in thinking, other tag": ("<thinking>```up```</thinking>", "no_action"),
    "thinking left open": ("<think>I go up", "unclosed_think"),
    "thinking left open, fence inside": ("<think>\n```\nup\n```", "unclosed_think"),
    "thinking left open after the action": ("```\nup\n```\n<think>or", "unclosed_think"),
    "thinking opened twice": ("<think>a</think>```up```<think>b", "unclosed_think"),
}


@pytest.mark.parametrize(("reply", "action"), STRICT.values(), ids=STRICT)
@pytest.mark.parametrize("lenient", [True, False])
def test_strict_rules(reply: str, action: str, lenient: bool) -> None:
    assert extract(reply, lenient=lenient) == Extracted(action, "", strict=True)


@pytest.mark.parametrize(("reply", "action"), LENIENT.values(), ids=LENIENT)
def test_lenient_rules(reply: str, action: str) -> None:
    assert extract(reply) == Extracted(action, "", strict=False)
    assert extract(reply, lenient=False).action_text is None


@pytest.mark.parametrize(("reply", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_no_action(reply: str, problem: str) -> None:
    assert extract(reply) == Extracted(None, problem, strict=False)


@pytest.mark.parametrize("tag", sorted(TAGS))
def test_every_tag_goes(tag: str) -> None:
    assert extract(f"```{tag}\nup\n```").action_text == "up"
    inline = extract(f"```{tag} up```").action_text
    assert inline == ("up" if tag in INLINE_TAGS else f"{tag} up")


_ACTIONS = st.from_regex(r"[A-Za-z0-9]+( [A-Za-z0-9+-]+){0,3}", fullmatch=True)
_PROSE = st.text(alphabet=st.characters(exclude_characters="`<>", categories=["L", "P", "Zs", "N"]))


@settings(max_examples=200)
@given(_PROSE, _ACTIONS, _PROSE)
@example("", "action up", "")
def test_what_the_prompt_asks_for_is_always_understood(
    before: str, action: str, after: str
) -> None:
    reply = f"{before}\n```\n{action}\n```\n{after}"
    assert extract(reply) == Extracted(action, "", strict=True)


_DRESS = {"**": "**", "`": "`", '"': '"', "[": "]", "(": ")", "": "."}


@settings(max_examples=100)
@given(_ACTIONS, st.lists(st.sampled_from(sorted(_DRESS)), max_size=4, unique=True))
def test_dress_never_changes_the_action(action: str, dress: list[str]) -> None:
    dressed = action
    for opening in dress:
        dressed = opening + dressed + _DRESS[opening]
    assert extract(f"```\n{dressed}\n```").action_text == action


_LONG = {
    "<think>": "unclosed_think",
    "``` a ": "",
    "[": "no_action",
    "*": "no_action",
    "move: up or down\n": "",
    "a ": "no_action",
    "`": "no_action",
    "```\n": "empty_fence",
}


@pytest.mark.parametrize(("piece", "problem"), _LONG.items())
def test_a_very_long_reply_is_read(piece: str, problem: str) -> None:
    assert extract(piece * (100_000 // len(piece))).problem == problem
