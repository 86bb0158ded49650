"""Transformers in this process, for machines on which vLLM does not run.

Requests are answered in batches: as many of those that wait as `concurrency` allows, by arrival,
filled up on the left to the longest prompt. A batch takes as long as its longest reply. On a GPU,
vLLM, whose batches have no end, is several times faster.

Sampling is temperature and top-p alone; other settings of a model's `generation_config.json`, such
as top-k, are left out. Each request draws from a generator of its own, made from the run's seed and
the request's key. Sums of floats differ in their last bits with the shape of a batch, which can tip
a draw where two tokens are about equally likely: two runs of one seed are alike, not equal.

Native tool calls stay in the text: each family of models spells them its own way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agentgym.errors import InvalidOption
from harness.models import EngineUnavailable, Order, WeightsUnavailable, request_digest, weights
from harness.models.template import Prompt, Template, no_room
from harness.models.weights import Weights
from harness.request import Gauge, Reply, Request

CONCURRENCY = 32
"""Requests in one batch; a CPU is ten times faster with 32 than with one."""
HEAD = 256
"""So many of the likeliest tokens are looked at first, since sorting all of them takes longer."""
_QUIET = 0.02  # Seconds without a new request after which a batch is closed.


def load_transformers(order: Order) -> Transformers:
    """A model in Transformers, its weights fetched if need be.

    Raises:
        WeightsUnavailable: There are no such weights, or they cannot be fetched or read.
        EngineUnavailable: The GPU has no room for them.
        InvalidOption: More than one device was asked for, or the weights have no switch for
            thinking.
    """
    if (order.hardware.tensor_parallel, order.hardware.data_parallel) != (1, 1):
        raise InvalidOption(
            f"The engine transformers uses one device, got {order.hardware}; take engine vllm."
        )
    for package in ("torch", "transformers"):  # If one is missing, say so before the download.
        import_module(package)
    return Transformers(order, weights.find(order.weights or order.name))


class Transformers:
    """A model of Transformers, on the GPU if there is one.

    Attributes:
        name: As given to `--model`.
        concurrency: How many requests are computed in one batch.
        settings: Weights, engine, context and sampling, for `run.json`.
        gauge: Where its requests stand now.
    """

    def __init__(self, order: Order, found: Weights) -> None:
        """Load the weights; see `load_transformers` for what can go wrong."""
        self._template = Template(found.folder, order.thinking)
        self._network: Any = _load(found.folder)
        self._context = _context(self._network, order.context)
        self._order = order
        self.name = order.name
        self.concurrency = order.concurrency or CONCURRENCY
        self.gauge = Gauge(limit=self.concurrency)
        self.settings: dict[str, Any] = {
            "weights": found.settings,
            "engine": f"transformers {import_module('transformers').__version__}",
            "dtype": str(self._network.dtype).removeprefix("torch."),
            "context": self._context,
            "thinking": order.thinking,
            "logprobs": order.logprobs,
            "sampling": order.sampling.settings(1.0, 1.0),
        }
        self._queue: list[_Job] = []
        self._working: asyncio.Task[None] | None = None
        self._closing = False
        self._renderer = ThreadPoolExecutor(1, thread_name_prefix="prompt")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="transformers")

    async def reply(self, request: Request) -> Reply:
        """Answer one request; a prompt that leaves too little room for a reply gives `context`.

        A reply that meets the end of the context before `max_tokens` is `length`, like any other
        that was cut. Log-probabilities are the model's own, before temperature and top-p.

        Raises:
            FatalProviderError: The chat template refuses the messages.
        """
        asked = time.perf_counter()
        loop = asyncio.get_running_loop()
        self.gauge.waiting += 1
        try:
            prompt = await loop.run_in_executor(self._renderer, self._template.render, request)
            room = self._context - len(prompt.ids)
            if room < max(1, request.reserve):
                return no_room(len(prompt.ids), self._context)
            job = _Job(request, prompt, min(room, request.max_tokens), asked, loop.create_future())
            self._queue.append(job)
            if self._working is None or self._working.done():
                self._working = asyncio.create_task(self._work())
            return await job.answer
        finally:
            self.gauge.waiting -= 1

    async def _work(self) -> None:
        """Answer batch after batch until nobody waits."""
        while self._queue:
            await self._gather()
            batch, self._queue = self._queue[: self.concurrency], self._queue[self.concurrency :]
            self.gauge.waiting -= len(batch)
            self.gauge.in_flight += len(batch)
            try:
                answer = asyncio.get_running_loop().run_in_executor(self._thread, self._run, batch)
                for job, reply in zip(batch, await answer, strict=True):
                    job.settle(reply)
            except Exception as fault:  # An error of ours belongs to those who wait, not to nobody.
                for job in batch:
                    job.fail(fault)
            finally:
                self.gauge.in_flight -= len(batch)
                self.gauge.waiting += len(batch)

    async def _gather(self) -> None:
        """Wait until no more requests come: episodes answered together ask together."""
        seen = 0
        while seen < len(self._queue) < self.concurrency:
            seen = len(self._queue)
            await asyncio.sleep(_QUIET)

    def _run(self, batch: Sequence[_Job]) -> list[Reply]:
        began = time.perf_counter()
        draw = self._draw(batch)
        try:
            self._generate(batch, draw)
        except (MemoryError, RuntimeError) as fault:
            if not _no_memory(fault):
                raise
            error = f"Memory ran out on a batch of {len(batch)} requests: {fault}"
            failed = Reply("", stop_reason="provider_error", error=error)
            return [replace(failed, seconds_waiting=began - job.asked) for job in batch]
        seconds = time.perf_counter() - began
        tokens, logprobs = draw.rows()
        return [
            replace(
                self._read(job, tokens[row], logprobs[row]),
                seconds_waiting=began - job.asked,
                seconds_generating=seconds,
            )
            for row, job in enumerate(batch)
        ]

    def _draw(self, batch: Sequence[_Job]) -> Draw:
        seed, sampling = self._order.sampling.seed, self.settings["sampling"]
        digests = (request_digest(seed, job.request.key) for job in batch)
        chance = [np.random.default_rng(digest) for digest in digests]
        return Draw(sampling["temperature"], sampling["top_p"], chance)

    def _generate(self, batch: Sequence[_Job], draw: Draw) -> None:
        torch = import_module("torch")
        longest = max(len(job.prompt.ids) for job in batch)
        ids = torch.zeros((len(batch), longest), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, job in enumerate(batch):
            ids[row, longest - len(job.prompt.ids) :] = torch.tensor(job.prompt.ids)
            mask[row, longest - len(job.prompt.ids) :] = 1
        device = self._network.device
        limits = torch.tensor([job.limit for job in batch], device=device)

        def full(so_far: Any, scores: Any, **_: Any) -> Any:
            return (limits <= so_far.shape[1] - longest) | self._closing

        with torch.inference_mode():
            self._network.generate(
                ids.to(device),
                attention_mask=mask.to(device),
                do_sample=False,
                max_new_tokens=int(limits.max()),
                logits_processor=[draw],
                stopping_criteria=[full],
            )

    def _read(self, job: _Job, tokens: list[int], logprobs: list[float]) -> Reply:
        ends = self._network.generation_config.eos_token_id
        length = next((n for n, token in enumerate(tokens, 1) if token in ends), len(tokens))
        length = min(length, job.limit)
        stopped = tokens[length - 1] in ends
        spoken = tokens[: length - 1] if stopped else tokens[:length]
        # The marks of tool calls are special tokens in some families.
        text = self._template.tokenizer.decode(spoken, skip_special_tokens=not job.request.tools)
        asked = self._order.logprobs
        return Reply(
            job.prompt.opening + text,
            stop_reason="stop" if stopped else "length",
            prompt_tokens=len(job.prompt.ids),
            completion_tokens=length,
            prompt_ids=tuple(job.prompt.ids) if asked else None,
            completion_ids=tuple(tokens[:length]) if asked else None,
            logprobs=tuple(logprobs[:length]) if asked else None,
        )

    async def close(self) -> None:
        """Let the batch under way end after its next token, then free the weights."""
        self._closing = True
        self._renderer.shutdown()
        await asyncio.to_thread(self._thread.shutdown)
        self._network = None


class _Job(NamedTuple):
    request: Request
    prompt: Prompt
    limit: int
    asked: float
    answer: asyncio.Future[Reply]

    def settle(self, reply: Reply) -> None:
        if not self.answer.done():  # The episode may have been cancelled.
            self.answer.set_result(reply)

    def fail(self, fault: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(fault)


class Draw:
    """Chooses the next token of each row of a batch, before Transformers takes the likeliest one.

    Each row draws one number a token from a generator of its own, so what it says does not depend
    on the rows beside it but for rounding.
    """

    def __init__(
        self, temperature: float, top_p: float, chance: Sequence[np.random.Generator]
    ) -> None:
        """Choose with temperature and top-p; one generator for each row.

        Args:
            temperature: 0 takes the likeliest token each time.
            top_p: Only the likeliest tokens with this much probability together are drawn.
            chance: Of each row.
        """
        self._temperature, self._top_p, self._chance = temperature, top_p, chance
        self._torch: Any = import_module("torch")
        self._tokens: list[Any] = []
        self._logprobs: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores with all but the chosen token of each row ruled out; shape (rows, tokens)."""
        own = scores.float().log_softmax(-1)
        chosen = own.argmax(-1) if self._temperature == 0 else self._drawn(own / self._temperature)
        self._tokens.append(chosen)
        self._logprobs.append(own.gather(-1, chosen[:, None])[:, 0])
        return self._torch.full_like(scores, -self._torch.inf).scatter(-1, chosen[:, None], 0.0)

    def _drawn(self, scores: Any) -> Any:
        probabilities = scores.softmax(-1)
        ranked, tokens = probabilities.topk(min(HEAD, probabilities.shape[-1]))
        if bool((ranked.sum(-1) < self._top_p).any()):
            ranked, tokens = probabilities.sort(descending=True)
        likelier = ranked.cumsum(-1) - ranked
        summed = ranked.where(likelier < self._top_p, 0.0).cumsum(-1)
        points = self._torch.tensor([each.random() for each in self._chance], device=scores.device)
        place = (summed < points[:, None] * summed[:, -1:]).sum(-1)
        return tokens.gather(-1, place[:, None])[:, 0]

    def rows(self) -> tuple[list[list[int]], list[list[float]]]:
        """Tokens and log-probabilities of each row, all of the batch's length."""
        tokens, logprobs = self._torch.stack(self._tokens, 1), self._torch.stack(self._logprobs, 1)
        return tokens.tolist(), logprobs.tolist()


def _load(folder: Path) -> Any:
    torch, transformers = import_module("torch"), import_module("transformers")
    transformers.logging.disable_progress_bar()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        load = transformers.AutoModelForCausalLM.from_pretrained
        network = load(folder, dtype=_dtype() if device == "cpu" else "auto")
    except (OSError, ValueError, ImportError) as fault:
        raise WeightsUnavailable(
            f"Transformers cannot load the weights in {folder}: {str(fault).strip()}"
        ) from fault
    try:
        network = network.to(device).eval()
    except torch.OutOfMemoryError as fault:
        raise EngineUnavailable(
            f"The GPU has no room for the weights in {folder} ({fault}); take a smaller model."
        ) from fault
    ends = network.generation_config.eos_token_id
    # Only the ends of a reply: penalties and the like of the weights' own would be added silently.
    network.generation_config = transformers.GenerationConfig(
        eos_token_id=ends if isinstance(ends, list) else [ends], pad_token_id=0
    )
    return network


def _no_memory(fault: Exception) -> bool:
    """Whether a smaller batch might have gone through; a CPU's memory has no error of its own."""
    known = (MemoryError, import_module("torch").OutOfMemoryError)
    return isinstance(fault, known) or "DefaultCPUAllocator" in str(fault)


def _dtype() -> Any:
    """bfloat16 where the CPU computes with it, twice as fast as float32."""
    torch = import_module("torch")
    able = torch.cpu.get_capabilities()
    fast = able.get("avx512_bf16") or able.get("amx_bf16") or able.get("bf16")
    return torch.bfloat16 if fast else torch.float32


def _context(network: Any, asked: int | None) -> int:
    most = network.config.get_text_config().max_position_embeddings
    if asked is not None and asked > most:
        raise InvalidOption(f"The context of these weights is at most {most}, got {asked}.")
    return asked or most
