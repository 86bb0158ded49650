"""Which instance belongs to train, validation and test, and what an instance is called.

A digest of the canonical form decides the split, and generators reject until it is the asked one:
no canonical form is ever in two splits, whatever the seeds.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import numpy as np

from agentgym.errors import InvalidOption, UnknownName
from agentgym.game import Game, Instance, Options

SPLITS = ("train", "validation", "test")
"""Half of all canonical forms are train, a quarter validation, a quarter test."""

_SPLIT_OF_QUARTER = ("train", "train", "validation", "test")


def split_of(canonical: bytes) -> str:
    """The one split that a canonical form belongs to."""
    return _SPLIT_OF_QUARTER[blake2b(canonical, digest_size=8, person=b"split").digest()[0] % 4]


def check_split(split: str) -> str:
    """The split itself.

    Raises:
        UnknownName: It is not one of `SPLITS`.
    """
    if split not in SPLITS:
        raise UnknownName.of("split", split, SPLITS)
    return split


@lru_cache(maxsize=4096)
def instance(game: Game, options: Options, split: str, seed: int) -> Instance:
    """The instance that (game, arguments, split, seed) names; equal in every process.

    Raises:
        UnknownName: There is no such split.
        InvalidOption: The seed is not a whole number from 0 to 2^63 - 1.
    """
    check_split(split)
    if not 0 <= seed < 2**63:
        raise InvalidOption(f"A seed is a whole number from 0 to 2^63 - 1, got {seed!r}.")
    name = f"{game.title}-v{game.version}|{options.instance_key}|{split}|{seed}"
    digest = blake2b(name.encode(), digest_size=16).digest()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest))))
    made = game.generate(rng, options, lambda canonical: split_of(canonical) == split)
    made.start.flags.writeable = False
    return made


def instance_id(game: Game, options: Options, source: str, canonical: bytes) -> str:
    """Stable id of an instance: game, version, arguments, where it is from, hash of its form.

    Args:
        game: The game.
        options: Its arguments.
        source: "split/seed", or the file's name and the index in it.
        canonical: The canonical form.
    """
    form = blake2b(canonical, digest_size=6).hexdigest()
    return f"{game.title}-v{game.version}/{options.instance_key}/{source}/{form}"
