"""Thompson sampling on Gridworld, its expected return computed exactly.

The agent draws a goal from its exact posterior and follows that goal's optimal policy:
the shortest route by the lowest-numbered action that shortens the distance (up, then
right, then down, then left), then stay. Two variants:

* ``thompson_per_episode`` draws at the start of each episode and holds on to it. If the
  route crosses the true goal the agent walks on, and knows it in the next episode.
* ``thompson_per_step`` draws also as soon as the cell drawn proves empty: because the
  agent stands in it, or because it has found the true goal, which is then drawn.

Until the goal is found, all goals not ruled out are equally likely, whatever the true
one is. So the ruled-out set alone decides what is drawn next, and the distribution over
sets, given that the goal is in none, is carried forward: a route that newly enters one
of G goals in a state of probability p finds the true one with probability p / G.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from borelax.errors import ConfigError, require
from borelax.oracles import goal_sets
from borelax.oracles.gridworld_returns import (
    ExpectedReturn,
    return_of_visits,
    straight_route,
    straight_visits,
)
from borelax.tasks.gridworld import Gridworld

MAX_GOALS = 1_000
"""Goals beyond which a grid is refused."""
MAX_WORDS = 30_000_000
"""Words of all sets waiting beyond which a grid is refused: about 2 GB of memory."""


def thompson_per_episode(gridworld: Gridworld) -> ExpectedReturn:
    """Exact return of drawing one goal per episode.

    Raises:
        ConfigError: if there are too many ruled-out sets to follow.
    """
    return _expected_return(gridworld, redraw=False)


def thompson_per_step(gridworld: Gridworld) -> ExpectedReturn:
    """Exact return of drawing anew as soon as the cell drawn proves empty.

    Raises:
        ConfigError: if there are too many ruled-out sets to follow.
    """
    return _expected_return(gridworld, redraw=True)


class _Searches(NamedTuple):
    """A distribution over ruled-out sets, given that the goal is in none of them."""

    ruled_out: np.ndarray
    """Sets [N, words]."""
    probability: np.ndarray
    """Of each set [N]."""


class _Draws:
    """Searches that draw next, by step (0 … H) and cell. At H all are in the corner."""

    def __init__(self, horizon: int):
        self.waiting = [defaultdict(list) for _ in range(horizon + 1)]
        self.words = 0

    def add(self, step: int, cell: int, searches: _Searches) -> None:
        self.words += searches.ruled_out.size
        if self.words > MAX_WORDS:
            raise ConfigError(
                "Thompson sampling on this Gridworld reaches too many ruled-out sets "
                "to solve it exactly; use a shorter horizon or a smaller grid."
            )
        self.waiting[step][cell].append(searches)

    def pop(self, step: int, cell: int) -> _Searches:
        """The searches of one step and cell, equal sets merged."""
        parts = self.waiting[step].pop(cell)
        ruled_out = np.concatenate([part.ruled_out for part in parts])
        probability = np.concatenate([part.probability for part in parts])
        self.words -= ruled_out.size
        order, first = goal_sets.group_equal(ruled_out)
        merged = np.add.reduceat(probability[order], first)
        return _Searches(ruled_out[order[first]], merged)


class _Sampler:
    """The agent's tables, and the visits counted so far."""

    def __init__(self, gridworld: Gridworld, *, redraw: bool):
        self.horizon = gridworld.horizon
        self.size = gridworld.size
        self.redraw = redraw
        self.goals = gridworld.goals().tolist()
        singles = goal_sets.single_goals(len(self.goals))
        self.single = dict(zip(self.goals, singles, strict=True))
        self.straight = straight_visits(gridworld)
        self.visits = np.zeros(gridworld.episodes)
        """Expected visits of each episode, summed over goals."""

    def run_episode(self, searches: _Searches, episode: int) -> _Searches:
        """Count what an episode adds; return what is searched for after it."""
        draws = _Draws(self.horizon)
        draws.add(0, 0, searches)
        for step in range(self.horizon):
            for cell in list(draws.waiting[step]):
                drawing = draws.pop(step, cell)
                num_left = len(self.goals) - goal_sets.count(drawing.ruled_out)
                share = _Searches(drawing.ruled_out, drawing.probability / num_left)
                for goal in self.goals:
                    draws.add(*self._follow(share, cell, goal, episode, step))
        return draws.pop(self.horizon, 0)

    def _follow(
        self, share: _Searches, cell: int, goal: int, episode: int, step: int
    ) -> tuple[int, int, _Searches]:
        """Walk from ``cell`` to ``goal``: step, cell and searches of the next draw."""
        possible = ~goal_sets.overlap(share.ruled_out, self.single[goal])
        ruled_out, probability = share.ruled_out[possible], share.probability[possible]
        route = straight_route(self.size, cell, goal)[: self.horizon - step]
        for at, entered in enumerate(route, start=step + 1):
            if entered not in self.single:
                continue
            is_new = ~goal_sets.overlap(ruled_out, self.single[entered])
            found = probability[is_new].sum()
            stays = self.redraw or entered == goal
            self.visits[episode] += found * (self.horizon - at + 1 if stays else 1)
            self.visits[episode + 1 :] += found * self.straight[entered]
            ruled_out = ruled_out | self.single[entered]
        unfinished = goal_sets.count(ruled_out) < len(self.goals)
        left = _Searches(ruled_out[unfinished], probability[unfinished])
        arrival = step + len(route)
        if self.redraw and arrival < self.horizon:
            return arrival, goal, left
        return self.horizon, 0, left


def _expected_return(gridworld: Gridworld, *, redraw: bool) -> ExpectedReturn:
    num_goals = len(gridworld.goals())
    require(
        num_goals <= MAX_GOALS,
        f"Thompson sampling over {num_goals} goals is too large to solve exactly; use "
        "a smaller Gridworld.",
    )
    sampler = _Sampler(gridworld, redraw=redraw)
    no_set = np.zeros_like(goal_sets.single_goals(num_goals)[:1])
    searches = _Searches(no_set, np.ones(1))
    for episode in range(gridworld.episodes):
        searches = sampler.run_episode(searches, episode)
    return return_of_visits(gridworld, sampler.visits / num_goals)
