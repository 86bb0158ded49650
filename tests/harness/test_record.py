"""The record: what is written comes back, whatever happened while it was written."""

import json
import math
import os
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.record import (
    SCHEMA,
    Episode,
    Key,
    Note,
    RecordError,
    Result,
    Start,
    Turn,
    Writer,
    playable,
)
from tests.harness.records import read_all

resource = pytest.importorskip("resource", reason="file size limits are a Unix matter")


NUMBERS = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, 0.0, -0.0, 1e300])
TEXTS = st.text(max_size=40) | st.sampled_from(["", "\n", "\r\n\u2028\x85\x00", "```\nUp\n```"])
NOTES = st.builds(
    Note,
    cost_to_go=NUMBERS,
    value=NUMBERS,
    progress=NUMBERS,
    dead_end=st.booleans(),
    exact=st.booleans(),
    best_actions=st.tuples(TEXTS),
)
TURNS = st.builds(
    Turn,
    observation=TEXTS,
    reply=TEXTS,
    attempt=TEXTS,
    strict=st.booleans(),
    action=TEXTS,
    valid=st.booleans(),
    error=TEXTS,
    reward=NUMBERS,
    score=NUMBERS,
    progress=NUMBERS,
    success=st.booleans(),
    milestones=st.tuples(st.integers(0, 9)),
    note=st.none() | NOTES,
    stop_reason=st.sampled_from(["stop", "length"]),
    completion_tokens=st.none() | st.integers(0, 10**9),
    seconds_game=st.floats(0, 1e6),
)


def episode(seed=0, rollout=0, **fields):
    return Episode(
        **{
            "key": Key(env_id="agentgym/A-v0", seed=seed, rollout=rollout),
            "instance": f"A/{seed}",
            "env_version": "0",
            "prompt_hash": "",
            "model": "m",
            "result": Result.LOST,
            "success": False,
            "score": 0.0,
            "progress": 0.0,
            "start": Start(observation="", score=0.0, progress=0.0),
            "turns": (),
        }
        | fields
    )


def write(path, *episodes):
    with Writer(path) as writer:
        for each in episodes:
            writer.append(each)
    return path


@given(st.lists(TURNS, max_size=3), NUMBERS)
def test_every_episode_comes_back_to_the_byte(turns, score):
    made = episode(turns=tuple(turns), score=score)

    line = made.model_dump_json()
    back = Episode.model_validate(json.loads(line))

    assert "\n" not in line
    assert back.model_dump_json() == line
    assert repr(back) == repr(made)


def test_infinities_and_nan_are_texts_in_the_file():
    note = Note(
        cost_to_go=math.inf,
        value=-math.inf,
        progress=math.nan,
        dead_end=True,
        exact=True,
        best_actions=(),
    )

    plain = json.loads(note.model_dump_json(), parse_constant=pytest.fail)

    assert (plain["cost_to_go"], plain["value"], plain["progress"]) == (
        "Infinity",
        "-Infinity",
        "NaN",
    )


def test_the_file_has_one_line_per_episode_with_the_schema_first(tmp_path):
    path = write(tmp_path / "e.jsonl", episode(0), episode(1))

    lines = path.read_text().splitlines()

    assert [next(iter(json.loads(line))) for line in lines] == ["schema", "schema"]
    assert json.loads(lines[0])["schema"] == SCHEMA == 1
    assert [each.key.seed for each in read_all(path)] == [0, 1]


def test_a_torn_last_line_is_left_out_and_cut_off(tmp_path):
    path = write(tmp_path / "e.jsonl", episode(0), episode(1))
    whole = path.read_bytes()
    for cut in (1, 50, len(whole) // 2 - 1):
        path.write_bytes(whole[:-cut])

        assert [each.key.seed for each in read_all(path)] == [0]

        write(path, episode(2))
        assert [each.key.seed for each in read_all(path)] == [0, 2]
        assert path.read_bytes().startswith(whole[: len(whole) // 2])


def test_a_file_that_is_one_torn_line_becomes_empty(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"\0" * 200_000)

    write(path)

    assert path.read_bytes() == b""


def test_the_later_of_two_lines_with_one_key_holds(tmp_path):
    failed = episode(0, result=Result.PROVIDER_ERROR, error="The server is down.")
    path = write(tmp_path / "e.jsonl", failed, episode(1), episode(0, score=7.0))

    found = read_all(path)

    assert [(each.key.seed, each.score) for each in found] == [(0, 7.0), (1, 0.0)]
    assert [each.key.seed for each in playable([failed, *found])] == [0, 1]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{half a line\n", r"e\.jsonl:2 is not JSON .* delete that line"),
        (b"\xff\xfe\n", r"e\.jsonl:2 is not JSON"),
        (b"[]\n", r"e\.jsonl:2 has no integer 'schema'"),
        (b'{"schema": true}\n', r"e\.jsonl:2 has no integer 'schema'"),
        (b'{"schema": 2}\n', r"e\.jsonl:2 has schema 2, this version reads 1; upgrade agentgym"),
        (b'{"schema": 1}\n', r"e\.jsonl:2 is no episode: key: Field required"),
    ],
)
def test_a_broken_line_is_named_with_its_file_and_number(tmp_path, line, says):
    path = write(tmp_path / "e.jsonl", episode(0))
    path.write_bytes(path.read_bytes() + line + path.read_bytes())

    with pytest.raises(RecordError, match=says):
        read_all(path)


def test_a_field_of_another_program_is_refused(tmp_path):
    path = write(tmp_path / "e.jsonl", episode(0))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"bonus": 1}) + "\n")

    with pytest.raises(RecordError, match=r"e\.jsonl:1 is no episode: bonus"):
        read_all(path)


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(RecordError, match=r"Cannot read .*nothing\.jsonl: No such file"):
        read_all(tmp_path / "nothing.jsonl")


@contextmanager
def files_no_larger_than(size):
    """As on a full disk: the operating system takes part of a write and refuses the rest."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_a_readable_record_that_goes_on(tmp_path):
    path = write(tmp_path / "e.jsonl", episode(0))
    size = path.stat().st_size
    with Writer(path) as writer:
        writer.append(episode(1))

        with (
            files_no_larger_than(2 * size + size // 2),
            pytest.raises(RecordError, match=r"Cannot write .*e\.jsonl: .*kept.*Make room"),
        ):
            writer.append(episode(2))

        assert path.stat().st_size == 2 * size
        writer.append(episode(3))
    assert [each.key.seed for each in read_all(path)] == [0, 1, 3]


def test_each_line_is_on_disk_before_append_returns(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd)))
    path = tmp_path / "e.jsonl"
    with Writer(path) as writer:
        for seed in range(3):
            writer.append(episode(seed))
            assert len(synced) == seed + 1
            assert synced[-1] == path.stat().st_size


def test_two_writers_of_one_file_are_refused(tmp_path):
    path = tmp_path / "e.jsonl"
    with Writer(path) as writer:
        writer.append(episode(0))
        with pytest.raises(RecordError, match=r"Another process is writing .*--out"):
            Writer(path)

    write(path, episode(1))
    assert len(read_all(path)) == 2


def test_a_path_that_cannot_be_written_is_said_so(tmp_path):
    with pytest.raises(RecordError, match="Cannot write"):
        Writer(tmp_path / "missing" / "e.jsonl")
