"""The keyword arguments of an environment, checked once, and all that follows from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym.errors import InvalidInstance, InvalidOption, UnknownName
from agentgym.game import Game, Instance, Layout, Options, Oracle, State, load_game, make_options
from agentgym.registration import game_module, max_turns
from agentgym.splits import check_split, instance, instance_id

ORACLE_BUDGET = 20_000_000
"""States that an oracle may visit for one instance before it gives up on exactness."""

_CHOICES = {
    "reward": ("sparse", "dense"),
    "observation": ("text", "grid"),
    "action": ("text", "index"),
}


@dataclass(frozen=True)
class Common:
    """The arguments that every native game has.

    Attributes:
        split: "train", "validation" or "test".
        seed: Instance seed of the first reset that names none.
        instances: A file of instances in the game's own formats, in place of generated ones.
        reward: "sparse" (1 on success, or the gain in score) or "dense" (the game's own shaping).
        observation: "text" or "grid" (uint8 cell codes).
        action: "text" or "index".
        oracle: Put `info["oracle"]` there.
        end_on_dead_end: A proven dead end ends the episode.
        oracle_budget: States that the oracle may visit for one instance.
        max_turns: Turn limit; None takes the registration table's.
    """

    split: str = "test"
    seed: int | None = None
    instances: str | None = None
    reward: str = "sparse"
    observation: str = "text"
    action: str = "text"
    oracle: bool = True
    end_on_dead_end: bool = False
    oracle_budget: int = ORACLE_BUDGET
    max_turns: int | None = None

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            UnknownName: A word that is not among the choices.
            InvalidOption: A number out of range.
        """
        check_split(self.split)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UnknownName.of(name, getattr(self, name), choices)
        for name in ("oracle_budget", "max_turns"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidOption(f"{name} is at least 1, got {value!r}.")


@dataclass(frozen=True)
class Setup:
    """A checked choice of game and arguments.

    Attributes:
        name: The game as the registration table spells it.
        game: The game's functions.
        common: The arguments that every game has.
        options: The game's own.
        layout: Shapes, action texts and milestone names.
        starts: The loaded start states; empty for generated instances.
        max_turns: The turn limit.
    """

    name: str
    game: Game
    common: Common
    options: Options
    layout: Layout
    starts: tuple[State, ...]
    max_turns: int

    def instance(self, seed: int, index: int | None = None) -> tuple[str, Instance]:
        """The instance of a seed, or the index-th of the file, with its id.

        Raises:
            InvalidOption: An index without a file, or beyond its end.
        """
        if index is not None and not 0 <= index < len(self.starts):
            count = len(self.starts)
            raise InvalidOption(
                f"options['index'] chooses one of the {count} loaded instances, got {index!r}; "
                + ("give 0 to " + str(count - 1) if count else "give instances=path to load some")
            )
        if self.starts:
            index = seed % len(self.starts) if index is None else index
            start = self.starts[index]
            made = Instance(start, self.game.canonical(start))
            source = f"{Path(str(self.common.instances)).name}/{index}"
        else:
            made = instance(self.game, self.options, self.common.split, seed)
            source = f"{self.common.split}/{seed}"
        return instance_id(self.game, self.options, source, made.canonical), made

    def __deepcopy__(self, memo: dict[int, Any]) -> Setup:
        """Nothing in it ever changes, so its copy is itself."""
        return self

    def oracle(self) -> Oracle:
        """A new oracle for these arguments; its tables are shared within the process."""
        return self.game.make_oracle(self.options, self.common.oracle_budget)

    def changed(self, **arguments: Any) -> Setup:
        """The same with another level or split."""
        own = {f.name for f in dataclasses.fields(self.common)}
        common = {k: v for k, v in arguments.items() if k in own}
        rest = {k: v for k, v in arguments.items() if k not in own}
        options = {f.name: getattr(self.options, f.name) for f in dataclasses.fields(self.options)}
        return make_setup(self.name, dataclasses.asdict(self.common) | common | options | rest)


def make_setup(name: str, arguments: Mapping[str, Any]) -> Setup:
    """Check the arguments of an environment.

    Args:
        name: The game's folder below `agentgym.games`, or the import path of another's package.
        arguments: Common arguments and the game's own.

    Raises:
        UnknownName: An argument or a word that does not exist.
        InvalidOption: A value that cannot be.
        InvalidInstance: An instance file that breaks the game's rules.
    """
    game = load_game(game_module(name))
    own = {f.name for f in dataclasses.fields(Common)}
    unknown = set(arguments) - own - {f.name for f in dataclasses.fields(game.options)}
    if unknown:
        known = own | {f.name for f in dataclasses.fields(game.options)}
        raise UnknownName.of(f"keyword argument of {game.title}", min(unknown), known)
    common = Common(**{k: v for k, v in arguments.items() if k in own})
    options = make_options(game, {k: v for k, v in arguments.items() if k not in own})
    starts = _load(game, common.instances, options) if common.instances else ()
    limit = common.max_turns or max_turns(name, options.level)
    if limit is None:
        raise InvalidOption(f"{name!r} has no registered turn limit; give max_turns=.")
    return Setup(name, game, common, options, game.layout(options, starts or None), starts, limit)


def _load(game: Game, path: str, options: Options) -> tuple[State, ...]:
    if not Path(path).exists():
        raise InvalidInstance(f"instances={path!r}: there is no such file or folder.")
    starts = game.load(Path(path), options)
    if not starts:
        raise InvalidInstance(f"instances={path!r} holds no instance of {game.title}.")
    for start in starts:
        start.flags.writeable = False
    return starts
