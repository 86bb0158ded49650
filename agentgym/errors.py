"""Everything a user can cause, as an exception with one sentence that says what to do next.

AgentGymError
├── UnknownName       a name that is not in a table: id, level, split, model, suite
├── InvalidOption     a keyword argument with a value that cannot be
├── InvalidInstance   a board or an instance file that breaks the game's rules
├── InvalidState      an array that is no state of this environment
├── EpisodeOver       an action after the end of the episode
└── MissingExtra      a package that an optional part needs
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from gymnasium.error import ResetNeeded


class AgentGymError(Exception):
    """Base of all errors that a user of agentgym can cause and mend."""


class UnknownName(AgentGymError, ValueError):
    """A name that is not in its table."""

    @classmethod
    def of(cls, kind: str, name: object, known: Iterable[str]) -> UnknownName:
        """Build the error that names what was asked, the nearest known name and all of them.

        Args:
            kind: What the name should be, for example "level".
            name: What was given.
            known: Every valid name.
        """
        names = sorted(known)
        near = get_close_matches(str(name), names, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = ", ".join(names[:30]) + (", ..." if len(names) > 30 else "")
        return cls(f"Unknown {kind} {name!r}.{hint} Known: {shown}.")


class InvalidOption(AgentGymError, ValueError):
    """A keyword argument with a value that cannot be."""


class InvalidInstance(AgentGymError, ValueError):
    """A board, or a file of boards, that breaks the game's rules."""


class InvalidState(AgentGymError, ValueError):
    """An array that is no state of this environment."""


class EpisodeOver(AgentGymError, ResetNeeded):
    """An action was taken after the end of the episode, or before the first reset."""


class MissingExtra(AgentGymError, ImportError):
    """A package that an optional part needs is not installed."""

    @classmethod
    def of(cls, part: str, package: str, extra: str) -> MissingExtra:
        """Build the error that names the part, the package and the command that mends it."""
        command = f"pip install 'agentgym-suite[{extra}]'"
        return cls(f"{part} needs the package {package}, which is not installed; run: {command}")
