"""Soft actor-critic with a fixed entropy coefficient, and an optional CQL penalty.

In: batches of steps with actions in [-1, 1]. Out: a tanh-Gaussian policy. Every step
bootstraps, also at a time limit, which is not part of the task; only a step with which
an episode ended by itself does not.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int

from borelax.agents.agent import value_goal
from borelax.agents.distributions import TanhGaussian
from borelax.agents.networks import MLP, Standardise, adam, move_towards
from borelax.errors import require, require_positive, require_share, require_widths
from borelax.types import Box, Key, Metrics, Spec, Transition

Action = Float[Array, "action"]


class SACState(eqx.Module):
    """Actor, an ensemble of critics with their targets, optimisers, input scale."""

    actor: MLP
    critics: MLP
    """Leading axis: the critic's number."""
    targets: MLP
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    standardise: Standardise


class SACPolicy(eqx.Module):
    """What acting needs of a ``SACState``."""

    actor: MLP
    standardise: Standardise


@dataclass(frozen=True)
class SAC:
    """Soft actor-critic (Haarnoja et al. 2018)."""

    hidden: tuple[int, ...] = (128, 128)
    """Units of each hidden layer, in actor and critics."""
    lr: float = 3e-4
    """Adam step size of actor and critics."""
    decay_updates: int = 0
    """Updates over which the step size falls to zero (cosine); 0: it never falls."""
    discount: float = 0.9
    """Discount factor γ."""
    batch_size: int = 256
    """Steps per update."""
    target_rate: float = 0.005
    """Share of the online weights that enters the targets at each update."""
    entropy_weight: float = 0.01
    """Entropy coefficient α, fixed."""
    num_critics: int = 2
    """Critics; where there are more than two, each update's target draws two."""
    cql_weight: float = 0.0
    """Weight of the conservative penalty on the critics; 0: none."""
    cql_actions: int = 10
    """Actions per source (uniform, policy now, policy next) in the penalty."""
    cql_states: int = 0
    """States of a batch that the penalty is taken over, the first ones of its random
    order; 0: all. Each costs as much as three times ``cql_actions`` others."""

    def __post_init__(self) -> None:
        """Refuse values that cannot learn."""
        require_positive(self, "lr", "batch_size", "cql_actions")
        require_share(self, "discount", "target_rate")
        require_widths(self, "hidden")
        require(self.num_critics >= 2, "SAC.num_critics must be at least 2.")
        require(self.decay_updates >= 0, "SAC.decay_updates must not be negative.")
        for name in ("entropy_weight", "cql_weight", "cql_states"):
            value = getattr(self, name)
            require(0 <= value < float("inf"), f"SAC.{name} must not be negative.")

    def init(self, spec: Spec, *, key: Key) -> SACState:
        """Fresh weights; targets start equal to the critics."""
        if not isinstance(spec.action, Box):
            raise TypeError("SAC needs actions in a Box; use DQN for discrete ones.")
        key_actor, key_critics = jr.split(key)
        size = spec.action.size
        actor = MLP((spec.obs_size, *self.hidden, 2 * size), key=key_actor)
        sizes = (spec.obs_size + size, *self.hidden, 1)
        keys = jr.split(key_critics, self.num_critics)
        critics = eqx.filter_vmap(lambda k: MLP(sizes, key=k))(keys)
        return SACState(
            actor=actor,
            critics=critics,
            targets=critics,
            actor_optimiser=self._optimiser().init(eqx.filter(actor, eqx.is_array)),
            critic_optimiser=self._optimiser().init(eqx.filter(critics, eqx.is_array)),
            standardise=Standardise.identity(spec.obs_size),
        )

    def acting(self, state: SACState) -> SACPolicy:
        """The actor."""
        return SACPolicy(state.actor, state.standardise)

    def act(
        self,
        state: SACState | SACPolicy,
        obs: Float[Array, "obs"],
        *,
        explore: Float[Array, ""] | float,
        key: Key,
    ) -> Action:
        """The policy's mode; with probability ``explore`` a sample of the policy."""
        key_coin, key_action = jr.split(key)
        policy = TanhGaussian.from_network(state.actor(state.standardise(obs)))
        sample, _ = policy.sample_with_log_prob(key=key_action)
        return jnp.where(jr.uniform(key_coin) < explore, sample, policy.mode)

    def update(
        self, state: SACState, batch: Transition, *, key: Key
    ) -> tuple[SACState, Metrics]:
        """One Adam step of the critics, then one of the actor."""
        key_target, key_cql, key_actor = jr.split(key, 3)
        obs = jax.vmap(state.standardise)(batch.obs)
        next_obs = jax.vmap(state.standardise)(batch.next_obs)
        next_value = self._next_value(state, next_obs, key=key_target)
        goal = value_goal(batch, self.discount, next_value)

        def critic_loss(critics: MLP):
            values = q_values(critics, obs, batch.action)
            error = jnp.square(values - goal[None]).mean()
            if self.cql_weight == 0:
                return error, values.mean()
            some = slice(self.cql_states or None)
            given = (obs[some], next_obs[some], values[:, some])
            penalty = self._cql(state.actor, critics, *given, key_cql)
            return error + self.cql_weight * penalty, values.mean()

        (error, q_mean), grads = eqx.filter_value_and_grad(critic_loss, has_aux=True)(
            state.critics
        )
        steps, critic_optimiser = self._optimiser().update(
            grads, state.critic_optimiser
        )
        critics = eqx.apply_updates(state.critics, steps)

        def actor_loss(actor: MLP):
            actions, log_probs = sample_actions(actor, obs, key=key_actor)
            values = q_values(critics, obs, actions).min(axis=0)
            entropy = -log_probs.mean()
            return -values.mean() - self.entropy_weight * entropy, entropy

        (_, entropy), grads = eqx.filter_value_and_grad(actor_loss, has_aux=True)(
            state.actor
        )
        steps, actor_optimiser = self._optimiser().update(grads, state.actor_optimiser)
        new = SACState(
            actor=eqx.apply_updates(state.actor, steps),
            critics=critics,
            targets=move_towards(state.targets, critics, self.target_rate),
            actor_optimiser=actor_optimiser,
            critic_optimiser=critic_optimiser,
            standardise=state.standardise,
        )
        return new, {"td_error": error, "q_mean": q_mean, "entropy": entropy}

    def _next_value(
        self, state: SACState, next_obs: Float[Array, "batch obs"], *, key: Key
    ) -> Float[Array, "batch"]:
        """min_i Q̄_i(s', a') - α log π(a'|s'), a' ~ π."""
        key_action, key_pair = jr.split(key)
        actions, log_probs = sample_actions(state.actor, next_obs, key=key_action)
        targets = state.targets
        if self.num_critics > 2:
            pair = two_of(self.num_critics, key=key_pair)
            targets = jax.tree.map(lambda x: x[pair], targets)
        values = q_values(targets, next_obs, actions)
        return values.min(axis=0) - self.entropy_weight * log_probs

    def _cql(self, actor, critics, obs, next_obs, data_values, key: Key):
        """Log Σ_a exp Q(s, a), importance-weighted, minus Q of the data."""
        key_uniform, key_now, key_next = jr.split(key, 3)
        size, count = data_values.shape[1], self.cql_actions
        width = _action_size(actor)
        uniform = jr.uniform(key_uniform, (count, size, width), minval=-1.0)
        now, now_log = _many(actor, obs, count, key_now)
        later, later_log = _many(actor, next_obs, count, key_next)
        flat = jnp.full((count, size), -width * jnp.log(2.0))
        actions = jnp.concatenate([uniform, now, later])
        log_density = jax.lax.stop_gradient(jnp.concatenate([flat, now_log, later_log]))
        actions = jax.lax.stop_gradient(actions)
        values = jax.vmap(lambda a: q_values(critics, obs, a))(actions)
        return cql_penalty(values, log_density, data_values)

    def _optimiser(self) -> optax.GradientTransformation:
        return adam(self.lr, self.decay_updates)


def two_of(count: int, *, key: Key) -> Int[Array, "2"]:
    """Two different numbers below ``count``, all pairs equally likely."""
    key_first, key_ahead = jr.split(key)
    first = jr.randint(key_first, (), 0, count)
    ahead = jr.randint(key_ahead, (), 1, count)
    return jnp.stack([first, (first + ahead) % count])


def q_values(
    critics: MLP, obs: Float[Array, "batch obs"], actions: Float[Array, "batch action"]
) -> Float[Array, "critics batch"]:
    """Every critic's value of every pair."""
    pairs = jnp.concatenate([obs, actions], axis=1)
    return eqx.filter_vmap(lambda critic: jax.vmap(critic)(pairs)[:, 0])(critics)


def sample_actions(
    actor: MLP, obs: Float[Array, "batch obs"], *, key: Key
) -> tuple[Float[Array, "batch action"], Float[Array, "batch"]]:
    """One action per observation and its log density."""
    shape = (obs.shape[0], _action_size(actor))
    noise = jr.normal(key, shape)  # one draw: a key per row costs more

    def one(obs, noise):
        return TanhGaussian.from_network(actor(obs)).from_noise(noise)

    return jax.vmap(one)(obs, noise)


def cql_penalty(
    values: Float[Array, "draws critics batch"],
    log_density: Float[Array, "draws batch"],
    data_values: Float[Array, "critics batch"],
) -> Float[Array, ""]:
    """E[log mean_a exp(Q(s, a)) / density(a) - Q(s, a_data)] (Kumar et al. 2020).

    The mean over draws estimates ∫ exp Q(s, a) da; both terms share one weight.
    """
    weighted = values - log_density[:, None, :]
    integral = jax.nn.logsumexp(weighted, axis=0) - jnp.log(values.shape[0])
    return (integral - data_values).mean()


def _action_size(actor: MLP) -> int:
    """An actor gives a mean and a deviation per axis."""
    return actor.layers[-1].bias.shape[0] // 2


def _many(actor: MLP, obs: Float[Array, "batch obs"], count: int, key: Key):
    return jax.vmap(lambda k: sample_actions(actor, obs, key=k))(jr.split(key, count))
