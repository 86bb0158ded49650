"""Open weights: which are meant by a name, what they run on, and what a preset fixes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentgym.errors import InvalidOption, UnknownName
from harness import models
from harness.models import EngineUnavailable, Hardware, Order, Sampling, machine
from harness.models.presets import PRESETS

ADDRESS = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def environment(bare_environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch):
    """What `load` chooses on a machine of the given kind: loader, order; nothing is loaded."""
    here: dict = {"gpu": False, "packages": ()}
    monkeypatch.setattr(models, "has_gpu", lambda: here["gpu"])
    monkeypatch.setattr(models, "installed", lambda *names: set(names) <= set(here["packages"]))
    monkeypatch.setattr(models, "_made", lambda entry, order: (entry.loader, order))

    def choose(name: str, *, on_gpu: bool = False, packages: tuple = (), **wishes):
        here.update(gpu=on_gpu, packages=packages)
        loader, order = models.load(name, **wishes)
        return loader.partition(":")[2], order

    return choose


def test_presets_are_whole() -> None:
    for name, preset in PRESETS.items():
        assert name == name.lower()
        assert preset.description
        assert preset.weights == name or preset.weights.count("/") == 1
        assert preset.max_tokens < preset.context
        Sampling(preset.temperature, preset.top_p, max_tokens=preset.max_tokens)
    assert len({preset.weights for preset in PRESETS.values()}) == len(PRESETS)


def test_a_preset_fixes_weights_sampling_thinking_and_context(chosen) -> None:
    _, order = chosen("qwen3.5-9b", engine="vllm")
    assert order == Order(
        "qwen3.5-9b",
        sampling=Sampling(0.6, 0.95),
        weights="Qwen/Qwen3.5-9B",
        thinking=False,
        context=32_768,
        tool_parser="qwen3_coder",
    )


def test_what_was_asked_for_goes_before_the_preset(chosen) -> None:
    asked = Sampling(temperature=0.0, seed=3, max_tokens=7)
    hardware = Hardware(2, 4)
    _, order = chosen(
        "qwen3-4b",
        engine="vllm",
        sampling=asked,
        hardware=hardware,
        context=99,
        concurrency=5,
        logprobs=True,
    )
    assert order.sampling == Sampling(0.0, 0.95, 3, 7)
    assert (order.hardware, order.context, order.concurrency) == (hardware, 99, 5)
    assert order.logprobs


def test_a_preset_has_a_limit_of_replies() -> None:
    assert models.reply_limit("qwen3-4b") == 16_384
    assert models.reply_limit("Qwen/Qwen3-4B-Instruct-2507") == 16_384
    assert models.reply_limit("smollm2-135m") == 1024
    assert models.reply_limit("openai/x") is None


BOTH = ("vllm", "torch", "transformers")


@pytest.mark.parametrize(
    ("machine", "wishes", "loader"),
    [
        ({"on_gpu": True, "packages": BOTH}, {}, "load_vllm"),
        ({"on_gpu": True, "packages": BOTH[1:]}, {}, "load_transformers"),
        ({"on_gpu": True, "packages": BOTH}, {"base_url": ADDRESS}, "load_server"),
        ({}, {"base_url": ADDRESS}, "load_server"),
        ({}, {"base_url": ADDRESS, "engine": "server"}, "load_server"),
        ({}, {"engine": "vllm"}, "load_vllm"),
        ({"on_gpu": True, "packages": BOTH}, {"engine": "transformers"}, "load_transformers"),
        ({}, {"serve": True}, "load_served"),
        ({}, {"serve": True, "engine": "server"}, "load_served"),
    ],
)
def test_the_engine_is_what_was_asked_for_else_what_is_there(
    machine, wishes, loader: str, chosen
) -> None:
    assert chosen("qwen3-4b", **machine, **wishes)[0] == loader


def test_an_address_in_the_environment_is_a_server(chosen, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", ADDRESS)
    assert chosen("qwen3-4b")[0] == "load_server"
    assert chosen("qwen3-4b", engine="server")[0] == "load_server"
    # An engine that was asked for stands, and the small model has its own.
    assert chosen("qwen3-4b", engine="vllm")[0] == "load_vllm"
    assert chosen("smollm2-135m")[0] == "load_smollm2"
    assert chosen("smollm2-135m", engine="server")[0] == "load_server"


def test_the_small_model_runs_on_llama_cpp_unless_asked_otherwise(chosen) -> None:
    loader, order = chosen("smollm2-135m", on_gpu=True, packages=BOTH)
    assert (loader, order.sampling.temperature, order.context) == ("load_smollm2", 0.2, 2048)
    assert chosen("smollm2-135m", engine="vllm")[0] == "load_vllm"
    assert chosen("smollm2-135m", base_url=ADDRESS)[0] == "load_server"
    assert chosen("smollm2-135m", serve=True)[1].weights == "smollm2-135m"


@pytest.mark.parametrize(
    ("machine", "lacks"),
    [
        ({"on_gpu": False, "packages": BOTH}, "there is no GPU"),
        ({"on_gpu": True}, "neither vllm nor transformers with torch is installed"),
        ({"on_gpu": True, "packages": ("torch",)}, "neither vllm nor transformers with torch"),
    ],
)
def test_with_nothing_to_run_on_one_sentence_says_what_is_missing(machine, lacks, chosen) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        chosen("qwen3-4b", **machine)
    said = str(caught.value)
    assert said.startswith(f"The model qwen3-4b has nothing to run on, since {lacks}")
    for way in (
        "a GPU machine with pip install 'agentgym-suite[vllm]'",
        "--base-url of any server that has Qwen/Qwen3-4B-Instruct-2507",
        "--model smollm2-135m",
    ):
        assert way in said
    assert "\n" not in said
    assert ". " not in said


def test_a_folder_of_weights_in_a_presets_place(chosen, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"has no config\.json"):
        chosen(str(tmp_path), engine="vllm")
    (tmp_path / "config.json").write_text("{}")
    loader, order = chosen(str(tmp_path), engine="vllm")
    assert (loader, order.weights, order.name) == ("load_vllm", str(tmp_path), str(tmp_path))
    assert (order.sampling.temperature, order.sampling.top_p) == (0.6, 0.95)
    assert (order.context, order.thinking) == (None, None)


def test_a_folder_named_like_a_hub_name_is_the_folder(chosen, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("org/name").mkdir(parents=True)
    with pytest.raises(InvalidOption, match=r"has no config\.json"):
        chosen("org/name", engine="vllm")


def test_a_folder_never_hides_a_model_of_the_table(chosen, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("oracle", "openai/gpt", "qwen3-4b"):
        Path(name).mkdir(parents=True)
    assert chosen("oracle")[0] == "load_oracle"
    assert chosen("openai/gpt")[0] == "load_openai"
    assert chosen("qwen3-4b", engine="vllm")[0] == "load_vllm"


def test_a_hub_name_in_a_presets_place(chosen) -> None:
    _, order = chosen("org/My-Model.v1", engine="transformers")
    assert (order.weights, order.context) == ("org/My-Model.v1", None)
    # The hub name of a preset is the preset.
    assert chosen("Qwen/Qwen3-14B", engine="vllm")[1].thinking is False


@pytest.mark.parametrize(
    ("name", "wishes", "loader"),
    [
        ("openai/gpt-oss-20b", {}, "load_openai"),
        ("openai/gpt-oss-20b", {"base_url": ADDRESS}, "load_openai"),
        ("openai/gpt-oss-20b", {"engine": "vllm"}, "load_vllm"),
        ("google/gemma-4-E4B-it", {}, "load_google"),
        ("google/gemma-4-E4B-it", {"engine": "transformers"}, "load_transformers"),
        ("google/gemma-4-E4B-it", {"serve": True}, "load_served"),
        ("anthropic/claude-x", {}, "load_anthropic"),
    ],
)
def test_providers_with_open_weights_mean_them_only_with_an_engine(
    name: str, wishes, loader: str, chosen
) -> None:
    assert chosen(name, **wishes)[0] == loader


@pytest.mark.parametrize(
    ("name", "wishes", "message"),
    [
        ("qwen3-4b", {"engine": "server"}, "engine server needs an address"),
        ("qwen3-4b", {"engine": "llama.cpp"}, "runs smollm2-135m only, got 'qwen3-4b'"),
        ("qwen3-4b", {"serve": True, "engine": "vllm"}, "leave out .* got 'vllm'"),
        ("qwen3-4b", {"serve": True, "base_url": ADDRESS}, "leave out .* got 'http"),
        ("qwen3-4b", {"engine": "vllm", "base_url": ADDRESS}, "base_url goes with openai/NAME"),
        ("qwen3-4b", {"base_url": ADDRESS, "context": 5}, "context goes with open weights with v"),
        ("qwen3-4b", {"base_url": ADDRESS, "hardware": Hardware(2)}, "hardware goes with"),
        ("smollm2-135m", {"context": 4096}, "context goes with open weights with vllm"),
        ("smollm2-135m", {"logprobs": True}, "logprobs goes with openai/NAME"),
        ("oracle", {"engine": "vllm"}, "engine goes with open weights, got the model 'oracle'"),
        ("oracle", {"serve": True}, "serve goes with open weights with serve, got 'oracle'"),
        ("openai/x", {"engine": "server"}, "engine goes with open weights"),
        ("anthropic/x", {"logprobs": True}, "logprobs goes with"),
        ("qwen3-4b", {"context": 0}, "context is at least 1, got 0"),
    ],
)
def test_what_would_be_without_effect_is_refused(name: str, wishes, message, chosen) -> None:
    with pytest.raises(InvalidOption, match=message):
        chosen(name, **wishes)


def test_hardware_that_asks_for_nothing_is_all_right(chosen) -> None:
    assert chosen("oracle", hardware=Hardware(), logprobs=False, serve=False)[0] == "load_oracle"


def test_an_unknown_engine_lists_the_known() -> None:
    with pytest.raises(UnknownName, match=r"Unknown engine 'vlm'. Did you mean 'vllm'"):
        models.load("qwen3-4b", engine="vlm")


def test_a_hidden_gpu_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for hidden in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert not machine.has_gpu()


@pytest.mark.skipif(sys.platform == "win32", reason="The program is a shell script.")
@pytest.mark.parametrize(
    ("listed", "status", "found"),
    [
        ("GPU 0: NVIDIA H200 (UUID: GPU-1)", 0, True),
        ("NVIDIA-SMI has failed because it could not communicate with the driver", 9, False),
        ("No devices found.", 0, False),
    ],
)
def test_where_device_files_say_nothing_the_drivers_program_does(
    listed: str, status: int, found: bool, tmp_path: Path, monkeypatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{listed}'\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(machine, "_DEVICES", ())
    assert machine.has_gpu() is found


def test_looking_for_a_gpu_imports_nothing_heavy() -> None:
    code = (
        "import sys; from harness.models import machine;"
        "machine.has_gpu(); machine.installed('torch', 'vllm');"
        "print([p for p in ('torch', 'transformers', 'vllm', 'openai') if p in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_packages_are_looked_for_all_together() -> None:
    assert machine.installed("numpy", "gymnasium")
    assert not machine.installed("numpy", "no_such_package_anywhere")


@pytest.mark.parametrize("name", ["./none", "../none", "/none/at/all", "~/none"])
def test_a_path_is_a_folder_even_where_there_is_none(chosen, name: str) -> None:
    with pytest.raises(InvalidOption, match=r"none.* is not there"):
        chosen(name, engine="vllm")
