"""Compiled code: one decorator for rules, one way to bind a generic loop to a game's rules.

numba's own cache looks only at the file of the function it stores, so a changed callee in another
file would go unnoticed. Both ways here put a digest of all sources that a kernel may call into the
cached name: a changed rule never meets stale machine code, an unchanged one never compiles twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba

Kernel = Callable[..., Any]


_HERE = Path(__file__).parent
_COMPILED = re.compile(rb"^@(kernel|inlined)", re.MULTILINE)


@cache
def source_digest(path: str) -> str:
    """Digest of the sources that compiled code of a file may call, 12 hex digits.

    These are the file itself, the other files of its folder that hold kernels (not those of
    agentgym's root, which call nothing of each other), the shared chance kernels and numba.
    """
    own = Path(path)
    files = {own, _HERE / "chance.py", _HERE / "kernels.py"}
    if own.parent != _HERE:
        files.update(f for f in own.parent.glob("*.py") if _COMPILED.search(f.read_bytes()))
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=6)
    for file in sorted(files):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def kernel(function: Kernel) -> Kernel:
    """Compile a rule function: no Python objects, no allocation, cached on disk."""
    return _compile(function, "")


def inlined(function: Kernel) -> Kernel:
    """A kernel that is copied into each that calls it: for pieces that cost less than a call."""
    return _compile(function, "", forceinline=True)


def specialise(template: Kernel, label: str, **rules: Kernel) -> Kernel:
    """A compiled copy of a generic loop, its free names bound to one game's rules.

    Args:
        template: A plain function that calls rules by global name, for example `step`.
        label: Tells the copies of one template apart, for example the game's name.
        **rules: The kernels that the template's global names stand for.
    """
    scope = dict(template.__globals__, **rules)
    copy = FunctionType(template.__code__, scope, template.__name__, template.__defaults__)
    copy.__module__ = template.__module__
    copy.__qualname__ = template.__qualname__
    # A kernel's own __qualname__ holds the digest of its sources, see `_compile`.
    bound = " ".join(f"{name}={rules[name].__qualname__}" for name in sorted(rules))
    salt = hashlib.blake2b(bound.encode(), digest_size=6).hexdigest()
    return _compile(copy, f"_{label}_{salt}")


def _compile(function: Any, suffix: str, *, forceinline: bool = False) -> Kernel:
    # numba names cache files after __qualname__, which is how the digest gets into the key.
    function.__qualname__ += f"{suffix}_{source_digest(_source(function))}"
    return numba.njit(cache=True, error_model="numpy", forceinline=forceinline)(function)


def _source(function: Any) -> str:
    return getattr(function, "py_func", function).__code__.co_filename
