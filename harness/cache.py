"""Replies that were paid for once, in a folder: `python -m harness.eval --cache DIR`, else none.

A reply is found again only for an equal question: model, its settings (weights, sampling, seed),
the whole prompt with its tools, the limit of the reply, instance, rollout and turn. All of these
stand in the file beside the reply and are compared when it is read, so a digest that collides, or
a file from elsewhere, is a miss and never a wrong reply. Refusals and provider errors are not kept.

One file a reply, under the digest of its question; written whole under another name and then
renamed, so any number of processes may use one folder.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentgym.errors import AgentGymError
from harness.request import Gauge, Model, Reply, Request

_VERSION = 1
_KEPT = frozenset({"stop", "length"})
_ANSWER = TypeAdapter(Reply)


class CacheError(AgentGymError):
    """The folder of the cache cannot be written."""


class CacheWarning(UserWarning):
    """A file in the cache's folder that is no reply to the question of its name."""


class Cached:
    """A model that answers from a folder what it was asked there before.

    Attributes:
        name: Of the model within, like all below.
        concurrency: How many requests it serves well at once.
        settings: What a second person needs to repeat it.
        gauge: Where its requests stand now.
    """

    def __init__(self, model: Model, folder: Path) -> None:
        """Wrap a model; the folder is made if it is missing.

        Raises:
            CacheError: It cannot be made.
        """
        self.name = model.name
        self.concurrency = model.concurrency
        self.settings: dict[str, Any] = model.settings
        self.gauge: Gauge = model.gauge
        self._model, self._folder = model, folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise _unwritable(folder, fault) from fault

    async def reply(self, request: Request) -> Reply:
        """Answer one request, from the folder if it was asked before.

        Raises:
            CacheError: A reply cannot be written.
        """
        asked = question(self._model, request)
        path = self._folder / _name(asked)
        found = await asyncio.to_thread(_read, path, asked)
        if found is not None:
            # No server failed this time; but how the reply was made stays true.
            faults = {name: 1 for name in found.faults if name.startswith("without ")}
            return dataclasses.replace(found, cached=True, retries=0, faults=faults)
        reply = await self._model.reply(request)
        if reply.stop_reason in _KEPT:
            await asyncio.to_thread(_write, path, asked, reply)
        return reply

    async def close(self) -> None:
        """Close the model; the folder stays."""
        await self._model.close()


def question(model: Model, request: Request) -> dict[str, Any]:
    """Everything that a reply depends on, as plain JSON values."""
    asked = {
        "version": _VERSION,
        "model": model.name,
        "settings": model.settings,
        "messages": request.messages,
        "tools": request.tools,
        "max_tokens": request.max_tokens,
        "reserve": request.reserve,
        "key": request.key,
    }
    return json.loads(_text(asked))


def _text(value: Mapping[str, Any]) -> str:
    # Half a surrogate pair, which a model may send, is written as an escape.
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def _name(asked: Mapping[str, Any]) -> str:
    """Path below the folder; the first two digits make one of 256 folders."""
    digest = hashlib.sha256(_text(asked).encode()).hexdigest()
    return os.path.join(digest[:2], f"{digest[2:]}.json")


def _read(path: Path, asked: Mapping[str, Any]) -> Reply | None:
    """The reply of a file; None if there is none, or if it answers no such question."""
    try:
        kept = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as fault:
        return _warned(path, str(fault))
    if not isinstance(kept, dict) or kept.get("question") != asked:
        return _warned(path, "it holds another question")
    try:
        reply = _ANSWER.validate_python(kept.get("reply"))
    except ValidationError as fault:
        return _warned(path, f"its reply does not fit: {fault.errors()[0]['msg']}")
    return reply if reply.stop_reason in _KEPT else _warned(path, "its reply is a refusal")


def _warned(path: Path, why: str) -> None:
    warnings.warn(
        f"{path} is no reply of this cache ({why}); the model is asked, and the file written anew.",
        CacheWarning,
        stacklevel=2,
    )


def _write(path: Path, asked: Mapping[str, Any], reply: Reply) -> None:
    text = _text({"question": asked, "reply": dataclasses.asdict(reply)})
    try:
        path.parent.mkdir(exist_ok=True)
        handle, new = tempfile.mkstemp(dir=path.parent, suffix=".new")
        try:
            with open(handle, "w", encoding="ascii") as file:
                file.write(text)
            os.replace(new, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(new)
            raise
    except OSError as fault:
        raise _unwritable(path.parent, fault) from fault


def _unwritable(folder: Path, fault: OSError) -> CacheError:
    return CacheError(
        f"Cannot write the reply cache {folder}: {fault.strerror or fault}; make room, or give "
        "another folder with --cache."
    )
