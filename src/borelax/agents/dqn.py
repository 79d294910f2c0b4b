"""DQN with double targets, soft target updates and an optional average of the weights.

In: batches of steps with discrete actions. Out: action values. Every step bootstraps,
also at a time limit, which is not part of the task (paper, appendix C); only a step
with which an episode ended by itself does not.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int

from borelax.agents.agent import value_goal
from borelax.agents.networks import MLP, Standardise, adam, move_towards
from borelax.errors import require, require_positive, require_share, require_widths
from borelax.types import Discrete, Key, Metrics, Spec, Transition


class DQNState(eqx.Module):
    """Weights, their slow copies, the optimiser, and the scale of the inputs."""

    q: MLP
    target: MLP
    average: MLP
    optimiser: optax.OptState
    standardise: Standardise


class DQNPolicy(eqx.Module):
    """What acting needs of a ``DQNState``."""

    average: MLP
    standardise: Standardise


@dataclass(frozen=True)
class DQN:
    """Double deep Q-learning (Mnih et al. 2015; van Hasselt et al. 2016)."""

    hidden: tuple[int, ...] = (16, 16)
    """Units of each hidden layer."""
    lr: float = 3e-4
    """Adam step size."""
    decay_updates: int = 0
    """Updates over which the step size falls to zero (cosine); 0: it never falls."""
    discount: float = 0.99
    """Discount factor γ."""
    batch_size: int = 256
    """Steps per update."""
    target_rate: float = 0.005
    """Share of the online weights that enters the target at each update."""
    average_rate: float = 1.0
    """Share of the online weights that enters the acting average; 1: act on-line."""

    def __post_init__(self) -> None:
        """Refuse values that cannot learn."""
        require_positive(self, "lr", "batch_size")
        require_share(self, "discount", "target_rate", "average_rate")
        require_widths(self, "hidden")
        require(self.decay_updates >= 0, "DQN.decay_updates must not be negative.")

    def init(self, spec: Spec, *, key: Key) -> DQNState:
        """Fresh weights; target and average start equal to them."""
        if not isinstance(spec.action, Discrete):
            raise TypeError("DQN needs discrete actions; use SAC for a Box.")
        q = MLP((spec.obs_size, *self.hidden, spec.action.num_actions), key=key)
        optimiser = self._optimiser().init(eqx.filter(q, eqx.is_inexact_array))
        return DQNState(q, q, q, optimiser, Standardise.identity(spec.obs_size))

    def acting(self, state: DQNState) -> DQNPolicy:
        """The averaged weights."""
        return DQNPolicy(state.average, state.standardise)

    def act(
        self,
        state: DQNState | DQNPolicy,
        obs: Float[Array, "obs"],
        *,
        explore: Float[Array, ""] | float,
        key: Key,
    ) -> Int[Array, ""]:
        """Greedy by the averaged weights; with probability ``explore`` uniform."""
        key_coin, key_action = jr.split(key)
        values = state.average(state.standardise(obs))
        random = jr.randint(key_action, (), 0, values.shape[0])
        return jnp.where(jr.uniform(key_coin) < explore, random, jnp.argmax(values))

    def update(
        self, state: DQNState, batch: Transition, *, key: Key
    ) -> tuple[DQNState, Metrics]:
        """One Adam step on the squared temporal difference."""
        obs = jax.vmap(state.standardise)(batch.obs)
        next_obs = jax.vmap(state.standardise)(batch.next_obs)
        next_value = double_q_value(
            jax.vmap(state.q)(next_obs), jax.vmap(state.target)(next_obs)
        )
        goal = value_goal(batch, self.discount, next_value)

        def loss(q: MLP) -> tuple[Float[Array, ""], Float[Array, ""]]:
            values = jax.vmap(q)(obs)
            taken = jnp.take_along_axis(values, batch.action[:, None], axis=1)[:, 0]
            return jnp.square(taken - goal).mean(), taken.mean()

        (error, q_mean), grads = eqx.filter_value_and_grad(loss, has_aux=True)(state.q)
        steps, optimiser = self._optimiser().update(grads, state.optimiser)
        q = eqx.apply_updates(state.q, steps)
        new = DQNState(
            q=q,
            target=move_towards(state.target, q, self.target_rate),
            average=move_towards(state.average, q, self.average_rate),
            optimiser=optimiser,
            standardise=state.standardise,
        )
        return new, {"td_error": error, "q_mean": q_mean}

    def _optimiser(self) -> optax.GradientTransformation:
        return adam(self.lr, self.decay_updates)


def double_q_value(
    online: Float[Array, "batch actions"], target: Float[Array, "batch actions"]
) -> Float[Array, "batch"]:
    """Q_target(s', argmax_a Q_online(s', a)) (van Hasselt et al. 2016, eq. 4)."""
    best = jnp.argmax(online, axis=-1, keepdims=True)
    return jnp.take_along_axis(target, best, axis=-1)[..., 0]
