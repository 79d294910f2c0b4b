"""What logs would be like if they were repaired, for ``diagnose`` to look at again.

Half of each task's steps are replaced: by other tasks' steps with the rewards that this
task would have paid (reward relabelling), or by steps that other tasks' policies took
in it (policy replaying). As in phase 2, only step by step.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from borelax.ambiguity.steps import SMALLEST_NOISE, Sample, Steps
from borelax.simulate.simulator import RewardFunction
from borelax.types import Transition


def relabelled(
    sample: Sample,
    tasks: Any,
    reward: RewardFunction,
    donors: int,
    rng: np.random.Generator,
) -> Sample:
    """Each task borrows from ``donors`` random others."""
    number = sample.asked.reward.shape[0]
    ahead = np.tile(np.arange(1, number), (number, 1))  # never a task itself
    order = rng.permuted(ahead, axis=1)
    lenders = (np.arange(number)[:, None] + order[:, :donors]) % number

    def borrow(own: Steps) -> Steps:
        kept, count = _half(own)
        chosen = rng.integers(donors, size=(number, count))
        lender = np.take_along_axis(lenders, chosen, axis=1)
        lent = own.take(lender, rng.integers(own.reward.shape[1], size=lender.shape))
        several = own.rollout.max() + 1
        lent = replace(
            lent,
            reward=_paid_by_own(tasks, lent, reward),
            rollout=lent.rollout + several * (1 + lender),
        )
        return kept.beside(lent)

    return _each(sample, borrow)


def replayed(sample: Sample, visits: Sample) -> Sample:
    """Half of each task's own steps and half of what visiting policies did in it."""

    def join(own: Steps, visit: Steps) -> Steps:
        kept, count = _half(own)
        rows = np.arange(own.reward.shape[0])[:, None]
        guests = visit.take(rows, np.arange(count)[None] % visit.reward.shape[1])
        several = own.rollout.max() + 1
        return kept.beside(replace(guests, rollout=guests.rollout + several))

    return Sample(
        join(sample.asked, visits.asked),
        join(sample.same_stage, visits.same_stage),
        join(sample.any_stage, visits.any_stage),
    )


def pays_differently(
    tasks: Any, steps: Steps, reward: RewardFunction
) -> Bool[np.ndarray, "N N S"]:
    """[i, j, s]: whether task j would have paid another reward for step s of task i."""
    paid = np.stack(
        [
            _paid_by_own(_same(task, tasks), steps, reward)
            for task in range(steps.reward.shape[0])
        ],
        axis=1,
    )
    own = np.diagonal(paid, axis1=0, axis2=1).T
    close = SMALLEST_NOISE * max(float(own.std()), 1e-6)
    return np.abs(paid - own[:, None]) > close


def _paid_by_own(
    tasks: Any, steps: Steps, reward: RewardFunction
) -> Float[np.ndarray, "N S"]:
    """What each task pays for its row of steps."""
    rows = Transition(
        jnp.asarray(steps.obs),
        jnp.asarray(steps.action),
        jnp.asarray(steps.reward),
        jnp.asarray(steps.next_obs),
    )
    return np.asarray(_rewards(reward, tasks, rows))


@eqx.filter_jit
def _rewards(
    reward: RewardFunction, tasks: Any, rows: Transition
) -> Float[Array, "N S"]:
    def of_task(task: Any, row: Transition) -> Float[Array, "S"]:
        return jax.vmap(lambda step: reward(task, step))(row)

    return jax.vmap(of_task)(tasks, rows)


def _same(task: int, tasks: Any) -> Any:
    """One task in place of each."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x[task], x.shape), tasks)


def _half(own: Steps) -> tuple[Steps, int]:
    """The first half of each task's steps, and how many are left to fill."""
    tasks, number = own.reward.shape
    kept = np.arange(number // 2)[None]
    return own.take(np.arange(tasks)[:, None], kept), number - number // 2


def _each(sample: Sample, change: Callable[[Steps], Steps]) -> Sample:
    return Sample(
        change(sample.asked), change(sample.same_stage), change(sample.any_stage)
    )
