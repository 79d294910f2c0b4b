"""The words every other file uses: steps, episodes, spaces, keys, metrics.

Axis letters, always in this order: S seeds, N tasks, R rollouts, T steps (all
episodes of a rollout in a row) or E episodes and H steps, then features. Scalars
carry no trailing axis of one.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num, PRNGKeyArray, Shaped

Key = PRNGKeyArray
Metrics = dict[str, Float[Array, "..."]]


@dataclass(frozen=True)
class Discrete:
    """Actions 0 … num_actions-1, stored as int32 scalars."""

    num_actions: int

    @property
    def size(self) -> int:
        """Numbers a network needs to read one action."""
        return self.num_actions

    def encode(self, action: Shaped[Array, ""]) -> Float[Array, "size"]:
        """One-hot, the form in which networks read an action."""
        return jax.nn.one_hot(action, self.num_actions)

    def sample(self, *, key: Key) -> Shaped[Array, ""]:
        """Draw one action uniformly."""
        return jax.random.randint(key, (), 0, self.num_actions)


@dataclass(frozen=True)
class Box:
    """Actions in [-1, 1] per axis; the family scales them to its own box."""

    size: int

    def encode(self, action: Float[Array, "size"]) -> Float[Array, "size"]:
        """The action as it is."""
        return action

    def sample(self, *, key: Key) -> Float[Array, "size"]:
        """Draw one action uniformly."""
        return jax.random.uniform(key, (self.size,), minval=-1.0, maxval=1.0)


@dataclass(frozen=True)
class Spec:
    """What a learner must know of a family: sizes, never the task."""

    obs_size: int
    action: Discrete | Box
    horizon: int
    """H: steps from a reset to the time limit."""
    episodes: int
    """k: consecutive episodes of one task that make a rollout."""
    obs_dtype: str = "float32"
    """How logs store observations: float32, or uint8 where that loses nothing."""


class Transition(eqx.Module):
    """One step, or any array of them: what happened, and nothing about the task.

    ``reward`` is judged at ``next_obs``, which is always the true successor.
    """

    obs: Float[Array, "*batch obs"]
    action: Num[Array, "..."]
    reward: Float[Array, "*batch"]
    next_obs: Float[Array, "*batch obs"]


class Episodes(eqx.Module):
    """Whole episodes in order, each with its H+1 observations stored once.

    A rollout is [E, …]; what comes before E is a batch of rollouts.
    """

    obs: Shaped[Array, "*episodes H_plus_1 obs"]
    action: Num[Array, "..."]
    reward: Float[Array, "*episodes H"]

    def transitions(self) -> Transition:
        """The same steps in a row: [*batch, E*H], with obs and next_obs."""
        obs = self.obs.astype(jnp.float32)
        axis = self.reward.ndim - 2

        def in_a_row(x: Array) -> Array:
            return x.reshape(*x.shape[:axis], -1, *x.shape[axis + 2 :])

        return Transition(
            obs=in_a_row(obs[..., :-1, :]),
            action=in_a_row(self.action),
            reward=in_a_row(self.reward),
            next_obs=in_a_row(obs[..., 1:, :]),
        )


def axis_size(tree: Any) -> int:
    """Length of the leading axis of a pytree's arrays."""
    return jax.tree.leaves(eqx.filter(tree, eqx.is_array))[0].shape[0]
