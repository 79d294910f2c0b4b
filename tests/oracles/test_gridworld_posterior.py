"""The posterior against Bayes' rule written out goal by goal."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.oracles.gridworld_plan import found_goal
from borelax.oracles.gridworld_posterior import (
    exact_posterior,
    goal_prior,
    update_posterior,
)
from borelax.tasks.gridworld import Gridworld
from borelax.types import Transition

WORLD = Gridworld(4, 6, 3, goal_reward=0.0, step_reward=-2.0)


def wander(world: Gridworld, task, *, key) -> Transition:
    """Random actions in one task, from the corner in every episode."""

    def one_step(cell, step_and_key):
        step, key = step_and_key
        cell = jnp.where(step % world.horizon == 0, 0, cell)
        action = world.spec.action.sample(key=key)
        entered = world.step(task, cell, action, key=key)
        obs, next_obs = world.observe(cell), world.observe(entered)
        blank = Transition(obs, action, jnp.zeros(()), next_obs)
        reward = world.reward(task, blank)
        return entered, Transition(obs, action, reward, next_obs)

    steps = jnp.arange(world.horizon * world.episodes)
    keys = jr.split(key, len(steps))
    return jax.lax.scan(one_step, jnp.zeros((), jnp.int32), (steps, keys))[1]


def all_wanderings() -> tuple[Transition, jax.Array]:
    tasks = WORLD.all_tasks()
    keys = jr.split(jr.key(3), len(tasks))
    steps = jax.vmap(lambda task, key: wander(WORLD, task, key=key))(tasks, keys)
    posteriors = jax.jit(jax.vmap(lambda one: exact_posterior(WORLD, one)))(steps)
    return steps, posteriors


def test_equals_bayes_rule_for_each_goal() -> None:
    steps, posteriors = all_wanderings()
    entered, rewards = np.asarray(steps.next_obs), np.asarray(steps.reward)
    goals = WORLD.goals()
    num_found = 0
    for rollout in range(len(goals)):
        weights = np.zeros(WORLD.num_cells)
        weights[goals] = 1.0
        expected = [weights / weights.sum()]
        for obs, reward in zip(entered[rollout], rewards[rollout], strict=True):
            for goal in goals:
                predicted = 0.0 if obs[goal] == 1 else -2.0
                weights[goal] *= float(predicted == reward)
            expected.append(weights / weights.sum())
        np.testing.assert_allclose(posteriors[rollout], expected, atol=2e-7)
        num_found += expected[-1].max() == 1
    assert 0 < num_found < len(goals), "the rollouts must test both outcomes"


def test_true_goal_is_never_ruled_out_and_mass_is_one() -> None:
    _, posteriors = all_wanderings()
    of_goal = posteriors[jnp.arange(12), :, WORLD.all_tasks()]
    assert (of_goal >= 1 / 12 - 1e-6).all()
    np.testing.assert_allclose(posteriors.sum(-1), 1.0, atol=1e-6)


def test_scan_equals_repeated_updates_and_starts_at_the_prior() -> None:
    steps, posteriors = all_wanderings()
    posterior = goal_prior(WORLD)
    for time in range(steps.reward.shape[1]):
        np.testing.assert_array_equal(posteriors[5, time], posterior)
        posterior = update_posterior(
            WORLD, posterior, steps.next_obs[5, time], steps.reward[5, time]
        )
    np.testing.assert_array_equal(posteriors[5, -1], posterior)


def test_prior_is_uniform_outside_the_start_block() -> None:
    prior = np.asarray(goal_prior(Gridworld())).reshape(5, 5)
    assert (prior[:2, :2] == 0).all()
    assert np.unique(prior[prior > 0]) == np.float32(1 / 21)
    assert (prior > 0).sum() == 21


@pytest.mark.parametrize("cell", [0, 3])
def test_impossible_evidence_changes_nothing(cell: int) -> None:
    certain = jax.nn.one_hot(9, WORLD.num_cells)
    reward = jnp.asarray(WORLD.goal_reward)
    after = update_posterior(WORLD, certain, WORLD.observe(jnp.int32(cell)), reward)
    np.testing.assert_array_equal(after, certain)
    empty = jnp.asarray(WORLD.step_reward)
    after = update_posterior(WORLD, certain, WORLD.observe(jnp.int32(9)), empty)
    np.testing.assert_array_equal(after, certain)


def test_found_goal_needs_certainty() -> None:
    two_left = jnp.zeros(16).at[jnp.array([3, 9])].set(0.5)
    assert found_goal(two_left) == -1
    assert found_goal(goal_prior(WORLD)) == -1
    assert found_goal(jax.nn.one_hot(9, 16)) == 9
