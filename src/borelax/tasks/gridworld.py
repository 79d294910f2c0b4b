"""Gridworld: find the one rewarding cell of a small grid (paper, section 6).

Observation: the agent's cell, one-hot. Action: stay, up, right, down, left; moves off
the grid leave the agent where it is. Reward: 1 at the goal, -0.1 elsewhere, judged
after the move. Task: the goal's cell, any but the 2×2 block at the start corner.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from borelax.errors import require, require_positive
from borelax.types import Discrete, Key, Spec, Transition

MOVES = np.array([[0, 0], [0, 1], [1, 0], [0, -1], [-1, 0]], dtype=np.int32)
"""Stay, up, right, down, left, as steps in (x, y)."""

Cell = Int[Array, ""]


@dataclass(frozen=True)
class Gridworld:
    """A size × size grid with one hidden goal. Cells are numbered x + size·y."""

    size: int = 5
    """Cells per side."""
    horizon: int = 15
    """Steps per episode (H)."""
    episodes: int = 4
    """Episodes per rollout (k)."""
    goal_reward: float = 1.0
    """Reward of a step that ends in the goal cell."""
    step_reward: float = -0.1
    """Reward of every other step."""

    name: ClassVar[str] = "gridworld"
    starts: ClassVar[tuple[str, ...]] = ("fixed", "uniform")
    differs_in: ClassVar[str] = "rewards"

    def __post_init__(self) -> None:
        """Refuse grids without goals."""
        require_positive(self, "horizon", "episodes")
        require(
            3 <= self.size <= 255,
            f"Gridworld.size must be between 3 and 255, not {self.size}: "
            "smaller grids have no goals outside the start block.",
        )
        require(
            math.isfinite(self.goal_reward) and math.isfinite(self.step_reward),
            "Gridworld rewards must be finite numbers.",
        )
        require(
            self.goal_reward > self.step_reward,
            "Gridworld.goal_reward must be above Gridworld.step_reward.",
        )

    @property
    def num_cells(self) -> int:
        """Cells of the grid."""
        return self.size**2

    @property
    def spec(self) -> Spec:
        """One-hot cell, five actions."""
        return Spec(
            obs_size=self.num_cells,
            action=Discrete(len(MOVES)),
            horizon=self.horizon,
            episodes=self.episodes,
            obs_dtype="uint8",
        )

    def goals(self) -> np.ndarray:
        """Every cell that can be the goal, in ascending order."""
        cells = np.arange(self.num_cells)
        in_start_block = (cells % self.size < 2) & (cells // self.size < 2)
        return cells[~in_start_block].astype(np.int32)

    def all_tasks(self) -> Int[Array, "N"]:
        """Every goal once."""
        return jnp.asarray(self.goals())

    def sample_task(self, *, key: Key) -> Cell:
        """A goal, uniformly."""
        return jr.choice(key, self.all_tasks())

    def reset(self, task: Cell, start: str, *, key: Key) -> Cell:
        """The corner (``fixed``), or any cell but the goal (``uniform``)."""
        if start == "fixed":
            return jnp.zeros((), jnp.int32)
        require(start == "uniform", f"Gridworld has no start called {start!r}.")
        cell = jr.randint(key, (), 0, self.num_cells - 1)
        return jnp.where(cell >= task, cell + 1, cell)

    def step(self, task: Cell, state: Cell, action: Cell, *, key: Key) -> Cell:
        """Move one cell, or stay at the border."""
        x, y = state % self.size, state // self.size
        move = jnp.asarray(MOVES)[action]
        x = jnp.clip(x + move[0], 0, self.size - 1)
        y = jnp.clip(y + move[1], 0, self.size - 1)
        return x + self.size * y

    def observe(self, state: Cell) -> Float[Array, "cells"]:
        """The cell, one-hot."""
        return jax.nn.one_hot(state, self.num_cells)

    def reward(self, task: Cell, step: Transition) -> Float[Array, ""]:
        """The goal's reward where the step ended in the goal cell."""
        at_goal = step.next_obs @ jax.nn.one_hot(task, self.num_cells) > 0.5
        return jnp.where(at_goal, self.goal_reward, self.step_reward)
