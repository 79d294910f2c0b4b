"""Simulation of MuJoCo families: physics in C on threads, everything else in JAX.

Between two steps of the physics there is one compiled call for all simulations, on the
host, where the states are: a GPU would have to be asked at every step, and is free to
learn meanwhile. (One half of the tasks that decides while the other moves was slower on
2 cores and no quicker on 16: docs/mujoco-trials.md.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from borelax.errors import NumericalError, require
from borelax.simulate.mujoco_engine import (
    Simulations,
    load_model,
    simulations,
    warning_name,
)
from borelax.simulate.mujoco_programs import allocate, programs_of
from borelax.simulate.simulator import FamilySimulator, host_device
from borelax.tasks.mujoco_family import MujocoFamily, Physics
from borelax.types import Box, Episodes, Key, axis_size


@dataclass(frozen=True)
class MujocoSimulator(FamilySimulator):
    """Runs a family whose dynamics are MuJoCo's; the number of threads changes no bit.

    Called from Python only, never inside jit.
    """

    family: MujocoFamily
    threads: int = 0
    """Threads for the physics; 0: one for each core."""

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
        family, count = self.family, axis_size(tasks)
        model = load_model(family.model_file)
        physics = simulations(model, count * repeats, self.threads)
        scale = _scaling(family, model)
        (home,), host = key.devices(), host_device()
        policies, tasks, key = _put((policies, tasks, key), host)
        arrays, rest = eqx.partition(policies, eqx.is_array)
        begin, advance = programs_of(family, rest, start)
        with jax.default_device(host):
            numbers, first = jnp.arange(count), jnp.asarray(model.qpos0, jnp.float32)
            default = Physics(first, jnp.zeros(model.nv))
            made = allocate(family.spec, policies, numbers, repeats, episodes, key)
            for episode in range(episodes):
                made, moment, rows = begin(arrays, tasks, default, made)
                physics.begin(np.asarray(rows))
                for step in range(family.spec.horizon):
                    controls = scale(np.asarray(moment.action))
                    rows = physics.step(controls, family.frame_skip)
                    _refuse_unstable(physics, episode, step, repeats)
                    made, moment = advance(arrays, tasks, made, moment, rows)
        return _put(made.episodes, home)


def _put(tree: Any, device: Any) -> Any:
    """A pytree with its arrays on a device."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, device), rest)


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
    physics: Simulations, episode: int, step: int, repeats: int
) -> None:
    """MuJoCo resets an unstable simulation and goes on; such logs would be false."""
    warnings = physics.warnings()
    if not warnings.any():
        return
    simulation, kind = np.argwhere(warnings)[0]
    raise NumericalError(
        f"MuJoCo's simulation of task {simulation // repeats} became unstable "
        f"({warning_name(int(kind))}) in episode {episode + 1}, step {step + 1}. "
        "Extreme actions can do that: look at the metrics of the agents, or take "
        "another seed."
    )
