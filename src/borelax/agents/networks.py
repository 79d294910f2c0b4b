"""Networks and the two averages that agents keep: of data and of weights."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Bool, Float, PyTree

from borelax.types import Episodes, Key


class Linear(eqx.Module):
    """x W + b; on a CPU often much faster than W x + b (docs/bench.md)."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"]

    def __call__(self, x: Float[Array, "inputs"]) -> Float[Array, "outputs"]:
        """One example."""
        return x @ self.weight + self.bias


def linear_layers(sizes: Sequence[tuple[int, int]], *, key: Key) -> tuple[Linear, ...]:
    """Layers of (inputs, outputs), all weights U(±1/√inputs) from a single draw.

    A draw for each would take as long to compile as a step of training.
    """
    *ends, total = accumulate((inputs + 1) * outputs for inputs, outputs in sizes)
    numbers = jnp.split(jr.uniform(key, (total,), minval=-1.0), ends)
    layers = []
    for (inputs, outputs), mine in zip(sizes, numbers, strict=True):
        mine = mine.reshape(outputs, inputs + 1) / inputs**0.5
        layers.append(Linear(mine[:, 1:].T, mine[:, 0]))
    return tuple(layers)


class MLP(eqx.Module):
    """Fully connected layers with ReLU between them, for one example."""

    layers: tuple[Linear, ...]

    def __init__(self, sizes: tuple[int, ...], *, key: Key):
        """Layers between consecutive ``sizes``."""
        self.layers = linear_layers(list(pairwise(sizes)), key=key)

    def __call__(self, x: Float[Array, "inputs"]) -> Float[Array, "outputs"]:
        """Apply all layers; the last one is linear."""
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


class Standardise(eqx.Module):
    """(x - mean) / deviation of the data; travels with the policy that needs it."""

    mean: Float[Array, "x"]
    scale: Float[Array, "x"]

    @classmethod
    def identity(cls, size: int) -> "Standardise":
        """Change nothing."""
        return cls(mean=jnp.zeros(size), scale=jnp.ones(size))

    @classmethod
    def of(
        cls, data: Float[Array, "rows x"], valid: Bool[Array, "rows"] | None = None
    ) -> "Standardise":
        """Fit to the (valid) rows; a constant column is only centred."""
        where = None if valid is None else valid[:, None]
        mean, deviation = data.mean(axis=0, where=where), data.std(axis=0, where=where)
        rounding = 1e-6 * jnp.maximum(1.0, jnp.abs(mean))
        scale = jnp.where(deviation > rounding, 1 / jnp.maximum(deviation, 1e-6), 1.0)
        return cls(mean=mean, scale=scale)

    @classmethod
    def of_observations(cls, episodes: Episodes) -> "Standardise":
        """Fit to everything seen in these episodes."""
        rows = episodes.obs.reshape(-1, episodes.obs.shape[-1]).astype(jnp.float32)
        seen = episodes.seen()
        return cls.of(rows, None if seen is None else seen.reshape(-1))

    def __call__(self, x: Float[Array, "x"]) -> Float[Array, "x"]:
        """Standardise one example; the statistics are data, so they are not trained."""
        mean, scale = jax.lax.stop_gradient((self.mean, self.scale))
        return (x - mean) * scale


def adam(lr: float, decay_updates: int) -> optax.GradientTransformation:
    """Adam; with ``decay_updates`` above zero its step size falls to zero (cosine)."""
    if decay_updates == 0:
        return optax.adam(lr)
    return optax.adam(optax.cosine_decay_schedule(lr, decay_updates))


def move_towards(old: PyTree, new: PyTree, rate: float) -> PyTree:
    """Weights moved from ``old`` to ``new`` by ``rate``: soft targets and averages."""

    def move(a, b):
        return a + rate * (b - a) if eqx.is_inexact_array(a) else a

    return jax.tree.map(move, old, new)
