"""Do logs show how to go on searching, from where one task pays to where another does?

In: logs and the tasks' reward function. Out: for every two tasks, whether an episode
goes from one to the other. Relabelling tells tasks apart, but it makes no new steps: an
agent that has looked in one place must still get to the next.
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
"""Of all tasks' agents; a way that one episode in three thousand takes is found or
missed by even chances."""


@dataclass(frozen=True, eq=False)
class Ways:
    """For tasks i and j: where they pay, and whether anyone went from one to other."""

    apart: Bool[np.ndarray, "N N"]
    """One of them pays well somewhere, but no step pays well in both."""
    shown: Bool[np.ndarray, "N N"]
    """In some episode a step that pays well in i comes before one that does in j."""
    episodes: int
    """How many were looked at."""

    @property
    def missing(self) -> float:
        """Share of the ordered pairs of tasks that are apart, with no way shown."""
        number = len(self.apart)
        return float((self.apart & ~self.shown).sum() / (number * (number - 1)))


def find_ways(
    episodes: Episodes, tasks: Any, reward: RewardFunction, rng: np.random.Generator
) -> Ways:
    """Look at random episodes of all agents, as every task would have paid them."""
    some = _some(episodes, rng)
    paid = np.asarray(_paid(reward, tasks, some))
    happened = some.happened()
    real = np.ones(paid.shape[1:], bool) if happened is None else happened[:, 0]
    pays = _pays_well(paid, np.asarray(real))
    row = pays.reshape(len(pays), -1).astype(np.float32)
    together = row @ row.T > 0
    ever, steps = pays.any(axis=-1), pays.shape[-1]
    solved = ever.any(axis=-1)
    apart = np.logical_or.outer(solved, solved) & ~together
    first = np.where(ever, pays.argmax(axis=-1), steps)
    last = np.where(ever, steps - 1 - pays[..., ::-1].argmax(axis=-1), -1)
    shown = np.stack([(own < last).any(axis=-1) for own in first])
    return Ways(apart, shown, episodes=pays.shape[1])


def _some(episodes: Episodes, rng: np.random.Generator) -> Episodes:
    """Random episodes, each as a rollout of one: [M, 1, …]."""
    shape = episodes.reward.shape[:3]
    total = int(np.prod(shape))
    chosen = rng.choice(total, min(MOST_EPISODES, total), replace=False)
    place = np.unravel_index(np.sort(chosen), shape)
    return jax.tree.map(lambda x: x[place][:, None], episodes)


def _pays_well(
    paid: Float[np.ndarray, "N M H"], real: Bool[np.ndarray, "M H"]
) -> Bool[np.ndarray, "N M H"]:
    """Where a task pays more than tasks do on average, by over half of its most.

    What all of them charge alike, such as for torques, is of no account.
    """
    more = np.where(real, paid - paid.mean(axis=0), 0)
    most = more.max(axis=(1, 2), keepdims=True)
    return (more > most / 2) & (most > 1e-6 * np.abs(paid).max())


@eqx.filter_jit
def _paid(reward: RewardFunction, tasks: Any, some: Episodes) -> Float[Array, "N M H"]:
    """What every task pays for every step, episode by episode to save memory."""

    def of_episode(steps: Transition) -> Float[Array, "N H"]:
        by_task = jax.vmap(reward, in_axes=(None, 0))
        return jax.vmap(by_task, in_axes=(0, None))(tasks, steps)

    return jax.lax.map(of_episode, some.transitions()).swapaxes(0, 1)
