"""How much of what tells two tasks apart was seen in more than one task.

A step *tells* task i from j if j would have made something else of the same state and
action: another reward or another next state. It has a *counterpart* if another task's
agent did the same at the same stage of its training, and something else came of it.
Without counterparts one MDP explains both logs, like i where i went and like j where j
went (Proposition 2 and its converse); a learner has no reason to look at outcomes,
since the place alone foretells them.

In: a ``Sample`` of steps. Out: ``Pairs``, for every two tasks the share of telling
steps that have a counterpart, with its standard error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from borelax.ambiguity.steps import SMALLEST_NOISE, Sample, comparable

LEVEL = 0.05
"""The usual level of significance: differences rarer than this by chance are real."""
NEIGHBOURS_PER_TASK = 2
"""Steps near enough to compare: on average this many of each task, were all there."""
FEWEST_NEIGHBOURS = 20
GROUPS = 10
"""Groups of rollouts that are left out in turn, for the standard error."""
CHUNK = 1_000
"""Steps whose neighbours are looked for at once."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """What was found, for every two tasks and over all of them."""

    share: Float[np.ndarray, "N N"]
    """Of the telling steps of a pair, the share with a counterpart; NaN: none tell."""
    error: Float[np.ndarray, "N N"]
    """Its standard error, over rollouts."""
    telling: Float[np.ndarray, "N N"]
    """Share of the steps of i that tell it from j."""
    total: float
    """The share over the telling steps of all pairs; NaN: none tell."""
    total_error: float
    rewards: float
    """Share of steps and other tasks with another reward after the same move."""
    transitions: float
    """Share of steps and other tasks with another next state."""
    step_telling: Float[np.ndarray, "N Q"]
    """For each step asked about, the share of other tasks it tells its own from."""
    step_counterparts: Float[np.ndarray, "N Q"]
    """How many counterparts it has for each step of its own task there; at most 1."""


def count_counterparts(
    sample: Sample,
    differs: Bool[np.ndarray, "N N Q"] | None,
    progress: Callable[[int], None],
) -> Pairs:
    """Compare the steps asked about with those near them.

    Args:
        sample: Steps of N tasks, Q of each to ask about.
        differs: [i, j, q]: whether task j pays differently for step q of i, where the
            reward functions are known; None: found out from the logs.
        progress: Told after each chunk how many steps were looked up.
    """
    asked, near, known = comparable((sample.asked, sample.same_stage, sample.any_stage))
    tasks, number = sample.asked.reward.shape
    own = np.repeat(np.arange(tasks), number)
    count = max(NEIGHBOURS_PER_TASK * tasks, FEWEST_NEIGHBOURS)
    places = asked.place.reshape(len(own), -1)
    task_of, _ = nearest(places, near.place, count, progress)
    present = _per_task(task_of, _as_near_as_own(own, task_of), tasks)
    found = nearest(places, known.place, count, progress)
    moved = _differences(own, asked.change, found, known.change)
    moves = _estimate(own, found[0], moved, tasks)
    if differs is not None:
        pays = differs.transpose(0, 2, 1).reshape(len(own), tasks).astype(float)
    else:  # where the next state differs, so may the reward: that is not its doing
        paid = _differences(own, asked.reward, found, known.reward) & ~moved
        pays = _estimate(own, found[0], paid, tasks)
    # where no other task was, next states are as elsewhere; rewards may all differ
    moves = np.where(np.isnan(moves), _mean(moves), moves)
    return _summarise(sample, present, np.nan_to_num(pays, nan=1.0), moves, _mean(pays))


def nearest(
    places: Float[np.ndarray, "M place"],
    among: Float[np.ndarray, "N S place"],
    count: int,
    progress: Callable[[int], None],
) -> tuple[Int[np.ndarray, "M K"], Int[np.ndarray, "M K"]]:
    """Task and step of the nearest steps; of equally near ones, random ones."""
    tasks, steps = among.shape[:2]
    order = np.random.default_rng(0).permutation(tasks * steps)
    rows = jnp.asarray(among.reshape(len(order), -1)[order])
    count, found = min(count, len(order)), []
    for first in range(0, len(places), CHUNK):
        chunk = places[first : first + CHUNK]
        padded = np.resize(chunk, (CHUNK, chunk.shape[1]))  # one shape, one program
        closest = np.asarray(_closest(jnp.asarray(padded), rows, count))
        found.append(order[closest[: len(chunk)]])
        progress(len(chunk))
    return np.divmod(np.concatenate(found), steps)


@eqx.filter_jit
def _closest(
    places: Float[Array, "M place"], rows: Float[Array, "L place"], count: int
) -> Int[Array, "M K"]:
    squares = jnp.square(rows).sum(axis=-1)
    return jax.lax.top_k(2 * places @ rows.T - squares[None, :], count)[1]


def _as_near_as_own(
    own: Int[np.ndarray, "M"], task_of: Int[np.ndarray, "M K"]
) -> Bool[np.ndarray, "M K"]:
    """Which neighbours, nearest first, are no farther than some of the own task's.

    Others are somewhere else.
    """
    mine = task_of == own[:, None]
    return np.maximum.accumulate(mine[:, ::-1], axis=1)[:, ::-1]


def _differences(
    own: Int[np.ndarray, "M"],
    here: Float[np.ndarray, "N Q outcome"],
    found: tuple[Int[np.ndarray, "M K"], Int[np.ndarray, "M K"]],
    there: Float[np.ndarray, "N S outcome"],
) -> Bool[np.ndarray, "M K"]:
    """Which neighbours had another outcome, by more than those of one task differ.

    But for one in twenty, if noise is normal.
    """
    mine = found[0] == own[:, None]
    gap = np.square(there[found] - here.reshape(len(own), 1, -1))
    noise = gap[mine].mean(axis=0) if mine.any() else np.zeros(gap.shape[-1])
    gap /= (noise + SMALLEST_NOISE**2).astype(gap.dtype)
    return np.any(gap > _limit(gap.shape[-1]), axis=-1)


def _estimate(
    own: Int[np.ndarray, "M"],
    task_of: Int[np.ndarray, "M K"],
    differs: Bool[np.ndarray, "M K"],
    tasks: int,
) -> Float[np.ndarray, "M N"]:
    """How surely each task differs from the step's own, by its steps near there.

    Beyond the share that differs within one task; so where nothing differs it is zero
    on average, and may be negative. A task that was never near is taken for the mean
    of those that were; where none was, it is NaN.
    """
    mine = task_of == own[:, None]
    by_chance = min(float(differs[mine].mean()), 0.5) if mine.any() else 0.0
    there = _as_near_as_own(own, task_of)
    near = _per_task(task_of, there, tasks)
    share = _per_task(task_of, differs & there, tasks) / np.maximum(near, 1)
    share = (share - by_chance) / (1 - by_chance)
    others = (near > 0) & (np.arange(tasks)[None] != own[:, None])
    number = others.sum(axis=1)
    mean = (share * others).sum(axis=1) / np.maximum(number, 1)
    mean = np.where(number > 0, mean, np.nan)
    return np.where(others, share, mean[:, None])


def _summarise(
    sample: Sample,
    present: Float[np.ndarray, "M N"],
    pays: Float[np.ndarray, "M N"],
    moves: Float[np.ndarray, "M N"],
    pays_where_known: float,
) -> Pairs:
    tasks, number = sample.asked.reward.shape
    own = np.repeat(np.arange(tasks), number)
    mine = np.arange(tasks)[None] == own[:, None]
    tells = np.where(mine, 0.0, np.minimum(pays + moves, 1))
    here = present[mine]
    counterparts = (tells * present).sum(axis=1)  # own column of ``tells`` is zero
    matched = np.clip(counterparts / np.maximum(here, 1), 0, 1)
    signed = tells * (here > 0)[:, None]
    tells = np.maximum(signed, 0)
    group = _groups(sample.asked.rollout).ravel()
    parts = np.zeros((3, GROUPS, tasks, tasks))
    for part, values in zip(
        parts, (tells * matched[:, None], tells, signed), strict=True
    ):
        np.add.at(part, (group, own), values)
    share, error = _with_error(*parts)
    total, total_error = _with_error(*parts.sum(axis=(2, 3), keepdims=True))
    others = max(tasks - 1, 1)
    return Pairs(
        share=share,
        error=error,
        telling=parts[1].sum(axis=0) / number,
        total=float(total[0, 0]),
        total_error=float(total_error[0, 0]),
        rewards=max(pays_where_known, 0.0),
        transitions=max(float(moves[~mine].mean()), 0.0),
        step_telling=(tells.sum(axis=1) / others).reshape(tasks, number),
        step_counterparts=matched.reshape(tasks, number),
    )


def _with_error(
    matched: Float[np.ndarray, "G N N"],
    telling: Float[np.ndarray, "G N N"],
    signed: Float[np.ndarray, "G N N"],
) -> tuple[Float[np.ndarray, "N N"], Float[np.ndarray, "N N"]]:
    """The share of both tasks' telling steps, and its jackknife standard error.

    NaN where no more steps tell than chance allows, at the usual level: ``signed`` is
    zero on average where nothing tells, and ``telling`` is its positive part.
    """
    matched, telling, signed = (
        x + x.swapaxes(1, 2) for x in (matched, telling, signed)
    )
    total, net = telling.sum(axis=0), signed.sum(axis=0)
    by_chance = NormalDist().inv_cdf(1 - LEVEL) * _jackknife(net - signed)
    some = (net >= 1) & (net > by_chance)

    def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        return np.clip(part / np.maximum(whole, 1), 0, 1)

    error = _jackknife(ratio(matched.sum(axis=0) - matched, total - telling))
    return np.where(some, ratio(matched.sum(axis=0), total), np.nan), error


def _jackknife(without: Float[np.ndarray, "G N N"]) -> Float[np.ndarray, "N N"]:
    """Standard error of a number, given what it is without each group."""
    spread = np.square(without - without.mean(axis=0)).sum(axis=0)
    return np.sqrt((GROUPS - 1) / GROUPS * spread)


def _groups(rollout: Int[np.ndarray, "N Q"]) -> Int[np.ndarray, "N Q"]:
    """Which group each step is in; a rollout's steps are in the same one."""
    rows = [np.unique(row, return_inverse=True)[1] % GROUPS for row in rollout]
    return np.stack(rows)


def _per_task(
    task_of: Int[np.ndarray, "M K"], values: np.ndarray, tasks: int
) -> Float[np.ndarray, "M N"]:
    """Sums of ``values`` by task."""
    total = np.zeros((len(task_of), tasks))
    np.add.at(total, (np.arange(len(task_of))[:, None], task_of), values)
    return total


def _mean(estimates: Float[np.ndarray, "M N"]) -> float:
    """Where it is known; 0 where it never is."""
    known = estimates[~np.isnan(estimates)]
    return float(known.mean()) if known.size else 0.0


def _limit(number: int) -> float:
    """The square, in standard deviations, that one of ``number`` exceeds by chance."""
    return NormalDist().inv_cdf(1 - LEVEL / 2 / max(number, 1)) ** 2
