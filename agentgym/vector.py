"""TextGameVectorEnv: many games of one kind at once, with no Python per game and step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from agentgym.errors import EpisodeOver, InvalidOption, UnknownName
from agentgym.game import ParseError
from agentgym.loops import (
    CURSOR,
    OVER,
    PROGRESS,
    SCORE,
    SUCCESS,
    TERMINATED,
    TRUNCATED,
    TURN,
    VALID,
    Play,
    limits_of,
    loops_of,
)
from agentgym.oracle import Notes, PoolOracle
from agentgym.setup import Setup, make_setup
from agentgym.spaces import action_space, observation_space

Flags = npt.NDArray[np.bool_]


class TextGameVectorEnv(VectorEnv[Any, Any, Any]):
    """`num_envs` games stepped by one compiled loop; made by `gym.make_vec("agentgym/...")`.

    Observations are grids (n, rows, cols) and actions indices (n,) unless text is asked for. Info
    holds arrays: `turn`, `valid`, `score`, `progress`, `success`, with `action_mask=True` also
    `action_mask`, and with `oracle=True` `milestones` and `oracle` as in a single environment
    (`best_actions` as a bool mask). Episode k of game i plays instance i + k n of a pool, round and
    round; from the second round on, the chance of a game of chance is another.
    """

    def __init__(
        self,
        game: str,
        *,
        num_envs: int = 1,
        pool: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        action_mask: bool = False,
        **arguments: Any,
    ) -> None:
        """Check the arguments; instances are made at the first `reset`.

        Args:
            game: As for `TextGameEnv`.
            num_envs: Number of games.
            pool: Number of instances; None takes `num_envs`, or all that `instances=` loads.
            autoreset_mode: Gymnasium's "NextStep", "SameStep" or "Disabled".
            action_mask: Put the mask of legal actions into `info`.
            **arguments: As for `TextGameEnv`, but grids, indices and no oracle by default.

        Raises:
            UnknownName: An argument, level or split that does not exist.
            InvalidOption: A value that cannot be.
        """
        if num_envs < 1 or (pool is not None and pool < 1):
            raise InvalidOption(f"num_envs and pool are at least 1, got {num_envs} and {pool}.")
        try:
            self._mode = AutoresetMode(autoreset_mode)
        except ValueError:
            modes = [mode.value for mode in AutoresetMode]
            raise UnknownName.of("autoreset mode", autoreset_mode, modes) from None
        given = {"observation": "grid", "action": "index", "oracle": False} | arguments
        self.setup: Setup = make_setup(game, given)
        self.metadata = {"autoreset_mode": self._mode, "render_modes": []}
        self.num_envs = num_envs
        self.single_observation_space = observation_space(self.setup)
        self.single_action_space = action_space(self.setup)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._with_mask = action_mask
        self._pool_size = pool or len(self.setup.starts) or num_envs
        self._pool: npt.NDArray[np.int64] | None = None
        self._allocate()

    def _allocate(self) -> None:
        setup, n = self.setup, self.num_envs
        self._loops = loops_of(setup.game)
        play = Play(setup.max_turns, dense=setup.common.reward == "dense")
        self._limits = limits_of(setup.game, len(setup.layout.actions), play)
        self._states = np.zeros((n, setup.layout.state_size), np.int64)
        self._numbers = np.zeros((n, 3))
        self._flags = np.zeros((n, 4), np.bool_)
        self._slots = np.zeros((n, 3), np.int64)
        self._held = np.zeros((n, len(setup.layout.milestones)), np.bool_)
        self._noted = setup.common.oracle or setup.common.end_on_dead_end
        self._new = np.zeros_like(self._held)
        self._notes: Notes | None = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every game, or in those of `options["reset_mask"]`.

        Args:
            seed: Game i gets the instance of seed + i (or of the i-th seed), and a new pool is
                made; None goes on with the next instances of the pool.
            options: "reset_mask": bool (n,), which games to reset.

        Raises:
            UnknownName: An option that does not exist.
            InvalidOption: A mask or a list of seeds of another length.
        """
        for name in options or {}:
            if name != "reset_mask":
                raise UnknownName.of("reset option", name, ["reset_mask"])
        who = np.ones(self.num_envs, np.bool_)
        if options and options.get("reset_mask") is not None:
            who = np.asarray(options["reset_mask"], np.bool_)
            if who.shape != (self.num_envs,):
                raise InvalidOption(f"reset_mask has shape ({self.num_envs},), got {who.shape}.")
        if seed is not None or self._pool is None:
            self._pool = self._make_pool(seed)
        self._restart(who)
        self._look(who)
        return self._observation(), self._info(np.full(self.num_envs, -1, np.int64), self._notes)

    def _make_pool(self, seed: int | Sequence[int | None] | None) -> npt.NDArray[np.int64]:
        n, size = self.num_envs, self._pool_size
        seeds = list(seed) if isinstance(seed, Sequence) else [seed] * n
        if len(seeds) != n:
            raise InvalidOption(f"There are {n} games, got {len(seeds)} seeds.")
        if not isinstance(seed, Sequence):
            seeds = [None if seed is None else int(seed) + i for i in range(n)]
        super().reset(seed=next((s for s in seeds if s is not None), None))
        drawn = self.np_random.integers(2**63 - 1, size=max(n, size)).tolist()
        named = [d if s is None else int(s) for s, d in zip(seeds, drawn, strict=False)]
        if self.setup.starts:
            pool = np.array(self.setup.starts[:size], np.int64)
        else:
            names = (named + drawn[n:])[:size]
            pool = np.array([self.setup.instance(name)[1].start for name in names], np.int64)
        self._slots[:, CURSOR] = np.arange(n)
        if self._noted:
            self._oracle = PoolOracle(self.setup.oracle(), pool, len(self.setup.layout.actions))
        return pool

    def step(
        self, actions: Any
    ) -> tuple[Any, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """Play one action in every game; see the class for observations and info.

        Args:
            actions: Indices (n,), or texts with `action="text"`; an illegal one costs its game a
                turn and changes nothing.

        Raises:
            EpisodeOver: Nothing was reset yet, or, with the mode "Disabled", a game is over.
            InvalidOption: There is not one action for each game.
        """
        if self._pool is None:
            raise EpisodeOver("There is no instance yet; call reset() first.")
        finished = self._slots[:, OVER] != 0
        if self._mode is AutoresetMode.DISABLED and finished.any():
            raise EpisodeOver(
                f"Game {int(finished.argmax())} is over; reset it with "
                'options={"reset_mask": ...} first.'
            )
        played = self._read(actions)
        self._loops.advance(
            self._states, played, self._slots, self._limits, self._numbers, self._flags
        )
        played[~self._flags[:, VALID]] = -1
        if self._mode is AutoresetMode.NEXT_STEP and finished.any():
            self._restart(finished)
        before = self._notes
        self._look(finished)
        rewards = self._numbers[:, 0].copy()
        ended, cut = self._flags[:, TERMINATED].copy(), self._flags[:, TRUNCATED].copy()
        info = self._info(played, before)
        if self._mode is AutoresetMode.SAME_STEP and (ended | cut).any():
            info = self._restart_at_once(ended | cut, played, before) | {"final_info": info}
        return self._observation(), rewards, ended, cut, info

    def _restart(self, who: Flags) -> None:
        self._loops.restart(self._states, who, self._pool, self._slots, self._numbers, self._flags)
        self._held[who] = False

    def _restart_at_once(
        self, who: Flags, played: npt.NDArray[np.int64], before: Notes | None
    ) -> dict[str, Any]:
        final, new = self._observation(), self._new
        self._restart(who)
        self._look(who)
        self._new = np.where(who[:, None], False, new)
        info = self._info(np.where(who, -1, played), before)
        return info | {"final_obs": final, "_final_obs": who, "_final_info": who.copy()}

    def _read(self, actions: Any) -> npt.NDArray[np.int64]:
        if self.setup.common.action == "text":
            parsed = [
                self.setup.game.parse(str(text), self.setup.layout, self.setup.options)
                for text in actions
            ]
            actions = [-1 if isinstance(action, ParseError) else action for action in parsed]
        played = np.array(actions, np.int64)
        if played.shape != (self.num_envs,):
            raise InvalidOption(
                f"There is one action for each of {self.num_envs} games, got {played.shape}."
            )
        return played

    def _observation(self) -> Any:
        if self.setup.common.observation == "text":
            options = self.setup.options
            return tuple(self.setup.game.render(state, options) for state in self._states)
        layout = self.setup.layout
        grids = np.empty((self.num_envs, layout.rows, layout.cols), np.uint8)
        self._loops.observe_all(self._states, grids)
        return grids

    def _look(self, fresh: Flags) -> None:
        """Take in the new states; those of the games in `fresh` are starts."""
        if not self._noted or self._pool is None:
            return
        which = (self._slots[:, CURSOR] - self.num_envs) % len(self._pool)
        self._notes = notes = self._oracle.notes(self._states, which)
        if self.setup.common.end_on_dead_end:
            dead = notes.dead_end & (self._slots[:, OVER] == 0)
            self._flags[dead, TERMINATED], self._flags[dead, TRUNCATED] = True, False
            self._slots[dead, OVER] = 1
        self._new = np.empty_like(self._held)
        self._loops.reach_all(
            self._states, self._pool[which], notes.dead_end, self._held, self._new
        )
        self._new[fresh] = False

    def _info(self, played: npt.NDArray[np.int64], before: Notes | None) -> dict[str, Any]:
        """Info of the states as they are; `played` holds the actions executed, -1 for none."""
        info: dict[str, Any] = {
            "turn": self._slots[:, TURN].copy(),
            "valid": self._flags[:, VALID].copy(),
            "score": self._numbers[:, SCORE].copy(),
            "progress": self._numbers[:, PROGRESS].copy(),
            "success": self._flags[:, SUCCESS].copy(),
        }
        if self._with_mask:
            mask = np.empty((self.num_envs, len(self.setup.layout.actions)), np.bool_)
            self._loops.legal_masks(self._states, mask)
            info["action_mask"] = mask
        notes = self._notes
        if self.setup.common.oracle and notes is not None:
            info["milestones"] = {"reached": self._held.copy(), "new": self._new.copy()}
            info["oracle"] = {
                "cost_to_go": notes.cost_to_go,
                "value": notes.value,
                "action_values": notes.action_values,
                "best_actions": notes.best,
                "progress": self._gains(played, before or notes, notes),
                "dead_end": notes.dead_end,
                "exact": notes.exact,
            }
        return info

    def _gains(
        self, played: npt.NDArray[np.int64], before: Notes, now: Notes
    ) -> npt.NDArray[np.float64]:
        """The oracle's progress of each game's last action, 0 where none was executed."""
        if self.setup.game.scored:
            chosen = before.action_values[np.arange(self.num_envs), played]
            gains = chosen - before.value
        else:
            was, dead = before.cost_to_go, np.isinf(now.cost_to_go)
            with np.errstate(invalid="ignore"):
                gains = np.where(dead, -was, was - now.cost_to_go)
            gains[np.isinf(was)] = 0.0
        return np.where(played < 0, 0.0, gains)
