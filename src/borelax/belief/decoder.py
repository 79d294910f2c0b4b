"""Decoders p(r | m, step): each knows its own likelihood."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from borelax.agents.networks import MLP
from borelax.types import Key, Spec, Transition

Latent = Float[Array, "latent"]


@runtime_checkable
class Decoder(Protocol):
    """Scores a whole rollout given a latent m."""

    def summarise(self, steps: Transition) -> Any:
        """What ``log_likelihood`` needs of a rollout, computed once for all m."""
        ...

    def log_likelihood(self, latent: Latent, summary: Any) -> Float[Array, ""]:
        """Σ_t log p(r_{t+1} | m, step t), over all steps of the rollout."""
        ...

    def predict(self, latent: Latent) -> Float[Array, "features"]:
        """The prediction in a form that the policy may be shown."""
        ...

    def expected_reward(self, latent: Latent, step: Transition) -> Float[Array, ""]:
        """The reward that m expects of a step."""
        ...

    def fitted_to(self, steps: Transition) -> "Decoder":
        """This decoder, before training, with the statistics of steps [K]."""
        ...


class VisitCounts(eqx.Module):
    """How often each cell was entered with and without the goal's reward.

    Sufficient for the Bernoulli terms: decoding all T steps from all T+1 beliefs then
    needs no T×T work.
    """

    rewarded: Float[Array, "cells"]
    empty: Float[Array, "cells"]


class BernoulliPerCell(eqx.Module):
    """One Bernoulli per cell: does entering it give the goal's reward?"""

    network: MLP
    levels: Float[Array, "2"]
    """The data's mean reward off the goal and on it."""
    threshold: float = eqx.field(static=True)
    """Rewards above it count as the goal's."""

    def __init__(
        self,
        num_cells: int,
        *,
        latent_size: int,
        hidden: tuple[int, ...],
        threshold: float,
        key: Key,
    ):
        """``threshold`` lies between the goal's reward and the others."""
        self.network = MLP((latent_size, *hidden, num_cells), key=key)
        self.levels = jnp.array([0.0, 1.0])
        self.threshold = threshold

    def summarise(self, steps: Transition) -> VisitCounts:
        """Count visits; ``next_obs`` is the one-hot cell."""
        rewarded = (steps.reward > self.threshold).astype(jnp.float32)
        cells = steps.next_obs
        if steps.valid is not None:
            cells = jnp.where(steps.valid[:, None], cells, 0.0)
        return VisitCounts(rewarded @ cells, (1 - rewarded) @ cells)

    def log_likelihood(self, latent: Latent, summary: VisitCounts) -> Float[Array, ""]:
        """Σ_cells rewarded·log p + empty·log(1-p)."""
        logits = self.network(latent)
        yes, no = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
        return summary.rewarded @ yes + summary.empty @ no

    def predict(self, latent: Latent) -> Float[Array, "cells"]:
        """The probability per cell, normalised: which cell is the goal?

        Only the ratios between cells survive. The level does not carry over from the
        logs, where agents go to goals they know, to a search.
        """
        return jax.nn.softmax(jax.nn.log_sigmoid(self.network(latent)))

    def expected_reward(self, latent: Latent, step: Transition) -> Float[Array, ""]:
        """Between the two levels, by the probability of the cell entered."""
        off, on = jax.lax.stop_gradient(self.levels)
        goal = jax.nn.sigmoid(self.network(latent)) @ step.next_obs
        return off + goal * (on - off)

    def fitted_to(self, steps: Transition) -> "BernoulliPerCell":
        """This decoder with the levels of steps [K]; a level never seen stays."""
        on = steps.reward > self.threshold

        def level(where: Array, otherwise: Array) -> Array:
            where = where if steps.valid is None else where & steps.valid
            mean = (steps.reward * where).sum() / jnp.maximum(where.sum(), 1)
            return jnp.where(where.any(), mean, otherwise)

        levels = jnp.stack([level(~on, self.levels[0]), level(on, self.levels[1])])
        return eqx.tree_at(lambda d: d.levels, self, levels)


@dataclass(frozen=True)
class CellDecoder:
    """Settings of ``BernoulliPerCell``, for observations that are one-hot cells."""

    hidden: tuple[int, ...] = (32, 32)
    """Units of each hidden layer."""
    threshold: float = 0.5
    """Rewards above it count as the goal's."""

    def build(self, spec: Spec, latent_size: int, *, key: Key) -> BernoulliPerCell:
        """Fresh weights."""
        return BernoulliPerCell(
            spec.obs_size,
            latent_size=latent_size,
            hidden=self.hidden,
            threshold=self.threshold,
            key=key,
        )
