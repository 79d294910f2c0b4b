"""Gridworld returns counted in visits: what all its oracles share.

A rollout earns ``step_reward`` at every step and ``goal_reward - step_reward`` more at
each step that ends in the goal. So an expected return is the expected number of
*visits* (steps that end in the goal), scaled and shifted, and only the visits depend
on behaviour. Visits are whole numbers: oracles compare them without rounding.

Episodes start in the corner, cell 0. Once the goal is known nothing beats going
straight to it and staying, which gives H - d + 1 visits from distance d ≤ H.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from borelax.tasks.gridworld import MOVES, Gridworld


@dataclass(frozen=True)
class ExpectedReturn:
    """A policy's undiscounted return, in expectation over goals and its own draws."""

    value: float
    """Summed over all episodes of a rollout."""
    per_episode: tuple[float, ...]
    """One number per episode."""


def known_task_return(gridworld: Gridworld) -> float:
    """Mean over goals of going straight to the goal in every episode."""
    return known_task(gridworld).value


def known_task(gridworld: Gridworld) -> ExpectedReturn:
    """The same with its episodes, which are all alike."""
    mean_visits = straight_visits(gridworld)[gridworld.goals()].mean()
    return return_of_visits(gridworld, np.full(gridworld.episodes, mean_visits))


def return_of_visits(gridworld: Gridworld, visits: np.ndarray) -> ExpectedReturn:
    """Turn the expected visits of each episode [E] into returns."""
    extra = gridworld.goal_reward - gridworld.step_reward
    per_episode = gridworld.horizon * gridworld.step_reward + extra * visits
    return ExpectedReturn(float(per_episode.sum()), tuple(per_episode.tolist()))


def straight_visits(gridworld: Gridworld) -> np.ndarray:
    """Visits of one episode that goes straight to each cell [cells]; 0 out of reach."""
    cells = np.arange(gridworld.num_cells)
    away = distance(gridworld.size, 0, cells)
    return np.maximum(0, gridworld.horizon - away + 1)


def distance(size: int, cell: Any, other: Any) -> Any:
    """Steps from cell to cell, which may be numpy or JAX arrays."""
    return abs(cell % size - other % size) + abs(cell // size - other // size)


def straight_action(size: int, cell: Any, goal: Any) -> Any:
    """The lowest-numbered action that shortens the distance; 0, stay, at the goal.

    So the route to a goal goes up, then right, then down, then left. Both arguments may
    be numpy or JAX integers or arrays.
    """
    right = goal % size - cell % size
    up = goal // size - cell // size
    return (
        1 * (up > 0)
        + 2 * ((up <= 0) & (right > 0))
        + 3 * ((up < 0) & (right <= 0))
        + 4 * ((up == 0) & (right < 0))
    )


def move(size: int, cell: int, action: int) -> int:
    """The cell after one action, as ``Gridworld.step`` has it."""
    x = min(max(cell % size + int(MOVES[action, 0]), 0), size - 1)
    y = min(max(cell // size + int(MOVES[action, 1]), 0), size - 1)
    return x + size * y


def straight_route(size: int, cell: int, goal: int) -> list[int]:
    """The cells entered on the way from ``cell`` to ``goal``, the goal last."""
    route = []
    while cell != goal:
        cell = move(size, cell, int(straight_action(size, cell, goal)))
        route.append(cell)
    return route
