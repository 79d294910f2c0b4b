"""Exact posteriors over goals, doors and winds, in the learned belief's place.

An angle is not a number of a list, so the posterior of Semi-circle, Escape-Room and
Ant-Semi-circle is kept over a fine grid of equally likely angles and shown as the
probability of each of 64 cells. A task is ruled out by a step that it would have
answered differently. The true angle lies between grid points; where a step rules out
every one that is left, the posterior is narrower than the grid and stays what it was.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int

from borelax.oracles.search import midpoints
from borelax.oracles.wind import Blown, felt_wind, spread_winds
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.semicircle import SemiCircle, goal_at
from borelax.tasks.wind import Wind
from borelax.types import Transition

NUM_CELLS = 64
"""Numbers the policy is shown."""
PER_CELL = 4
"""Grid points in each cell."""
TOLERANCE = 1e-4
"""Places and rewards closer than this are equal."""
NUM_WINDS = 256
"""Winds that stand for all while none is known."""

Possible = Bool[Array, "angles"]


class AnglePosterior(eqx.Module):
    """Which angles are still possible."""

    seed: Int[Array, "..."]
    """Not used; it gives the filter its axis of seeds."""
    family: SemiCircle | EscapeRoom | AntSemiCircle = eqx.field(static=True)

    def start(self) -> Possible:
        """All angles."""
        return jnp.ones(NUM_CELLS * PER_CELL, bool)

    def update(self, memory: Possible, step: Transition) -> Possible:
        """Rule out what the step contradicts, unless that leaves nothing."""
        tasks, _ = self.distribution(memory)
        left = memory & jax.vmap(lambda task: agrees(self.family, task, step))(tasks)
        return jnp.where(left.any(), left, memory)

    def features(self, memory: Possible) -> Float[Array, "cells"]:
        """The probability of each cell."""
        _, weights = self.distribution(memory)
        return weights.reshape(NUM_CELLS, PER_CELL).sum(axis=1)

    def along(self, steps: Transition) -> Float[Array, "T_plus_1 cells"]:
        """The cells' probabilities along a rollout."""
        return jax.vmap(self.features)(memories_along(self, steps))

    def distribution(self, memory: Possible) -> tuple[Any, Float[Array, "angles"]]:
        """The tasks at the grid's angles, and their probabilities."""
        return tasks_at(self.family, NUM_CELLS * PER_CELL), memory / memory.sum()


class WindPosterior(eqx.Module):
    """The wind, once one step has told it."""

    seed: Int[Array, "..."]
    """Not used; it gives the filter its axis of seeds."""
    family: Wind = eqx.field(static=True)

    def start(self) -> Blown:
        """Not felt yet."""
        return Blown(jnp.zeros(2), jnp.asarray(False))

    def update(self, memory: Blown, step: Transition) -> Blown:
        """The latest step tells it as well as any."""
        return Blown(felt_wind(self.family, step), jnp.asarray(True))

    def features(self, memory: Blown) -> Float[Array, "3"]:
        """The wind in units of the strongest, and whether it is known."""
        wind = memory.wind / self.family.strongest
        return jnp.concatenate([wind, memory.known.astype(jnp.float32)[None]])

    def along(self, steps: Transition) -> Float[Array, "T_plus_1 3"]:
        """The same along a rollout."""
        return jax.vmap(self.features)(memories_along(self, steps))

    def distribution(self, memory: Blown) -> tuple[Any, Float[Array, "winds"]]:
        """Winds that stand for the prior or, once it is known, the one."""
        spread = spread_winds(self.family, NUM_WINDS)
        tasks = jnp.where(memory.known, memory.wind[None], spread)
        return tasks, jnp.full(NUM_WINDS, 1 / NUM_WINDS)


Posterior = AnglePosterior | WindPosterior


def tasks_at(family: Any, count: int) -> Any:
    """The doors, or the goals, at ``count`` evenly spread angles."""
    angles = jnp.asarray(midpoints(count), jnp.float32)
    return angles if isinstance(family, EscapeRoom) else jax.vmap(goal_at)(angles)


def agrees(family: Any, task: Any, step: Transition) -> Bool[Array, ""]:
    """Whether the step could have happened in the task."""
    paid = jnp.abs(family.reward(task, step) - step.reward) <= TOLERANCE
    if not isinstance(family, EscapeRoom | Wind):  # where a step leads says nothing
        return paid
    # the families in the plane are deterministic: any key gives the same step
    after = family.step(task, step.obs, step.action, key=jr.key(0))
    return paid & (jnp.abs(family.observe(after) - step.next_obs).max() <= TOLERANCE)


def memories_along(posterior: Posterior, steps: Transition) -> Any:
    """The filter's memory before each of T steps and after the last."""

    def one(memory: Any, step: Transition):
        after = posterior.update(memory, step)
        return after, after

    start = posterior.start()
    after = jax.lax.scan(one, start, steps)[1]
    return jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), start, after)
