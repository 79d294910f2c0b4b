"""Simulation of MuJoCo families: physics in C on threads, everything else in JAX.

All N × repeats simulations take each step together. Between two steps of the physics
there is one compiled call for all of them: it observes, rewards, remembers, records
and acts. What is recorded stays on the device; only states go in and actions come out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from borelax.errors import NumericalError, require
from borelax.simulate.jax_simulator import OfFamily
from borelax.simulate.mujoco_engine import (
    Simulations,
    load_model,
    simulations,
    warning_name,
)
from borelax.simulate.policy import Memory
from borelax.simulate.simulator import RewardFunction
from borelax.tasks.family import ShapedFamily
from borelax.tasks.mujoco_family import MujocoFamily, Physics
from borelax.types import Box, Episodes, Key, Spec, Transition, axis_size


@dataclass(frozen=True)
class MujocoSimulator:
    """Runs a family whose dynamics are MuJoCo's; the number of threads changes no bit.

    Called from Python only, never inside jit.
    """

    family: MujocoFamily
    threads: int = 0
    """Threads for the physics; 0: one for each core."""

    @property
    def spec(self) -> Spec:
        """The family's."""
        return self.family.spec

    @property
    def reward(self) -> RewardFunction:
        """The family's."""
        return OfFamily(self.family, "reward")

    @property
    def training_reward(self) -> RewardFunction | None:
        """The family's, if it has one."""
        shaped = isinstance(self.family, ShapedFamily)
        return OfFamily(self.family, "training_reward") if shaped else None

    def rollouts(
        self,
        policies: Any,
        tasks: Any,
        *,
        repeats: int,
        episodes: int,
        start: str,
        key: Key,
    ) -> Episodes:
        """Run policy n in task n; each task and repeat has its own key."""
        model = load_model(self.family.model_file)
        physics = simulations(model, axis_size(tasks) * repeats, self.threads)
        scale = _scaling(self.family, model)
        arrays, rest = eqx.partition(policies, eqx.is_array)
        begin, advance = _programs(self.family, rest, start)
        default = Physics(jnp.asarray(model.qpos0, jnp.float32), jnp.zeros(model.nv))
        made = _allocate(self.spec, policies, tasks, repeats, episodes, key)
        for episode in range(episodes):
            made, moment, rows = begin(arrays, tasks, default, made)
            physics.begin(np.asarray(rows))
            for step in range(self.spec.horizon):
                controls = scale(np.asarray(moment.action))
                rows = physics.step(controls, self.family.frame_skip)
                _refuse_unstable(physics, (episode, step), repeats)
                made, moment = advance(arrays, tasks, made, moment, rows)
        return made.episodes


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
def _allocate(
    spec: Spec, policies: Any, tasks: Any, repeats: int, episodes: int, key: Key
) -> Made:
    """Room for everything; memories as rollouts begin."""
    num_tasks, (horizon, size) = axis_size(tasks), (spec.horizon, spec.action.size)
    shape = (num_tasks, repeats, episodes)

    def of_task(policy: Any, number: Int[Array, ""]) -> tuple[Memory, Array]:
        key_task = jr.fold_in(key, number)
        keys = jax.vmap(lambda r: jr.fold_in(key_task, r))(jnp.arange(repeats))
        return jax.vmap(lambda k: policy.start(), axis_size=repeats)(keys), keys

    memory, keys = eqx.filter_vmap(of_task)(policies, jnp.arange(num_tasks))
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
def _programs(family: MujocoFamily, rest: Any, start: str) -> Programs:
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


def _scaling(family: MujocoFamily, model: Any) -> Callable[[np.ndarray], np.ndarray]:
    """From actions in [-1, 1] to the model's own controls, one row per simulation."""
    size, name = model.nu, type(family).__name__
    require(
        family.spec.action == Box(size),
        f"{name}.spec.action must be Box({size}): {family.model_file} has {size} "
        "actuators.",
    )
    limited = model.actuator_ctrllimited.astype(bool)[:, None]
    low, high = np.where(limited, model.actuator_ctrlrange, [-1.0, 1.0]).T
    centre, half = (low + high) / 2, (high - low) / 2
    return lambda action: centre + half * action.reshape(-1, size).clip(-1.0, 1.0)


def _refuse_unstable(
    physics: Simulations, place: tuple[int, int], repeats: int
) -> None:
    """MuJoCo resets an unstable simulation and goes on; such logs would be false."""
    warnings = physics.warnings()
    if not warnings.any():
        return
    simulation, kind = np.argwhere(warnings)[0]
    episode, step = place
    raise NumericalError(
        f"MuJoCo's simulation of task {simulation // repeats} became unstable "
        f"({warning_name(int(kind))}) in episode {episode + 1}, step {step + 1}. "
        "Extreme actions can do that: look at the metrics of the agents, or take "
        "another seed."
    )
