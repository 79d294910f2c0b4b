"""The tanh-Gaussian against numerical integration."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.distributions import LOG_STD_RANGE, TanhGaussian

POLICY = TanhGaussian(jnp.array([0.4]), jnp.array([-0.3]))


def density(action: np.ndarray) -> np.ndarray:
    """By change of variables, with numbers of 64 bits."""
    raw = np.arctanh(action)
    z = (raw - 0.4) / np.exp(-0.3)
    gaussian = np.exp(-0.5 * z**2) / (np.exp(-0.3) * np.sqrt(2 * np.pi))
    return gaussian / (1 - action**2)


def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
    keys = jr.split(jr.key(0), count)
    actions, logs = jax.vmap(lambda k: POLICY.sample_with_log_prob(key=k))(keys)
    return np.asarray(actions, np.float64)[:, 0], np.asarray(logs)


def test_log_density_is_that_of_a_density() -> None:
    grid = np.linspace(-1 + 1e-6, 1 - 1e-6, 2_000_001)
    assert np.trapezoid(density(grid), grid) == pytest.approx(1.0, abs=1e-4)
    actions, logs = draw(500)
    np.testing.assert_allclose(logs, np.log(density(actions)), rtol=1e-3, atol=1e-3)


def test_samples_follow_the_density() -> None:
    grid = np.linspace(-1 + 1e-6, 1 - 1e-6, 2_000_001)
    mean = np.trapezoid(grid * density(grid), grid)
    second = np.trapezoid(grid**2 * density(grid), grid)
    actions, _ = draw(20_000)
    error = np.sqrt((second - mean**2) / len(actions))
    assert abs(actions.mean() - mean) < 4 * error


def test_axes_are_independent_and_the_mode_is_the_mean() -> None:
    policy = TanhGaussian(jnp.array([0.1, -2.0]), jnp.array([-1.0, 0.5]))
    key = jr.key(3)
    _, together = policy.sample_with_log_prob(key=key)
    noise = jr.normal(key, (2,))
    actions = jnp.tanh(policy.mean + jnp.exp(policy.log_std) * noise)
    gaussian = -0.5 * noise**2 - policy.log_std - 0.5 * jnp.log(2 * jnp.pi)
    alone = gaussian - jnp.log1p(-(actions**2))
    np.testing.assert_allclose(together, alone.sum(), rtol=1e-4)
    np.testing.assert_allclose(policy.mode, jnp.tanh(policy.mean))


def test_far_out_values_stay_finite() -> None:
    policy = TanhGaussian(jnp.array([40.0, -40.0]), jnp.array([-5.0, 1.0]))
    action, log_prob = policy.sample_with_log_prob(key=jr.key(0))
    assert np.isfinite(log_prob) and np.abs(action).max() <= 1


def test_the_deviation_is_bounded() -> None:
    outputs = jnp.array([0.0, 0.0, 1e3, -1e3])
    policy = TanhGaussian.from_network(outputs)
    np.testing.assert_allclose(policy.log_std, LOG_STD_RANGE[::-1])
    middle = TanhGaussian.from_network(jnp.zeros(2))
    np.testing.assert_allclose(jnp.exp(middle.log_std), np.exp(-1.5), rtol=1e-6)
