"""Thompson sampling on Semi-circle and Escape-Room, its expected return simulated.

The agent draws an angle from its exact posterior, walks straight to that goal (out
through that door) and stays there. As on Gridworld, it either holds on to what it drew
for the whole episode, or draws again as soon as a step has ruled it out.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from borelax.oracles.task_posterior import AnglePosterior, Possible, tasks_at
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.semicircle import SemiCircle, goal_at
from borelax.types import Key, Transition

NUM_TASKS = 4_096
"""Angles of the true tasks, evenly spread, each met once by each variant."""
OUTSIDE = 1.2
"""How far from the centre of the room the agent waits."""


class Trying(eqx.Module):
    """Where a rollout stands."""

    state: Float[Array, "2"]
    possible: Possible
    drawn: Int[Array, ""]
    """The posterior's angle that is taken for the true one."""


def thompson_returns(
    family: SemiCircle | EscapeRoom, *, redraw: bool
) -> tuple[float, ...]:
    """Expected return of each episode; ``redraw``: as soon as the draw is ruled out."""
    keys = jr.split(jr.key(0), NUM_TASKS)
    returns = jax.jit(jax.vmap(lambda t, k: _rollout(family, redraw, t, k)))
    return tuple(returns(tasks_at(family, NUM_TASKS), keys).mean(axis=0).tolist())


def _rollout(
    family: SemiCircle | EscapeRoom, redraw: bool, task: Any, key: Key
) -> Float[Array, "episodes"]:
    posterior = AnglePosterior(jnp.zeros((), jnp.int32), family)
    tasks, _ = posterior.distribution(posterior.start())
    doors = isinstance(family, EscapeRoom)
    places = OUTSIDE * jax.vmap(goal_at)(tasks) if doors else tasks  # where to wait

    def draw(possible: Possible, key: Key) -> Int[Array, ""]:
        return jr.categorical(key, jnp.where(possible, 0.0, -jnp.inf))

    def step(now: Trying, key: Key) -> tuple[Trying, Float[Array, ""]]:
        key_step, key_draw = jr.split(key)
        obs = family.observe(now.state)
        toward = (places[now.drawn] - obs) / family.step_size
        action = jnp.clip(toward, -1.0, 1.0)
        after = family.step(task, now.state, action, key=key_step)
        seen = Transition(obs, action, jnp.zeros(()), family.observe(after))
        paid = family.reward(task, seen)
        seen = Transition(obs, action, paid, seen.next_obs)
        possible = posterior.update(now.possible, seen)
        again = redraw & ~possible[now.drawn]
        drawn = jnp.where(again, draw(possible, key_draw), now.drawn)
        return Trying(after, possible, drawn), paid

    def episode(possible: Possible, key: Key) -> tuple[Possible, Float[Array, ""]]:
        key_reset, key_draw, key_steps = jr.split(key, 3)
        first = family.reset(task, "fixed", key=key_reset)
        begun = Trying(first, possible, draw(possible, key_draw))
        ended, paid = jax.lax.scan(step, begun, jr.split(key_steps, family.horizon))
        return ended.possible, paid.sum()

    keys = jr.split(key, family.episodes)
    return jax.lax.scan(episode, posterior.start(), keys)[1]
