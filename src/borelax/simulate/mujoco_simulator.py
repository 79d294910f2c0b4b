"""Simulation of MuJoCo families: physics in C, everything else in JAX, on threads.

Between two steps of the physics there is one compiled call for all simulations, on the
host, where the states are: a GPU would have to be asked at every step, and is free to
learn meanwhile. The tasks go in a few parts, each on a thread of its own, and no part
waits for another before all are done.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from borelax.errors import NumericalError, require
from borelax.simulate.mujoco_engine import (
    Simulations,
    cores,
    load_model,
    simulations,
    warning_name,
)
from borelax.simulate.mujoco_programs import Programs, allocate, programs_of
from borelax.simulate.simulator import FamilySimulator, host_device
from borelax.tasks.mujoco_family import MujocoFamily, Physics
from borelax.types import Box, Episodes, Key, axis_size

MOST_PARTS = 4
"""Each part's steps take turns at Python's lock: twenty parts on 16 cores spent most of
the time waiting for it."""


@dataclass(frozen=True)
class MujocoSimulator(FamilySimulator):
    """Runs a family whose dynamics are MuJoCo's; the number of threads changes no bit.

    Called from Python only, never inside jit.
    """

    family: MujocoFamily
    threads: int = 0
    """Threads at work; 0: one for each core."""

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
        model, count = load_model(self.family.model_file), axis_size(tasks)
        rest = eqx.filter(policies, eqx.is_array, inverse=True)
        programs = programs_of(self.family, rest, start)
        plan = Plan(self.family, model, programs, repeats, episodes, Event(), Lock())
        (home,), host = key.devices(), host_device()
        policies, tasks, key = _put((policies, tasks, key), host)
        with jax.default_device(host):
            everything = (policies, tasks, jnp.arange(count))
            parts, threads = divide(count, self.threads or cores())
            size = count // parts * repeats
            batches = [simulations(model, size, threads) for _ in range(parts)]
            made = _side_by_side(plan, _parts(everything, parts), batches, key)
        return _put(made, home)


class Plan(NamedTuple):
    """What all simulations of a call have in common."""

    family: MujocoFamily
    model: Any
    programs: Programs
    repeats: int
    episodes: int
    stop: Event
    """Set when nobody wants the rollouts any more."""
    compiling: Lock
    """Held where a program may be called for the first time: one thread compiles it."""


def divide(tasks: int, threads: int) -> tuple[int, int]:
    """How many equal parts to make of the tasks, and how many threads each gets.

    Parts are equal because they share their programs, and have two tasks at least
    because one task alone is compiled otherwise and rounds otherwise.
    """
    possible = [
        n for n in range(1, MOST_PARTS + 1) if tasks % n == 0 and tasks >= 2 * n
    ]
    possible = possible or [1]
    wanted = min(threads, possible[-1])
    parts = next(n for n in possible if n >= wanted)
    return parts, -(-threads // parts)


def _side_by_side(
    plan: Plan, parts: list[Any], batches: list[Simulations], key: Key
) -> Episodes:
    """Each part on a thread of its own; an error is raised when all have ended."""
    with ThreadPoolExecutor(len(parts)) as threads:
        try:
            running = [
                threads.submit(_roll, plan, physics, *part, key=key)
                for part, physics in zip(parts, batches, strict=True)
            ]
            wait(running)
        except BaseException:  # an interrupt
            plan.stop.set()
            raise
    made = [roll.result() for roll in running]
    return jax.tree.map(lambda *x: jnp.concatenate(x), *made)


def _roll(
    plan: Plan,
    physics: Simulations,
    policies: Any,
    tasks: Any,
    numbers: Int[Array, "N"],
    *,
    key: Key,
) -> Episodes:
    """All rollouts of some tasks."""
    family, model, repeats = plan.family, plan.model, plan.repeats
    scale = _scaling(family, model)
    arrays, (begin, advance) = eqx.filter(policies, eqx.is_array), plan.programs
    with jax.default_device(host_device()):
        default = Physics(jnp.asarray(model.qpos0, jnp.float32), jnp.zeros(model.nv))
        with plan.compiling:
            made = allocate(family.spec, policies, numbers, repeats, plan.episodes, key)
        for episode in range(plan.episodes):
            with plan.compiling:
                made, moment, rows = begin(arrays, tasks, default, made)
            physics.begin(np.asarray(rows))
            for step in range(family.spec.horizon):
                if plan.stop.is_set():
                    raise InterruptedError
                controls = scale(np.asarray(moment.action))
                rows = physics.step(controls, family.frame_skip)
                _refuse_unstable(physics, (episode, step), numbers, repeats)
                with plan.compiling if step == 0 else nullcontext():
                    made, moment = advance(arrays, tasks, made, moment, rows)
    return made.episodes


def _put(tree: Any, device: Any) -> Any:
    """A pytree with its arrays on a device."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, device), rest)


def _parts(tree: Any, number: int) -> list[Any]:
    """A pytree [N, …] in equal parts."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    size = axis_size(tree[1:]) // number
    cuts = [slice(i * size, (i + 1) * size) for i in range(number)]
    return [eqx.combine(jax.tree.map(lambda x, c=c: x[c], arrays), rest) for c in cuts]


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
