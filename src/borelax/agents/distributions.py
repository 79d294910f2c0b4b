"""The distribution of a stochastic policy on the box [-1, 1]^A."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from borelax.types import Key

LOG_STD_RANGE = (-5.0, 2.0)
"""Bounds on the log standard deviation, reached smoothly; fresh networks start in the
middle, at a deviation of 0.22, so that they explore from the first step on."""


class TanhGaussian(eqx.Module):
    """tanh of a diagonal Gaussian, for one observation."""

    mean: Float[Array, "action"]
    log_std: Float[Array, "action"]

    @classmethod
    def from_network(cls, output: Float[Array, "twice_action"]) -> "TanhGaussian":
        """Split a network's output into the mean and a bounded log deviation."""
        mean, raw = jnp.split(output, 2)
        low, high = LOG_STD_RANGE
        return cls(mean, low + 0.5 * (high - low) * (jnp.tanh(raw) + 1))

    @property
    def mode(self) -> Float[Array, "action"]:
        """The deterministic action: tanh of the mean."""
        return jnp.tanh(self.mean)

    def sample_with_log_prob(
        self, *, key: Key
    ) -> tuple[Float[Array, "action"], Float[Array, ""]]:
        """A reparametrised action and its log density."""
        return self.from_noise(jr.normal(key, self.mean.shape))

    def from_noise(
        self, noise: Float[Array, "action"]
    ) -> tuple[Float[Array, "action"], Float[Array, ""]]:
        """The action that standard normal ``noise`` gives, and its log density.

        log π(a) = log N(u) - Σ log(1 - tanh(u)²), written so that it stays finite for
        large u (Haarnoja et al. 2018, appendix C).
        """
        raw = self.mean + jnp.exp(self.log_std) * noise
        gaussian = -0.5 * jnp.square(noise) - self.log_std - 0.5 * jnp.log(2 * jnp.pi)
        # log(1 - tanh(u)²) = 2 (log 2 - u - softplus(-2u))
        squash = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))
        return jnp.tanh(raw), (gaussian - squash).sum()
