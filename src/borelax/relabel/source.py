"""Where learners get rollouts from: drawn afresh per batch, without the task.

A phase-2 choice (``KeepAsIs``, ``RelabelRewards``, ``ReplayPolicies``) turns logs into
a ``RolloutSource``.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Int, PyTree

from borelax.learn import below
from borelax.logs import TaskLogs
from borelax.simulate.simulator import Simulator
from borelax.types import Episodes, Key, Transition


@runtime_checkable
class RolloutSource(Protocol):
    """A pytree of arrays that gives random rollouts; pure."""

    def for_belief(self) -> "RolloutSource":
        """What the belief model learns from; the meta-agent learns from this one."""
        ...

    def draw(self, num_rollouts: int, *, key: Key) -> Episodes:
        """``num_rollouts`` rollouts of random tasks: [num_rollouts, E, …]."""
        ...

    def draw_with_makers(self, num_rollouts: int, *, key: Key) -> "Provenance":
        """The same rollouts, and where each of their episodes came from."""
        ...

    def draw_to_decode(
        self, num_rollouts: int, num_steps: int, *, key: Key
    ) -> "ToDecode":
        """Rollouts for the belief, and up to ``num_steps`` steps that each decodes.

        0: as many as a rollout has.
        """
        ...


class ToDecode(eqx.Module):
    """Rollouts, and what is decoded from the beliefs along them."""

    steps: Transition
    """[draws, T]"""
    apart: Transition | None = None
    """[draws, K] steps of the same tasks; None: the rollouts' own are decoded."""
    since: Int[Array, "draws"] | None = None
    """Only beliefs after at least so many steps decode; None: all of them."""


class Provenance(eqx.Module):
    """Rollouts with their tasks and the tasks whose agents made each episode."""

    rollouts: Episodes
    task: Int[Array, "draws"]
    maker: Int[Array, "draws E"]

    @classmethod
    def of(cls, own: "Made") -> "Provenance":
        """Rollouts that their own task's agent made."""
        num_episodes = own.rollouts.reward.shape[1]
        maker = jnp.repeat(own.maker[:, None], num_episodes, axis=1)
        return cls(own.rollouts, own.maker, maker)


@runtime_checkable
class Relabelling(Protocol):
    """Phase 2: how logs become training data."""

    def __call__(
        self, logs: TaskLogs, simulator: Simulator, *, start: str, key: Key
    ) -> RolloutSource:
        """The source that the belief model and the meta-agent learn from.

        ``start`` is the start distribution of the logs.
        """
        ...


def draw_places(
    episodes: Episodes, num_rollouts: int, *, key: Key
) -> tuple[Int[Array, "draws"], Int[Array, "draws"]]:
    """Random (task, rollout) indices into [N, R, …]."""
    num_tasks, available = episodes.reward.shape[:2]
    chance = jr.uniform(key, (2, num_rollouts))
    return below(num_tasks, chance[0]), below(available, chance[1])


def take(episodes: Episodes, n: Int[Array, "draws"], r: Int[Array, "draws"]):
    """Rollout r of task n, for each pair."""
    return jax.tree.map(lambda x: x[n, r], episodes)


def take_steps(
    episodes: Episodes, task: Int[Array, "draws steps"], *, key: Key
) -> Transition:
    """For each of ``task`` a random step out of its logs [N, R, E, H]."""
    _, rollouts, per_rollout, horizon = episodes.reward.shape
    chance = jr.uniform(key, (3, *task.shape))
    whose = (task, below(rollouts, chance[0]), below(per_rollout, chance[1]))
    happened = horizon if episodes.length is None else episodes.length[whose]
    time = below(happened, chance[2])
    return Transition(
        obs=episodes.obs[*whose, time].astype(jnp.float32),
        action=episodes.action[*whose, time],
        reward=episodes.reward[*whose, time],
        next_obs=episodes.obs[*whose, time + 1].astype(jnp.float32),
    )


def borrowed_slots(
    num_draws: int, num_episodes: int, *, key: Key
) -> Bool[Array, "draws E"]:
    """Which episodes to replace: the first or the last ⌈k/2⌉, by fair coins.

    With a single episode the coin decides whether it is replaced at all.
    """
    count = (num_episodes + 1) // 2
    slots = jnp.arange(num_episodes)
    first = slots < count
    other = slots >= num_episodes - count if num_episodes > 1 else ~first
    return jnp.where(jr.bernoulli(key, shape=(num_draws, 1)), first, other)


class Made(eqx.Module):
    """Rollouts [draws, E, …] and the task whose agent made each of them."""

    rollouts: Episodes
    maker: Int[Array, "draws"]


def compose(own: Made, borrow: Callable[..., Made], *, key: Key) -> Provenance:
    """Own rollouts with half their episodes borrowed.

    ``borrow(key=…)`` gives rollouts of the same tasks that others made.
    """
    key_slots, key_borrow = jr.split(key)
    draws, num_episodes = own.rollouts.reward.shape[:2]
    slots = borrowed_slots(draws, num_episodes, key=key_slots)
    made, other = Provenance.of(own), borrow(key=key_borrow)
    rollouts = choose(slots, other.rollouts, made.rollouts)
    maker = jnp.where(slots, other.maker[:, None], made.maker)
    return Provenance(rollouts, made.task, maker)


def choose(where: Bool[Array, "*rows"], this: PyTree, other: PyTree) -> PyTree:
    """Rows of ``this`` where ``where`` holds, else rows of ``other``."""

    def pick(a: Array, b: Array) -> Array:
        return jnp.where(
            where.reshape(*where.shape, *(1,) * (a.ndim - where.ndim)), a, b
        )

    return jax.tree.map(pick, this, other)


class AsLogged(eqx.Module):
    """Rollouts as they were logged."""

    episodes: Episodes

    def for_belief(self) -> "AsLogged":
        """Itself."""
        return self

    def draw(self, num_rollouts: int, *, key: Key) -> Episodes:
        """Random rollouts, untouched."""
        return self.draw_with_makers(num_rollouts, key=key).rollouts

    def draw_with_makers(self, num_rollouts: int, *, key: Key) -> Provenance:
        """Every episode is its own task's."""
        task, rollout = draw_places(self.episodes, num_rollouts, key=key)
        return Provenance.of(Made(take(self.episodes, task, rollout), task))

    def draw_to_decode(
        self, num_rollouts: int, num_steps: int, *, key: Key
    ) -> ToDecode:
        """Their own steps."""
        return ToDecode(self.draw(num_rollouts, key=key).transitions())
