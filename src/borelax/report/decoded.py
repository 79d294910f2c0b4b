"""Beliefs made visible: what they say of the goal, the wall or the wind, step by step.

For rollouts [N, E, …] of one seed (learned) or [S, N, E, …] (exact). The learned belief
is decoded at its mean, as the policy and the measured errors see it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from borelax.belief.elbo import BeliefModel
from borelax.belief.step_decoder import GaussianPerStep, TransitionHead
from borelax.oracles.gridworld_belief import goal_distribution
from borelax.oracles.gridworld_posterior import exact_posterior
from borelax.oracles.task_posterior import (
    AnglePosterior,
    WindPosterior,
    memories_along,
)
from borelax.report.frames import Frame, spots_of
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.gridworld import Gridworld
from borelax.tasks.semicircle import SemiCircle
from borelax.tasks.wind import Wind
from borelax.types import Episodes, Transition

JUST_INSIDE = 0.95
"""Distance from the room's centre at which the wall is tried."""


def learned_along(
    frame: Frame, family: Any, model: BeliefModel, rollouts: Episodes
) -> Float[Array, "N T_plus_1 K"]:
    """The learned belief at a frame's spots, before each step and after the last."""
    spots = jnp.asarray(spots_of(frame), jnp.float32)
    return _learned(family, spots, model, rollouts)


@eqx.filter_jit
def _learned(family, spots, model, rollouts):
    def one(rollout: Episodes):
        means = model.encoder.filter(rollout.transitions()).mean
        decode = lambda m: _decoded(family, model.decoder, m, spots, rollout)  # noqa: E731
        return jnp.clip(jax.vmap(decode)(means), 0.0, 1.0)

    return jax.lax.map(one, rollouts)


def _decoded(family, decoder, latent, spots, rollout):
    if isinstance(family, Gridworld):
        return goal_distribution(decoder, family, latent)
    if isinstance(family, EscapeRoom):
        return _openness(family, decoder, latent, spots)
    pose = rollout.obs[0, 0].astype(jnp.float32)
    obs = jnp.tile(pose, (spots.shape[0], 1)).at[:, :2].set(spots)
    still = jnp.zeros((spots.shape[0], family.spec.action.size))
    steps = Transition(obs, still, jnp.zeros(spots.shape[0]), obs)
    return jax.vmap(lambda step: decoder.expected_reward(latent, step))(steps)


def _openness(family: EscapeRoom, decoder, latent, spots):
    """How far a step against the wall is expected to lead: 0 to it, 1 through it."""
    obs = JUST_INSIDE * spots
    action = spots / jnp.abs(spots).max(axis=1, keepdims=True)  # a full step outwards
    changes = _changes(decoder, latent, obs, action)
    reached = jnp.linalg.norm(obs + changes, axis=1)
    free = jnp.linalg.norm(obs + family.step_size * action, axis=1)
    return (reached - family.stopped_at) / (free - family.stopped_at)


def winds_along(
    frame: Frame, family: Any, model: BeliefModel, rollouts: Episodes
) -> Float[Array, "N T_plus_1 2"]:
    """The wind that the learned belief expects at the start's place, at every step."""
    return _winds(model, rollouts)


@eqx.filter_jit
def _winds(model, rollouts):
    def one(rollout: Episodes):
        means = model.encoder.filter(rollout.transitions()).mean
        still = jnp.zeros((1, 2))
        return jax.vmap(lambda m: _changes(model.decoder, m, still, still)[0])(means)

    return jax.lax.map(one, rollouts)


def _changes(decoder, latent, obs, action):
    """The changes of place that a belief expects of actions [K]."""
    head = decoder.heads[-1] if isinstance(decoder, GaussianPerStep) else None
    if not isinstance(head, TransitionHead):
        raise ValueError("this belief does not decode transitions")
    scale = decoder.scale

    def one(obs, action):
        step = Transition(obs, action, jnp.zeros(()), obs)
        read = head.network.read_step(head.inputs(scale, step))
        return head.network(latent, read) / scale.change.scale + scale.change.mean

    return jax.vmap(one)(obs, action)


def exact_along(frame: Frame, family: Any, rollouts: Episodes) -> np.ndarray:
    """The exact posterior [S, N, T+1, K] at a frame's spots."""
    spots = jnp.asarray(spots_of(frame), jnp.float32)
    return np.asarray(_exact(family, spots, rollouts))


@eqx.filter_jit
def _exact(family, spots, rollouts):
    def one(rollout: Episodes):
        steps = rollout.transitions()
        if isinstance(family, Gridworld):
            return exact_posterior(family, steps)
        if isinstance(family, Wind):
            posterior = WindPosterior(jnp.zeros((), jnp.int32), family)
            return memories_along(posterior, steps).wind
        posterior = AnglePosterior(jnp.zeros((), jnp.int32), family)
        tasks, _ = posterior.distribution(posterior.start())
        weights = memories_along(posterior, steps).astype(jnp.float32)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights @ jax.vmap(lambda task: _truth(family, task, spots))(tasks)

    return jax.lax.map(lambda seed: jax.lax.map(one, seed), rollouts)


def _truth(family: SemiCircle | EscapeRoom | AntSemiCircle, task, spots):
    """What a task's own map looks like."""
    if isinstance(family, EscapeRoom):
        off = jnp.arctan2(spots[:, 1], spots[:, 0]) - task
        wrapped = jnp.abs(jnp.mod(off + jnp.pi, 2 * jnp.pi) - jnp.pi)
        return (wrapped <= family.door_angle / 2).astype(jnp.float32)
    distance = jnp.linalg.norm(spots - task[None], axis=1)
    return (distance <= family.goal_radius).astype(jnp.float32)
