"""Weights of the engines that run in this process: a folder on disk, and its name in the record.

Three things name weights: `smollm2-135m`, the small real model, whose folder is made once from the
GGUF file of `harness.models.local_llamacpp` and kept beside it, so that no hub is needed; a folder
in the form of Transformers' `save_pretrained`; and a name on the Hugging Face hub, fetched into
that library's own cache.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from agentgym.errors import MissingExtra
from harness.models import WeightsUnavailable, local_llamacpp
from harness.models.presets import SMALL

_FILES = ("*.json", "*.jinja", "*.model", "*.safetensors", "*.txt")
_TWICE = ("consolidated*", "metal/*", "original/*")  # The same weights in a second form.


class Weights(NamedTuple):
    """Where weights are, and which they are.

    Attributes:
        folder: With `config.json`, the tokenizer's files and safetensors.
        settings: For `run.json`: what tells these weights from all others.
    """

    folder: Path
    settings: dict[str, Any]


def find(name: str) -> Weights:
    """The weights of a name, fetched or made if need be.

    Args:
        name: `smollm2-135m`, a folder, or a name on the hub.

    Raises:
        WeightsUnavailable: There are none of that name, or they are not whole.
        MissingExtra: A package is not installed that fetching or making them needs.
    """
    if name == SMALL:
        return Weights(_small(), _small_settings())
    given = Path(name).expanduser()
    if given.is_dir():
        _check(given)
        return Weights(given, {"folder": given.name, "sha256": digest(given)})
    if given.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1:
        raise WeightsUnavailable(
            f"There is no folder of weights at {name}, and it is no hub name of the form "
            "ORGANISATION/MODEL; check the path."
        )
    folder = _fetched(name)
    _check(folder)
    return Weights(folder, {"hub": name, "revision": folder.name})


def digest(folder: Path) -> str:
    """SHA-256 over names and contents of all files that decide what the model says."""
    whole = hashlib.sha256()
    for path in sorted(path for pattern in _FILES for path in folder.glob(pattern)):
        with path.open("rb") as file:
            whole.update(
                f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode()
            )
    return whole.hexdigest()


def _check(folder: Path) -> None:
    for pattern in ("config.json", "tokenizer_config.json", "*.safetensors"):
        if not any(folder.glob(pattern)):
            raise WeightsUnavailable(
                f"{folder} is no folder of weights: it holds no {pattern}; expected what "
                "Transformers' save_pretrained writes for a model and its tokenizer."
            )


def _fetched(name: str) -> Path:
    hub = _package("huggingface_hub")
    patterns = {"allow_patterns": list(_FILES), "ignore_patterns": list(_TWICE)}
    try:
        return Path(hub.snapshot_download(name, **patterns))
    # An unknown or gated name, no network, HF_HUB_OFFLINE, a malformed name, a full disk.
    except (OSError, ValueError, hub.errors.HFValidationError) as fault:
        said = (str(fault).strip() or type(fault).__name__).splitlines()[0].rstrip(".")
        raise WeightsUnavailable(
            f"The weights {name} cannot be fetched from the Hugging Face hub ({said}); check name "
            "and network, or give a folder of weights in place of the name."
        ) from fault


def _small_settings() -> dict[str, Any]:
    return {
        "package": f"{local_llamacpp.PACKAGE}=={local_llamacpp.RELEASE}",
        "file": Path(local_llamacpp.WEIGHTS).name,
        "sha256": local_llamacpp.SHA256,
    }


def _small() -> Path:
    """The folder of the small model, made now if it is not there."""
    name = f"{local_llamacpp.PACKAGE}-{local_llamacpp.RELEASE}-safetensors"
    target = local_llamacpp.cache_folder() / name
    if not target.is_dir():
        gguf = local_llamacpp.weights()
        try:
            _make(gguf, target)
        except OSError as fault:
            raise WeightsUnavailable(
                f"Cannot write the weights to {target}: {fault.strerror or fault}; make room "
                "there, or name another folder in the environment variable AGENTGYM_CACHE."
            ) from fault
    return target


def _make(gguf: Path, target: Path) -> None:
    """Convert in a folder beside the target, which then takes its name in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="partial-", dir=target.parent) as scratch:
        made = Path(scratch) / target.name
        _convert(gguf, made)
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # Else another process was faster.
                raise


def _convert(gguf: Path, folder: Path) -> None:
    """Write the GGUF file's weights as bfloat16 safetensors, with tokenizer and chat template."""
    # Transformers asks for the first two only in the middle of the work.
    for name in ("gguf", "accelerate"):
        _package(name)
    torch, transformers = _package("torch"), _package("transformers")
    sys.stderr.write(
        f"Converting {gguf.name} to safetensors once, 273 MB, in {folder.parents[1]}\n"
    )
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    transformers.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
    model = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16)
    # They are dequantized now; with these two marks save_pretrained would still refuse them.
    model.hf_quantizer = None
    del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as fault:
        raise MissingExtra.of("These weights", name, "transformers") from fault
