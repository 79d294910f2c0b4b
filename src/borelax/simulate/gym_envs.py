"""Many Gymnasium environments, stepped one after another: the NumPy half.

An environment that fails, or breaks its contract, is named with its task and step.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np

from borelax.errors import SimulationError
from borelax.tasks.gym_check import make_env
from borelax.tasks.gym_tasks import ActionScale, GymTasks, reset_options
from borelax.types import axis_size

MOST_IDLE = 256
"""Environments that are kept open without being in use."""


class EnvStore:
    """Environments that were made before, by their task."""

    def __init__(self, tasks: GymTasks):
        """Nothing is made before it is asked for."""
        self.tasks = tasks
        self.envs: dict[tuple[Hashable, int], Any] = {}

    def take(self, tasks: Any, repeats: int) -> list[Any]:
        """An environment for each of ``repeats`` simulations of each task [N]."""
        values, used = jax.device_get(tasks), Counter()
        wanted = []
        for n in range(axis_size(tasks)):
            task = jax.tree.map(lambda x, n=n: np.asarray(x)[n], values)
            token = tuple(np.asarray(x).tobytes() for x in jax.tree.leaves(task))
            for _ in range(repeats):
                place = (token, used[token])
                used[token] += 1
                if place not in self.envs:
                    self.envs[place] = make_env(self.tasks, task)
                wanted.append(place)
        self._close_idle(set(wanted))
        return [self.envs[place] for place in wanted]

    def _close_idle(self, wanted: set) -> None:
        idle = [place for place in self.envs if place not in wanted]
        for place in idle[: max(0, len(idle) - MOST_IDLE)]:  # those made first
            self.envs.pop(place).close()


class EnvBatch:
    """K environments in the same episode; those that ended wait for the others."""

    def __init__(self, tasks: GymTasks, envs: list[Any], repeats: int):
        """Environment k simulates task k // ``repeats``."""
        self.tasks, self.envs, self.repeats = tasks, envs, repeats
        self.scale = ActionScale(tasks.spec, [env.action_space for env in envs])
        self.obs = np.zeros((len(envs), tasks.spec.obs_size), np.float32)
        """What each environment showed last."""
        self.going = np.ones(len(envs), bool)
        """Which episodes have not ended by themselves."""
        self.episode = self.time = 0

    def reset(self, seeds: np.ndarray, start: str, episode: int) -> None:
        """Begin an episode everywhere, each environment from its own seed."""
        self.episode, self.time = episode, 0
        self.going[:] = True
        options = reset_options(start)
        for k, env in enumerate(self.envs):
            try:
                obs, _ = env.reset(seed=int(seeds[k]), options=options)
            except Exception as error:
                raise self._failed(k, error) from error
            self._show(k, obs)
        self._refuse_non_finite(self.obs, "an observation")

    def step(self, actions: np.ndarray) -> np.ndarray:
        """One step of every episode that goes on [K]; returns what was paid."""
        self.time += 1
        own, paid = self.scale(actions), np.zeros(len(self.envs), np.float32)
        for k in np.flatnonzero(self.going).tolist():
            try:
                obs, reward, terminated, truncated, _ = self.envs[k].step(own[k])
                paid[k], ended, stopped = reward, bool(terminated), bool(truncated)
            except Exception as error:
                raise self._failed(k, error) from error
            self._show(k, obs)
            if ended:
                self.going[k] = False
            elif stopped and self.time < self.tasks.spec.horizon:
                raise SimulationError(
                    f"{self._place(k)}: the environment cut the episode off, before "
                    f"spec.horizon, {self.tasks.spec.horizon}; make its own time limit "
                    "longer."
                )
        self._refuse_non_finite(self.obs, "an observation")
        self._refuse_non_finite(paid[:, None], "a reward")
        return paid

    def _show(self, k: int, obs: Any) -> None:
        try:
            row = np.asarray(obs, np.float32)
        except (TypeError, ValueError) as error:  # no numbers, or ragged
            raise self._failed(k, error) from error
        if row.shape != self.obs.shape[1:]:
            raise SimulationError(
                f"{self._place(k)}: the environment gave an observation of shape "
                f"{row.shape}, not {self.obs.shape[1:]}."
            )
        self.obs[k] = row

    def _refuse_non_finite(self, rows: np.ndarray, what: str) -> None:
        fine = np.isfinite(rows).all(axis=1)
        if not fine.all():
            k = int(np.argmin(fine))
            raise SimulationError(
                f"{self._place(k)}: the environment gave {what} with NaN or infinity."
            )

    def _failed(self, k: int, error: Exception) -> SimulationError:
        said = f"{type(error).__name__}: {error}"
        return SimulationError(f"{self._place(k)}: the environment failed. {said}")

    def _place(self, k: int) -> str:
        return (
            f"{self.tasks.name}, task {k // self.repeats}, rollout {k % self.repeats}, "
            f"episode {self.episode + 1}, step {self.time}"
        )
