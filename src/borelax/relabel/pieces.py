"""Short pieces of logged episodes, of which rollouts can be composed.

A belief depends on what was seen, not on whether it was seen in one go. Agents that
have learned their task never search, so that logs hold no long search; pieces of many
agents, one after the other, rule out as much as one.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from borelax.relabel.source import Provenance, choose
from borelax.types import Episodes, Key, axis_size


class Places(eqx.Module):
    """Where pieces begin in logs [N, R, E, H]."""

    task: Int[Array, "*pieces"]
    rollout: Int[Array, "*pieces"]
    episode: Int[Array, "*pieces"]
    time: Int[Array, "*pieces"]


def even_pieces(wanted: int, episodes: int, horizon: int) -> int:
    """The most equal pieces, up to ``wanted``, into which whole episodes can be cut."""
    most = max(wanted // episodes, 1)
    return episodes * max(d for d in range(1, most + 1) if horizon % d == 0)


def cut_out(episodes: Episodes, places: Places, steps: int) -> Episodes:
    """The pieces of ``steps`` steps that begin at ``places``, each as an episode.

    All of them count as cut off.
    """
    times = jnp.add.outer(places.time, jnp.arange(steps + 1))
    whose = (places.task, places.rollout, places.episode)
    place = tuple(x[..., None] for x in whose)
    return Episodes(
        episodes.obs[*place, times],
        episodes.action[*place, times[..., :-1]],
        episodes.reward[*place, times[..., :-1]],
        cut=jnp.ones(places.task.shape, bool),
    )


def in_pieces(made: Provenance, pieces: int) -> Provenance:
    """The same steps, each rollout [E, H] as ``pieces`` consecutive pieces."""
    draws, num_episodes, horizon = made.rollouts.reward.shape
    each = pieces // num_episodes
    steps = horizon // each
    draw, episode, piece = jnp.meshgrid(
        *(jnp.arange(n) for n in (draws, num_episodes, each)), indexing="ij"
    )
    places = Places(jnp.zeros_like(draw), draw, episode, steps * piece)
    one_task = jax.tree.map(lambda x: x[None], made.rollouts)
    rows = cut_out(one_task, places, steps)
    rows = replace(rows, cut=jnp.zeros(draw.shape, bool))
    rollouts = jax.tree.map(lambda x: x.reshape(draws, pieces, *x.shape[3:]), rows)
    return Provenance(rollouts, made.task, jnp.repeat(made.maker, each, axis=1))


def either(one: Provenance, other: Provenance, share: float, *, key: Key) -> Provenance:
    """A ``share`` of the rollouts from ``other``, the rest from ``one``."""
    return choose(jr.bernoulli(key, share, (axis_size(one),)), other, one)
