"""What every learning agent offers. The config is the algorithm; methods are pure."""

from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from borelax.types import Key, Metrics, Spec, Transition

AgentState = Any
"""A pytree: weights, targets, optimiser."""


@runtime_checkable
class Agent(Protocol):
    """An off-policy learner for one task; callers map it over tasks and seeds."""

    @property
    def batch_size(self) -> int:
        """Steps per update."""
        ...

    def init(self, spec: Spec, *, key: Key) -> AgentState:
        """Fresh weights."""
        ...

    def acting(self, state: AgentState) -> AgentState:
        """The part of a state that ``act`` reads: what one keeps and deploys."""
        ...

    def act(
        self,
        state: AgentState,
        obs: Float[Array, "obs"],
        *,
        explore: Float[Array, ""] | float,
        key: Key,
    ) -> Num[Array, "..."]:
        """Choose an action; ``explore`` 0 is the deterministic policy."""
        ...

    def update(
        self, state: AgentState, batch: Transition, *, key: Key
    ) -> tuple[AgentState, Metrics]:
        """One gradient step on a batch of steps."""
        ...


def value_goal(
    batch: Transition, discount: float, next_value: Float[Array, "batch"]
) -> Float[Array, "batch"]:
    """What values are fitted to: r + γⁿ·V(s') for n steps, or r alone after an end."""
    if batch.ended is not None:
        next_value = jnp.where(batch.ended, 0.0, next_value)
    if batch.ahead is not None:
        return batch.reward + discount**batch.ahead * next_value
    return batch.reward + discount * next_value
