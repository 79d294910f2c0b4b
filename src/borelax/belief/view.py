"""What the policy sees of a belief, and the filter that keeps it up to date.

``BeliefFilter`` is the one interface of state relabelling and of the deployed policy;
the learned belief and the exact posterior both implement it.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from borelax.belief.elbo import BeliefModel
from borelax.belief.encoder import Gaussian, Hidden
from borelax.errors import require
from borelax.types import Transition

Features = Float[Array, "features"]


@runtime_checkable
class BeliefFilter(Protocol):
    """Keeps a belief along a rollout; a pytree."""

    def start(self) -> Any:
        """Memory of the empty history."""
        ...

    def update(self, memory: Any, step: Transition) -> Any:
        """Memory after one more step."""
        ...

    def features(self, memory: Any) -> Features:
        """The belief as the policy sees it."""
        ...

    def along(self, steps: Transition) -> Float[Array, "T_plus_1 features"]:
        """Features before each of T steps and after the last."""
        ...


@dataclass(frozen=True)
class BeliefView:
    """Which numbers of the belief the policy is shown."""

    latent: bool = True
    """Show mean and log-variance of q(m | h)."""
    decoded: bool = False
    """Show the decoder's prediction at the mean."""
    latest_reward: bool = False
    """Show also what the latest step paid. A belief that knew all would add nothing to
    it; one that forgets where nothing was found lets agents stand there."""

    def __post_init__(self) -> None:
        """Refuse a blind policy."""
        require(
            self.latent or self.decoded,
            "BeliefView must show the latent, the decoded belief, or both.",
        )

    def features(
        self, model: BeliefModel, belief: Gaussian, reward: Float[Array, ""]
    ) -> Features:
        """One vector; ``reward`` is the latest step's."""
        latent = [belief.mean, belief.logvar] if self.latent else []
        decoded = [model.decoder.predict(belief.mean)] if self.decoded else []
        latest = [reward[None]] if self.latest_reward else []
        return jnp.concatenate(latent + decoded + latest)


class Remembered(eqx.Module):
    """All that a learned belief keeps of a history."""

    hidden: Hidden
    reward: Float[Array, ""]
    """Of the latest step; 0 before the first."""


class LearnedBelief(eqx.Module):
    """The filter of a trained belief model."""

    model: BeliefModel
    view: BeliefView = eqx.field(static=True)

    def start(self) -> Remembered:
        """The encoder's zero state."""
        return Remembered(self.model.encoder.start(), jnp.zeros(()))

    def update(self, memory: Remembered, step: Transition) -> Remembered:
        """One step of the encoder."""
        reward = step.reward
        if step.valid is not None:
            reward = jnp.where(step.valid, reward, memory.reward)
        return Remembered(self.model.encoder.update(memory.hidden, step), reward)

    def features(self, memory: Remembered) -> Features:
        """What the view shows."""
        belief = self.model.encoder.belief(memory.hidden)
        return self.view.features(self.model, belief, memory.reward)

    def along(self, steps: Transition) -> Float[Array, "T_plus_1 features"]:
        """The encoder run over the whole rollout."""
        beliefs = self.model.encoder.filter(steps)
        show = partial(self.view.features, self.model)
        return jax.vmap(show)(beliefs, _latest(steps))

    def rewards_along(self, steps: Transition) -> Float[Array, "T"]:
        """The reward that the belief before each step expects of it.

        The decoder's, at the mean of the belief.
        """
        means = self.model.encoder.filter(steps).mean[:-1]
        return jax.vmap(self.model.decoder.expected_reward)(means, steps)


class FrozenBelief(eqx.Module):
    """A belief that learns nothing: what a policy is worth without its memory."""

    belief: BeliefFilter

    def start(self) -> Any:
        """The prior."""
        return self.belief.start()

    def update(self, memory: Any, step: Transition) -> Any:
        """The prior again."""
        return memory

    def features(self, memory: Any) -> Features:
        """The prior's."""
        return self.belief.features(memory)

    def along(self, steps: Transition) -> Float[Array, "T_plus_1 features"]:
        """The prior's, at every step."""
        prior = self.features(self.start())
        return jnp.repeat(prior[None], steps.reward.shape[0] + 1, axis=0)


def _latest(steps: Transition) -> Float[Array, "T_plus_1"]:
    """The reward of the latest step that happened, before each step and at the end."""
    if steps.valid is None:
        return jnp.concatenate([jnp.zeros(1), steps.reward])
    happened = jnp.concatenate([jnp.ones(1, bool), steps.valid])
    last = jax.lax.cummax(jnp.where(happened, jnp.arange(len(happened)), 0))
    return jnp.concatenate([jnp.zeros(1), steps.reward])[last]
