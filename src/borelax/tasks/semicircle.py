"""Semi-circle: find a goal somewhere on a half circle of radius one (paper, section 6).

Observation: position (x, y). Action: a step of at most 0.1 per axis. Reward: 1 within
0.2 of the goal, else 0, judged after the step. Task: the goal's position.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from borelax.errors import require, require_positive
from borelax.types import Box, Key, Spec, Transition

Point = Float[Array, "2"]

BOX_LOW, BOX_HIGH = (-1.5, -0.5), (1.5, 1.5)
"""Corners of the region where logs may start."""
RING = (0.8, 1.2)
"""Distances from the centre that ``excluding`` leaves out."""


@dataclass(frozen=True)
class SemiCircle:
    """A point robot and a hidden goal at an angle of [0, π]."""

    horizon: int = 60
    """Steps per episode (H)."""
    episodes: int = 2
    """Episodes per rollout (k)."""
    goal_radius: float = 0.2
    """Distance to the goal within which a step pays."""
    step_size: float = 0.1
    """Largest move per axis and step."""

    name: ClassVar[str] = "semicircle"
    starts: ClassVar[tuple[str, ...]] = ("fixed", "uniform", "excluding")
    differs_in: ClassVar[str] = "rewards"

    def __post_init__(self) -> None:
        """Refuse worlds without room."""
        require_positive(self, "horizon", "episodes", "goal_radius", "step_size")

    @property
    def spec(self) -> Spec:
        """Position in, step out."""
        return Spec(2, Box(2), self.horizon, self.episodes)

    def sample_task(self, *, key: Key) -> Point:
        """A goal at a uniform angle."""
        return sample_goal(key=key)

    def reset(self, task: Point, start: str, *, key: Key) -> Point:
        """The centre, anywhere in the box, or the box less the ring of goals."""
        require(start in self.starts, f"Semi-circle has no start called {start!r}.")
        return start_position(start, key=key)

    def step(self, task: Point, state: Point, action: Point, *, key: Key) -> Point:
        """Move."""
        return state + self.step_size * jnp.clip(action, -1.0, 1.0)

    def observe(self, state: Point) -> Point:
        """The position."""
        return state

    def reward(self, task: Point, step: Transition) -> Float[Array, ""]:
        """1 inside the goal's disc."""
        near = jnp.linalg.norm(step.next_obs - task) <= self.goal_radius
        return near.astype(jnp.float32)


def sample_goal(*, key: Key) -> Point:
    """A goal on the upper half of the unit circle."""
    return goal_at(jr.uniform(key, maxval=jnp.pi))


def goal_at(angle: Float[Array, ""]) -> Point:
    """The goal at an angle of [0, π]."""
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def start_position(start: str, *, key: Key) -> Point:
    """A start in the plane of the semi-circle, as all three distributions draw it."""
    if start == "fixed":
        return jnp.zeros(2)
    low, high = jnp.asarray(BOX_LOW), jnp.asarray(BOX_HIGH)
    if start == "uniform":
        return jr.uniform(key, (2,), minval=low, maxval=high)
    # Draws until one lies off the ring: of 64, the chance of none is below 1e-9.
    points = jr.uniform(key, (64, 2), minval=low, maxval=high)
    distance = jnp.linalg.norm(points, axis=1)
    return points[jnp.argmax((distance < RING[0]) | (distance > RING[1]))]
