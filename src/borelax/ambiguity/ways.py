"""Do logs show how to go on searching, from where one task pays to where another does?

In: logs and the tasks' reward function. Out: for every two tasks, whether an episode
goes from one to the other. Relabelling tells tasks apart, but what no agent ever walked
it does not show: an agent that has looked in one place must still get to the next.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from borelax.simulate.simulator import RewardFunction
from borelax.types import Episodes, Transition

MOST_EPISODES = 2_000
"""Random ones of all tasks' agents; a way that fewer than one in a thousand takes is
mostly missed, and hardly learned."""


@dataclass(frozen=True, eq=False)
class Ways:
    """For tasks i and j: where they pay, and who went from one to the other."""

    apart: Bool[np.ndarray, "N N"]
    """No step of the logs pays well in both."""
    shown: Bool[np.ndarray, "N N"]
    """In some episode a step that pays well in i comes before one that does in j."""

    @property
    def missing(self) -> float:
        """Share of the pairs of different tasks that are apart, with no way shown."""
        number = len(self.apart)
        return float((self.apart & ~self.shown).sum() / (number * (number - 1)))


def find_ways(
    episodes: Episodes, tasks: Any, reward: RewardFunction, rng: np.random.Generator
) -> Ways:
    """Look at random episodes of all agents, as every task would have paid them."""
    some = _some(episodes, rng)
    valid = some.happened()
    happened = np.ones(some.reward.shape, bool) if valid is None else np.asarray(valid)
    number = episodes.reward.shape[0]
    each = [jax.tree.map(lambda x, i=i: x[i], tasks) for i in range(number)]
    paid = (np.asarray(_paid(reward, task, some)) for task in each)
    pays = np.stack([_pays_well(rewards, happened[:, 0]) for rewards in paid])
    together = np.stack([(pays & own).any(axis=(1, 2)) for own in pays])
    count = pays.shape[-1]
    ever = pays.any(axis=-1)
    first = np.where(ever, pays.argmax(axis=-1), count)
    last = np.where(ever, count - 1 - pays[..., ::-1].argmax(axis=-1), -1)
    shown = np.stack([(own < last).any(axis=-1) for own in first])
    return Ways(apart=~together & ~np.eye(number, dtype=bool), shown=shown)


def _some(episodes: Episodes, rng: np.random.Generator) -> Episodes:
    """Random episodes, each as a rollout of one: [M, 1, …]."""
    shape = episodes.reward.shape[:3]
    total = int(np.prod(shape))
    chosen = rng.choice(total, min(MOST_EPISODES, total), replace=False)
    place = np.unravel_index(np.sort(chosen), shape)
    return jax.tree.map(lambda x: x[place][:, None], episodes)


def _pays_well(
    paid: Float[np.ndarray, "M H"], happened: Bool[np.ndarray, "M H"]
) -> Bool[np.ndarray, "M H"]:
    """More than the middle of the least and the most that the task pays anywhere."""
    low, high = paid[happened].min(), paid[happened].max()
    return happened & (paid > (low + high) / 2)


@eqx.filter_jit
def _paid(reward: RewardFunction, task: Any, some: Episodes) -> Float[Array, "M H"]:
    """What a task pays for every step."""

    def of_step(step: Transition) -> Float[Array, ""]:
        return reward(task, step)

    return jax.vmap(jax.vmap(of_step))(some.transitions())
