"""Ant-Semi-circle: walk to a goal somewhere on a half circle (paper, section 6).

Observation: all positions and velocities of the model, the place (x, y) among them (29
numbers). Action: 8 torques. Reward: 1 within 0.2 of the goal, less 0.1 ‖a‖², judged
after the step. Task: the goal's position.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from borelax.errors import require, require_positive
from borelax.tasks.mujoco_family import Physics
from borelax.tasks.semicircle import Point, sample_goal, start_position
from borelax.types import Box, Key, Spec, Transition


@dataclass(frozen=True)
class AntSemiCircle:
    """A four-legged ant and a hidden goal at an angle of [0, π]."""

    horizon: int = 200
    """Steps per episode (H)."""
    episodes: int = 2
    """Episodes per rollout (k)."""
    goal_radius: float = 0.2
    """Distance to the goal within which a step pays."""
    torque_cost: float = 0.1
    """Price of ‖a‖²."""

    name: ClassVar[str] = "ant-semicircle"
    starts: ClassVar[tuple[str, ...]] = ("fixed", "uniform", "excluding")
    differs_in: ClassVar[str] = "rewards"
    model_file: ClassVar[str] = "ant.xml"
    frame_skip: ClassVar[int] = 5

    def __post_init__(self) -> None:
        """Refuse worlds without room."""
        require_positive(self, "horizon", "episodes", "goal_radius")
        require(self.torque_cost >= 0, "AntSemiCircle.torque_cost must be 0 or more.")

    @property
    def spec(self) -> Spec:
        """Positions and velocities in, torques out."""
        return Spec(29, Box(8), self.horizon, self.episodes)

    def sample_task(self, *, key: Key) -> Point:
        """A goal at a uniform angle."""
        return sample_goal(key=key)

    def reset(self, task: Point, start: str, default: Physics, *, key: Key) -> Physics:
        """The default pose at rest; where, Semi-circle's distributions say."""
        require(start in self.starts, f"Ant-Semi-circle has no start called {start!r}.")
        place = start_position(start, key=key)
        return Physics(default.qpos.at[:2].set(place), default.qvel)

    def observe(self, before: Physics, after: Physics) -> Float[Array, "29"]:
        """Everything."""
        return jnp.concatenate([after.qpos, after.qvel])

    def reward(self, task: Point, step: Transition) -> Float[Array, ""]:
        """1 inside the goal's disc, less the price of the torques."""
        near = jnp.linalg.norm(step.next_obs[:2] - task) <= self.goal_radius
        return near.astype(jnp.float32) - self._cost(step)

    def training_reward(self, task: Point, step: Transition) -> Float[Array, ""]:
        """Minus the distance along both axes: no ant finds a disc by chance."""
        return -jnp.abs(step.next_obs[:2] - task).sum() - self._cost(step)

    def _cost(self, step: Transition) -> Float[Array, ""]:
        return self.torque_cost * jnp.square(step.action).sum()
