"""Wind: reach a fixed place against a wind that differs from task to task.

Observation: position. Action: a step of at most 0.1 per axis. Reward: 1 within
``goal_radius`` of (0, 1), else 0. Task: the wind, added to every step.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from borelax.errors import require, require_positive
from borelax.types import Box, Key, Spec, Transition

Point = Float[Array, "2"]

GOAL = (0.0, 1.0)


@dataclass(frozen=True)
class Wind:
    """A point robot in a constant wind."""

    horizon: int = 25
    """Steps per episode (H)."""
    episodes: int = 1
    """Episodes per rollout (k)."""
    goal_radius: float = 0.2
    """Distance to the goal within which a step pays."""
    strongest: float = 0.05
    """Largest wind per axis."""
    step_size: float = 0.1
    """Largest move per axis and step."""

    name: ClassVar[str] = "wind"
    starts: ClassVar[tuple[str, ...]] = ("fixed",)
    differs_in: ClassVar[str] = "transitions"

    def __post_init__(self) -> None:
        """Refuse storms."""
        require_positive(self, "horizon", "episodes", "goal_radius", "strongest")
        require(
            self.strongest < self.step_size,
            "Wind.strongest must be below Wind.step_size, or no agent can hold out.",
        )

    @property
    def spec(self) -> Spec:
        """Position in, step out."""
        return Spec(2, Box(2), self.horizon, self.episodes)

    def sample_task(self, *, key: Key) -> Point:
        """A wind, uniform in its box."""
        return jr.uniform(key, (2,), minval=-self.strongest, maxval=self.strongest)

    def reset(self, task: Point, start: str, *, key: Key) -> Point:
        """The origin."""
        require(start == "fixed", f"Wind has no start called {start!r}.")
        return jnp.zeros(2)

    def step(self, task: Point, state: Point, action: Point, *, key: Key) -> Point:
        """Move, and be blown."""
        return state + self.step_size * jnp.clip(action, -1.0, 1.0) + task

    def observe(self, state: Point) -> Point:
        """The position."""
        return state

    def reward(self, task: Point, step: Transition) -> Float[Array, ""]:
        """1 near the goal; the same in every task."""
        return (_to_goal(step) <= self.goal_radius).astype(jnp.float32)

    def training_reward(self, task: Point, step: Transition) -> Float[Array, ""]:
        """Minus the distance: no random walk against the wind ever meets the goal."""
        return -_to_goal(step)


def _to_goal(step: Transition) -> Float[Array, ""]:
    return jnp.linalg.norm(step.next_obs - jnp.asarray(GOAL))


@dataclass(frozen=True)
class WindHard(Wind):
    """A goal so small that only an agent that knows the wind stays in it."""

    horizon: int = 75
    goal_radius: float = 0.03
    strongest: float = 0.08

    name: ClassVar[str] = "wind-hard"
