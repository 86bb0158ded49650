"""Every model that can play: tables from a name to what answers for it.

`load` is all that the rest of the harness needs. A model's packages are imported when it is
loaded, never before, so that `--model oracle` needs none of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from agentgym.errors import InvalidOption, MissingExtra, UnknownName
from harness.models.machine import has_gpu, installed
from harness.models.order import (
    EngineUnavailable,
    FatalProviderError,
    Hardware,
    Order,
    PlayerQuit,
    Sampling,
    WeightsUnavailable,
    request_digest,
)
from harness.models.presets import PRESETS, SMALL, Preset, of_weights
from harness.models.service import public
from harness.request import Model

__all__ = [
    "ENGINES",
    "SMALL",
    "TABLE",
    "EngineUnavailable",
    "Entry",
    "FatalProviderError",
    "Hardware",
    "Order",
    "PlayerQuit",
    "Sampling",
    "WeightsUnavailable",
    "Wishes",
    "describe",
    "load",
    "reply_limit",
    "request_digest",
]

_ADDRESS = "OPENAI_BASE_URL"
_HUB_NAME = re.compile(r"\w[\w.-]*/[\w.-]+")


class Wishes(TypedDict, total=False):
    """What `load` takes beside the name; each may be left out, or be None.

    Attributes:
        base_url: Address of the server.
        sampling: How replies are drawn; what it leaves open is the preset's, else the model's own.
        concurrency: Requests in flight at once, at most.
        engine: A name of `ENGINES`; chosen by what this machine has if not given.
        hardware: How the engine spreads over the machine.
        context: Tokens of prompt and reply together, in place of the preset's.
        logprobs: Return token ids and log-probabilities with each reply.
        serve: Start a vLLM server for the weights, and stop it at the end.
    """

    base_url: str | None
    sampling: Sampling | None
    concurrency: int | None
    engine: str | None
    hardware: Hardware | None
    context: int | None
    logprobs: bool
    serve: bool


class Entry(NamedTuple):
    """A row of a table.

    Attributes:
        description: One line for the user.
        loader: `module:function` that takes an `Order` and returns a `Model`.
        packages: What the loader imports beyond the core.
        extra: The extra of agentgym-suite that installs them.
        takes: Which of the `Wishes` mean something to it, beside sampling and concurrency.
    """

    description: str
    loader: str
    packages: tuple[str, ...] = ()
    extra: str = ""
    takes: tuple[str, ...] = ()


TABLE = {
    "oracle": Entry(
        "plays the first of the best actions that the built-in oracle knows; the upper bound",
        "harness.models.scripted:load_oracle",
    ),
    "random": Entry(
        "draws among the legal actions with equal chance; the lower bound",
        "harness.models.scripted:load_random",
    ),
    "greedy": Entry(
        "takes the legal action with the largest score one step ahead, looking into the true state",
        "harness.models.scripted:load_greedy",
    ),
    "human": Entry(
        "you, in this terminal", "harness.models.human:load_human", ("rich",), "harness"
    ),
    "openai/": Entry(
        "openai/NAME: the model NAME of any OpenAI-compatible server, with --base-url URL or"
        " OPENAI_BASE_URL; the key is read from OPENAI_API_KEY",
        "harness.models.openai_api:load_openai",
        ("openai",),
        "harness",
        ("base_url", "logprobs"),
    ),
    "anthropic/": Entry(
        "anthropic/NAME: a model of Anthropic; the key is read from ANTHROPIC_API_KEY",
        "harness.models.anthropic_api:load_anthropic",
        ("anthropic",),
        "anthropic",
        ("base_url",),
    ),
    "google/": Entry(
        "google/NAME: a model of Google; the key is read from GEMINI_API_KEY or GOOGLE_API_KEY",
        "harness.models.google_api:load_google",
        ("google", "httpx2"),
        "google",
        ("base_url",),
    ),
}
"""Models that are no open weights; a name that ends in "/" begins the names of many."""

ENGINES = {
    "vllm": Entry(
        "vLLM in this process",
        "harness.models.vllm_engine:load_vllm",
        ("vllm",),
        "vllm",
        ("hardware", "context", "logprobs"),
    ),
    "transformers": Entry(
        "Transformers in this process",
        "harness.models.local_transformers:load_transformers",
        ("torch", "transformers"),
        "transformers",
        ("hardware", "context", "logprobs"),
    ),
    "llama.cpp": Entry(
        f"llama.cpp in this process; {SMALL} only",
        "harness.models.local_llamacpp:load_smollm2",
        ("xllamacpp",),
        "local",
    ),
    "server": Entry(
        "an OpenAI-compatible server that has the weights, at --base-url or OPENAI_BASE_URL",
        "harness.models.openai_api:load_server",
        ("openai",),
        "harness",
        ("base_url", "logprobs"),
    ),
}
"""What open weights can run on."""

_SERVED = Entry(
    "a vLLM server of our own",
    "harness.models.serve:load_served",
    ("openai",),
    "harness",
    ("serve", "hardware", "context", "logprobs"),
)


def describe() -> dict[str, str]:
    """One line on each model, by name."""
    programs = {name: row.description for name, row in TABLE.items() if not name.endswith("/")}
    presets = {name: preset.description for name, preset in PRESETS.items()}
    providers = {name: row.description for name, row in TABLE.items() if name.endswith("/")}
    weights = "weights of your own: a folder with config.json, or a name on the Hugging Face hub"
    return {**programs, **presets, "FOLDER, ORG/NAME": weights, **providers}


def reply_limit(name: str) -> int | None:
    """Tokens of a reply that a preset allows at most; None if the name means none.

    Args:
        name: Of the preset, or its weights' on the hub.
    """
    meant = (preset for short, preset in PRESETS.items() if name in (short, preset.weights))
    return next((preset.max_tokens for preset in meant), None)


def load(name: str, **wishes: Unpack[Wishes]) -> Model:
    """Make a model ready to answer.

    Args:
        name: A name of the table or of the presets, `openai/NAME`, `anthropic/NAME`,
            `google/NAME`, a folder of weights, or a name on the hub.
        wishes: See `Wishes`.

    Raises:
        UnknownName: No such model or engine.
        InvalidOption: An argument with a value that cannot be, or one that this model has not.
        MissingExtra: A package is not installed.
        EngineUnavailable: Nothing here can run the weights.
        WeightsUnavailable: The weights cannot be fetched.
        FatalProviderError: The server cannot be started, or does not answer.
    """
    _check_numbers(wishes)
    preset = _preset(name, wishes)
    if preset is None:
        entry, order = _row(name), _plain(name, wishes)
    else:
        entry, order = _engine(name, preset, wishes), _ordered(name, preset, wishes)
    _check_taken(name, entry, preset is not None, wishes)
    return _made(entry, order)


def _made(entry: Entry, order: Order) -> Model:
    module, _, function = entry.loader.partition(":")
    try:
        loader: Callable[[Order], Model] = getattr(import_module(module), function)
        return loader(order)
    except ModuleNotFoundError as fault:
        package = (fault.name or "").partition(".")[0]
        if package not in entry.packages:
            raise
        package = "google-genai" if package == "google" else package
        raise MissingExtra.of(f"The model {order.name}", package, entry.extra) from fault


def _plain(name: str, wishes: Wishes) -> Order:
    return Order(
        name,
        wishes.get("base_url"),
        wishes.get("sampling") or Sampling(),
        wishes.get("concurrency"),
        logprobs=wishes.get("logprobs", False),
    )


def _ordered(name: str, preset: Preset, wishes: Wishes) -> Order:
    """The order of open weights, with the preset's choices where nothing else was asked for."""
    plain = _plain(name, wishes)
    asked = plain.sampling
    temperature = preset.temperature if asked.temperature is None else asked.temperature
    top_p = preset.top_p if asked.top_p is None else asked.top_p
    return replace(
        plain,
        sampling=replace(asked, temperature=temperature, top_p=top_p),
        weights=preset.weights,
        thinking=preset.thinking,
        context=wishes.get("context") or preset.context,
        hardware=wishes.get("hardware") or Hardware(),
        tool_parser=preset.tool_parser,
    )


def _preset(name: str, wishes: Wishes) -> Preset | None:
    """What holds for the open weights of that name; None if it is not one of open weights.

    Google and OpenAI have open weights too: where an engine of ours is asked for, their hub names
    are meant.
    """
    if name in PRESETS:
        return PRESETS[name]
    ours = wishes.get("engine") not in (None, "server") or wishes.get("serve")
    if name in TABLE or (_provider(name) and not ours):
        return None
    folder = Path(name).expanduser()
    if (name and folder.is_dir()) or name.startswith((".", "/", "~")):
        _check_folder(folder)
        return of_weights(name)
    hub = _HUB_NAME.fullmatch(name) and (ours or not _nearly_a_provider(name))
    return of_weights(name) if hub else None


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        lacks = "has no config.json" if folder.is_dir() else "is not there"
        raise InvalidOption(
            f"The folder {folder} {lacks}; a folder of weights is one that Transformers' "
            "save_pretrained wrote."
        )


def _provider(name: str) -> str | None:
    prefix = f"{name.partition('/')[0]}/"
    return prefix if prefix in TABLE and len(name) > len(prefix) else None


def _nearly_a_provider(name: str) -> bool:
    known = [row.rstrip("/") for row in TABLE if row.endswith("/")]
    return bool(get_close_matches(name.partition("/")[0].lower(), known, n=1, cutoff=0.8))


def _row(name: str) -> Entry:
    row = _provider(name) or name
    if row not in TABLE or name.endswith("/"):
        rest = (_nearly_a_provider(name) and name.partition("/")[2]) or "NAME"
        known = (f"{row}{rest}" if row.endswith("/") else row for row in TABLE)
        raise UnknownName.of("model", name, [*known, *PRESETS])
    return TABLE[row]


def _engine(name: str, preset: Preset, wishes: Wishes) -> Entry:
    engine, address = wishes.get("engine"), wishes.get("base_url")
    if wishes.get("serve"):
        if engine not in (None, "server") or address:
            raise InvalidOption(
                "serve starts a server of its own; leave out base_url, and engine, "
                f"got {engine or public(address or '')!r}."
            )
        return _SERVED
    # The small model has an engine of its own, so an address in the environment means another.
    address = address or (None if name == SMALL and not engine else os.environ.get(_ADDRESS))
    if engine == "server" and not address:
        raise InvalidOption("engine server needs an address: give base_url (--base-url URL).")
    if engine == "llama.cpp" and name != SMALL:
        raise InvalidOption(
            f"engine llama.cpp runs {SMALL} only, got {name!r}; use vllm or transformers."
        )
    chosen = engine or ("server" if address else _automatic(name, preset))
    return ENGINES[chosen]


def _automatic(name: str, preset: Preset) -> str:
    """The engine that this machine has for weights that nobody serves."""
    if name == SMALL:
        return "llama.cpp"
    gpu = has_gpu()
    for engine in ("vllm", "transformers"):
        if gpu and installed(*ENGINES[engine].packages):
            return engine
    lacks = "neither vllm nor transformers with torch is installed" if gpu else "there is no GPU"
    raise EngineUnavailable(
        f"The model {name} has nothing to run on, since {lacks} and no server is named; use a GPU "
        "machine with pip install 'agentgym-suite[vllm]', or give --base-url of any server that "
        f"has {preset.weights}, or take the small real model: --model {SMALL}."
    )


def _check_numbers(wishes: Wishes) -> None:
    for option in ("concurrency", "context"):
        value = wishes.get(option)
        if value is not None and value < 1:
            raise InvalidOption(f"{option} is at least 1, got {value!r}.")
    engine = wishes.get("engine")
    if engine is not None and engine not in ENGINES:
        raise UnknownName.of("engine", engine, ENGINES)


def _check_taken(name: str, entry: Entry, weights: bool, wishes: Wishes) -> None:
    """Refuse what would be silently without effect."""
    if wishes.get("engine") and not weights:
        raise InvalidOption(f"engine goes with open weights, got the model {name!r}.")
    given: dict[str, Any] = dict(wishes)
    for option in ("base_url", "hardware", "context", "logprobs", "serve"):
        value = given.get(option)
        if value and value != Hardware() and option not in entry.takes:
            takers = ", ".join(_takers(option))
            raise InvalidOption(f"{option} goes with {takers}, got {name!r}.")


def _takers(option: str) -> Iterable[str]:
    for name, row in TABLE.items():
        if option in row.takes:
            yield f"{name}NAME"
    for name, row in (*ENGINES.items(), ("serve", _SERVED)):
        if option in row.takes:
            yield f"open weights with {name}"
