"""How a family is drawn: which part of the world, and what its tasks look like.

For Gridworld, the families in the plane, and Ant, whose agents are somewhere.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.gridworld import Gridworld
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from borelax.tasks.semicircle import SemiCircle
from borelax.tasks.wind import Wind
from borelax.types import Episodes

CELLS_OF_PLANE = (32, 24)
"""Spots of a map of the plane, along x and y."""
LARGEST_GRID = 20
"""Cells per side beyond which a grid is not drawn."""
SPOTS_OF_RING = 64
"""Spots of a map of a wall."""


@dataclass(frozen=True)
class Frame:
    """The part of the world that is drawn, and where beliefs have their K spots."""

    kind: str
    """``cells`` or ``plane``: spots in rows from below; ``ring``: spots around the
    unit circle from angle 0; ``winds``: no spots, a belief is a point."""
    low: tuple[float, float]
    high: tuple[float, float]
    shape: tuple[int, int]
    """Spots along x and y; of a ring, (K, 1)."""
    means: str
    """What a spot's value is, in words."""


def frame_of(family: Any) -> Frame:
    """What is drawn of a family."""
    if isinstance(family, Gridworld) and family.size > LARGEST_GRID:
        raise ValueError(f"a grid of {family.size}×{family.size} cells is too large")
    if isinstance(family, Gridworld):
        edge, size = family.size - 0.5, (family.size, family.size)
        words = "chance that the goal is here"
        return Frame("cells", (-0.5, -0.5), (edge, edge), size, words)
    if isinstance(family, SemiCircle | AntSemiCircle):
        words = "reward expected here"
        return Frame("plane", (-1.6, -0.8), (1.6, 1.6), CELLS_OF_PLANE, words)
    if isinstance(family, EscapeRoom):
        words = (
            "how far through the wall a step outwards is expected to lead here; "
            "of the exact posterior, the chance that it is open"
        )
        return Frame("ring", (-2.5, -1.3), (2.5, 2.7), (SPOTS_OF_RING, 1), words)
    if isinstance(family, Wind):
        return Frame("winds", (-0.8, -0.4), (0.8, 1.4), (1, 1), "wind")
    name = type(family).__name__
    reason = f"the agents of {name} are not at a place that could be drawn"
    if isinstance(family, HalfCheetahVel):
        reason = "a cheetah's place does not matter, only its speed"
    raise ValueError(reason)


def spots_of(frame: Frame) -> np.ndarray:
    """The centres of a frame's spots [K, 2], rows from below; of a ring, its points."""
    if frame.kind == "ring":
        angles = (np.arange(frame.shape[0]) + 0.5) * 2 * np.pi / frame.shape[0]
        return np.stack([np.cos(angles), np.sin(angles)], -1)
    axes = [
        low + (np.arange(count) + 0.5) * (high - low) / count
        for low, high, count in zip(frame.low, frame.high, frame.shape, strict=True)
    ]
    x, y = np.meshgrid(*axes)
    return np.stack([x.ravel(), y.ravel()], -1)


def places_of(family: Any, rollouts: Episodes) -> np.ndarray:
    """Where the agent was: of a grid, columns and rows."""
    obs = np.asarray(rollouts.obs)
    if isinstance(family, Gridworld):
        cells = obs.argmax(-1)
        return np.stack([cells % family.size, cells // family.size], -1).astype(float)
    return obs[..., :2].astype(float)


def goals_of(family: Any, tasks: Any) -> np.ndarray:
    """Where the goals are, or the doors' centres; of Wind, the winds."""
    values = np.asarray(tasks, dtype=float)
    if isinstance(family, Gridworld):
        return np.stack([values % family.size, values // family.size], -1)
    if isinstance(family, EscapeRoom):
        return np.stack([np.cos(values), np.sin(values)], -1)
    return values


def labels_of(family: Any, tasks: Any) -> list[str]:
    """Each task in a few words."""
    goals = goals_of(family, tasks)
    if isinstance(family, Gridworld):
        return [f"goal in column {x + 1:.0f}, row {y + 1:.0f}" for x, y in goals]
    if isinstance(family, Wind):
        return [f"wind ({x:+.3f}, {y:+.3f})" for x, y in goals]
    what = "door" if isinstance(family, EscapeRoom) else "goal"
    degrees = np.degrees(np.arctan2(goals[:, 1], goals[:, 0]))
    return [f"{what} at {angle:.0f}°" for angle in degrees]


def radius_of(family: Any) -> float:
    """Of the goal; of a door, its angle; of cells, 0."""
    if isinstance(family, EscapeRoom):
        return family.door_angle
    return float(getattr(family, "goal_radius", 0.0))
