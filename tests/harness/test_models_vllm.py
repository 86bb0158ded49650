"""vLLM as far as it goes without vLLM: its arguments, and an engine whose modules are stand-ins.

The real one is in `tests/vllm`.
"""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.models import EngineUnavailable, Hardware, Order, vllm_engine
from harness.models.vllm_arguments import (
    CONCURRENCY,
    CPU_CACHE,
    CPU_CONCURRENCY,
    concurrency,
    engine_arguments,
    flags,
)
from harness.models.vllm_engine import Packages, load_vllm
from harness.models.weights import Weights

ORDER = Order("own", context=99, hardware=Hardware(2, 3), concurrency=10)


@pytest.fixture(autouse=True)
def no_cache_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE", raising=False)


def test_the_arguments_on_a_gpu() -> None:
    assert engine_arguments(ORDER, Path("w"), on_cpu=False) == {
        "model": "w",
        "max_model_len": 99,
        "max_num_seqs": 4,  # Ten over three copies.
        "tensor_parallel_size": 2,
        "data_parallel_size": 3,
        "enable_prefix_caching": True,
        "language_model_only": True,
    }


def test_a_cpu_compiles_nothing_and_keeps_memory_free(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, cpu = (engine_arguments(ORDER, Path("w"), on_cpu=on_cpu) for on_cpu in (False, True))
    assert cpu == gpu | {"enforce_eager": True, "kv_cache_memory_bytes": CPU_CACHE}
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    asked = engine_arguments(ORDER, Path("w"), on_cpu=True)
    assert asked == gpu | {"enforce_eager": True}


def test_each_copy_computes_as_many_as_it_does_well() -> None:
    order = Order("own", hardware=Hardware(data_parallel=3))
    for on_cpu, batch in ((False, CONCURRENCY), (True, CPU_CONCURRENCY)):
        assert concurrency(order, on_cpu=on_cpu) == 3 * batch
        assert engine_arguments(order, Path("w"), on_cpu=on_cpu)["max_num_seqs"] == batch
    assert concurrency(ORDER, on_cpu=True) == 10


def test_arguments_as_a_command_line() -> None:
    assert flags(engine_arguments(Order("own", concurrency=5), Path("a b/w"), on_cpu=True)) == [
        "--model=a b/w",
        "--max-num-seqs=5",
        "--tensor-parallel-size=1",
        "--data-parallel-size=1",
        "--enable-prefix-caching",
        "--language-model-only",
        "--enforce-eager",
        f"--kv-cache-memory-bytes={CPU_CACHE}",
    ]


# The engine in this process


class Engine:
    """In place of `AsyncLLM`."""

    def __init__(self, given: dict) -> None:
        if given["max_model_len"] > 1000:
            raise ValueError("User-specified max_model_len is too large. More words.")
        self.given, self.ended = given, False
        self.model_config = SimpleNamespace(max_model_len=99, dtype="torch.bfloat16")

    def shutdown(self, timeout: float) -> None:
        self.ended = True


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Packages:
    """What `load_vllm` finds in vLLM's place, with a folder and a chat template."""
    parsers = SimpleNamespace(get_tool_parser=lambda name: None)
    protocol = SimpleNamespace(ChatCompletionRequest=None)
    found = Packages(
        vllm=SimpleNamespace(__version__="0"),
        on_cpu=True,
        engine=SimpleNamespace(from_engine_args=Engine),
        arguments=dict,
        inputs=None,
        final=None,
        parsers=parsers,
        protocol=protocol,
        fault=RuntimeError,
        dead=SystemError,
    )
    template = SimpleNamespace(source="", tokenizer=None)
    monkeypatch.setattr(vllm_engine, "load_packages", lambda: found)
    monkeypatch.setattr(vllm_engine, "Template", lambda folder, thinking: template)
    own = Weights(Path("w"), {"folder": "w"})
    monkeypatch.setattr(vllm_engine.weights, "find", lambda name: own)
    return found


def test_the_engine_spreads_over_the_hardware(packages) -> None:
    model = load_vllm(ORDER)
    engine = model._engine
    expected = engine_arguments(ORDER, Path("w"), on_cpu=True)
    assert engine.given == {**expected, "use_tqdm_on_load": False}
    assert (model.concurrency, model.gauge.limit) == (10, 10)
    assert (model.settings["context"], model.settings["dtype"]) == (99, "bfloat16")
    asyncio.run(model.close())
    asyncio.run(model.close())
    assert engine.ended


def test_an_engine_that_does_not_start_says_why(packages) -> None:
    with pytest.raises(EngineUnavailable, match=r"start on w \(User-.* is too large\); if it"):
        load_vllm(Order("own", context=9000))
