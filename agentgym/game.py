"""What a game is: a handful of functions over a flat state, and the words for their results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from agentgym.errors import InvalidOption, UnknownName
from agentgym.kernels import Kernel

State = npt.NDArray[np.int64]
"""A flat, fixed-length int64 array; fields 0 and 1 are the chance key and counter."""
Accept = Callable[[bytes], bool]
"""Tells a generator whether a canonical form belongs to the split that was asked for."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """A game's own keyword arguments; each game subclasses it and checks values at creation.

    Attributes:
        level: Name of the level that fixes the instances' size and difficulty.
    """

    level: str = ""

    @property
    def instance_key(self) -> str:
        """Stable text of the arguments that decide which instances there are (not their looks)."""
        return self.level


class Instance(NamedTuple):
    """A start state, and the form of it that drops all that makes no new problem."""

    start: State
    canonical: bytes


@dataclass(frozen=True)
class Layout:
    """The fixed shapes of one environment.

    Attributes:
        rows: Rows of the grid observation.
        cols: Columns of the grid observation.
        codes: Number of different cell codes; grid cells are uint8 below it.
        state_size: Length of every state.
        actions: Canonical text of each action index.
        lookup: Action index of every accepted spelling, in lower case.
        milestones: Name of each milestone, in the card's order.
    """

    rows: int
    cols: int
    codes: int
    state_size: int
    actions: tuple[str, ...]
    lookup: Mapping[str, int] = field(repr=False)
    milestones: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParseError:
    """Why a text is no action: one sentence, with what is accepted."""

    message: str


class Note(NamedTuple):
    """What the oracle knows about a state.

    Attributes:
        cost_to_go: N(s), fewest further actions to a win; inf if proven dead, nan if undetermined.
        value: V(s), higher is better; nan if undetermined.
        action_values: Q(s, a) per action index, float64, -inf where illegal; None if undetermined.
        best: Bool array per action index: optimal. All False where none is known.
        dead_end: Proven: no win is possible from here.
        exact: Proven, not a bound or an estimate.
    """

    cost_to_go: float
    value: float
    action_values: npt.NDArray[np.float64] | None
    best: npt.NDArray[np.bool_]
    dead_end: bool
    exact: bool


class Oracle(Protocol):
    """Knows the truth about states; may keep tables, which never change an answer."""

    def note(self, state: State) -> Note:
        """What is known about a state; fresh arrays on every call."""
        ...

    def solve(self, state: State) -> list[int]:
        """Action indices of a shortest win; empty if already won.

        Raises:
            NoSolution: No win is possible, or none was found within the budget.
        """
        ...


class NoSolution(Exception):
    """No win is possible from the state, or none was found within the oracle's budget."""


@dataclass(frozen=True, kw_only=True)
class Game:
    """A game as functions; its kernels change only the state they are given and allocate nothing.

    Attributes:
        name: Import path of the package that holds it as `GAME`.
        title: The stem of its ids, for example "Sokoban".
        version: The N of `-vN`; a change of behaviour raises it.
        options: Its keyword arguments.
        step: (state, action) -> float64: plays the action in place and returns the game's own
            (dense) reward; nan, and the state unchanged, where the action is not legal.
        legal: (state, action) -> bool.
        terminal: (state) -> bool: the game's own end, won or lost.
        success: (state) -> bool: won; stays True once it is.
        score: (state) -> float64: the game's own score.
        progress: (state) -> float64 in [0, 1]; 1 only on success.
        observe: (state, grid) -> None: fills the whole uint8 grid of shape (rows, cols).
        reached: (state, start, dead_end, reached) -> None: sets True the milestones reached now;
            never clears one. `dead_end` is False where it is not proven.
        scored: The default reward is the gain in score, not 1 on success.
        chance: The state's chance key matters.
        peeks: `cost_to_go` and `solve` see what the player cannot; `best` never does.
        milestones_need_oracle: `reached` depends on `dead_end`.
        invalid_reward: Dense reward of an action that is not legal or did not parse.
        generate: (rng, options, accept) -> Instance: rejects until `accept(canonical)` and the
            level's band hold.
        load: (path, options) -> states of the file or folder, all of one length.
        canonical: (state) -> bytes of the canonical form.
        layout: (options, starts or None) -> Layout; `starts` are the loaded states.
        instructions: (options, layout) -> the rules as told to a player.
        render: (state, options) -> the observation as text.
        parse: (text, layout, options) -> action index or ParseError; never raises.
        explain: (state, action, layout, options) -> one sentence on why the action is not legal.
        make_oracle: (options, budget in states) -> Oracle.
        milestone_total: (start, layout) -> how many of the milestones exist in this instance.
    """

    name: str
    title: str
    version: int
    options: type[Options]
    step: Kernel
    legal: Kernel
    terminal: Kernel
    success: Kernel
    score: Kernel
    progress: Kernel
    observe: Kernel
    reached: Kernel
    scored: bool = False
    chance: bool = False
    peeks: bool = False
    milestones_need_oracle: bool = False
    invalid_reward: float = 0.0
    generate: Callable[[np.random.Generator, Any, Accept], Instance]
    load: Callable[[Path, Any], tuple[State, ...]]
    canonical: Callable[[State], bytes]
    layout: Callable[[Any, Sequence[State] | None], Layout]
    instructions: Callable[[Any, Layout], str]
    render: Callable[[State, Any], str]
    parse: Callable[[str, Layout, Any], int | ParseError]
    explain: Callable[[State, int, Layout, Any], str]
    make_oracle: Callable[[Any, int], Oracle]
    milestone_total: Callable[[State, Layout], int] = lambda start, layout: len(layout.milestones)

    def __reduce__(self) -> tuple[Callable[[str], Game], tuple[str]]:
        """Pickle and copy as a reference: a game never changes."""
        return load_game, (self.name,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Game:
        """A game never changes, so its copy is itself."""
        return self


def load_game(name: str) -> Game:
    """The game of a package, for example "agentgym.games.sokoban"."""
    return import_module(name).GAME


def make_options(game: Game, given: Mapping[str, Any]) -> Any:
    """Check keyword arguments against a game's options.

    Raises:
        UnknownName: An argument that the game does not have.
        InvalidOption: A value that cannot be.
    """
    known = [option.name for option in dataclasses.fields(game.options)]
    for name in given:
        if name not in known:
            raise UnknownName.of(f"keyword argument of {game.title}", name, known)
    try:
        return game.options(**given)
    except TypeError as fault:
        raise InvalidOption(f"{game.title} cannot be made with {dict(given)!r}: {fault}") from fault


def normalise(text: str) -> str:
    """Trim blanks and one pair of surrounding brackets, quotes or back-ticks; lower case."""
    text = text.strip().lower()
    if len(text) >= 2 and text[0] + text[-1] in _PAIRS:
        text = text[1:-1].strip()
    return text


_PAIRS = frozenset({"[]", "()", "{}", "<>", '""', "''", "``"})


def parse_by_lookup(text: str, layout: Layout, options: Any) -> int | ParseError:
    """Parse an action of a game whose actions are a short list of words."""
    action = layout.lookup.get(text)
    if action is None:
        action = layout.lookup.get(normalise(text))
    if action is None:
        shown = text if len(text) <= 60 else text[:57] + "..."
        accepted = ", ".join(layout.actions)
        return ParseError(f"{shown!r} is not an action; answer with one of: {accepted}.")
    return action
