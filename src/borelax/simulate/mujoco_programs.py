"""What happens in JAX between two steps of MuJoCo, for all simulations at once.

``begin`` starts an episode; ``advance`` observes, rewards, remembers, records and acts.
Both are written for one simulation and mapped over tasks and repeats.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Shaped

from borelax.simulate.policy import Memory
from borelax.tasks.mujoco_family import MujocoFamily, Physics
from borelax.types import Episodes, Key, Spec, Transition


class Made(eqx.Module):
    """All rollouts so far."""

    memory: Memory
    """The policies' [N, repeats, …]."""
    keys: Shaped[Array, "N repeats"]
    """Each rollout's own."""
    episode: Int[Array, ""]
    step: Int[Array, ""]
    episodes: Episodes
    """Preallocated [N, repeats, E, …]."""


class Moment(eqx.Module):
    """A simulation, or any array of them, between two steps of the physics."""

    key: Shaped[Array, "*batch"]
    """Of this episode's actions."""
    before: Physics
    obs: Float[Array, "*batch obs"]
    action: Float[Array, "*batch action"]


@eqx.filter_jit
def allocate(
    spec: Spec,
    policies: Any,
    numbers: Int[Array, "N"],
    repeats: int,
    episodes: int,
    key: Key,
) -> Made:
    """Room for everything; memories as rollouts begin."""
    horizon, size = spec.horizon, spec.action.size
    shape = (len(numbers), repeats, episodes)

    def of_task(policy: Any, number: Int[Array, ""]) -> tuple[Memory, Array]:
        key_task = jr.fold_in(key, number)
        keys = jax.vmap(lambda r: jr.fold_in(key_task, r))(jnp.arange(repeats))
        return jax.vmap(lambda k: policy.start(), axis_size=repeats)(keys), keys

    memory, keys = eqx.filter_vmap(of_task)(policies, numbers)
    room = Episodes(
        jnp.zeros((*shape, horizon + 1, spec.obs_size), spec.obs_dtype),
        jnp.zeros((*shape, horizon, size)),
        jnp.zeros((*shape, horizon)),
    )
    return Made(memory, keys, jnp.int32(-1), jnp.int32(0), room)


class Programs(NamedTuple):
    """The compiled calls between MuJoCo's."""

    begin: Callable[..., tuple[Made, Moment, Array]]
    advance: Callable[..., tuple[Made, Moment]]


@lru_cache(maxsize=32)
def programs_of(family: MujocoFamily, rest: Any, start: str) -> Programs:
    """One pair per family and structure of policies, so that each compiles once."""
    begin = partial(_begin, family, rest, start)
    advance = partial(_advance, family, rest)
    return Programs(
        jax.jit(begin, donate_argnums=3), jax.jit(advance, donate_argnums=2)
    )


def _begin(
    family: MujocoFamily,
    rest: Any,
    start: str,
    arrays: Any,
    tasks: Any,
    default: Physics,
    made: Made,
) -> tuple[Made, Moment, Float[Array, "sims row"]]:
    """Start the next episode of every rollout; its states are also given as rows."""
    episode = made.episode + 1

    def one(policy: Any, task: Any, memory: Memory, key: Key) -> Moment:
        key_reset, key_acts = jr.split(jr.fold_in(key, episode))
        first = family.reset(task, start, default, key=key_reset)
        obs = family.observe(first, first)
        action = policy.act(memory, obs, key=jr.fold_in(key_acts, 0))
        return Moment(key_acts, first, obs, action)

    moment = _for_all(one, rest)(arrays, tasks, made.memory, made.keys)
    place, room = (slice(None), slice(None), episode, 0), made.episodes
    room = Episodes(
        room.obs.at[place].set(moment.obs.astype(room.obs.dtype)),
        room.action.at[place].set(moment.action),
        room.reward,
    )
    rows = jnp.concatenate([moment.before.qpos, moment.before.qvel], axis=-1)
    made = Made(made.memory, made.keys, episode, jnp.int32(0), room)
    return made, moment, rows.reshape(-1, rows.shape[-1])


def _advance(
    family: MujocoFamily,
    rest: Any,
    arrays: Any,
    tasks: Any,
    made: Made,
    moment: Moment,
    rows: Float[Array, "sims row"],
) -> tuple[Made, Moment]:
    """After a step of the physics: observe, reward, remember, record, act again."""
    number = made.step + 1

    def one(policy: Any, task: Any, memory: Memory, moment: Moment, after: Physics):
        obs = family.observe(moment.before, after)
        step = Transition(moment.obs, moment.action, jnp.zeros(()), obs)
        reward = family.reward(task, step)
        memory = policy.remember(memory, eqx.tree_at(lambda s: s.reward, step, reward))
        action = policy.act(memory, obs, key=jr.fold_in(moment.key, number))
        return memory, reward, Moment(moment.key, after, obs, action)

    after = _physics(rows, moment.before)
    memory, reward, moment = _for_all(one, rest)(
        arrays, tasks, made.memory, moment, after
    )
    here, room = (slice(None), slice(None), made.episode), made.episodes
    room = Episodes(
        room.obs.at[*here, number].set(moment.obs.astype(room.obs.dtype)),
        # the action after the last step has no place: it is not taken
        room.action.at[*here, number].set(moment.action, mode="drop"),
        room.reward.at[*here, made.step].set(reward),
    )
    return Made(memory, made.keys, made.episode, number, room), moment


def _for_all(one: Callable, rest: Any) -> Callable:
    """Map a function of (policy, task, …) over tasks, and over repeats but those two.

    Policies come as their arrays; ``rest`` is what else they are made of.
    """

    def of_task(arrays: Any, task: Any, *simulations: Any) -> Any:
        return jax.vmap(partial(one, eqx.combine(arrays, rest), task))(*simulations)

    return jax.vmap(of_task)


def _physics(rows: Float[Array, "sims row"], like: Physics) -> Physics:
    batch, num_positions = like.qpos.shape[:-1], like.qpos.shape[-1]
    qpos, qvel = jnp.split(rows, [num_positions], axis=-1)
    return Physics(qpos.reshape(*batch, -1), qvel.reshape(*batch, -1))
