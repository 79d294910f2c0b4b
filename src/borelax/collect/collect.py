"""Phase 1: train one conventional agent per task, all at once, and keep every step.

In: a simulator and tasks [N]. Out: ``TaskLogs`` with all rollouts in order and each
agent's final policy (paper, section 3.1 and appendix C).
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from borelax.agents.dqn import DQN
from borelax.agents.networks import Standardise
from borelax.agents.sac import SAC
from borelax.errors import require, require_positive, require_share
from borelax.learn import (
    Journal,
    run_chunks,
    sample_steps,
    scan_updates,
    write_rollouts,
)
from borelax.logs import Collecting, TaskLogs
from borelax.simulate.policy import AgentPolicy, RandomPolicy
from borelax.simulate.simulator import RewardFunction, Simulator
from borelax.types import Episodes, Key, Metrics, Spec, Transition


@dataclass(frozen=True)
class Collect:
    """Collect logs: a pool of random rollouts, then learn and act at the same time."""

    num_tasks: int = 21
    """Tasks, and so agents."""
    pool_rollouts: int = 10
    """Random rollouts before learning starts."""
    iterations: int = 200
    """Rounds of acting and learning."""
    rollouts_per_iteration: int = 5
    """Rollouts (each of all its episodes) per task and round."""
    updates_per_iteration: int = 500
    """Gradient steps per task and round."""
    explore_first: float = 1.0
    """Exploration in the first round: how often a DQN acts at random (ε), how often a
    SAC agent samples its policy in place of the policy's mode."""
    explore_last: float = 0.1
    """Exploration after ``explore_iterations`` rounds."""
    explore_iterations: int = 100
    """Rounds over which exploration falls linearly."""
    standardise: bool = False
    """Scale what each agent sees by the mean and deviation of its random rollouts."""
    start: str = "uniform"
    """Start distribution of the logs."""
    agent: DQN | SAC = field(default_factory=DQN)
    """The learning algorithm."""

    def __post_init__(self) -> None:
        """Refuse empty logs."""
        require_positive(self, "num_tasks", "pool_rollouts", "rollouts_per_iteration")
        require_positive(self, "updates_per_iteration", "explore_iterations")
        require_share(self, "explore_first", "explore_last")
        require(self.iterations >= 0, "Collect.iterations must not be negative.")

    @property
    def num_rollouts(self) -> int:
        """Rollouts per task in the logs."""
        return self.pool_rollouts + self.iterations * self.rollouts_per_iteration

    def __call__(
        self,
        simulator: Simulator,
        tasks: Any,
        *,
        key: Key,
        journal: Journal | None = None,
    ) -> TaskLogs:
        """Train the agents and return their logs."""
        key_agents, key_pool, key_rounds = jr.split(key, 3)
        agents = _init(self.agent, simulator.spec, self.num_tasks, key_agents)
        pool = self._pool(simulator, tasks, key=key_pool)
        state = self._first(agents, pool)

        def advance(state: Collecting, done: int, count: int):
            return self._round(simulator, tasks, state, done, key=key_rounds)

        state = run_chunks(
            advance,
            state,
            total=self.iterations,
            per_chunk=1,
            journal=journal or Journal(),
        )
        policies = self._policies(state.agents, explore=self.explore_last)
        return TaskLogs(tasks, state.episodes, policies)

    def policies_like(self, spec: Spec) -> AgentPolicy:
        """The shapes of the final policies."""

        def init(key: Key) -> AgentPolicy:
            agents = _init(self.agent, spec, self.num_tasks, key)
            return self._policies(agents, explore=self.explore_last)

        return eqx.filter_eval_shape(init, jr.key(0))

    def _first(self, agents: Any, pool: Episodes) -> Collecting:
        """Fresh agents and their random rollouts."""
        if self.standardise:
            scales = jax.vmap(Standardise.of_observations)(pool)
            agents = eqx.tree_at(lambda a: a.standardise, agents, scales)
        filled = jnp.asarray(self.pool_rollouts, jnp.int32)
        return Collecting(agents, self._with_room(pool), filled)

    def _round(
        self, simulator: Simulator, tasks: Any, state: Collecting, i: int, *, key: Key
    ) -> tuple[Collecting, Metrics]:
        """Learn from what is there, and act meanwhile.

        Nothing here waits for the updates: a simulator that runs on the host makes the
        new rollouts while the device learns. They are learned from in the next round.
        """
        key_act, key_learn = jr.split(jr.fold_in(key, i))
        share = min(i / self.explore_iterations, 1.0)
        explore = self.explore_first + share * (self.explore_last - self.explore_first)
        policies = self._policies(state.agents, explore=explore)
        # a device works in order: whatever acting needs must be made before this line
        logs, learners = (state.episodes, tasks), (self, simulator.training_reward)
        agents, metrics = _learn(state.agents, logs, state.filled, learners, key_learn)
        new = simulator.rollouts(
            policies,
            tasks,
            repeats=self.rollouts_per_iteration,
            episodes=simulator.spec.episodes,
            start=self.start,
            key=key_act,
        )
        metrics["return"] = new.paid().sum((2, 3)).mean()
        episodes = write_rollouts((new, state.filled), state.episodes)
        return Collecting(
            agents, episodes, state.filled + self.rollouts_per_iteration
        ), metrics

    def _pool(self, simulator: Simulator, tasks: Any, *, key: Key) -> Episodes:
        return simulator.rollouts(
            RandomPolicy(simulator.spec.action),
            tasks,
            repeats=self.pool_rollouts,
            episodes=simulator.spec.episodes,
            start=self.start,
            key=key,
        )

    def _with_room(self, pool: Episodes) -> Episodes:
        """The pool, and zeros where the rollouts of all rounds will be."""
        missing = self.num_rollouts - self.pool_rollouts
        return jax.tree.map(
            lambda x: jnp.pad(x, [(0, 0), (0, missing)] + [(0, 0)] * (x.ndim - 2)), pool
        )

    def _policies(self, agents: Any, *, explore: float) -> AgentPolicy:
        acting = self.agent.acting(agents)
        return AgentPolicy(self.agent, acting, jnp.full(self.num_tasks, explore))


@eqx.filter_jit
def _init(agent: DQN | SAC, spec: Spec, num_tasks: int, key: Key) -> Any:
    keys = jax.vmap(lambda n: jr.fold_in(key, n))(jnp.arange(num_tasks))
    return eqx.filter_vmap(lambda k: agent.init(spec, key=k))(keys)


@eqx.filter_jit
def _learn(
    agents: Any,
    logs: tuple[Episodes, Any],
    filled: Int[Array, ""],
    learners: tuple[Collect, RewardFunction | None],
    key: Key,
) -> tuple[Any, Metrics]:
    """Every agent learns from its own task's rollouts."""
    collect, reward = learners

    def of_task(agent_state, own: tuple[Episodes, Any], index: Int[Array, ""]):
        return scan_updates(
            collect.agent.update,
            agent_state,
            partial(_batch, own, filled, collect.agent.batch_size, reward),
            first=jnp.zeros((), jnp.int32),
            num_updates=collect.updates_per_iteration,
            key=jr.fold_in(key, index),
        )

    indices = jnp.arange(collect.num_tasks)
    agents, metrics = eqx.filter_vmap(of_task)(agents, logs, indices)
    return agents, jax.tree.map(lambda x: x.mean(), metrics)


def _batch(
    own: tuple[Episodes, Any],
    filled: Int[Array, ""],
    size: int,
    reward: RewardFunction | None,
    *,
    key: Key,
) -> Transition:
    """Random steps of a task's rollouts, with the rewards its agent learns from."""
    episodes, task = own
    steps = sample_steps(episodes, filled, size, key=key)
    if reward is None:
        return steps
    rewards = jax.vmap(lambda step: reward(task, step))(steps)
    return replace(steps, reward=rewards)
