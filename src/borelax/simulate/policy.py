"""Policies with explicit memory: start, act, remember.

Memory spans a whole rollout: it is not reset between episodes.
"""

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num, PyTree

from borelax.agents.agent import Agent
from borelax.types import Box, Discrete, Key, Transition, axis_size

Memory = PyTree


@runtime_checkable
class Policy(Protocol):
    """A pytree; simulators map it over tasks along its leading axis."""

    def start(self) -> Memory:
        """Memory before the first step of a rollout."""
        ...

    def act(self, memory: Memory, obs: Float[Array, "obs"], *, key: Key) -> Array:
        """Choose an action."""
        ...

    def remember(self, memory: Memory, step: Transition) -> Memory:
        """Memory after one more step."""
        ...


class RandomPolicy(eqx.Module):
    """Uniform actions."""

    action: Discrete | Box = eqx.field(static=True)

    def start(self) -> Memory:
        """Nothing to remember."""
        return ()

    def act(
        self, memory: Memory, obs: Float[Array, "obs"], *, key: Key
    ) -> Num[Array, "..."]:
        """Any action."""
        return self.action.sample(key=key)

    def remember(self, memory: Memory, step: Transition) -> Memory:
        """Nothing to remember."""
        return ()


class AgentPolicy(eqx.Module):
    """A conventional agent's policy: it reads the observation and forgets it."""

    agent: Agent = eqx.field(static=True)
    state: Any
    explore: Float[Array, "..."]
    """A scalar, or one number per task where policies are stacked."""

    def start(self) -> Memory:
        """Nothing to remember."""
        return ()

    def act(
        self, memory: Memory, obs: Float[Array, "obs"], *, key: Key
    ) -> Num[Array, "..."]:
        """Ask the agent."""
        return self.agent.act(self.state, obs, explore=self.explore, key=key)

    def remember(self, memory: Memory, step: Transition) -> Memory:
        """Nothing to remember."""
        return ()


class TakingTurns(eqx.Module):
    """Several policies of which each acts for some steps, then the next one does."""

    policies: Any
    """Policies without memory, stacked [P, …]."""
    steps: int = eqx.field(static=True)
    """Steps per turn."""

    def start(self) -> Memory:
        """How many steps there were."""
        return jnp.zeros((), jnp.int32)

    def act(
        self, memory: Memory, obs: Float[Array, "obs"], *, key: Key
    ) -> Num[Array, "..."]:
        """Ask whose turn it is."""
        turn = memory // self.steps % axis_size(self.policies)
        arrays, rest = eqx.partition(self.policies, eqx.is_array)
        policy = eqx.combine(jax.tree.map(lambda x: x[turn], arrays), rest)
        return policy.act(policy.start(), obs, key=key)

    def remember(self, memory: Memory, step: Transition) -> Memory:
        """One step more."""
        return memory + 1


def for_every_task(policy: Any, num_tasks: int) -> Any:
    """The same policy for each of ``num_tasks`` tasks."""
    arrays, rest = eqx.partition(policy, eqx.is_array)
    arrays = jax.tree.map(lambda x: jnp.broadcast_to(x, (num_tasks, *x.shape)), arrays)
    return eqx.combine(arrays, rest)
