"""The decoder of one Bernoulli per cell against numbers worked out with numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.belief.decoder import BernoulliPerCell
from borelax.belief.elbo import BeliefModel
from borelax.logs import TaskLogs
from borelax.types import Transition

LATENT = jnp.asarray([0.5, -1.0, 2.0])


def steps_with(rewards: list[float]) -> Transition:
    """Steps into cells 0, 1, 2, 0, …, each with its reward."""
    entered = jnp.eye(3)[jnp.arange(len(rewards)) % 3]
    actions = jnp.zeros(len(rewards), jnp.int32)
    return Transition(jnp.zeros_like(entered), actions, jnp.asarray(rewards), entered)


@pytest.fixture(scope="module")
def decoder() -> BernoulliPerCell:
    return BernoulliPerCell(3, latent_size=3, hidden=(4,), threshold=0.5, key=jr.key(0))


def test_visit_counts_give_the_sum_over_steps(
    model: BeliefModel, logs: TaskLogs
) -> None:
    rollouts = logs.episodes.transitions()
    n, r = np.argwhere(np.asarray(rollouts.reward).max(-1) == 1)[0]
    steps = jax.tree.map(lambda x: x[n, r], rollouts)
    decoder, latent = model.decoder, jnp.asarray([0.5, -1.0, 2.0])
    summary = decoder.summarise(steps)
    assert summary.rewarded.sum() + summary.empty.sum() == 8
    assert 0 < summary.rewarded.sum() < 8, "the rollout must test both outcomes"
    chance = 1 / (1 + np.exp(-np.asarray(decoder.network(latent), np.float64)))
    total = 0.0
    for entered, reward in zip(steps.next_obs, steps.reward, strict=True):
        p = chance[int(entered.argmax())]
        total += np.log(p if reward == 1 else 1 - p)
    np.testing.assert_allclose(
        decoder.log_likelihood(latent, summary), total, rtol=1e-5
    )


def test_prediction_is_the_chance_per_cell_normalised(model: BeliefModel) -> None:
    latent = jnp.asarray([0.5, -1.0, 2.0])
    chance = jax.nn.sigmoid(model.decoder.network(latent))
    expected = chance / chance.sum()
    np.testing.assert_allclose(model.decoder.predict(latent), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("rewards", "levels"),
    [
        ([-0.1, -0.3, 1.0, 2.0, -0.2], [-0.2, 1.5]),
        ([-0.1, -0.3], [-0.2, 1.0]),
        ([0.7, 0.9], [0.0, 0.8]),
    ],
    ids=["both", "no goal", "only goals"],
)
def test_levels_are_the_datas_and_one_never_seen_stays(
    decoder: BernoulliPerCell, rewards: list[float], levels: list[float]
) -> None:
    fitted = decoder.fitted_to(steps_with(rewards))
    np.testing.assert_allclose(fitted.levels, levels, rtol=1e-6)
    assert eqx.tree_equal(fitted.network, decoder.network)


def test_the_expected_reward_lies_between_the_levels_by_the_cells_chance(
    decoder: BernoulliPerCell,
) -> None:
    steps = steps_with([-0.1, 1.0, 9.0])  # what was paid does not matter
    fitted = decoder.fitted_to(steps_with([-0.1, 2.0]))
    chance = 1 / (1 + np.exp(-np.asarray(decoder.network(LATENT), np.float64)))
    expected = jax.vmap(fitted.expected_reward, (None, 0))(LATENT, steps)
    np.testing.assert_allclose(expected, 2.0 * chance - 0.1 * (1 - chance), rtol=1e-5)
    assert np.ptp(chance) > 0.05, "the case must tell cells apart"


def test_levels_are_data_and_not_trained(decoder: BernoulliPerCell) -> None:
    step = jax.tree.map(lambda x: x[0], steps_with([1.0]))
    grads = eqx.filter_grad(lambda d: d.expected_reward(LATENT, step))(decoder)
    assert not np.any(grads.levels)
    assert np.any(grads.network.layers[-1].bias)
