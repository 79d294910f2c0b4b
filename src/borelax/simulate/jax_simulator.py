"""Simulation of JAX families: vmap over tasks and repeats of one scanned rollout."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from borelax.simulate.rollout import rollout
from borelax.simulate.simulator import FamilySimulator
from borelax.tasks.family import TaskFamily
from borelax.types import Episodes, Key


@dataclass(frozen=True)
class JaxSimulator(FamilySimulator):
    """Runs a family written in JAX. May itself be called inside jit."""

    family: TaskFamily

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
        return _rollouts(self.family, policies, tasks, repeats, episodes, start, key)


@eqx.filter_jit
def _rollouts(family, policies, tasks, repeats, episodes, start, key) -> Episodes:
    num_tasks = jax.tree.leaves(tasks)[0].shape[0]
    one = partial(rollout, family, episodes=episodes, start=start)

    def of_task(policy, task, index):
        key_task = jr.fold_in(key, index)
        keys = jax.vmap(lambda r: jr.fold_in(key_task, r))(jnp.arange(repeats))
        return jax.vmap(lambda k: one(policy, task, key=k))(keys)

    return eqx.filter_vmap(of_task)(policies, tasks, jnp.arange(num_tasks))
