"""The folder of a run: begun, gone on with, or refused."""

import json
import os
import platform
import subprocess
from pathlib import Path

import pytest

from harness import run_folder
from harness.record import EPISODES, RecordError, Writer
from harness.run_folder import Configuration, differences, enter, read_header


def configuration(**changes):
    return Configuration(
        **{
            "agentgym": "1.0",
            "prompt_hashes": ("ab",),
            "model": "m",
            "model_settings": {"sampling": {"temperature": 0.5}},
            "suite": {"name": "s", "rows": [{"env_id": "x", "instances": 3}]},
        }
        | changes
    )


def test_a_new_folder_gets_a_header_that_says_how_to_repeat_the_run(tmp_path):
    folder = tmp_path / "runs" / "a"

    path = enter(folder, configuration(), ["--model", "m"])

    assert path == folder / EPISODES
    assert sorted(os.listdir(folder)) == [EPISODES, "run.json"]
    assert path.read_bytes() == b""
    header = read_header(folder)
    assert header.configuration == configuration()
    [session] = header.sessions
    assert session.arguments == ("--model", "m")
    assert session.python == f"CPython {platform.python_version()}"
    assert session.packages["pydantic"]
    assert session.cores >= 1
    assert session.cpu
    assert session.started.endswith("+00:00")


def test_the_same_configuration_goes_on_and_every_start_is_noted(tmp_path):
    for arguments in (["a"], ["b"], ["c"]):
        enter(tmp_path / "r", configuration(), arguments)

    sessions = read_header(tmp_path / "r").sessions
    assert [each.arguments for each in sessions] == [("a",), ("b",), ("c",)]


def test_an_address_is_recorded_without_its_secrets():
    given = ["--base-url", "https://me:secret@host:8000/v1?key=secret", "--out=a@b?c"]
    given += ["--base-url=HTTPS://me:p@s s@host", "--max-tokens", "9"]

    arguments = run_folder.session(given).arguments

    assert arguments[:3] == ("--base-url", "https://host:8000/v1", "--out=a@b?c")
    assert arguments[3:] == ("--base-url=HTTPS://host", "--max-tokens", "9")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": "n"}, 'model is "m" there, "n" now'),
        (
            {"suite": {"name": "s", "rows": [{"env_id": "x", "instances": 5}]}},
            "suite.rows.0.instances is 3 there, 5 now",
        ),
        (
            {"model_settings": {"sampling": {"temperature": 0.5, "top_p": 0.9}}},
            "model_settings.sampling.top_p is null there, 0.9 now",
        ),
        ({"suite": {"name": "s", "rows": []}}, "suite.rows is "),
    ],
)
def test_another_configuration_is_refused_with_the_difference(tmp_path, changes, says):
    enter(tmp_path / "r", configuration(), [])
    before = (tmp_path / "r" / "run.json").read_bytes()

    with pytest.raises(RecordError) as refused:
        enter(tmp_path / "r", configuration(**changes), [])

    assert f"holds another run: {says}" in str(refused.value)
    assert "--out" in str(refused.value)
    assert (tmp_path / "r" / "run.json").read_bytes() == before


def test_equal_values_have_no_differences():
    value = {"a": [1, {"b": None}], "c": "d"}

    assert list(differences(value, json.loads(json.dumps(value)))) == []


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(RecordError, match=r"holds no run\.json but thesis\.tex"):
        enter(tmp_path, configuration(), [])

    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "r").write_text("")

    with pytest.raises(RecordError, match=r"r is a file; give a folder"):
        enter(tmp_path / "r", configuration(), [])


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path):
    (tmp_path / "r").write_text("")

    with pytest.raises(RecordError, match="Cannot write into"):
        enter(tmp_path / "r" / "s", configuration(), [])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("{}", "has no integer 'schema'"),
        ('{"schema": 9}', "has schema 9, this version reads 1; upgrade agentgym"),
        ('{"schema": 0}', "has schema 0, this version reads 1; use the older agentgym"),
        ('{"schema": 1}', "is no run header: configuration: Field required"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused(tmp_path, content, says):
    (tmp_path / "run.json").write_text(content)

    with pytest.raises(RecordError, match=says):
        enter(tmp_path, configuration(), [])

    assert (tmp_path / "run.json").read_text() == content


@pytest.mark.parametrize("left", [("run.json.new",), (EPISODES,), (EPISODES, "run.json.new")])
def test_a_kill_before_the_header_was_there_costs_nothing(tmp_path, left):
    for name in left:
        (tmp_path / name).write_text("" if name == EPISODES else '{"sch')

    enter(tmp_path, configuration(), [])

    assert sorted(os.listdir(tmp_path)) == [EPISODES, "run.json"]


def test_episodes_without_a_header_are_somebodys_and_left_alone(tmp_path):
    (tmp_path / EPISODES).write_text("{}\n")

    with pytest.raises(RecordError, match=r"holds no run\.json but episodes\.jsonl"):
        enter(tmp_path, configuration(), [])

    assert (tmp_path / EPISODES).read_text() == "{}\n"


def test_who_cannot_have_the_record_leaves_the_header_alone_too(tmp_path):
    path = enter(tmp_path, configuration(), ["first"])

    with Writer(path), pytest.raises(RecordError, match="Another process is writing"):
        enter(tmp_path, configuration(), ["second"])

    assert [each.arguments for each in read_header(tmp_path).sessions] == [("first",)]


def test_what_was_spent_is_noted_with_the_last_session(tmp_path):
    for arguments in (["a"], ["b"]):
        enter(tmp_path, configuration(), arguments)

    run_folder.note_spent(tmp_path, 1.5)

    header = read_header(tmp_path)
    assert header.configuration == configuration()
    assert [(each.arguments, each.spent) for each in header.sessions] == [
        (("a",), 0.0),
        (("b",), 1.5),
    ]


def test_the_commit_is_that_of_agentgyms_own_checkout_or_none(tmp_path):
    root = Path(run_folder.__file__).parent
    asked = subprocess.run(
        ["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    expected = asked.stdout.strip() if asked.returncode == 0 else ""

    commit = run_folder.session([]).git_commit

    assert commit.removesuffix("-dirty") == expected
