"""The human player, with a stream in place of the keyboard and in a real pseudo-terminal."""

import asyncio
import io
import os
import select
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from harness import formats, models
from harness.models import PlayerQuit
from harness.models.human import Human
from harness.record import Result
from harness.request import Peek, Request
from tests.harness.processes import take_terminal


def _human(typed: str) -> tuple[Human, io.StringIO]:
    screen = io.StringIO()
    return Human(console=Console(file=screen, width=100), lines=io.StringIO(typed)), screen


def _request(
    turn: int = 0, instance: str = "i", legal: tuple[str, ...] = ("Left", "Right")
) -> Request:
    messages = (
        {"role": "system", "content": "The rules [bold]."},
        {"role": "user", "content": f"Turn {turn}\nP___\n[   2 .]"},
    )
    info = {"legal_actions": legal, "oracle": {"best_actions": ("SECRET",)}, "milestones": "SECRET"}
    return Request(messages, 8, (instance, 0, turn), Peek(None, info))


@pytest.mark.parametrize("name", formats.FORMATS)
def test_what_is_typed_becomes_a_reply_in_the_asked_format(name: str) -> None:
    human, _ = _human("Right\n")
    request = replace(_request(), format=name)
    assert asyncio.run(human.reply(request)) == formats.write(name, "Right")


def test_what_is_typed_becomes_a_reply_in_a_fence_if_nothing_else_is_asked() -> None:
    human, _ = _human("  Right \n")
    assert asyncio.run(human.reply(_request())).text == "```\nRight\n```"


def test_the_screen_shows_rules_observation_and_actions_and_no_secret() -> None:
    human, screen = _human("Right\n")
    asyncio.run(human.reply(_request()))
    shown = screen.getvalue()
    for part in ("The rules [bold].", "Turn 0", "P___", "[   2 .]", "Legal actions: Left, Right"):
        assert part in shown
    assert "SECRET" not in shown


def test_the_rules_are_shown_once_per_episode() -> None:
    human, screen = _human("a\nb\nc\n")
    for request in (_request(0), _request(1), _request(0, instance="another")):
        asyncio.run(human.reply(request))
    assert screen.getvalue().count("The rules [bold].") == 2


def test_long_lists_of_actions_are_cut_and_unknown_ones_said() -> None:
    human, screen = _human("a\nb\n")
    asyncio.run(human.reply(_request(legal=tuple(f"[b]{n}" for n in range(50)))))
    assert "[b]39, ..." in screen.getvalue()
    assert "[b]40" not in screen.getvalue()
    asyncio.run(human.reply(_request(legal=())))
    assert "Any action." in screen.getvalue()


def test_blank_lines_cost_nothing() -> None:
    human, _ = _human("\n   \nRight\n")
    assert asyncio.run(human.reply(_request())).text == "```\nRight\n```"


_NOTE = {
    "best_actions": ("Up", "[b]Left"),
    "cost_to_go": 7.0,
    "value": -7.0,
    "dead_end": False,
    "exact": True,
}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Hint: best Up, [b]Left; 7 turns to a win."),
        ({"cost_to_go": 1.0, "exact": False}, "Hint: best Up, [b]Left; about 1 turn to a win."),
        (
            {"cost_to_go": float("nan"), "value": 1234.56, "exact": False},
            "Hint: best Up, [b]Left; value about 1235.",
        ),
        (
            {"cost_to_go": float("nan"), "value": float("nan"), "best_actions": ()},
            "Hint: best not known.",
        ),
        (
            {"dead_end": True, "cost_to_go": float("inf")},
            "Hint: dead end, no win is possible any more.",
        ),
    ],
)
def test_a_hint_is_shown_where_allowed_and_stands_in_the_record(
    changes: dict[str, object], sentence: str
) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=100)
    human = Human(console=console, lines=io.StringIO("?\n?\nUp\n"), hints=True)
    request = _request()
    request.peek.info["oracle"] = _NOTE | changes

    reply = asyncio.run(human.reply(request))

    assert reply.text == "```\nUp\n```"
    assert reply.reasoning == sentence
    assert screen.getvalue().count(sentence) == 2
    assert human.settings == {"hints": True}


def test_without_a_question_there_is_no_hint_and_without_an_oracle_none_to_give() -> None:
    screen = io.StringIO()
    human = Human(
        console=Console(file=screen, width=100), lines=io.StringIO("Up\n?\nUp\n"), hints=True
    )
    assert asyncio.run(human.reply(_request())).reasoning == ""
    assert "SECRET" not in screen.getvalue()
    request = _request()
    del request.peek.info["oracle"]
    assert "oracle=False" in asyncio.run(human.reply(request)).reasoning


def test_where_hints_are_not_allowed_a_question_mark_is_an_action() -> None:
    human, screen = _human("?\n")
    assert asyncio.run(human.reply(_request())).text == "```\n?\n```"
    assert "for a hint" not in screen.getvalue()


@pytest.mark.parametrize("typed", ["quit\n", " QUIT \n", "exit\n", "", "\n"])
def test_quit_and_the_end_of_input_stop(typed: str) -> None:
    human, _ = _human(typed)
    with pytest.raises(PlayerQuit):
        asyncio.run(human.reply(_request()))


def test_a_whole_episode(assignment, finish) -> None:
    human, _ = _human("Right\nsideways\nRight\nRight\nRight\n")
    episode, _ = finish(assignment(), lambda request: asyncio.run(human.reply(request)))
    assert episode.result is Result.WON
    assert [turn.valid for turn in episode.turns] == [True, False, True, True, True]


def test_the_table_gives_a_human_at_standard_input() -> None:
    human = models.load("human")
    assert (human.name, human.concurrency) == ("human", 1)
    asyncio.run(human.close())


_PLAY = """
import asyncio
from harness import formats, models
from harness.request import Peek, Request

async def main():
    human = models.load("human")
    messages = ({"role": "system", "content": "Rules"}, {"role": "user", "content": "P__"})
    for turn in range(9):
        request = Request(messages, 8, ("i", 0, turn), Peek(None, {"legal_actions": ("Right",)}))
        print("GOT", repr((await human.reply(request)).text))

try:
    asyncio.run(main())
except models.PlayerQuit:
    print("STOPPED")
"""


def _in_terminal(keys: list[bytes]) -> str:
    """Run the player in a pseudo-terminal; press each key sequence at a prompt."""
    pty = pytest.importorskip("pty", reason="Pseudo-terminals exist on POSIX systems only.")
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _PLAY],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env={**os.environ, "TERM": "dumb"},
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(inner)
    try:
        shown = _press(outer, keys)
        assert process.wait(timeout=60) == 0, shown
    finally:
        process.kill()
        process.wait()
        os.close(outer)
    return shown


def _press(terminal: int, keys: list[bytes]) -> str:
    shown = b""
    for prompts, key in enumerate(keys, 1):
        while shown.count(b"(quit to stop): ") < prompts:
            shown += _more(terminal)
        os.write(terminal, key)
    return (shown + _until_end(terminal, keys[-1])).decode()


def _until_end(terminal: int, key: bytes) -> bytes:
    """What is shown until the player ends; the key is pressed again each second."""
    shown = b""
    for _ in range(60):
        while select.select([terminal], [], [], 1)[0]:
            chunk = _more(terminal)
            if not chunk:
                return shown
            shown += chunk
        os.write(terminal, key)
    raise AssertionError("the player does not end")


def _more(terminal: int) -> bytes:
    assert select.select([terminal], [], [], 30)[0], "the player neither asked nor ended"
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so when the other end has closed.
        return b""


def test_in_a_terminal_quit_stops() -> None:
    shown = _in_terminal([b"Right\n", b"quit\n"])
    assert "GOT '```\\nRight\\n```'" in shown
    assert "STOPPED" in shown


@pytest.mark.parametrize("key", [b"\x03", b"\x04"], ids=["ctrl-c", "ctrl-d"])
def test_in_a_terminal_keys_stop(key: bytes) -> None:
    shown = _in_terminal([b"Right\n", key])
    assert "STOPPED" in shown
    assert "Traceback" not in shown
