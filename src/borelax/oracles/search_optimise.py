"""The best search path that many starts, gradients and a random polish can find.

First sweeps round the arc from many angles, both ways; then gradient ascent on a value
in which a near miss counts a little, and ever less; then random changes of a few steps,
kept where they raise the exact value. Everything is seeded: equal worlds, equal paths.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from borelax.oracles.search import (
    Actions,
    Point,
    Scalar,
    SearchWorld,
    Walks,
    known_returns,
    margins,
    midpoints,
    path_value,
    walk_to,
    walks_to_landmarks,
)
from borelax.types import Key


@dataclass(frozen=True)
class Effort:
    """How hard to look."""

    start_angles: int = 7
    """Angles at which first sweeps begin, each of them in both directions."""
    ascent_steps: int = 250
    """Steps of gradient ascent."""
    ascent_angles: int = 96
    """Angles that stand for all in the ascent."""
    polished: int = 2
    """Paths that are polished."""
    polish_rounds: int = 600
    """Rounds of random changes."""
    polish_tries: int = 8
    """Changes tried in each round."""
    polish_angles: int = 2_048
    """Angles that stand for all in the polish: many, or it hides gaps among them."""
    landmarks: int = 64
    """Places to come back to."""
    bound_tasks: int = 9
    """Tasks on each tour of the upper bound."""
    bound_slices: int = 24
    """Tours whose mean is the upper bound."""


def best_path(world: SearchWorld, effort: Effort) -> Actions:
    """Actions of the best path found."""
    coarse = midpoints(effort.ascent_angles)
    returns = jnp.asarray(known_returns(world, coarse), jnp.float32)
    starts = first_sweeps(world, effort)
    risen = _ascend(world, starts, jnp.asarray(coarse, jnp.float32), returns, effort)
    walks = walks_to_landmarks(world, effort.landmarks, effort.polish_angles)
    polished = []
    for path in _best_of(
        world, jnp.concatenate([starts, risen]), walks, effort.polished
    ):
        for episode in range(1, world.family.episodes):
            tries = _look_elsewhere(world, path, episode, walks)
            tries = jnp.concatenate([path[None], tries])
            path = _best_of(world, tries, walks, 1)[0]
        polished.append(_polish(world, path, walks, effort, key=jr.key(0)))
    return _best_of(world, jnp.stack(polished), walks, 1)[0]


def soft_value(
    world: SearchWorld,
    actions: Actions,
    angles: Float[Array, "M"],
    returns: Float[Array, "M"],
    softness: Scalar,
) -> Scalar:
    """Value of a path whose steps find a task with probability σ(margin / softness).

    As if finding the task gave it away completely: later episodes pay ``returns``.
    """
    episodes, horizon = actions.shape[:2]
    clear = margins(world, actions, angles) / softness
    hidden = jnp.exp(-jnp.cumsum(jax.nn.softplus(clear), axis=0))
    before = jnp.concatenate([jnp.ones_like(hidden[:1]), hidden[:-1]])
    found = before - hidden
    return (found * _worth(episodes, horizon, returns)).sum(axis=0).mean()


def first_sweeps(world: SearchWorld, effort: Effort) -> Float[Array, "starts E H 2"]:
    """Out to an angle, then round, at several radii and two speeds."""
    family = world.family
    angles = jnp.linspace(0.1, np.pi - 0.1, effort.start_angles)
    radii = jnp.asarray(world.sweep_radii())
    speeds = family.step_size * jnp.asarray([-1.4, -1.1, 1.1, 1.4])
    mesh = jnp.meshgrid(angles, radii, speeds, indexing="ij")
    starts = jnp.stack([axis.reshape(-1) for axis in mesh], axis=-1)
    return jax.jit(jax.vmap(lambda start: _sweep(world, start)))(starts)


def _sweep(world: SearchWorld, start: Float[Array, "3"]) -> Actions:
    angle, radius, speed = start
    family = world.family

    def one_step(carry: tuple[Point, Scalar], time: Array):
        state, angle = carry
        state = jnp.where(time % family.horizon == 0, jnp.zeros(2), state)
        target = radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        action = jnp.clip((target - state) / family.step_size, -1.0, 1.0)
        there = jnp.abs(target - state).max() <= 1.5 * family.step_size
        angle = jnp.clip(angle + jnp.where(there, speed, 0.0), 0.0, jnp.pi)
        return (world.blind_step(state, action), angle), action

    times = jnp.arange(family.episodes * family.horizon)
    actions = jax.lax.scan(one_step, (jnp.zeros(2), angle), times)[1]
    return actions.reshape(family.episodes, family.horizon, 2)


def _worth(
    episodes: int, horizon: int, returns: Float[Array, "M"]
) -> Float[Array, "T M"]:
    """What finding each angle at each step pays, now and in later episodes."""
    times = np.arange(episodes * horizon)
    now = jnp.asarray(horizon - times % horizon, jnp.float32)
    later = jnp.asarray(episodes - 1 - times // horizon, jnp.float32)
    return now[:, None] + later[:, None] * returns[None]


@eqx.filter_jit
def _best_of(world, paths, walks: Walks, num: int) -> Float[Array, "num E H 2"]:
    """The best paths, of those with equal values only the first."""
    value = lambda path: path_value(world, path, walks).per_episode.sum()  # noqa: E731
    values = jax.lax.map(value, paths, batch_size=16)
    ranks = jnp.argsort(-values)
    again = jnp.diff(values[ranks], prepend=jnp.inf) == 0
    return paths[ranks[jnp.argsort(again, stable=True)[:num]]]


@eqx.filter_jit
def _look_elsewhere(
    world, path: Actions, episode: int, walks: Walks
) -> Float[Array, "Q E H 2"]:
    """The path with one episode replaced by a walk to each landmark."""
    walk = lambda target: path.at[episode].set(walk_to(world, target))  # noqa: E731
    return jax.vmap(walk)(walks.targets)


@eqx.filter_jit
def _ascend(world, starts, angles, returns, effort) -> Float[Array, "starts E H 2"]:
    adam = optax.adam(0.03)
    softness = jnp.geomspace(0.02, 0.002, effort.ascent_steps)
    slope = jax.vmap(
        jax.grad(lambda path, soft: -soft_value(world, path, angles, returns, soft)),
        in_axes=(0, None),
    )

    def one_step(carry, soft):
        paths, state = carry
        updates, state = adam.update(slope(paths, soft), state)
        return (jnp.clip(paths + updates, -1.0, 1.0), state), None

    return jax.lax.scan(one_step, (starts, adam.init(starts)), softness)[0][0]


@eqx.filter_jit
def _polish(world, path, walks: Walks, effort, *, key: Key) -> Actions:
    judge = jax.vmap(lambda path: path_value(world, path, walks))
    total = path.shape[0] * path.shape[1]

    def one_round(carry, key):
        path, best, last = carry
        keys = jr.split(key, effort.polish_tries)
        tries = jax.vmap(lambda k: _changed(path, last + 1, key=k))(keys)
        judged = judge(tries)
        values = judged.per_episode.sum(axis=1)
        chosen = values.argmax()
        better = values[chosen] > best
        path = jnp.where(better, tries[chosen], path)
        last = jnp.where(better, last_find(judged.first_find[chosen]), last)
        return (path, jnp.maximum(best, values[chosen]), last), None

    def last_find(first: Int[Array, "M"]) -> Int[Array, ""]:
        return jnp.minimum(first.max(), total - 1)

    judged = judge(path[None])
    begin = path, judged.per_episode[0].sum(), last_find(judged.first_find[0])
    keys = jr.split(key, effort.polish_rounds)
    return jax.lax.scan(one_round, begin, keys)[0][0]


def _changed(path: Actions, used: Array, *, key: Key) -> Actions:
    """The path with a few consecutive steps, or a few places, changed at random."""
    key_centre, key_width, key_size, key_noise, key_kind = jr.split(key, 5)
    times = jnp.arange(path.shape[0] * path.shape[1])
    centre = jr.uniform(key_centre, maxval=used.astype(jnp.float32))
    width = jnp.exp(jr.uniform(key_width, minval=-1.0, maxval=2.5))
    size = jnp.exp(jr.uniform(key_size, minval=-7.0, maxval=0.0))
    shape = jnp.exp(-0.5 * jnp.square((times - centre) / width))[:, None]
    noise = jr.normal(key_noise, (len(times) + 1, 2))
    change = size * shape * (0.3 * noise[1:] + noise[:1])
    # to move a place is to do more before it and less after
    places = jnp.diff(change, axis=0, prepend=jnp.zeros((1, 2)))
    change = jnp.where(jr.bernoulli(key_kind), change, places)
    return jnp.clip(path + change.reshape(path.shape), -1.0, 1.0)
