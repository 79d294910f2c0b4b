"""Networks and averages against numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from borelax.agents.networks import MLP, Standardise, linear_layers, move_towards


def test_mlp_is_relu_between_layers_and_linear_at_the_end() -> None:
    mlp = MLP((3, 4, 2), key=jr.key(0))
    x = np.float32([1.0, -2.0, 3.0])
    (w0, b0), (w1, b1) = [(np.asarray(x.weight), x.bias) for x in mlp.layers]
    by_hand = np.maximum(x @ w0 + b0, 0) @ w1 + b1
    np.testing.assert_allclose(mlp(jnp.asarray(x)), by_hand, rtol=1e-5)
    assert (x @ w0 + b0 < 0).any(), "the case must test the ReLU"


def test_layers_of_one_draw_are_uniform_by_their_inputs_and_independent() -> None:
    sizes = [(4, 500), (4, 500), (100, 30)]
    layers = linear_layers(sizes, key=jr.key(0))
    for layer, (inputs, outputs) in zip(layers, sizes, strict=True):
        assert layer.weight.shape == (inputs, outputs)
        assert layer.bias.shape == (outputs,)
        numbers = inputs**0.5 * np.append(layer.weight.ravel(), layer.bias)
        counts = np.histogram(numbers, bins=10, range=(-1, 1))[0]
        assert counts.sum() == numbers.size, "none lies outside"
        mean = numbers.size / 10
        assert abs(counts - mean).max() < 5 * mean**0.5
        assert layer(jnp.ones(inputs)).shape == (outputs,)
    first, second = (np.asarray(x.weight).ravel() for x in layers[:2])
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / first.size**0.5


def test_standardised_data_has_mean_zero_and_deviation_one() -> None:
    rows = jr.normal(jr.key(1), (500, 2)) * jnp.asarray([[5.0, 0.01]]) + 7.0
    scaled = np.asarray(jax.vmap(Standardise.of(rows))(rows))
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(scaled.std(axis=0), 1, atol=1e-3)


def test_constant_columns_are_only_centred() -> None:
    constants = jnp.asarray([0.0, 0.1, -7.0, 100.3, 3000.7])
    of_constants = Standardise.of(jnp.tile(constants, (500, 1)))
    np.testing.assert_array_equal(of_constants.scale, np.ones(5))
    np.testing.assert_allclose(of_constants.mean, constants, rtol=1e-6)


def test_identity_changes_nothing() -> None:
    x = jnp.asarray([1.5, -2.0])
    np.testing.assert_array_equal(Standardise.identity(2)(x), x)


def test_statistics_have_no_gradient() -> None:
    scale = Standardise(mean=jnp.ones(2), scale=jnp.full(2, 3.0))
    x = jnp.asarray([2.0, 5.0])
    grads = eqx.filter_grad(lambda s: jnp.square(s(x)).sum())(scale)
    assert not np.any(grads.mean) and not np.any(grads.scale)
    np.testing.assert_allclose(jax.grad(lambda x: scale(x).sum())(x), [3.0, 3.0])


def test_weights_move_by_the_rate_and_nothing_else_moves() -> None:
    old = {"weight": jnp.asarray([0.0, 4.0]), "count": jnp.asarray(3), "name": "a"}
    new = {"weight": jnp.asarray([1.0, 0.0]), "count": jnp.asarray(9), "name": "b"}
    moved = move_towards(old, new, 0.25)
    np.testing.assert_allclose(moved["weight"], [0.25, 3.0])
    assert (moved["count"], moved["name"]) == (3, "a")
    np.testing.assert_array_equal(move_towards(old, new, 1.0)["weight"], new["weight"])
    np.testing.assert_array_equal(move_towards(old, new, 0.0)["weight"], old["weight"])
