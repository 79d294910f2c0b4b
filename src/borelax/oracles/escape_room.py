"""Escape-Room as a search: every blow against the wall tries the doors around it."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from borelax.oracles.search import Point, Scalar
from borelax.oracles.search_bound import linear_functions, whole_steps
from borelax.tasks.escape_room import EscapeRoom

OUTSIDE = 1.001
"""How far out one aims to pass a door; a little, or rounding would decide."""


@dataclass(frozen=True)
class EscapeRoomSearch:
    """A step that crosses the wall finds the doors that hold the crossing."""

    family: EscapeRoom

    def task(self, angle: Scalar) -> Scalar:
        """The door's centre."""
        return angle

    def blind_step(self, state: Point, action: Point) -> Point:
        """A step in a room without a door."""
        target = state + self.family.step_size * jnp.clip(action, -1.0, 1.0)
        reached = jnp.sqrt(jnp.square(target).sum() + 1e-12)
        stopped = self.family.stopped_at * target / reached
        return jnp.where(reached > 1, stopped, target)

    def margin(self, state: Point, action: Point, angle: Scalar) -> Scalar:
        """How far beyond the wall, and how far inside the door, whichever is less."""
        move = self.family.step_size * jnp.clip(action, -1.0, 1.0)
        target = state + move
        beyond = jnp.sqrt(jnp.square(target).sum() + 1e-12) - 1
        # |state + t·move|² = 1; without a crossing, the end of the step stands for it
        a, b = move @ move + 1e-12, state @ move
        inner = jnp.maximum(b * b - a * (state @ state - 1), 1e-12)
        time = jnp.clip((jnp.sqrt(inner) - b) / a, 0.0, 1.0)
        crossing = state + time * move
        off = jnp.arctan2(crossing[1], crossing[0] + 1e-12) - angle
        wrapped = jnp.abs(jnp.mod(off + jnp.pi, 2 * jnp.pi) - jnp.pi)
        inside = self.family.door_angle / 2 - wrapped
        return jnp.where(beyond > 0, jnp.minimum(beyond, inside), beyond - 1e-6)

    def known_steps(self, angles: np.ndarray) -> np.ndarray:
        """Straight to the part of the door that a box of steps reaches first."""
        places = angles[:, None] + self.family.door_angle * np.linspace(-0.5, 0.5, 513)
        length = np.maximum(np.abs(np.cos(places)), np.abs(np.sin(places))).min(axis=1)
        return np.maximum(whole_steps(length / self.family.step_size), 1)

    def landmarks(self, num: int) -> np.ndarray:
        """Places just outside the wall, wherever a door may be."""
        half = self.family.door_angle / 2
        angles = np.linspace(-half, np.pi + half, num)
        return OUTSIDE * np.stack([np.cos(angles), np.sin(angles)], axis=-1)

    def sweep_radii(self) -> tuple[float, ...]:
        """A little to well outside, so that every step of the sweep is a blow."""
        return (1.005, 1.02, 1.05)

    def tour_tables(
        self, angles: np.ndarray, slack: float, num_cells: int = 64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Steps between blows, each known by the direction in which it ends.

        A blow ends at most asin(√2·step_size) from where it meets the wall. One that
        ends short of the door must have gone there and back.
        """
        size = self.family.step_size
        door = self.family.door_angle / 2 + slack
        half = door + np.arcsin(min(np.sqrt(2) * size, 1.0))
        width = 2 * half / num_cells
        offsets = -half + width * (np.arange(num_cells) + 0.5)
        places = angles[:, None] + offsets[None]
        blows = np.linspace(0, 2 * np.pi, 721)
        spare = (blows[1] - blows[0]) / 2
        reach = np.maximum(np.abs(np.cos(blows)), np.abs(np.sin(blows)))
        begin = np.maximum(whole_steps((reach - spare) / size), 1)
        slid = whole_steps(self._along(blows, places[..., None], spare + width / 2))
        first = (begin + slid).min(axis=-1)
        start = places[:, :, None, None]
        direct = self._along(start, places[None, None], width)
        edge = np.clip(offsets, -door, door)  # of the door, where the wall was met
        back = self._along(angles[:, None] + edge[None], places, width)
        detour = self._along(start, (angles[:, None] + edge)[None, None], width) + back
        before = _wrapped(start - angles[:, None])  # seen from the next door
        outside = np.minimum(np.abs(before), np.abs(offsets)) > door + width / 2
        outside &= before * offsets > 0  # on the same side of the door
        return first, whole_steps(np.where(outside, detour, direct))

    def _along(self, one: np.ndarray, other: np.ndarray, spare: float) -> np.ndarray:
        """At least so many steps lie between directions that are known up to ``spare``.

        Think of each place drawn back to the disc of radius ``stopped_at``. No step,
        stopped or not, moves it by more than √2·step_size; and where a linear function
        is positive, to be stopped never makes it larger.
        """
        radius, size = self.family.stopped_at, self.family.step_size
        off = np.maximum(np.abs(_wrapped(one - other)) - spare, 0)
        length = 2 * radius * np.sin(off / 2) / np.sqrt(2)
        for y in linear_functions(12):
            begin = np.maximum(y[0] * np.cos(one) + y[1] * np.sin(one), 0)
            gain = y[0] * np.cos(other) + y[1] * np.sin(other) - begin
            blur = spare * np.hypot(*y)
            length = np.maximum(length, radius * (gain - blur))
        return length / size


def _wrapped(angle: np.ndarray) -> np.ndarray:
    return np.mod(angle + np.pi, 2 * np.pi) - np.pi
