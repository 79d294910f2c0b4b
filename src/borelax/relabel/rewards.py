"""Phase 2: reward relabelling (paper, section 4), the repair of MDP ambiguity.

In a rollout of task i, the first or the last half of its episodes is replaced by
episodes that another task's agent made, with the rewards task i would have given.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import Array, Int

from borelax.errors import ConfigError, require, require_share
from borelax.logs import TaskLogs
from borelax.relabel.source import (
    AsLogged,
    Made,
    Provenance,
    compose,
    draw_places,
    take,
)
from borelax.simulate.simulator import RewardFunction, Simulator
from borelax.types import Episodes, Key


@dataclass(frozen=True)
class KeepAsIs:
    """No relabelling: learn from the logs alone."""

    name: ClassVar[str] = "none"

    def __call__(
        self, logs: TaskLogs, simulator: Simulator, *, start: str, key: Key
    ) -> AsLogged:
        """The logs as a source."""
        return AsLogged(logs.episodes)


@dataclass(frozen=True)
class RelabelRewards:
    """Fill half of each rollout with other tasks' episodes under its own reward."""

    all_share: float = 0.0
    """Share of rollouts in which every episode is another task's. Those show behaviour
    that says nothing of the task, as a search does."""

    name: ClassVar[str] = "rewards"

    def __post_init__(self) -> None:
        """Refuse more than everything."""
        require_share(self, "all_share")

    def __call__(
        self, logs: TaskLogs, simulator: Simulator, *, start: str, key: Key
    ) -> "Relabelled":
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
        return Relabelled(logs.tasks, logs.episodes, simulator.reward, self.all_share)


class Relabelled(eqx.Module):
    """Draws composite rollouts; holds the tasks so that learners need not."""

    tasks: Any
    episodes: Episodes
    reward: RewardFunction = eqx.field(static=True)
    all_share: float = eqx.field(static=True, default=0.0)

    def draw(self, num_rollouts: int, *, key: Key) -> Episodes:
        """Random composite rollouts [num_rollouts, E, …]."""
        return self.draw_with_makers(num_rollouts, key=key).rollouts

    def draw_with_makers(self, num_rollouts: int, *, key: Key) -> Provenance:
        """Composite rollouts, their tasks, and which task's agent made each episode."""
        key_own, key_compose = jr.split(key)
        task, rollout = draw_places(self.episodes, num_rollouts, key=key_own)
        own = Made(take(self.episodes, task, rollout), task)

        def borrow(key: Key) -> Made:
            return self._borrow(task, key=key)

        return compose(own, borrow, self.all_share, key=key_compose)

    def _borrow(self, task: Int[Array, "draws"], *, key: Key) -> Made:
        """Rollouts that other tasks' agents made, with the rewards of ``task``."""
        key_place, key_donor = jr.split(key)
        num_tasks = self.episodes.reward.shape[0]
        _, rollout = draw_places(self.episodes, task.shape[0], key=key_place)
        # 1 … N-1 ahead, so that a task never borrows from itself
        donor = (task + jr.randint(key_donor, task.shape, 1, num_tasks)) % num_tasks
        relabelled = jax.vmap(lambda t, e: relabel(self.reward, t, e))(
            jax.tree.map(lambda x: x[task], self.tasks),
            take(self.episodes, donor, rollout),
        )
        return Made(relabelled, donor)


def relabel(reward: RewardFunction, task: Any, episodes: Episodes) -> Episodes:
    """The same episodes with the rewards of ``task``; nothing else changes.

    Padding is paid nothing.
    """
    steps = episodes.transitions()
    rewards = jax.vmap(lambda step: reward(task, step))(steps)
    judged = replace(episodes, reward=rewards.reshape(episodes.reward.shape))
    return replace(judged, reward=judged.paid())
