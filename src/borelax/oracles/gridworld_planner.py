"""Bayes-optimal search of Gridworld, solved exactly: its return and its plan.

Until the goal is found the agent only ever sees "not here", so a policy is one path of
k·H cells to follow until then; afterwards it goes straight to the goal. A path is worth
the visits summed over goals: a goal first entered at step t (1 … H) of episode e gives
H - t + 1 visits in that episode and H - d + 1 in each later one, d being its distance
from the corner. Goals with d > H are never entered.

``plan_search`` extends all paths step by step and keeps one per state (cell, goals
ruled out). Nothing it drops can beat what it keeps:

* *Merging.* What a path can still earn depends on its cell, its ruled-out set and the
  time alone, so of paths that agree in these the one with most visits is enough. At an
  episode's end all return to the corner, and the cell no longer matters.
* *No standing still.* Entering a goal earlier never earns less: within an episode by
  the formula, across episodes because t ≥ d. So an idle step may be moved to the end
  of its episode, and there any other step does as well.
* *Bound.* Without idle steps, step t ends in a cell whose distance from the corner has
  the parity of t. So a step finds at most one goal, of that parity, and no sooner than
  its distance from the present cell allows. Taking the goals of each parity as soon as
  they can be had makes the n-th discovery as early as possible for every n, and so the
  sum of H - t + 1 as large as possible. A goal not found in this episode earns at most
  H - d + 1 in each later one, as if it had been found. States whose visits plus this
  bound do not exceed the visits of a plan already known are dropped. That plan comes
  from the same search with few states kept (a beam), and is optimal if none beats it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from borelax.errors import require
from borelax.oracles import goal_sets
from borelax.oracles.gridworld_plan import GridworldPlan, plan_of_path
from borelax.oracles.gridworld_returns import distance, move, straight_visits
from borelax.tasks.gridworld import MOVES, Gridworld

BEAM_WIDTHS = (1_000, 50_000)
MAX_STATES = 4_000_000
"""States kept per step beyond which a search is refused: about 2 GB of memory.

A state with more than 64 goals within reach counts once per 64.
"""
MAX_GOALS = 1_000
"""Goals within reach beyond which a search is refused before it makes its tables."""
TOO_LARGE = (
    "This Gridworld is too large to solve exactly; use a shorter horizon or a smaller "
    "grid."
)


def plan_search(gridworld: Gridworld, max_states: int = MAX_STATES) -> GridworldPlan:
    """The Bayes-optimal plan.

    Raises:
        ConfigError: if the search would have to keep more than ``max_states`` states.
    """
    grid = _tables(gridworld)
    best = _Outcome(-1, [], complete=False)
    for width in (*BEAM_WIDTHS, None):
        found = _search(grid, width, max_states, to_beat=best.visits)
        best = max(best, found, key=lambda outcome: outcome.visits)
        if found.complete:
            break
    return plan_of_path(gridworld, grid.cells[best.path].tolist())


class _Outcome(NamedTuple):
    """The best path of a search."""

    visits: int
    """Summed over goals; -1 if no path was found that beats the one known."""
    path: list[int]
    """Place after each step."""
    complete: bool
    """Whether no path was dropped that might have been better."""


@dataclass(frozen=True)
class _Grid:
    """The part of a grid within reach; its cells are renumbered as *places*."""

    horizon: int
    episodes: int
    cells: np.ndarray
    """Cell of each place [P]; place 0 is the corner."""
    neighbours: np.ndarray
    """Places by up, right, down, left [P, 4]; -1 off the grid or out of reach."""
    here: np.ndarray
    """The goal at each place, as a set [P, words]."""
    rings: np.ndarray
    """Goals at each distance from each place, as sets [P, D + 1, words]."""
    straight: np.ndarray
    """Visits of going straight to each place [P], 0 where there is no goal."""


class _Paths(NamedTuple):
    """All paths kept after one step, as arrays over paths."""

    place: np.ndarray
    ruled_out: np.ndarray
    visits: np.ndarray
    parent: np.ndarray
    """Row of the path in the step before."""

    def take(self, rows: np.ndarray) -> "_Paths":
        return _Paths(*(column[rows] for column in self))


def _tables(gridworld: Gridworld) -> _Grid:
    every = np.arange(gridworld.num_cells)
    cells = every[distance(gridworld.size, 0, every) <= gridworld.horizon]
    is_goal = np.isin(cells, gridworld.goals())
    require(int(is_goal.sum()) <= MAX_GOALS, TOO_LARGE)
    singles = goal_sets.single_goals(int(is_goal.sum()))
    here = np.zeros((len(cells), singles.shape[1]), np.uint64)
    here[is_goal] = singles
    apart = distance(gridworld.size, cells[:, None], cells[None, :])
    rings = np.zeros((len(cells), apart.max() + 1, here.shape[1]), np.uint64)
    for place in np.flatnonzero(is_goal):
        rings[np.arange(len(cells)), apart[:, place]] |= here[place]
    return _Grid(
        horizon=gridworld.horizon,
        episodes=gridworld.episodes,
        cells=cells,
        neighbours=_neighbours(gridworld, cells),
        here=here,
        rings=rings,
        straight=straight_visits(gridworld)[cells] * is_goal,
    )


def _neighbours(gridworld: Gridworld, cells: np.ndarray) -> np.ndarray:
    place_of = {cell: place for place, cell in enumerate(cells.tolist())}
    table = np.full((len(cells), len(MOVES) - 1), -1, np.int32)
    for cell, place in place_of.items():
        for action in range(1, len(MOVES)):
            target = move(gridworld.size, cell, action)
            if target != cell:
                table[place, action - 1] = place_of.get(target, -1)
    return table


def _search(
    grid: _Grid, width: int | None, max_states: int, *, to_beat: int
) -> _Outcome:
    """Look for a path that beats ``to_beat``, with all states or the ``width`` best."""
    zero = np.zeros(1, np.int32)
    paths = _Paths(zero, np.zeros_like(grid.here[:1]), zero, zero)
    trail, complete = [], True
    for episode in range(grid.episodes):
        for step in range(1, grid.horizon + 1):
            paths = _extend(grid, paths, episode, step)
            ended = paths.place
            if step == grid.horizon:
                paths = paths._replace(place=np.zeros_like(ended))
            rows = _most_promising(grid, paths, episode, step, to_beat)
            if len(rows) == 0:
                return _Outcome(-1, [], complete)
            complete &= width is None or len(rows) <= width
            rows = rows[:width]
            require(len(rows) * grid.here.shape[1] <= max_states, TOO_LARGE)
            paths = paths.take(rows)
            trail.append((ended[rows], paths.parent))
    row = int(paths.visits.argmax())
    return _Outcome(int(paths.visits[row]), _walk_back(trail, row), complete)


def _extend(grid: _Grid, paths: _Paths, episode: int, step: int) -> _Paths:
    """Every path by every move."""
    place = grid.neighbours[paths.place]
    parent, direction = np.nonzero(place >= 0)
    place = place[parent, direction]
    here, before = grid.here[place], paths.ruled_out[parent]
    later = (grid.episodes - 1 - episode) * grid.straight[place]
    found = goal_sets.overlap(here, ~before) * (grid.horizon - step + 1 + later)
    visits = (paths.visits[parent] + found).astype(np.int32)
    return _Paths(place, before | here, visits, parent.astype(np.int32))


def _most_promising(
    grid: _Grid, paths: _Paths, episode: int, step: int, to_beat: int
) -> np.ndarray:
    """Rows that may lead to more visits than ``to_beat``, one per state, best first."""
    order, first = goal_sets.group_equal(
        paths.ruled_out, paths.place, rank=paths.visits
    )
    rows = order[first]
    if step == grid.horizon:
        episode, step = episode + 1, 0
    most = paths.visits[rows] + _bound(grid, paths.take(rows), episode, step)
    rows, most = rows[most > to_beat], most[most > to_beat]
    return rows[np.argsort(-most, kind="stable")]


def _bound(grid: _Grid, paths: _Paths, episode: int, step: int) -> np.ndarray:
    """Visits that each path can still add, at most."""
    most = np.zeros(len(paths.place), np.int32)
    if episode == grid.episodes:
        return most
    unseen = np.bitwise_or.reduce(grid.here) & ~paths.ruled_out
    waiting = np.zeros((2, len(most)), np.int32)  # goals within reach, by parity
    for at in range(step + 1, grid.horizon + 1):
        if at - step < grid.rings.shape[1]:
            ring = grid.rings[paths.place, at - step]
            waiting[at % 2] += goal_sets.count(unseen & ring)
        found = waiting[at % 2] > 0
        most += found * np.int32(grid.horizon - at + 1)
        waiting[at % 2] -= found
    for visits in np.unique(grid.straight[grid.straight > 0]):
        alike = np.bitwise_or.reduce(grid.here[grid.straight == visits])
        later = (grid.episodes - 1 - episode) * np.int32(visits)
        most += later * goal_sets.count(unseen & alike)
    return most


def _walk_back(trail: list[tuple[np.ndarray, np.ndarray]], row: int) -> list[int]:
    """The places of the path that ends in ``row`` of the last step."""
    path = []
    for place, parent in reversed(trail):
        path.append(int(place[row]))
        row = int(parent[row])
    return path[::-1]
