"""Half-Cheetah-Vel: run at a speed that only the reward tells (paper, section 6).

Observation: all joints but the place along the track, all velocities, and the mean
forward speed of the last step (18 numbers). Action: 6 torques. Reward: minus the
distance to the target speed, less 0.05 ‖a‖². Task: the target speed.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from borelax.errors import require, require_positive
from borelax.tasks.mujoco_family import Physics
from borelax.types import Box, Key, Spec, Transition

STEP_SECONDS = 0.05
"""Five steps of the model's hundredth of a second."""
START_NOISE = 0.1
"""Scale of Gymnasium's noise on the first positions and velocities."""


@dataclass(frozen=True)
class HalfCheetahVel:
    """A running cheetah in the plane and a hidden target speed."""

    horizon: int = 200
    """Steps per episode (H)."""
    episodes: int = 2
    """Episodes per rollout (k)."""
    fastest: float = 3.0
    """Largest target speed, in metres per second."""
    torque_cost: float = 0.05
    """Price of ‖a‖²."""

    name: ClassVar[str] = "half-cheetah-vel"
    starts: ClassVar[tuple[str, ...]] = ("fixed",)
    differs_in: ClassVar[str] = "rewards"
    model_file: ClassVar[str] = "half_cheetah.xml"
    frame_skip: ClassVar[int] = 5

    def __post_init__(self) -> None:
        """Refuse races without time."""
        require_positive(self, "horizon", "episodes", "fastest")
        require(self.torque_cost >= 0, "HalfCheetahVel.torque_cost must be 0 or more.")

    @property
    def spec(self) -> Spec:
        """Joints and speeds in, torques out."""
        return Spec(18, Box(6), self.horizon, self.episodes)

    def sample_task(self, *, key: Key) -> Float[Array, ""]:
        """A target speed."""
        return jr.uniform(key, maxval=self.fastest)

    def reset(
        self, task: Float[Array, ""], start: str, default: Physics, *, key: Key
    ) -> Physics:
        """The model's default pose and Gymnasium's noise."""
        require(start == "fixed", f"Half-Cheetah-Vel has no start called {start!r}.")
        key_qpos, key_qvel = jr.split(key)
        low, high = -START_NOISE, START_NOISE
        qpos = jr.uniform(key_qpos, default.qpos.shape, minval=low, maxval=high)
        qvel = START_NOISE * jr.normal(key_qvel, default.qvel.shape)
        return Physics(default.qpos + qpos, default.qvel + qvel)

    def observe(self, before: Physics, after: Physics) -> Float[Array, "18"]:
        """Where along the track the cheetah is, nobody needs to know."""
        speed = (after.qpos[:1] - before.qpos[:1]) / STEP_SECONDS
        return jnp.concatenate([after.qpos[1:], after.qvel, speed])

    def reward(self, task: Float[Array, ""], step: Transition) -> Float[Array, ""]:
        """Minus the distance to the target speed, less the price of the torques."""
        cost = self.torque_cost * jnp.square(step.action).sum()
        return -jnp.abs(step.next_obs[-1] - task) - cost
