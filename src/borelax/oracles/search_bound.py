"""No agent returns more: an upper bound by tours of a few tasks.

Take m tasks spread evenly over the half circle. Whoever finds them finds them one
after another, and between two finds must travel. The best tour over all orders and
subsets, solved exactly, bounds what any agent earns on these m in its first episode;
averaged over where the m lie, it bounds the expected return. Every distance is rounded
down, so the bound holds without error bars.
"""

import numpy as np

from borelax.oracles.search import SearchWorld, known_returns, midpoints

NUM_ANGLES = 4_096
"""Angles over which known-task returns are averaged."""
ROUNDING = 1e-9
"""What a number of steps may exceed an integer by and still be that integer."""


def upper_bound(
    world: SearchWorld, num_tasks: int, num_slices: int
) -> tuple[float, ...]:
    """A return that no agent can exceed, for each episode.

    The first episode is bounded by tours of ``num_tasks``, averaged over
    ``num_slices`` places for them; later episodes by knowing the task.
    """
    family = world.family
    known = float(known_returns(world, midpoints(NUM_ANGLES)).mean())
    spacing = np.pi / num_tasks
    slack = spacing / num_slices / 2  # a slice stands for all angles that close to it
    tours = []
    for offset in spacing * (np.arange(num_slices) + 0.5) / num_slices:
        tables = world.tour_tables(offset + spacing * np.arange(num_tasks), slack)
        tours.append(best_tour(*tables, family.horizon) / num_tasks)
    first = min(float(np.mean(tours)), known)
    return (first, *[known] * (family.episodes - 1))


def best_tour(first: np.ndarray, legs: np.ndarray, horizon: int) -> float:
    """Largest sum over found tasks of H + 1 - (step that finds it).

    Args:
        first: Steps [m, C] from the start to finding task i, then being in cell c.
        legs: Steps [m, C, m, C] from there to finding task j, then being in cell d.
        horizon: H.
    """
    num_tasks = len(first)
    # Waiting of all tasks in the set still ahead, from every task and cell.
    ahead = np.zeros((2**num_tasks, *first.shape))
    best = 0.0
    for tasks in range(1, 2**num_tasks):
        members = [j for j in range(num_tasks) if tasks >> j & 1]
        waiting = len(members)  # each step of a leg delays this many finds
        after = np.stack([ahead[tasks & ~(1 << j), j] for j in members])
        started = (waiting * first[members] + after).min()
        best = max(best, waiting * (horizon + 1) - float(started))
        others = [i for i in range(num_tasks) if i not in members]
        costs = waiting * legs[others][:, :, members] + after[None, None]
        ahead[tasks, others] = costs.min(axis=(2, 3))
    return best


def steps_between(
    directions: np.ndarray,
    *,
    inner: np.ndarray,
    outer: np.ndarray,
    width: float,
    step_size: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Fewest steps, each at most ``step_size`` per axis, between sectors of the plane.

    The box distance of two convex sets is the largest gap between them over linear
    functions y with |y|₁ = 1, so the largest over a few of these never exceeds it.

    Args:
        directions: The middle of each sector [m, C] as an angle.
        inner: Its smallest distance from the centre [C].
        outer: Its largest [C].
        width: Its angle.
        step_size: Largest move per axis.

    Returns:
        Steps from the centre to each sector [m, C], and from each to each.
    """
    functions = linear_functions(8)
    places = np.stack([np.cos(directions), np.sin(directions)])  # [2, m, C]
    along = np.tensordot(functions, places, axes=1)  # [Y, m, C]
    blur = outer * width / 2 * np.linalg.norm(functions, axis=1)[:, None]  # [Y, C]
    ends = np.stack([inner * along, outer * along])
    low, high = ends.min(axis=0) - blur[:, None], ends.max(axis=0) + blur[:, None]
    first = np.maximum(whole_steps(low.max(axis=0) / step_size), 1)
    gap = np.full((*directions.shape, *directions.shape), -np.inf)
    for one, other in zip(low, high, strict=True):
        np.maximum(gap, one[:, :, None, None] - other, out=gap)
    return first, np.maximum(whole_steps(gap / step_size), 0)


def whole_steps(length: np.ndarray) -> np.ndarray:
    """Steps that a length of that many steps takes."""
    return np.ceil(length - ROUNDING).astype(np.int64)


def linear_functions(per_quarter: int) -> np.ndarray:
    """Functions y [4·per_quarter, 2] with |y|₁ = 1: none grows faster than the box."""
    share = np.arange(per_quarter) / per_quarter
    quarter = np.stack([1 - share, share], axis=-1)
    turned = np.stack([-quarter[:, 1], quarter[:, 0]], axis=-1)
    return np.concatenate([quarter, turned, -quarter, -turned])
