"""Proposition 1: whatever a policy does with its history, Bayes' rule predicts rewards.

A policy that sees only its own history carries no more news of the task than the
rewards do. So among all steps into cells to which the exact posterior gives the
probability p, the share that is rewarded is p: on logs of *any* such policy. It fails
for a policy that knows the task, which is why logs of trained agents mislead.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from borelax.oracles.gridworld_posterior import exact_posterior
from borelax.oracles.gridworld_returns import straight_action
from borelax.simulate.rollout import rollout
from borelax.tasks.gridworld import Gridworld

WORLD = Gridworld(size=3, horizon=10, episodes=2)
ROLLOUTS = 20_000


class Superstitious(eqx.Module):
    """Random, with habits: they turn on cells visited and on the last reward."""

    def start(self):
        return jnp.zeros(9), jnp.zeros(())

    def act(self, memory, obs, *, key):
        visited, last_reward = memory
        even = jnp.asarray([0.0, 3.0, 0.5, 1.0, 0.2])
        odd = jnp.asarray([0.5, 0.1, 2.0, 0.3, 1.5])
        habit = jnp.where((visited > 0).sum() % 2 == 0, even, odd)
        return jr.categorical(key, jnp.where(last_reward > 0, -habit, habit))

    def remember(self, memory, step):
        visited, _ = memory
        return visited + step.next_obs, step.reward


class GoalSeeking(eqx.Module):
    """Knows the goal, and goes there half of the time."""

    goal: jax.Array

    def start(self):
        return ()

    def act(self, memory, obs, *, key):
        key_coin, key_random = jr.split(key)
        straight = straight_action(3, jnp.argmax(obs), self.goal)
        random = jr.randint(key_random, (), 0, 5)
        return jnp.where(jr.bernoulli(key_coin), straight, random).astype(jnp.int32)

    def remember(self, memory, step):
        return ()


class Steps(eqx.Module):
    """Every step of many rollouts [R, T]."""

    predicted: jax.Array
    """What the exact posterior gives the cell that the step entered."""
    rewarded: jax.Array
    parity: jax.Array
    """Of the number of cells visited before: what the superstition turns on."""


@eqx.filter_jit
def simulate(policy_of) -> Steps:
    """Goals from the prior, each rollout under the policy of its goal."""

    def one(key):
        key_task, key_rollout = jr.split(key)
        goal = WORLD.sample_task(key=key_task)
        made = rollout(
            WORLD, policy_of(goal), goal, episodes=2, start="fixed", key=key_rollout
        )
        steps = made.transitions()
        before = exact_posterior(WORLD, steps)[:-1]
        visits = jnp.cumsum(steps.next_obs, axis=0) - steps.next_obs
        parity = (visits > 0).sum(-1) % 2
        return Steps((before * steps.next_obs).sum(-1), steps.reward > 0, parity)

    return jax.vmap(one)(jr.split(jr.key(6), ROLLOUTS))


def deviations(policy_of) -> dict[tuple[int, int], float]:
    """How many standard errors the rewarded share is above the prediction, by group.

    Along a rollout the differences are martingale increments, so they do not correlate.
    """
    steps = jax.tree.map(np.asarray, simulate(policy_of))
    goals_left = np.rint(1 / np.maximum(steps.predicted, 1e-3)).astype(int)
    found = {}
    for left in (2, 3, 4, 5):
        for parity in (0, 1):
            group = (goals_left == left) & (steps.parity == parity)
            assert group.sum() > 300, "every group must be there to judge"
            np.testing.assert_allclose(steps.predicted[group], 1 / left, rtol=1e-5)
            error = np.sqrt((1 / left) * (1 - 1 / left) / group.sum())
            found[left, parity] = (steps.rewarded[group].mean() - 1 / left) / error
    return found


def superstitious(goal: jax.Array) -> Superstitious:
    return Superstitious()


def test_rewards_follow_the_posterior_under_a_history_dependent_policy() -> None:
    found = deviations(superstitious)
    assert max(map(abs, found.values())) < 4, found


def test_what_is_certain_happens() -> None:
    steps = jax.tree.map(np.asarray, simulate(superstitious))
    assert not steps.rewarded[steps.predicted == 0].any()
    assert steps.rewarded[steps.predicted == 1].all()
    assert (steps.predicted == 1).sum() > 1_000


def test_rewards_do_not_follow_it_under_a_policy_that_knows_the_task() -> None:
    found = deviations(GoalSeeking)
    assert min(found.values()) > 10, found
