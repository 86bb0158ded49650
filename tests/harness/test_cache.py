"""The reply cache: an equal question hits, anything else misses, and no file is believed."""

import asyncio
import dataclasses
import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cache import Cached, CacheError, CacheWarning, question
from harness.request import Gauge, Peek, Reply, Request, ToolCall

TOOL = {"type": "function", "function": {"name": "act"}}
MESSAGES = ({"role": "system", "content": "Rules."}, {"role": "user", "content": "Board 1."})
ASKED = Request(MESSAGES, 50, ("walk/0", 1, 2), Peek(None, {}), tools=(TOOL,))


class Counting:
    """Answers with how often it was asked."""

    def __init__(self, reply=None, name="m", settings=None):
        self.name, self.concurrency, self.gauge = name, 1, Gauge()
        self.settings = settings or {"sampling": {"temperature": 0.6, "seed": 0}}
        self.asked, self.closed, self._reply = 0, False, reply

    async def reply(self, request):
        self.asked += 1
        return self._reply or Reply(f"reply {self.asked}", completion_tokens=self.asked)

    async def close(self):
        self.closed = True


def ask(model, folder, *requests):
    async def one_by_one():
        cached = Cached(model, folder)
        return [await cached.reply(request) for request in requests]

    return asyncio.run(one_by_one())


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_an_equal_question_is_answered_from_the_folder(tmp_path):
    first, second = ask(Counting(), tmp_path / "new" / "cache", ASKED, ASKED)
    model = Counting()
    [third] = ask(model, tmp_path / "new" / "cache", ASKED)

    assert first == Reply("reply 1", completion_tokens=1)
    assert second == third == dataclasses.replace(first, cached=True)
    assert model.asked == 0


CHANGES = [
    {"messages": (MESSAGES[0], {"role": "user", "content": "Board 2."})},
    {"messages": MESSAGES[::-1]},
    {"messages": (*MESSAGES, {"role": "user", "content": ""})},
    {"messages": ({"role": "system", "content": "Rules. "}, MESSAGES[1])},
    {"tools": ()},
    {"tools": ({**TOOL, "strict": True},)},
    {"max_tokens": 51},
    {"reserve": 1},
    {"key": ("walk/1", 1, 2)},
    {"key": ("walk/0", 0, 2)},
    {"key": ("walk/0", 1, 3)},
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_request_never_hits(tmp_path, change):
    model = Counting()

    replies = ask(model, tmp_path, ASKED, dataclasses.replace(ASKED, **change), ASKED)

    assert [reply.cached for reply in replies] == [False, False, True]
    assert [reply.text for reply in replies] == ["reply 1", "reply 2", "reply 1"]


@pytest.mark.parametrize(
    "other",
    [
        {"name": "n"},
        {"settings": {"sampling": {"temperature": 0.7, "seed": 0}}},
        {"settings": {"sampling": {"temperature": 0.6, "seed": 1}}},
        {"settings": {"sampling": {"temperature": 0.6, "seed": 0}, "weights": "w"}},
    ],
)
def test_another_model_never_hits(tmp_path, other):
    ask(Counting(), tmp_path, ASKED)

    [reply] = ask(Counting(**other), tmp_path, ASKED)

    assert not reply.cached


def test_what_is_only_for_players_that_peek_does_not_matter(tmp_path):
    ask(Counting(), tmp_path, ASKED)

    [reply] = ask(
        Counting(), tmp_path, dataclasses.replace(ASKED, peek=Peek(None, {"oracle": "x"}))
    )

    assert reply.cached
    assert "oracle" not in files(tmp_path)[0].read_text()


@pytest.mark.parametrize("stop_reason", ["provider_error", "context", "cost_limit"])
def test_refusals_are_not_kept(tmp_path, stop_reason):
    model = Counting(Reply("", stop_reason=stop_reason, error="No."))

    replies = ask(model, tmp_path, ASKED, ASKED)

    assert (model.asked, files(tmp_path)) == (2, [])
    assert not any(reply.cached for reply in replies)


FULL = Reply(
    "text \N{SNOWMAN}\r\n\x00",
    reasoning="why",
    stop_reason="length",
    prompt_tokens=3,
    completion_tokens=2,
    seconds_waiting=0.25,
    seconds_generating=1.5,
    retries=1,
    tool_calls=(ToolCall("act", '{"action": "Up"}'),),
    faults={"429": 1, "without seed": 1},
    prompt_ids=(1, 2, 3),
    completion_ids=(4, 5),
    logprobs=(-0.5, float("-inf")),
)


def test_every_field_comes_back(tmp_path):
    [_, back] = ask(Counting(FULL), tmp_path, ASKED, ASKED)

    # This time no server was asked, so none failed; but it was made without a seed.
    made = {"without seed": 1}
    assert back == dataclasses.replace(FULL, cached=True, retries=0, faults=made)
    assert isinstance(back.tool_calls[0], ToolCall)


@settings(deadline=None, max_examples=40)
@given(text=st.text(st.characters()), reasoning=st.text())
def test_any_text_comes_back(tmp_path_factory, text, reasoning):
    folder = tmp_path_factory.mktemp("cache")

    [_, back] = ask(Counting(Reply(text, reasoning=reasoning)), folder, ASKED, ASKED)

    assert (back.text, back.reasoning, back.cached) == (text, reasoning, True)


def test_half_a_surrogate_pair_comes_back(tmp_path):
    [_, back] = ask(Counting(Reply("a\ud800b")), tmp_path, ASKED, ASKED)

    assert (back.text, back.cached) == ("a\ud800b", True)


def torn(content):
    return content[: len(content) // 2]


def another_question(content):
    kept = json.loads(content)
    kept["question"]["max_tokens"] = 51
    return json.dumps(kept)


def another_type(content):
    kept = json.loads(content)
    kept["reply"]["text"] = 5
    return json.dumps(kept)


def a_refusal(content):
    kept = json.loads(content)
    kept["reply"]["stop_reason"] = "provider_error"
    return json.dumps(kept)


DAMAGES = [
    torn,
    another_question,
    another_type,
    a_refusal,
    lambda content: "",
    lambda content: "[]",
    lambda content: "null",
    lambda content: "\x00\xff",
    lambda content: content + content,
    lambda content: json.dumps({"question": json.loads(content)["question"]}),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_torn_or_foreign_file_is_a_miss_with_a_warning_and_is_mended(tmp_path, damage):
    ask(Counting(), tmp_path, ASKED)
    [path] = files(tmp_path)
    path.write_text(damage(path.read_text()), encoding="latin-1")
    model = Counting(Reply("anew"))

    with pytest.warns(CacheWarning, match="is no reply of this cache"):
        [first] = ask(model, tmp_path, ASKED)
    [again] = ask(model, tmp_path, ASKED)

    assert (first.text, first.cached) == ("anew", False)
    assert (again.text, again.cached) == ("anew", True)
    assert model.asked == 1


def test_a_file_under_the_name_of_another_question_is_not_believed(tmp_path):
    other = dataclasses.replace(ASKED, max_tokens=51)
    ask(Counting(), tmp_path, ASKED, other)
    one, two = files(tmp_path)
    one.write_bytes(two.read_bytes())

    with pytest.warns(CacheWarning, match="another question"):
        replies = ask(Counting(Reply("anew")), tmp_path, ASKED, other)

    assert sorted(reply.text for reply in replies) in (["anew", "reply 1"], ["anew", "reply 2"])


WRITE = """
import asyncio, sys, warnings
from pathlib import Path
from harness.cache import Cached
from tests.harness.test_cache import ASKED, Counting
from harness.request import Reply
import dataclasses

warnings.simplefilter("error")
folder = Path(sys.argv[1])
requests = [dataclasses.replace(ASKED, key=("walk", 0, turn)) for turn in range(40)]

async def play():
    for _ in range(5):
        model = Cached(Counting(Reply("x" * 30000)), folder)
        replies = await asyncio.gather(*map(model.reply, requests))
        assert all(reply.text == "x" * 30000 for reply in replies)

asyncio.run(play())
"""


def test_many_processes_may_use_one_folder(tmp_path):
    root = Path(__file__).parents[2]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path)],
            cwd=root,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]

    assert [process.communicate(timeout=120)[1] for process in started] == ["", "", ""]
    assert len(files(tmp_path)) == 40
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Counting()
        ask(model, tmp_path, dataclasses.replace(ASKED, key=("walk", 0, 7)))
    assert model.asked == 0


def test_a_folder_that_cannot_be_made_or_written_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="Cannot write the reply cache"):
        Cached(Counting(), tmp_path / "file")
    folder = tmp_path / "cache"
    cached = Cached(Counting(), folder)
    folder.rmdir()
    folder.write_text("")

    with pytest.warns(CacheWarning), pytest.raises(CacheError, match="give another folder"):
        asyncio.run(cached.reply(ASKED))


def test_the_model_within_is_closed_and_shown(tmp_path):
    model = Counting()
    cached = Cached(model, tmp_path)

    asyncio.run(cached.close())

    assert model.closed
    assert (cached.name, cached.concurrency, cached.settings) == ("m", 1, model.settings)
    assert cached.gauge is model.gauge


def test_the_question_holds_the_whole_prompt():
    asked = question(Counting(), ASKED)

    assert asked["messages"] == list(MESSAGES)
    assert asked["tools"] == [TOOL]
    assert asked["key"] == ["walk/0", 1, 2]
