"""Gridworld's exact belief in the learned one's place, and the distance between them.

With these parts a shortfall can be traced: exact posterior + learned policy, learned
belief + exact plan, and how far the learned belief is from the posterior.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from borelax.belief.decoder import Decoder
from borelax.belief.elbo import BeliefModel
from borelax.oracles.gridworld_plan import GridworldPlan, found_goal, plan_action
from borelax.oracles.gridworld_posterior import (
    exact_posterior,
    goal_prior,
    update_posterior,
)
from borelax.tasks.gridworld import Gridworld
from borelax.types import Episodes, Key, Transition

Posterior = Float[Array, "cells"]


class ExactPosterior(eqx.Module):
    """A belief filter that keeps the exact posterior."""

    seed: Int[Array, "..."]
    """Not used; it gives the filter its axis of seeds."""
    gridworld: Gridworld = eqx.field(static=True)

    def start(self) -> Posterior:
        """The prior over goals."""
        return goal_prior(self.gridworld)

    def update(self, memory: Posterior, step: Transition) -> Posterior:
        """Bayes' rule."""
        return update_posterior(self.gridworld, memory, step.next_obs, step.reward)

    def features(self, memory: Posterior) -> Posterior:
        """The probabilities themselves."""
        return memory

    def along(self, steps: Transition) -> Float[Array, "T_plus_1 cells"]:
        """The posterior along a rollout."""
        return exact_posterior(self.gridworld, steps)


class Planning(eqx.Module):
    """Memory of a policy that follows a plan: the belief and the step's number."""

    hidden: Float[Array, "hidden"]
    step: Int[Array, ""]


class PlanOnLearnedBelief(eqx.Module):
    """The Bayes-optimal plan, told by a learned belief whether the goal is found."""

    model: BeliefModel
    plan: GridworldPlan = eqx.field(static=True)
    gridworld: Gridworld = eqx.field(static=True)

    def start(self) -> Planning:
        """The empty history."""
        return Planning(self.model.encoder.start(), jnp.zeros((), jnp.int32))

    def act(self, memory: Planning, obs: Float[Array, "cells"], *, key: Key):
        """Search until the decoded belief is sure of a cell, then go there."""
        mean = self.model.encoder.belief(memory.hidden).mean
        decoded = goal_distribution(self.model.decoder, self.gridworld, mean)
        cell = jnp.argmax(obs).astype(jnp.int32)
        goal = found_goal(decoded)
        return plan_action(self.plan, self.gridworld, memory.step, cell, goal)

    def remember(self, memory: Planning, step: Transition) -> Planning:
        """Update the belief, count the step."""
        return Planning(self.model.encoder.update(memory.hidden, step), memory.step + 1)


def goal_distribution(
    decoder: Decoder, gridworld: Gridworld, latent: Float[Array, "latent"]
) -> Posterior:
    """The decoder's probability per cell, normalised over the possible goals."""
    weights = decoder.predict(latent) * (goal_prior(gridworld) > 0)
    return weights / weights.sum()


@eqx.filter_jit
def posterior_errors(
    gridworld: Gridworld, models: BeliefModel, rollouts: Episodes
) -> Float[Array, "S N R T_plus_1"]:
    """Total variation between decoded belief and exact posterior, step by step."""

    def along(model: BeliefModel, rollout: Episodes) -> Float[Array, "T_plus_1"]:
        steps = rollout.transitions()
        means = model.encoder.filter(steps).mean
        decoded = jax.vmap(lambda m: goal_distribution(model.decoder, gridworld, m))
        exact = exact_posterior(gridworld, steps)
        return 0.5 * jnp.abs(decoded(means) - exact).sum(axis=-1)

    of_seed = lambda m, r: jax.vmap(jax.vmap(lambda x: along(m, x)))(r)  # noqa: E731
    return eqx.filter_vmap(of_seed)(models, rollouts)
