"""What filters of a learned belief say, and one that learns nothing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from borelax.belief.elbo import BeliefModel
from borelax.belief.view import BeliefFilter, BeliefView, FrozenBelief, LearnedBelief
from borelax.logs import TaskLogs
from borelax.types import Transition


@pytest.fixture(scope="module")
def steps(logs: TaskLogs) -> Transition:
    """One rollout in which the goal is found: [8]."""
    rewards = np.asarray(logs.episodes.reward).max((2, 3))
    n, r = np.argwhere(rewards == 1)[0]
    return jax.tree.map(lambda x: x[n, r], logs.episodes).transitions()


@pytest.fixture(scope="module")
def learned(model: BeliefModel, steps: Transition) -> LearnedBelief:
    fitted = BeliefModel(model.encoder.scaled_to(steps), model.decoder)
    return LearnedBelief(fitted, BeliefView(latent=True, decoded=True))


@eqx.filter_jit
def expected(learned: LearnedBelief, steps: Transition) -> jax.Array:
    return learned.rewards_along(steps)


def test_rewards_are_expected_by_the_belief_before_each_step(
    learned: LearnedBelief, steps: Transition
) -> None:
    memory, model, found = learned.start(), learned.model, expected(learned, steps)
    update = eqx.filter_jit(learned.update)
    assert found.shape == (8,)
    for time in range(8):
        step = jax.tree.map(lambda x, t=time: x[t], steps)
        mean = model.encoder.belief(memory.hidden).mean
        by_hand = model.decoder.expected_reward(mean, step)
        np.testing.assert_allclose(found[time], by_hand, atol=1e-5)
        memory = update(memory, step)


def test_a_reward_is_expected_before_it_is_seen(
    learned: LearnedBelief, steps: Transition
) -> None:
    other = eqx.tree_at(lambda s: s.reward, steps, steps.reward.at[3].add(5.0))
    before, after = expected(learned, steps), expected(learned, other)
    np.testing.assert_array_equal(before[:4], after[:4])
    assert (np.abs(before[4:] - after[4:]) > 1e-6).all()


def test_a_frozen_belief_stays_at_the_prior(
    learned: LearnedBelief, steps: Transition
) -> None:
    frozen = FrozenBelief(learned)
    assert isinstance(frozen, BeliefFilter)
    prior, memory = learned.features(learned.start()), frozen.start()
    for time in range(8):
        step = jax.tree.map(lambda x, t=time: x[t], steps)
        memory = frozen.update(memory, step)
        np.testing.assert_array_equal(frozen.features(memory), prior)
    along = frozen.along(steps)
    np.testing.assert_array_equal(along, jnp.tile(prior, (9, 1)))
    assert not np.allclose(learned.along(steps)[-1], prior, atol=1e-3)
