"""Chance that lives in the state: a counter-based generator, its key and counter two fields of it.

The k-th draw of a key is SplitMix64's k-th output (Steele, Lea and Flood 2014, "Fast splittable
pseudorandom number generators"; constants from there): a pure function of key and counter, so a
state and its actions fix all that follows, and writing another key branches the future.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym.kernels import kernel

KEY = 0
"""Field of every state that holds the chance key; 0 in games without chance."""
COUNTER = 1
"""Field of every state that counts the draws made; 0 in games without chance."""
HEADER = 2
"""Number of fields that every state begins with; a game's own fields follow."""

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@kernel
def mix(word: Any) -> Any:
    """SplitMix64's finaliser: a bijection of uint64 onto itself whose output bits look random."""
    word = np.uint64(word)
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


@kernel
def bits(key: Any, counter: Any) -> Any:
    """The counter-th (from 0) 64 random bits of a key, as uint64."""
    return mix(np.uint64(key) + (np.uint64(counter) + np.uint64(1)) * _GAMMA)


@kernel
def below(word: Any, bound: Any) -> Any:
    """Map 64 random bits to an integer in [0, bound), bound < 2^31; bias below bound / 2^32."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@kernel
def draw_below(state: Any, bound: Any) -> Any:
    """Draw an integer in [0, bound) from the state's chance; advances its counter by one."""
    word = bits(state[KEY], state[COUNTER])
    state[COUNTER] += 1
    return below(word, bound)


@kernel
def draw_unit(state: Any) -> Any:
    """Draw a float64 in [0, 1), 53 random bits, from the state's chance; advances its counter."""
    word = bits(state[KEY], state[COUNTER])
    state[COUNTER] += 1
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def rekey(state: Any, branch: Any) -> None:
    """Give the state another future: a key derived from its own and `branch`, counter back to 0."""
    state[KEY] = np.int64(bits(mix(np.uint64(state[KEY]) ^ np.uint64(state[COUNTER])), branch))
    state[COUNTER] = 0
