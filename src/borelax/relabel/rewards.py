"""Phase 2: reward relabelling (paper, section 4), the repair of MDP ambiguity.

In a rollout of task i, the first or the last half of its episodes is replaced by
episodes that another task's agent made, with the rewards task i would have given.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Shaped

from borelax.errors import ConfigError, require
from borelax.logs import TaskLogs
from borelax.relabel.source import AsLogged, Provenance, draw_places, take
from borelax.simulate.simulator import RewardFunction, Simulator
from borelax.types import Episodes, Key


@dataclass(frozen=True)
class KeepAsIs:
    """No relabelling: learn from the logs alone."""

    name: ClassVar[str] = "none"

    def __call__(self, logs: TaskLogs, simulator: Simulator) -> AsLogged:
        """The logs as a source."""
        return AsLogged(logs.episodes)


@dataclass(frozen=True)
class RelabelRewards:
    """Fill half of each rollout with other tasks' episodes under its own reward."""

    name: ClassVar[str] = "rewards"

    def __call__(self, logs: TaskLogs, simulator: Simulator) -> "Relabelled":
        """The relabelling source; needs a reward function and two tasks."""
        if simulator.reward is None:
            raise ConfigError(
                "Reward relabelling needs the tasks' reward function, and this "
                "simulator has none. Use --relabel none, or give a reward function."
            )
        require(
            logs.num_tasks >= 2,
            "Reward relabelling borrows from other tasks, and these logs hold only "
            "one. Collect more tasks or use --relabel none.",
        )
        return Relabelled(logs.tasks, logs.episodes, simulator.reward)


class Relabelled(eqx.Module):
    """Draws composite rollouts; holds the tasks so that learners need not."""

    tasks: Any
    episodes: Episodes
    reward: RewardFunction = eqx.field(static=True)

    def draw(self, num_rollouts: int, *, key: Key) -> Episodes:
        """Random composite rollouts [num_rollouts, E, …]."""
        return self.draw_with_makers(num_rollouts, key=key).rollouts

    def draw_with_makers(self, num_rollouts: int, *, key: Key) -> Provenance:
        """Composite rollouts, their tasks, and which task's agent made each episode."""
        key_own, key_donor, key_other, key_slots = jr.split(key, 4)
        num_tasks, _, num_episodes, _ = self.episodes.reward.shape
        own_task, own_rollout = draw_places(self.episodes, num_rollouts, key=key_own)
        _, donor_rollout = draw_places(self.episodes, num_rollouts, key=key_donor)
        # 1 … N-1 ahead, so that a task never borrows from itself
        ahead = jr.randint(key_other, (num_rollouts,), 1, num_tasks)
        donor_task = (own_task + ahead) % num_tasks
        keys = jr.split(key_slots, num_rollouts)
        borrowed = jax.vmap(lambda k: borrowed_slots(num_episodes, key=k))(keys)
        tasks = jax.tree.map(lambda x: x[own_task], self.tasks)
        donors = jax.vmap(lambda t, e: relabel(self.reward, t, e))(
            tasks, take(self.episodes, donor_task, donor_rollout)
        )
        own = take(self.episodes, own_task, own_rollout)
        makers = jnp.where(borrowed, donor_task[:, None], own_task[:, None])
        rollouts = replace_episodes(own, donors, borrowed)
        return Provenance(rollouts, own_task, makers)


def borrowed_slots(num_episodes: int, *, key: Key) -> Shaped[Array, "E"]:
    """Which episodes to replace: the first or the last ⌈k/2⌉, by a fair coin.

    With a single episode the coin decides whether it is replaced at all.
    """
    count = (num_episodes + 1) // 2
    slots = jnp.arange(num_episodes)
    first = slots < count
    other = slots >= num_episodes - count if num_episodes > 1 else ~first
    return jnp.where(jr.bernoulli(key), first, other)


def relabel(reward: RewardFunction, task: Any, episodes: Episodes) -> Episodes:
    """The same episodes with the rewards of ``task``; nothing else changes."""
    steps = episodes.transitions()
    rewards = jax.vmap(lambda step: reward(task, step))(steps)
    shape = episodes.reward.shape
    return Episodes(episodes.obs, episodes.action, rewards.reshape(shape))


def replace_episodes(
    own: Episodes, other: Episodes, where: Shaped[Array, "draws E"]
) -> Episodes:
    """``other``'s episodes where ``where`` holds, else ``own``'s."""

    def pick(a: Array, b: Array) -> Array:
        mask = where.reshape(where.shape + (1,) * (a.ndim - where.ndim))
        return jnp.where(mask, b, a)

    return jax.tree.map(pick, own, other)
