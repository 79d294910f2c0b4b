"""The exact posterior over Gridworld's goals: what a learned belief should agree with.

Goals are equally likely at first. A step that ends in cell c without the goal's reward
rules c out; a step with it leaves c alone. A reset tells nothing. Zero at cells that
cannot be the goal.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from borelax.tasks.gridworld import Gridworld
from borelax.types import Transition


def exact_posterior(
    gridworld: Gridworld, steps: Transition
) -> Float[Array, "T_plus_1 cells"]:
    """The posterior before the first step and after each: row 0 is the prior."""

    def update(
        posterior: Float[Array, "cells"], step: Transition
    ) -> tuple[Float[Array, "cells"], Float[Array, "cells"]]:
        after = update_posterior(gridworld, posterior, step.next_obs, step.reward)
        return after, after

    prior = goal_prior(gridworld)
    _, after = jax.lax.scan(update, prior, steps)
    return jnp.concatenate([prior[None], after])


def goal_prior(gridworld: Gridworld) -> Float[Array, "cells"]:
    """Uniform over the goals."""
    goals = gridworld.all_tasks()
    return jnp.zeros(gridworld.num_cells).at[goals].set(1 / len(goals))


def update_posterior(
    gridworld: Gridworld,
    posterior: Float[Array, "cells"],
    next_obs: Float[Array, "cells"],
    reward: Float[Array, ""],
) -> Float[Array, "cells"]:
    """Bayes' rule for one step. Impossible evidence leaves the posterior as it is."""
    halfway = (gridworld.goal_reward + gridworld.step_reward) / 2
    likelihood = jnp.where(reward > halfway, next_obs, 1 - next_obs)
    joint = posterior * likelihood
    evidence = joint.sum()
    possible = evidence > 0
    return jnp.where(possible, joint / jnp.where(possible, evidence, 1.0), posterior)
