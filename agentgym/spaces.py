"""The Gymnasium spaces of an environment."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from gymnasium import spaces

from agentgym.setup import Setup

MAX_TEXT = 16_384
"""Longest observation, and longest reply that the action space contains, in characters."""
_ASCII = frozenset(string.printable)


class ActionText(spaces.Text):
    """Any text is in it; samples are actions that the game understands."""

    def __init__(self, actions: tuple[str, ...]) -> None:
        """Sample from `actions`."""
        super().__init__(MAX_TEXT, min_length=0, charset=_ASCII)
        self.actions = actions

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """One action text, uniformly; masks of single characters make no sense here."""
        return self.actions[int(self.np_random.integers(len(self.actions)))]

    def contains(self, x: Any) -> bool:
        """Every string: what it means is for the game to say."""
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        """Equal if the same actions are sampled."""
        return isinstance(other, ActionText) and self.actions == other.actions

    __hash__ = None  # type: ignore[assignment]


def observation_space(setup: Setup) -> spaces.Space[Any]:
    """Text with the charset of the game's glyphs, or uint8 cell codes of shape (rows, cols)."""
    if setup.common.observation == "text":
        # Chosen glyphs, such as Sokoban's symbols, stand in the options.
        charset = _ASCII | set(repr(setup.options))
        return spaces.Text(MAX_TEXT, min_length=0, charset=frozenset(charset | set("√")))
    layout = setup.layout
    return spaces.Box(0, layout.codes - 1, (layout.rows, layout.cols), np.uint8)


def action_space(setup: Setup) -> spaces.Space[Any]:
    """Any text, or the index of an action."""
    if setup.common.action == "text":
        return ActionText(setup.layout.actions)
    return spaces.Discrete(len(setup.layout.actions))
