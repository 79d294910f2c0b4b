"""Semi-circle as a search: discs round an arc, and a robot whose steps fill a box."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from borelax.oracles.search import Point, Scalar
from borelax.oracles.search_bound import steps_between
from borelax.tasks.semicircle import SemiCircle, goal_at


@dataclass(frozen=True)
class SemiCircleSearch:
    """A step finds the goals within ``goal_radius`` of where it ends."""

    family: SemiCircle

    def task(self, angle: Scalar) -> Point:
        """The goal at an angle."""
        return goal_at(angle)

    def blind_step(self, state: Point, action: Point) -> Point:
        """The family's own step, which no goal changes."""
        return state + self.family.step_size * jnp.clip(action, -1.0, 1.0)

    def margin(self, state: Point, action: Point, angle: Scalar) -> Scalar:
        """How deep in the goal's disc the step ends."""
        off = self.blind_step(state, action) - self.task(angle)
        # not linalg.norm: its gradient at the goal itself is not a number
        return self.family.goal_radius - jnp.sqrt(jnp.square(off).sum() + 1e-12)

    def known_steps(self, angles: np.ndarray) -> np.ndarray:
        """Smallest n whose box of half-width n·step_size meets the goal's disc."""
        goals = np.abs(np.stack([np.cos(angles), np.sin(angles)], axis=-1))
        most = int(np.ceil(1 / self.family.step_size)) + 1
        reach = self.family.step_size * np.arange(1, most + 1)
        short = np.maximum(goals[:, None, :] - reach[None, :, None], 0)
        meets = np.linalg.norm(short, axis=-1) <= self.family.goal_radius
        return 1 + meets.argmax(axis=1)

    def landmarks(self, num: int) -> np.ndarray:
        """Places on the arc: to walk to a goal is the fastest way into its disc."""
        angles = (np.arange(num) + 0.5) * np.pi / num
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1)

    def sweep_radii(self) -> tuple[float, ...]:
        """From close to the inner edge of the discs to their middle."""
        radius = self.family.goal_radius
        return tuple(max(0.0, 1 - share * radius) for share in (0.9, 0.7, 0.4))

    def tour_tables(
        self, angles: np.ndarray, slack: float, num_cells: int = 64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Steps between discs, each cut into ``num_cells`` thin sectors of the plane.

        A place in the disc is known by its direction alone; along it, the robot may be
        at any distance that the disc allows.
        """
        radius = self.family.goal_radius + slack
        if radius >= 1:  # the start lies in every disc
            first = np.ones((len(angles), 1), np.int64)
            return first, np.zeros((len(angles), 1, len(angles), 1), np.int64)
        half = np.arcsin(radius)
        width = 2 * half / num_cells
        offsets = -half + width * (np.arange(num_cells) + 0.5)
        nearest = np.maximum(np.abs(offsets) - width / 2, 0)
        depth = np.sqrt(np.maximum(radius**2 - np.sin(nearest) ** 2, 0))
        return steps_between(
            angles[:, None] + offsets[None],
            inner=np.cos(nearest) - depth,
            outer=np.cos(nearest) + depth,
            width=width,
            step_size=self.family.step_size,
        )
