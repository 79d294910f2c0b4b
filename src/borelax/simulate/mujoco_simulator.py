"""Simulation of MuJoCo families: physics in C on threads, everything else in JAX.

Between two steps of the physics there is one compiled call for all simulations, on the
host, where the states are: a GPU would have to be asked at every step, and is free to
learn meanwhile. The tasks go in two halves, each on a thread of its own, so that one
half's physics is at work while the other half decides.
"""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from borelax.errors import NumericalError, require
from borelax.simulate.mujoco_engine import (
    Rows,
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
    """Threads for the physics of each half of the tasks; 0: one for each core."""

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
        plan = Plan(self.family, repeats, episodes, start, self.threads)
        (home,), host = key.devices(), host_device()
        policies, tasks, key = _put((policies, tasks, key), host)
        with jax.default_device(host):
            everything = (policies, tasks, jnp.arange(axis_size(tasks)))
            rolls = [_roll(plan, *part, key=key) for part in _halves(everything)]
            made = _side_by_side(rolls)
        return _put(made, home)


class Plan(NamedTuple):
    """What all simulations of a call have in common."""

    family: MujocoFamily
    repeats: int
    episodes: int
    start: str
    threads: int


PhysicsStep = Callable[[], Rows]
"""A step of the physics, still to be taken."""


def _roll(
    plan: Plan, policies: Any, tasks: Any, numbers: Int[Array, "N"], *, key: Key
) -> Generator[PhysicsStep, Rows, Episodes]:
    """Rollouts that ask for each step of their physics and are sent its outcome."""
    family, repeats = plan.family, plan.repeats
    model = load_model(family.model_file)
    physics = simulations(model, len(numbers) * repeats, plan.threads)
    scale = _scaling(family, model)
    arrays, rest = eqx.partition(policies, eqx.is_array)
    begin, advance = programs_of(family, rest, plan.start)
    default = Physics(jnp.asarray(model.qpos0, jnp.float32), jnp.zeros(model.nv))
    made = allocate(family.spec, policies, numbers, repeats, plan.episodes, key)
    for episode in range(plan.episodes):
        made, moment, rows = begin(arrays, tasks, default, made)
        physics.begin(np.asarray(rows))
        for step in range(family.spec.horizon):
            controls = scale(np.asarray(moment.action))
            rows = yield partial(physics.step, controls, family.frame_skip)
            _refuse_unstable(physics, (episode, step), numbers, repeats)
            made, moment = advance(arrays, tasks, made, moment, rows)
    return made.episodes


def _side_by_side(rolls: list[Generator[PhysicsStep, Rows, Episodes]]) -> Episodes:
    """Each half on a thread of its own; an error is raised when both have ended."""
    stop = Event()
    begun = [(roll, next(roll)) for roll in rolls]  # one after the other loads models
    with ThreadPoolExecutor(len(rolls)) as threads:
        try:
            running = [threads.submit(_finish, *roll, stop) for roll in begun]
            wait(running)
        except BaseException:  # an interrupt: nobody wants them any more
            stop.set()
            raise
    made = [roll.result() for roll in running]
    return jax.tree.map(lambda *x: jnp.concatenate(x), *made)


def _finish(
    roll: Generator[PhysicsStep, Rows, Episodes], step: PhysicsStep, stop: Event
) -> Episodes:
    """Take the next step of a half, and all others."""
    with jax.default_device(host_device()):
        try:
            while not stop.is_set():
                step = roll.send(step())
        except StopIteration as end:
            return end.value
    raise InterruptedError


def _put(tree: Any, device: Any) -> Any:
    """A pytree with its arrays on a device."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, device), rest)


def _halves(tree: Any) -> list[Any]:
    """A pytree [N, …] in two equal parts, which share their programs; odd N: in one."""
    count = axis_size(tree[1:])
    if count % 2:
        return [tree]
    arrays, rest = eqx.partition(tree, eqx.is_array)
    halves = (slice(None, count // 2), slice(count // 2, None))
    return [
        eqx.combine(jax.tree.map(lambda x, h=h: x[h], arrays), rest) for h in halves
    ]


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
    physics: Simulations,
    place: tuple[int, int],
    numbers: Int[Array, "N"],
    repeats: int,
) -> None:
    """MuJoCo resets an unstable simulation and goes on; such logs would be false."""
    warnings = physics.warnings()
    if not warnings.any():
        return
    simulation, kind = np.argwhere(warnings)[0]
    episode, step = place
    raise NumericalError(
        f"MuJoCo's simulation of task {numbers[simulation // repeats]} became unstable "
        f"({warning_name(int(kind))}) in episode {episode + 1}, step {step + 1}. "
        "Extreme actions can do that: look at the metrics of the agents, or take "
        "another seed."
    )
