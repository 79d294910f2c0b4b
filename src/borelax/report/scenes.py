"""Rollouts as pictures need them: places, rewards and beliefs, in plain arrays.

In: a run's trained parts. Out: ``Scenes``, for families whose agents are somewhere:
Gridworld, the families in the plane, and Ant. A belief is drawn as a chance or as the
reward that it expects, between 0 and 1, at each of K spots of a ``Frame``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from borelax.report.decoded import exact_along, learned_along, winds_along
from borelax.report.frames import (
    Frame,
    frame_of,
    goals_of,
    labels_of,
    places_of,
    radius_of,
)
from borelax.report.trained import Trained, at, of_seed, picked
from borelax.tasks.gridworld import Gridworld
from borelax.tasks.wind import GOAL, Wind

NUM_TASKS = 6
"""Tasks to choose from where there are too many for all."""
ALL_OF_GRID = 32
"""Goals of a grid up to which all are there to choose from: those of 6×6 cells."""
NUM_SEEDS = 3
"""Seeds to choose from."""


@dataclass(frozen=True)
class Scenes:
    """Some test rollouts of one run: S seeds, N tasks, E episodes of H steps."""

    frame: Frame
    labels: tuple[str, ...]
    """Each task in words."""
    goals: np.ndarray
    """Where each task's goal is, or what its wind is [N, 2]."""
    radius: float
    """Of the goal, or the angle of the door; 0 for cells."""
    fixed_goal: tuple[float, float] | None
    """A goal that is the same in all tasks."""
    place: np.ndarray
    """[S, N, E, H+1, 2]."""
    reward: np.ndarray
    """[S, N, E, H]."""
    learned: np.ndarray | None
    """[S, N, E·H+1, K], or [S, N, E·H+1, 2] of winds; None: nothing was learned."""
    exact: np.ndarray
    """The same of the exact posterior."""
    chosen: np.ndarray
    """The tasks' numbers in the test [N]."""
    num_tested: int
    """Tasks of the test, of which these are some."""
    num_seeds: int = 1
    """Seeds of the test, of which these are the first."""


def make_scenes(
    trained: Trained,
    most_tasks: int = NUM_TASKS,
    chosen: np.ndarray | None = None,
) -> Scenes:
    """Some of the test's rollouts, from the worst return to the best.

    Args:
        trained: The run's trained parts.
        most_tasks: How many tasks, of families that have too many for all.
        chosen: Which tasks, by their number; None: as above.

    Raises:
        ValueError: if agents of the family are nowhere in particular.
    """
    family, frame = trained.family, frame_of(trained.family)
    rollouts = trained.tested
    seeds = range(min(NUM_SEEDS, rollouts.reward.shape[0]))
    returns = np.asarray(rollouts.paid().sum((-1, -2)))[0]
    some = choose_tasks(returns, family, most_tasks) if chosen is None else chosen
    few = at(rollouts, np.ix_(np.arange(len(seeds)), some))
    tasks = picked(trained.tasks, some)
    learned = None
    if trained.model is not None:
        of = winds_along if frame.kind == "winds" else learned_along
        models = [of_seed(trained.model, seed) for seed in seeds]
        learned = np.stack(
            [
                np.asarray(of(frame, family, model, of_seed(few, seed)))
                for seed, model in zip(seeds, models, strict=True)
            ]
        )
    exact = exact_along(frame, family, few)
    return Scenes(
        frame=frame,
        labels=tuple(labels_of(family, tasks)),
        goals=goals_of(family, tasks),
        radius=radius_of(family),
        fixed_goal=GOAL if isinstance(family, Wind) else None,
        place=places_of(family, few),
        reward=np.asarray(few.paid()),
        learned=learned,
        exact=exact,
        chosen=some,
        num_tested=rollouts.reward.shape[1],
        num_seeds=rollouts.reward.shape[0],
    )


def choose_tasks(returns: np.ndarray, family: Any, most: int) -> np.ndarray:
    """All tasks of a small grid; else ``most``, from the worst return to the best."""
    if isinstance(family, Gridworld):
        most = max(most, ALL_OF_GRID)
    if len(returns) <= most:
        return np.arange(len(returns))
    order = np.argsort(returns, kind="stable")
    return order[np.linspace(0, len(order) - 1, most).round().astype(int)]
