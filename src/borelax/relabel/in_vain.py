"""Searches that find nothing for long, and tasks that are still possible after them.

A rollout that was made without regard to its task may get it late: what it pays for the
first steps is fixed first, and then a task is drawn from all that would have paid just
that. So drawn, the task has the very distribution that a belief should have after these
steps, however unlikely it was that nothing would be found. Before them it has not: only
the beliefs from then on may learn from such a rollout.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int

from borelax.learn import below
from borelax.types import Key


def steps_in_vain(
    num_rollouts: int, num_steps: int, share: float, *, key: Key
) -> Int[Array, "draws"]:
    """0 … ``num_steps`` for a ``share`` of the rollouts; 0 for the others."""
    chance = jr.uniform(key, (2, num_rollouts))
    return jnp.where(chance[0] < share, below(num_steps + 1, chance[1]), 0)


def possible_tasks(
    rewards: Float[Array, "N T"], steps: Int[Array, ""]
) -> Bool[Array, "N"]:
    """Tasks that pay as the one that pays least in the first ``steps`` steps."""
    first = jnp.arange(rewards.shape[1]) < steps
    shown = jnp.where(first[None], rewards, 0.0)
    least = shown[shown.sum(axis=1).argmin()]
    return (shown == least[None]).all(axis=1)


def any_of(possible: Bool[Array, "draws N"], *, key: Key) -> Int[Array, "draws"]:
    """One of the possible tasks of each rollout, all of them equally likely."""
    chance = jr.uniform(key, possible.shape)
    return jnp.where(possible, chance, -1.0).argmax(axis=1)


def draw_late(
    rewards: Float[Array, "draws N T"], steps: Int[Array, "draws"], *, key: Key
) -> Int[Array, "draws"]:
    """For each rollout a task that is possible after ``steps`` steps in vain."""
    return any_of(jax.vmap(possible_tasks)(rewards, steps), key=key)
