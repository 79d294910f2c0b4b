"""Where learners get rollouts from: drawn afresh per batch, without the task.

A phase-2 choice (``KeepAsIs``, ``RelabelRewards``) turns logs into a ``RolloutSource``.
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from borelax.logs import TaskLogs
from borelax.simulate.simulator import Simulator
from borelax.types import Episodes, Key


@runtime_checkable
class RolloutSource(Protocol):
    """A pytree of arrays that gives random rollouts; pure."""

    def draw(self, num_rollouts: int, *, key: Key) -> Episodes:
        """``num_rollouts`` rollouts of random tasks: [num_rollouts, E, …]."""
        ...

    def draw_with_makers(self, num_rollouts: int, *, key: Key) -> "Provenance":
        """The same rollouts, and where each of their episodes came from."""
        ...


class Provenance(eqx.Module):
    """Rollouts with their tasks and the tasks whose agents made each episode."""

    rollouts: Episodes
    task: Int[Array, "draws"]
    maker: Int[Array, "draws E"]


@runtime_checkable
class Relabelling(Protocol):
    """Phase 2: how logs become training data."""

    def __call__(self, logs: TaskLogs, simulator: Simulator) -> RolloutSource:
        """The source that the belief model and the meta-agent learn from."""
        ...


def draw_places(
    episodes: Episodes, num_rollouts: int, *, key: Key
) -> tuple[Int[Array, "draws"], Int[Array, "draws"]]:
    """Random (task, rollout) indices into [N, R, …]."""
    key_task, key_rollout = jr.split(key)
    num_tasks, available = episodes.reward.shape[:2]
    tasks = jr.randint(key_task, (num_rollouts,), 0, num_tasks)
    return tasks, jr.randint(key_rollout, (num_rollouts,), 0, available)


def take(episodes: Episodes, n: Int[Array, "draws"], r: Int[Array, "draws"]):
    """Rollout r of task n, for each pair."""
    return jax.tree.map(lambda x: x[n, r], episodes)


class AsLogged(eqx.Module):
    """Rollouts as they were logged."""

    episodes: Episodes

    def draw(self, num_rollouts: int, *, key: Key) -> Episodes:
        """Random rollouts, untouched."""
        return self.draw_with_makers(num_rollouts, key=key).rollouts

    def draw_with_makers(self, num_rollouts: int, *, key: Key) -> Provenance:
        """Every episode is its own task's."""
        task, rollout = draw_places(self.episodes, num_rollouts, key=key)
        maker = jnp.repeat(task[:, None], self.episodes.reward.shape[2], axis=1)
        return Provenance(take(self.episodes, task, rollout), task, maker)
