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
from jaxtyping import Array, Bool, Float, Int, Num, PRNGKeyArray, Shaped

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
    valid: Bool[Array, "*batch"] | None = None
    """Whether the step happened, or only pads an episode; None: every one happened."""
    ended: Bool[Array, "*batch"] | None = None
    """Whether the episode ended by itself with this step, so that nothing follows;
    None: none did."""
    ahead: Int[Array, "*batch"] | None = None
    """How many steps lead to ``next_obs``, whose rewards the reward then holds, each
    discounted; None: one."""


class Episodes(eqx.Module):
    """Whole episodes in order, each with its H+1 observations stored once.

    A rollout is [E, …]; what comes before E is a batch of rollouts. An episode that
    ended early is padded to H steps: its last observation again, action and reward 0.
    Nothing that learns or measures reads the padding.
    """

    obs: Shaped[Array, "*episodes H_plus_1 obs"]
    action: Num[Array, "..."]
    reward: Float[Array, "*episodes H"]
    length: Int[Array, "*episodes"] | None = None
    """How many of the H steps happened, 1 … H; None: all of them, in every episode. A
    shorter episode ended by itself. One of H steps met the time limit, also where it
    would have ended with that very step: its end is then bootstrapped through."""
    ended: Bool[Array, "*episodes"] | None = None
    """Which episodes ended by themselves, where being shorter does not say it: in a
    rollout of hyper-states made of several episodes. None: the shorter ones."""
    cut: Bool[Array, "*episodes"] | None = None
    """Which episodes were cut off, so that the next one does not follow from them by a
    reset; None: none was."""

    def happened(self) -> Bool[Array, "*episodes H"] | None:
        """Which steps are no padding; None: all."""
        if self.length is None:
            return None
        return self._time() < self.length[..., None]

    def seen(self) -> Bool[Array, "*episodes H_plus_1"] | None:
        """Which observations are no padding; None: all."""
        happened = self.happened()
        if happened is None:
            return None
        first = jnp.ones_like(happened[..., :1])
        return jnp.concatenate([first, happened], axis=-1)

    def ends(self) -> Bool[Array, "*episodes H"] | None:
        """Which steps ended their episode by itself; None: none did."""
        if self.length is None:
            return None
        shorter = self.length < self.reward.shape[-1]
        ended = shorter if self.ended is None else self.ended
        last = self._time() == self.length[..., None] - 1
        return last & ended[..., None]

    def paid(self) -> Float[Array, "*episodes H"]:
        """The rewards, without what stands in the padding."""
        happened = self.happened()
        if happened is None:
            return self.reward
        return jnp.where(happened, self.reward, 0.0)

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
            valid=jax.tree.map(in_a_row, self.happened()),
            ended=jax.tree.map(in_a_row, self.ends()),
        )

    def _time(self) -> Int[Array, "*episodes H"]:
        shape = self.reward.shape
        return jax.lax.broadcasted_iota(jnp.int32, shape, len(shape) - 1)


def axis_size(tree: Any) -> int:
    """Length of the leading axis of a pytree's arrays."""
    return jax.tree.leaves(eqx.filter(tree, eqx.is_array))[0].shape[0]
