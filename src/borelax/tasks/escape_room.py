"""Escape-Room: leave a round room through a door whose place is unknown.

Observation: position. Action: a step of at most 0.1 per axis. Reward: 1 outside the
room. Task: the angle of the door's centre. A step that would cross the wall elsewhere
ends just inside it.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float

from borelax.errors import require, require_positive
from borelax.types import Box, Key, Spec, Transition

Point = Float[Array, "2"]
Angle = Float[Array, ""]


@dataclass(frozen=True)
class EscapeRoom:
    """A point robot in a room of radius one."""

    horizon: int = 60
    """Steps per episode (H)."""
    episodes: int = 2
    """Episodes per rollout (k)."""
    door_angle: float = 0.39269908169872414
    """Central angle of the door: π/8."""
    stopped_at: float = 0.99
    """Distance from the centre where the wall stops a step. Below 1, or rounding would
    put some of them outside."""
    step_size: float = 0.1
    """Largest move per axis and step."""

    name: ClassVar[str] = "escape-room"
    starts: ClassVar[tuple[str, ...]] = ("fixed", "uniform")
    differs_in: ClassVar[str] = "transitions"

    def __post_init__(self) -> None:
        """Refuse rooms without walls or doors."""
        require_positive(self, "horizon", "episodes", "door_angle", "step_size")
        require(0 < self.stopped_at < 1, "EscapeRoom.stopped_at must lie in (0, 1).")

    @property
    def spec(self) -> Spec:
        """Position in, step out."""
        return Spec(2, Box(2), self.horizon, self.episodes)

    def sample_task(self, *, key: Key) -> Angle:
        """A door on the upper half of the wall."""
        return jr.uniform(key, maxval=jnp.pi)

    def reset(self, task: Angle, start: str, *, key: Key) -> Point:
        """The centre, or anywhere in the room: uniform angle, uniform radius."""
        if start == "fixed":
            return jnp.zeros(2)
        require(start == "uniform", f"Escape-Room has no start called {start!r}.")
        key_angle, key_radius = jr.split(key)
        angle = jr.uniform(key_angle, maxval=2 * jnp.pi)
        radius = jr.uniform(key_radius)
        return radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    def step(self, task: Angle, state: Point, action: Point, *, key: Key) -> Point:
        """Move, unless the wall is in the way."""
        move = self.step_size * jnp.clip(action, -1.0, 1.0)
        target = state + move
        stopped = self.stopped_at * target / jnp.maximum(jnp.linalg.norm(target), 1e-6)
        return jnp.where(self._hits_wall(task, state, move), stopped, target)

    def observe(self, state: Point) -> Point:
        """The position."""
        return state

    def reward(self, task: Angle, step: Transition) -> Float[Array, ""]:
        """1 outside; the same in every task."""
        return (jnp.linalg.norm(step.next_obs) > 1).astype(jnp.float32)

    def _hits_wall(self, task: Angle, state: Point, move: Point) -> Bool[Array, ""]:
        """Whether the segment meets the unit circle outside the door."""
        # |state + t·move|² = 1 is a·t² + 2b·t + c = 0
        a = jnp.maximum(move @ move, 1e-12)
        b, c = state @ move, state @ state - 1
        root = jnp.sqrt(jnp.maximum(b * b - a * c, 0.0))
        times = jnp.stack([(-b - root) / a, (-b + root) / a])
        crosses = (times >= 0) & (times <= 1) & (b * b - a * c > 0)
        points = state[None, :] + times[:, None] * move[None, :]
        off = jnp.arctan2(points[:, 1], points[:, 0]) - task
        wrapped = jnp.abs(jnp.mod(off + jnp.pi, 2 * jnp.pi) - jnp.pi)
        return (crosses & (wrapped > self.door_angle / 2)).any()
