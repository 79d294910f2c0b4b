"""The Gaussian decoder against sums written out by hand."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.belief.decoder import Decoder
from borelax.belief.step_decoder import SplitMLP, StepDecoder
from borelax.errors import ConfigError
from borelax.types import Box, Discrete, Spec, Transition

SPEC = Spec(obs_size=2, action=Box(1), horizon=4, episodes=1)
SETTINGS = StepDecoder(hidden=(6, 5), probes=3)
BOTH = replace(SETTINGS, transitions=True)
LATENT = jnp.array([0.3, -1.2])


def steps_of(count: int, key) -> Transition:
    keys = jr.split(key, 4)
    return Transition(
        3 + 2 * jr.normal(keys[0], (count, 2)),
        jr.uniform(keys[1], (count, 1)),
        jr.normal(keys[2], (count,)),
        jr.normal(keys[3], (count, 2)),
    )


STEPS = steps_of(7, jr.key(0))


def test_a_split_network_is_the_network_of_both_parts() -> None:
    split = SplitMLP(2, 3, (), (4, 5), 1, key=jr.key(1))
    step = jnp.array([0.5, -0.5, 2.0])
    (step_layer,) = split.reader.layers
    weights = np.vstack([split.latent_layer.weight, step_layer.weight])
    bias = split.latent_layer.bias + step_layer.bias
    first = np.maximum(np.concatenate([LATENT, step]) @ weights + bias, 0)
    expected = split.rest(jnp.asarray(first))
    np.testing.assert_allclose(
        split(LATENT, split.read_step(step)), expected, rtol=1e-4, atol=1e-6
    )


def test_a_reader_sees_the_step_before_the_latent_is_added() -> None:
    split = SplitMLP(2, 3, (6,), (4, 5), 1, key=jr.key(1))
    assert [layer.bias.size for layer in split.reader.layers] == [6, 4]
    step = jnp.array([0.5, -0.5, 2.0])
    added = split.reader(step) + split.latent_layer(LATENT)
    np.testing.assert_array_equal(
        split(LATENT, split.read_step(step)), split.rest(jax.nn.relu(added))
    )


@pytest.mark.parametrize("settings", [SETTINGS, BOTH])
def test_the_likelihood_is_minus_half_the_squared_errors(settings: StepDecoder) -> None:
    decoder = settings.build(SPEC, 2, key=jr.key(2)).fitted_to(STEPS)
    assert isinstance(decoder, Decoder)
    total = decoder.log_likelihood(LATENT, decoder.summarise(STEPS))
    errors = 0.0
    for t in range(7):
        step = jax.tree.map(lambda x, t=t: x[t], STEPS)
        for head in decoder.heads:
            read = head.network.read_step(head.inputs(decoder.scale, step))
            missed = head.network(LATENT, read) - head.target(decoder.scale, step)
            errors += float(jnp.square(missed).sum())
    assert len(decoder.heads) == 1 + settings.transitions
    assert float(total) == pytest.approx(-0.5 * errors, rel=1e-5)


def test_a_transition_is_decoded_without_its_outcome() -> None:
    decoder = BOTH.build(SPEC, 2, key=jr.key(2)).fitted_to(STEPS)
    step = jax.tree.map(lambda x: x[0], STEPS)
    other = eqx.tree_at(lambda s: s.next_obs, step, step.next_obs + 1)
    reward_head, transition_head = decoder.heads
    same = transition_head.inputs(decoder.scale, other)
    np.testing.assert_array_equal(transition_head.inputs(decoder.scale, step), same)
    changed = reward_head.inputs(decoder.scale, other)
    assert not np.array_equal(reward_head.inputs(decoder.scale, step), changed)


def test_changes_are_measured_in_their_own_deviation() -> None:
    scale = BOTH.build(SPEC, 2, key=jr.key(2)).fitted_to(STEPS).scale
    targets = jax.vmap(lambda o, n: scale.change(n - o))(STEPS.obs, STEPS.next_obs)
    np.testing.assert_allclose(targets.std(axis=0), 1.0, rtol=1e-4)
    np.testing.assert_allclose(targets.mean(axis=0), 0.0, atol=1e-5)


@pytest.mark.parametrize(("settings", "features"), [(SETTINGS, 3), (BOTH, 6)])
def test_the_policy_sees_predictions_at_logged_steps(settings, features) -> None:
    decoder = settings.build(SPEC, 2, key=jr.key(2)).fitted_to(STEPS)
    np.testing.assert_array_equal(decoder.probes.obs, STEPS.obs[:3])
    shown = decoder.predict(LATENT)
    assert shown.shape == (features,)
    assert not np.array_equal(shown, decoder.predict(-LATENT))


@pytest.mark.parametrize("settings", [SETTINGS, BOTH])
def test_the_expected_reward_is_the_likeliest(settings: StepDecoder) -> None:
    """Unit variance: a reward that misses it by 1 or 2 costs 1/2 or 2."""
    decoder = settings.build(SPEC, 2, key=jr.key(2)).fitted_to(STEPS)
    expected = jax.vmap(decoder.expected_reward, (None, 0))(LATENT, STEPS)

    def score(miss: float) -> float:
        paid = eqx.tree_at(lambda s: s.reward, STEPS, expected + miss)
        return float(decoder.log_likelihood(LATENT, decoder.summarise(paid)))

    costs = [score(0.0) - score(miss) for miss in (-1.0, 2.0)]
    np.testing.assert_allclose(costs, [0.5 * 7, 2.0 * 7], rtol=1e-4)


def test_discrete_actions_are_read_one_hot() -> None:
    spec = replace(SPEC, action=Discrete(3))
    decoder = SETTINGS.build(spec, 2, key=jr.key(2))
    steps = eqx.tree_at(lambda s: s.action, STEPS, jnp.arange(7) % 3)
    fitted = decoder.fitted_to(steps)
    score = fitted.log_likelihood(LATENT, fitted.summarise(steps))
    assert np.isfinite(score)


def test_the_gradient_leaves_data_alone() -> None:
    decoder = BOTH.build(SPEC, 2, key=jr.key(2)).fitted_to(STEPS)

    def score(d):
        return d.log_likelihood(LATENT, d.summarise(STEPS))

    grads = eqx.filter_grad(score)(decoder)
    assert all((g == 0).all() for g in jax.tree.leaves((grads.scale, grads.probes)))
    assert any((g != 0).any() for g in jax.tree.leaves(grads.heads))


@pytest.mark.parametrize("bad", [{"hidden": ()}, {"hidden": (0,)}, {"probes": 0}])
def test_bad_settings_are_refused(bad: dict) -> None:
    with pytest.raises(ConfigError):
        StepDecoder(**bad)
