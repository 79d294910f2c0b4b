"""A search plan for Gridworld: what it is worth, and how to act on it.

A plan is a path of k·H cells, followed until the goal is found; from then on the agent
goes straight to the goal and stays.
"""

from dataclasses import dataclass
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from borelax.oracles.gridworld_returns import (
    move,
    return_of_visits,
    straight_action,
    straight_visits,
)
from borelax.tasks.gridworld import MOVES, Gridworld


@dataclass(frozen=True)
class GridworldPlan:
    """A policy for all goals: search until the goal is found, then go and stay."""

    value: float
    """Expected return, summed over all episodes."""
    per_episode: tuple[float, ...]
    """Expected return of each episode."""
    search_actions: tuple[int, ...]
    """One action per step of the rollout, for use while the goal is not found."""

    def search_cells(self, gridworld: Gridworld) -> tuple[int, ...]:
        """The cells entered while the goal is not found, one per step."""
        cells, cell = [], 0
        for step, action in enumerate(self.search_actions):
            start = 0 if step % gridworld.horizon == 0 else cell
            cell = move(gridworld.size, start, action)
            cells.append(cell)
        return tuple(cells)


def plan_of_path(gridworld: Gridworld, cells: list[int]) -> GridworldPlan:
    """The plan that enters ``cells`` in turn, one per step of the rollout.

    An episode's steps after its last new goal can find nothing, so they become "stay".
    """
    entries = _first_entries(gridworld, cells)
    expected = return_of_visits(gridworld, _visits(gridworld, entries))
    actions, horizon = [], gridworld.horizon
    for start in range(0, len(cells), horizon):
        new = [step - start for step in entries.values() if start <= step]
        searching = max((step + 1 for step in new if step < horizon), default=0)
        path = [0, *cells[start : start + searching]]
        moves = [_action(gridworld, *pair) for pair in pairwise(path)]
        actions += moves + [0] * (horizon - searching)
    return GridworldPlan(expected.value, expected.per_episode, tuple(actions))


def plan_action(
    plan: GridworldPlan,
    gridworld: Gridworld,
    step: Int[Array, ""],
    cell: Int[Array, ""],
    goal: Int[Array, ""],
) -> Int[Array, ""]:
    """The action at ``step`` (0 … k·H-1) of a rollout in ``cell``.

    ``goal`` is the goal's cell, or -1 while it is not found.
    """
    search = jnp.asarray(plan.search_actions, jnp.int32)[step]
    straight = straight_action(gridworld.size, cell, goal)
    return jnp.where(goal < 0, search, straight).astype(jnp.int32)


def found_goal(posterior: Float[Array, "cells"]) -> Int[Array, ""]:
    """The cell a posterior is sure of, or -1 if two or more are possible.

    Goals that are possible are equally likely, so none but a certain one exceeds 1/2.
    """
    best = posterior.argmax().astype(jnp.int32)
    return jnp.where(posterior.max() > 0.75, best, -1)


def _first_entries(gridworld: Gridworld, cells: list[int]) -> dict[int, int]:
    """The step of the rollout at which each goal on the path is first entered."""
    goals = set(gridworld.goals().tolist())
    entries: dict[int, int] = {}
    for step, cell in enumerate(cells):
        if cell in goals:
            entries.setdefault(cell, step)
    return entries


def _visits(gridworld: Gridworld, entries: dict[int, int]) -> np.ndarray:
    """Expected visits of each episode [E]."""
    horizon, straight = gridworld.horizon, straight_visits(gridworld)
    visits = np.zeros(gridworld.episodes, np.int64)
    for goal, entry in entries.items():
        episode, step = divmod(entry, horizon)
        visits[episode] += horizon - step
        visits[episode + 1 :] += straight[goal]
    return visits / len(gridworld.goals())


def _action(gridworld: Gridworld, cell: int, target: int) -> int:
    """The action that leads from ``cell`` to its neighbour ``target``."""
    found = [move(gridworld.size, cell, action) for action in range(len(MOVES))]
    return found.index(target)
