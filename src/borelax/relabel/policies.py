"""Phase 2: policy replaying (paper, section 4), for tasks that differ in transitions.

In a rollout of task i, the first or the last half of its episodes is replaced by
episodes that another task's trained policy made when it was run in task i.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from borelax.errors import ConfigError, require, require_positive
from borelax.logs import TaskLogs
from borelax.relabel.source import (
    Made,
    Provenance,
    ToDecode,
    compose,
    draw_places,
    take,
)
from borelax.simulate.policy import TakingTurns
from borelax.simulate.simulator import Simulator
from borelax.types import Episodes, Key


@dataclass(frozen=True)
class ReplayPolicies:
    """Run other tasks' policies in each task, and fill half of each rollout so."""

    rollouts: int = 200
    """Rollouts replayed in each task by other tasks' policies."""
    turns: int = 1
    """Policies that take turns in each replayed episode. With one, a visitor goes to
    its own goal and stays; with more, a visit tries one place after another, as a
    search does."""

    name: ClassVar[str] = "policies"

    def __post_init__(self) -> None:
        """Refuse an empty replay."""
        require_positive(self, "rollouts", "turns")

    def __call__(
        self, logs: TaskLogs, simulator: Simulator, *, start: str, key: Key
    ) -> "Replayed":
        """Replay once; rollouts are composed from it on the fly."""
        if logs.policies is None:
            raise ConfigError(
                "Policy replaying needs the agents' policies, and these logs hold "
                "none. Use --relabel none, or collect logs with their policies."
            )
        require(
            logs.num_tasks >= 2,
            "Policy replaying borrows from other tasks, and these logs hold only one. "
            "Collect more tasks or use --relabel none.",
        )
        spec, (key_makers, key_rollouts) = simulator.spec, jr.split(key)
        require(
            self.turns <= spec.horizon,
            f"{self.turns} policies cannot take turns in {spec.horizon} steps; lower "
            "ReplayPolicies.turns.",
        )
        each = 1 if self.turns == 1 else self.turns * spec.episodes
        makers = other_tasks(logs.num_tasks, self.rollouts * each, key=key_makers)
        makers = makers.reshape(logs.num_tasks, self.rollouts, each)
        rounds = [
            simulator.rollouts(
                _visitors(logs.policies, makers[:, r], spec.horizon // self.turns),
                logs.tasks,
                repeats=1,
                episodes=spec.episodes,
                start=start,
                key=jr.fold_in(key_rollouts, r),
            )
            for r in range(self.rollouts)
        ]
        replayed = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *rounds)
        return Replayed(logs.episodes, replayed, makers[:, :, 0])


def other_tasks(num_tasks: int, count: int, *, key: Key) -> Int[Array, "N count"]:
    """For each task, ``count`` random others: in turn, so that each comes up evenly."""

    def of_task(task: Int[Array, ""]) -> Int[Array, "count"]:
        order = jr.permutation(jr.fold_in(key, task), num_tasks - 1)
        return (task + 1 + jnp.resize(order, (count,))) % num_tasks

    return jax.vmap(of_task)(jnp.arange(num_tasks))


class Replayed(eqx.Module):
    """Draws composite rollouts of a task: half its own agent's, half a visitor's."""

    own: Episodes
    """As logged [N, R, E, …]."""
    visits: Episodes
    """Other tasks' policies in this task [N, P, E, …]."""
    visitors: Int[Array, "N P"]
    """Whose policy made each visit, or began it."""

    def for_belief(self) -> "Replayed":
        """Itself."""
        return self

    def draw(self, num_rollouts: int, *, key: Key) -> Episodes:
        """Random composite rollouts [num_rollouts, E, …]."""
        return self.draw_with_makers(num_rollouts, key=key).rollouts

    def draw_with_makers(self, num_rollouts: int, *, key: Key) -> Provenance:
        """Composite rollouts, their tasks, and whose policy made each episode."""
        key_own, key_compose = jr.split(key)
        task, rollout = draw_places(self.own, num_rollouts, key=key_own)
        own = Made(take(self.own, task, rollout), task)

        def borrow(key: Key) -> Made:
            _, visit = draw_places(self.visits, num_rollouts, key=key)
            return Made(take(self.visits, task, visit), self.visitors[task, visit])

        return compose(own, borrow, key=key_compose)

    def draw_to_decode(
        self, num_rollouts: int, num_steps: int, *, key: Key
    ) -> ToDecode:
        """Their own steps."""
        return ToDecode(self.draw(num_rollouts, key=key).transitions())


def _visitors(policies: Any, makers: Int[Array, "N each"], steps: int) -> Any:
    """For each task the policy of its visitor, or its visitors' that take turns."""
    alone = makers.shape[1] == 1
    chosen = makers[:, 0] if alone else makers
    arrays, rest = eqx.partition(policies, eqx.is_array)
    visitors = eqx.combine(jax.tree.map(lambda x: x[chosen], arrays), rest)
    return visitors if alone else TakingTurns(visitors, steps)
