"""Groups of tasks: one decides while another moves.

A group moves in one call of MuJoCo's and decides in one compiled call of JAX's.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from borelax.simulate.mujoco_engine import Rows, cores
from borelax.simulate.mujoco_programs import Made, Moment, Programs, allocate
from borelax.tasks.mujoco_family import Physics
from borelax.types import Key, Spec, axis_size

MANY_CORES = 12
"""From here on, one that decides meanwhile is worth more than one more that moves: an
estimate from how long each takes on 16 cores (docs/mujoco-trials.md)."""

Move = Callable[[np.ndarray, slice], Future[Rows]]
"""Begins a step of some simulations under their actions."""


@dataclass
class Group:
    """Tasks whose simulations move together, and then decide together."""

    part: slice
    """Their rows among those of all simulations."""
    policies: Any
    """Their policies' arrays."""
    tasks: Any
    made: Made
    moment: Moment | None = None
    moving: Future[Rows] | None = None

    def begin(self, programs: Programs, default: Physics) -> Rows:
        """The next episode: from where it starts."""
        given = (self.policies, self.tasks, default, self.made)
        self.made, self.moment, rows = programs.begin(*given)
        return np.asarray(rows)

    def move(self, move: Move) -> None:
        """Act."""
        assert self.moment is not None
        self.moving = move(np.asarray(self.moment.action), self.part)

    def moved(self) -> Rows:
        """Where that led, once it has."""
        assert self.moving is not None
        return self.moving.result()

    def decide(self, programs: Programs, rows: Rows) -> None:
        """See it, and choose the next action."""
        given = (self.policies, self.tasks, self.made, self.moment)
        self.made, self.moment = programs.advance(*given, rows)


def groups_of(
    spec: Spec,
    policies: Any,
    tasks: Any,
    count: int,
    repeats: int,
    episodes: int,
    *,
    key: Key,
) -> list[Group]:
    """Tasks in so many groups of the same size, or nearly; none is empty."""
    num_tasks, found = axis_size(tasks), []
    arrays, rest = eqx.partition(policies, eqx.is_array)
    edges = np.linspace(0, num_tasks, min(count, num_tasks) + 1).round().astype(int)
    for first, end in pairwise(edges.tolist()):
        some = partial(jax.tree.map, lambda x, a=first, b=end: x[a:b])
        own, numbers = some(arrays), jnp.arange(first, end)
        given = (eqx.combine(own, rest), numbers, repeats, episodes, key)
        part = slice(first * repeats, end * repeats)
        found.append(Group(part, own, some(tasks), allocate(spec, *given)))
    return found


def play(
    groups: list[Group],
    move: Move,
    programs: Programs,
    horizon: int,
    check: Callable[[int, slice], None],
) -> None:
    """One episode of all groups, in turns; ``check`` is told of every step."""
    for group in groups:
        group.move(move)
    for step in range(horizon):
        for group in groups:
            rows = group.moved()
            check(step, group.part)
            group.decide(programs, rows)
            if step + 1 < horizon:
                group.move(move)


def arrange(threads: int, groups: int, num_tasks: int) -> tuple[int, int]:
    """Threads for the physics, and groups; 0: what suits this machine.

    Groups round rewards, so that the threads asked for have no say in them.
    """
    own, many = cores(), cores() >= MANY_CORES
    groups = min(groups or 1 + many, num_tasks)
    return threads or own - (many and groups > 1), groups


def beside(count: int) -> Executor:
    """Where the physics runs: beside those who decide, if there are several groups."""
    return ThreadPoolExecutor(1) if count > 1 else AtOnce()


class AtOnce(Executor):
    """Does what it is asked before it answers: a thread would only cost time."""

    def submit(self, fn: Callable, /, *args: Any, **kwargs: Any) -> Future:
        """Call it."""
        future: Future = Future()
        future.set_result(fn(*args, **kwargs))
        return future
