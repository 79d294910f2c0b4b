"""Simulation of MuJoCo families: physics in C on threads, everything else in JAX.

Between two steps of the physics there is one compiled call for many simulations, on the
host, where the states are: a GPU would have to be asked at every step, and is free to
learn meanwhile. Among many cores that call would keep all but one waiting, so there the
tasks form two groups: one decides while the other moves (docs/mujoco.md#speed).
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from borelax.errors import NumericalError, require
from borelax.simulate.mujoco_engine import (
    Rows,
    Simulations,
    load_model,
    simulations,
    warning_name,
)
from borelax.simulate.mujoco_groups import arrange, beside, groups_of, play
from borelax.simulate.mujoco_programs import programs_of
from borelax.simulate.simulator import FamilySimulator, host_device
from borelax.tasks.mujoco_family import MujocoFamily, Physics
from borelax.types import Box, Episodes, Key, axis_size


@dataclass(frozen=True)
class MujocoSimulator(FamilySimulator):
    """Runs a family whose dynamics are MuJoCo's.

    The number of threads changes no bit. Called from Python only, never inside jit.
    """

    family: MujocoFamily
    threads: int = 0
    """Threads for the physics; 0: one for each core, less one that decides."""
    groups: int = 0
    """Groups of tasks, one deciding while another moves; 0: two where there are twelve
    cores or more, else one. The last bit of rewards depends on them."""

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
        family, num_tasks = self.family, axis_size(tasks)
        model = load_model(family.model_file)
        threads, count = arrange(self.threads, self.groups, num_tasks)
        physics = simulations(model, num_tasks * repeats, threads)
        scale = _scaling(family, model)
        (home,), host = key.devices(), host_device()
        policies, tasks, key = _put((policies, tasks, key), host)
        _, rest = eqx.partition(policies, eqx.is_array)
        programs = programs_of(family, rest, start)
        sizes = (count, repeats, episodes)
        with jax.default_device(host), beside(count) as thread:

            def move(action: np.ndarray, part: slice) -> Future[Rows]:
                controls = scale(action)
                return thread.submit(physics.step, controls, family.frame_skip, part)

            first = jnp.asarray(model.qpos0, jnp.float32)
            default = Physics(first, jnp.zeros(model.nv))
            groups = groups_of(family.spec, policies, tasks, *sizes, key=key)
            for episode in range(episodes):
                rows = [group.begin(programs, default) for group in groups]
                physics.begin(np.concatenate(rows))
                check = partial(_refuse_unstable, physics, repeats, episode)
                play(groups, move, programs, family.spec.horizon, check)
            made = [group.made.episodes for group in groups]
            made = jax.tree.map(lambda *x: jnp.concatenate(x), *made)
        return _put(made, home)


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
    physics: Simulations, repeats: int, episode: int, step: int, part: slice
) -> None:
    """MuJoCo resets an unstable simulation and goes on; such logs would be false."""
    warnings = physics.warnings()[part]
    if not warnings.any():
        return
    number, kind = np.argwhere(warnings)[0]
    raise NumericalError(
        f"MuJoCo's simulation of task {(part.start + number) // repeats} became "
        f"unstable ({warning_name(int(kind))}) in episode {episode + 1}, "
        f"step {step + 1}. Extreme actions can do that: look at the metrics of the "
        "agents, or take another seed."
    )
