"""TextGameEnv: the one Gymnasium environment of all native games."""

from __future__ import annotations

from itertools import compress
from typing import Any, cast

import gymnasium as gym
import numpy as np

from agentgym.errors import EpisodeOver, InvalidOption, InvalidState, UnknownName
from agentgym.game import Instance, Note, ParseError, State
from agentgym.info import UNDETERMINED, Info, MilestoneInfo, OracleInfo
from agentgym.loops import (
    OVER,
    TERMINATED,
    TRUNCATED,
    TURN,
    VALID,
    Play,
    limits_of,
    loops_of,
)
from agentgym.setup import Setup, make_setup
from agentgym.spaces import action_space, observation_space

_RESET_OPTIONS = ("index", "level", "split")
_ALL = np.ones(1, np.bool_)


class TextGameEnv(gym.Env[Any, Any]):
    """A game as a Gymnasium environment; made by `gym.make("agentgym/...")`.

    Attributes:
        setup: Game, arguments, layout and turn limit, as checked.
        oracle: Answers `note(state)` and `solve(state)` for any state of the game.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, game: str, *, render_mode: str | None = None, **arguments: Any) -> None:
        """Check the arguments; no instance is made before `reset`.

        Args:
            game: The game's folder below `agentgym.games`, or the import path of another's.
            render_mode: None or "ansi": `render()` returns the board as text.
            **arguments: See `agentgym.setup.Common`; the rest are the game's own, on its card.

        Raises:
            UnknownName: An argument, level or split that does not exist.
            InvalidOption: A value that cannot be.
            InvalidInstance: An instance file that breaks the game's rules.
        """
        if render_mode not in (None, "ansi"):
            raise InvalidOption(f'render_mode is None or "ansi", got {render_mode!r}.')
        self.render_mode = render_mode
        self._base = make_setup(game, arguments)
        self._next_seed = self._base.common.seed
        self._apply(self._base)

    def _apply(self, setup: Setup) -> None:
        """Take on another level or split; only `reset` and `__init__` do."""
        self.setup = setup
        layout, common = setup.layout, setup.common
        self.observation_space = observation_space(setup)
        self.action_space = action_space(setup)
        play = Play(setup.max_turns, dense=common.reward == "dense")
        self._limits = limits_of(setup.game, len(layout.actions), play)
        self._states = np.zeros((1, layout.state_size), np.int64)
        self._mask = np.empty((1, len(layout.actions)), np.bool_)
        self._numbers = np.zeros((1, 3))
        self._flags = np.zeros((1, 4), np.bool_)
        self._slots = np.array([[0, 1, 0]], np.int64)
        self._action = np.zeros(1, np.int64)
        self._dead = np.zeros(1, np.bool_)
        self._held = np.zeros((1, len(layout.milestones)), np.bool_)
        self._bind()

    def _bind(self) -> None:
        """Fetch what is shared within the process and never copied with the environment."""
        self._loops = loops_of(self.setup.game)
        self.oracle = self.setup.oracle()
        self._noted = self.setup.common.oracle or self.setup.common.end_on_dead_end

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an instance: that of the seed, or the next one that the environment draws.

        Args:
            seed: Names the instance, together with the split and the game's arguments.
            options: "index" (which loaded instance), "level", "split"; for this episode.

        Raises:
            UnknownName: An option that does not exist.
            InvalidOption: An index out of range, or a level of other shapes than the spaces have.
        """
        chosen = dict(options or {})
        for name in chosen:
            if name not in _RESET_OPTIONS:
                raise UnknownName.of("reset option", name, _RESET_OPTIONS)
        if seed is None:
            seed, self._next_seed = self._next_seed, None
        super().reset(seed=seed)
        index = chosen.pop("index", None)
        self._change(self._base.changed(**chosen) if chosen else self._base)
        seed = int(self.np_random.integers(2**63 - 1)) if seed is None else seed
        self._instance_id, instance = self.setup.instance(seed, index)
        return self._begin(instance)

    def _change(self, setup: Setup) -> None:
        if setup is self.setup:
            return
        if setup.layout != self.setup.layout and self.setup.common.action == "index":
            raise InvalidOption(
                f"Level {setup.options.level!r} has other spaces than this environment's; make "
                'another environment for it, or use action="text" and observation="text".'
            )
        self._apply(setup)

    def _begin(self, instance: Instance) -> tuple[Any, dict[str, Any]]:
        self._starts = instance.start[None]
        self._slots[0] = 0
        self._loops.restart(
            self._states, _ALL, self._starts, self._slots, self._numbers, self._flags
        )
        self._milestone_total = self.setup.game.milestone_total(instance.start, self.setup.layout)
        self._held[:] = False
        self._note = None
        observation, info = self._observe(-1, "")
        info["milestones"]["new"][:] = False
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; one that is not understood or not legal costs a turn, changes nothing.

        Args:
            action: A text, or an index with `action="index"`.

        Raises:
            EpisodeOver: The episode has ended, or never begun.
        """
        if self._slots[0, OVER]:
            raise EpisodeOver("The episode is over; call reset() to begin another.")
        index, error = self._read(action)
        self._action[0] = index
        self._loops.advance(
            self._states, self._action, self._slots, self._limits, self._numbers, self._flags
        )
        valid, terminated, _, truncated = self._flags[0].tolist()
        if not valid and not error:
            setup = self.setup
            error = setup.game.explain(self._states[0], index, setup.layout, setup.options)
        observation, info = self._observe(index if valid else -1, error)
        if self.setup.common.end_on_dead_end and not terminated and self._note is not None:
            terminated = self._note.dead_end
            truncated = truncated and not terminated
            self._slots[0, OVER] |= terminated
        return observation, float(self._numbers[0, 0]), terminated, truncated, info

    def _read(self, action: Any) -> tuple[int, str]:
        """The action's index, or -1 and why there is none."""
        setup = self.setup
        if setup.common.action == "text":
            parsed = setup.game.parse(str(action), setup.layout, setup.options)
            return (-1, parsed.message) if isinstance(parsed, ParseError) else (parsed, "")
        index, count = int(action), len(setup.layout.actions)
        if 0 <= index < count:
            return index, ""
        return -1, f"An action is an index from 0 to {count - 1}, got {index}."

    def _observe(self, action: int, error: str) -> tuple[Any, dict[str, Any]]:
        """Observation and info of the state as it is; `action` is the one executed, -1 if none."""
        actions, common = self.setup.layout.actions, self.setup.common
        self._loops.legal_masks(self._states, self._mask)
        _, score, progress = self._numbers[0].tolist()
        valid, _, success, _ = self._flags[0].tolist()
        before, self._note = self._note, None
        if self._noted:
            self._note = self.oracle.note(self._states[0])
        info: Info = {
            "instance": self._instance_id,
            "turn": self._slots[0, TURN].item(),
            "valid": valid,
            "error": error,
            "action": actions[action] if action >= 0 else "",
            "legal_actions": tuple(compress(actions, self._mask[0].tolist())),
            "score": score,
            "progress": progress,
            "success": success,
            "milestones": self._milestones(self._note),
        }
        if common.oracle and self._note is not None:
            info["oracle"] = self._oracle_info(self._note, before, action)
        return self._observation(), cast(dict[str, Any], info)

    def _observation(self) -> Any:
        setup = self.setup
        if setup.common.observation == "text":
            return setup.game.render(self._states[0], setup.options)
        grids = np.empty((1, setup.layout.rows, setup.layout.cols), np.uint8)
        self._loops.observe_all(self._states, grids)
        return grids[0]

    def _milestones(self, note: Note | None) -> MilestoneInfo:
        held = self._held.copy()
        new = np.empty_like(held)
        self._dead[0] = note is not None and note.dead_end
        count = self._loops.reach_all(self._states, self._starts, self._dead, held, new)
        # Without a note, the oracle is asked only when there seems to be something new.
        if note is None and self.setup.game.milestones_need_oracle and new.any():
            self._dead[0] = self.oracle.note(self._states[0]).dead_end
            held = self._held.copy()
            count = self._loops.reach_all(self._states, self._starts, self._dead, held, new)
        self._held = held.copy()
        return {"reached": held[0], "new": new[0], "count": count, "total": self._milestone_total}

    def _oracle_info(self, note: Note, before: Note | None, action: int) -> OracleInfo:
        info: OracleInfo = {
            "cost_to_go": _number(note.cost_to_go),
            "value": _number(note.value),
            "best_actions": tuple(compress(self.setup.layout.actions, note.best.tolist())),
            "progress": 0.0,
            "dead_end": note.dead_end,
            "exact": note.exact,
        }
        if note.action_values is not None:
            info["action_values"] = note.action_values
        if before is not None and action >= 0:
            info["progress"] = _number(self._gain(before, note, action))
        return info

    def _gain(self, before: Note, now: Note, action: int) -> float:
        """CAST's shifted advantage of the last action, or Q - V in games that are scored."""
        if self.setup.game.scored:
            values = before.action_values
            return np.nan if values is None else float(values[action]) - before.value
        if before.cost_to_go == np.inf:
            return 0.0
        return (
            -before.cost_to_go if now.cost_to_go == np.inf else before.cost_to_go - now.cost_to_go
        )

    @property
    def state(self) -> State:
        """The state, a read-only copy: int64, shape (layout.state_size,)."""
        state = self._states[0].copy()
        state.flags.writeable = False
        return state

    def set_state(self, state: State, *, turn: int | None = None) -> dict[str, Any]:
        """Go on from another state of the same instance.

        Args:
            state: As `state` gave it.
            turn: Turns taken so far; None leaves the count as it is.

        Returns:
            The state's info; milestones are those that the state itself reaches.

        Raises:
            InvalidState: The array has another shape or dtype.
            EpisodeOver: Nothing was reset yet.
        """
        if not hasattr(self, "_starts"):
            raise EpisodeOver("There is no instance yet; call reset() first.")
        given = np.asarray(state)
        if given.shape != self._states[0].shape or given.dtype != np.int64:
            raise InvalidState(
                f"A state here is an int64 array of shape {self._states[0].shape}, "
                f"got {given.dtype} of shape {given.shape}."
            )
        self._states[0] = given
        self._slots[0, TURN] = self._slots[0, TURN] if turn is None else turn
        self._loops.describe(self._states, self._numbers, self._flags)
        self._flags[0, TRUNCATED] = self._slots[0, TURN] >= self.setup.max_turns
        self._slots[0, OVER] = self._flags[0, TERMINATED] or self._flags[0, TRUNCATED]
        self._flags[0, VALID] = True
        self._held[:] = False
        self._note = None
        return self._observe(-1, "")[1]

    def render(self) -> str | None:
        """The board as text, with `render_mode="ansi"`."""
        if self.render_mode is None:
            return None
        return self.setup.game.render(self._states[0], self.setup.options)

    def __getstate__(self) -> dict[str, Any]:
        """All but what is shared within the process."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_loops", "oracle")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the copied part and fetch the shared one."""
        self.__dict__.update(state)
        self._bind()


def _number(value: float) -> float:
    return value if value == value else UNDETERMINED
