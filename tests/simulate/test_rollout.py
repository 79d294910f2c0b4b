"""Rollouts against the family's functions called one by one."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.policy import RandomPolicy, for_every_task
from borelax.simulate.rollout import rollout
from borelax.tasks.family import TaskFamily
from borelax.tasks.gridworld import Gridworld
from borelax.types import Box, Discrete, Episodes, Spec, Transition


@dataclass(frozen=True)
class NoisyWalk:
    """Every one of its functions is random, so that a key used twice would show."""

    starts: ClassVar[tuple[str, ...]] = ("fixed", "uniform")
    differs_in: ClassVar[str] = "rewards"

    @property
    def spec(self) -> Spec:
        return Spec(obs_size=2, action=Box(2), horizon=3, episodes=2)

    def sample_task(self, *, key):
        return jr.normal(key, (2,))

    def reset(self, task, start, *, key):
        return jr.normal(key, (2,))

    def step(self, task, state, action, *, key):
        return state + 0.1 * action + jr.normal(key, (2,))

    def observe(self, state):
        return state

    def reward(self, task, step: Transition):
        return jnp.square(step.next_obs - task).sum()


class Counting(eqx.Module):
    """Chooses action n mod 5 at the n-th step it remembers."""

    first: jax.Array

    def start(self):
        return self.first

    def act(self, memory, obs, *, key):
        return memory % 5

    def remember(self, memory, step):
        return memory + 1


def cells(episodes: Episodes) -> np.ndarray:
    assert (np.asarray(episodes.obs).sum(-1) == 1).all()
    return np.asarray(episodes.obs).argmax(-1)


def run(simulator: JaxSimulator, tasks, seed: int, start: str = "uniform") -> Episodes:
    random = RandomPolicy(simulator.spec.action)
    return simulator.rollouts(
        random, tasks, repeats=2, episodes=2, start=start, key=jr.key(seed)
    )


@pytest.fixture(scope="module")
def random_rollouts(simulator: JaxSimulator) -> Episodes:
    return run(simulator, simulator.family.all_tasks(), 0)


def test_shapes_and_dtypes(random_rollouts: Episodes) -> None:
    assert random_rollouts.obs.shape == (5, 2, 2, 5, 9)
    assert random_rollouts.obs.dtype == jnp.uint8
    assert random_rollouts.action.shape == (5, 2, 2, 4)
    assert random_rollouts.action.dtype == jnp.int32
    assert random_rollouts.reward.shape == (5, 2, 2, 4)
    assert random_rollouts.reward.dtype == jnp.float32


def test_next_obs_is_the_true_successor_and_rewarded_as_such(
    world: Gridworld, random_rollouts: Episodes
) -> None:
    visited, action = cells(random_rollouts), np.asarray(random_rollouts.action)
    step = jax.vmap(lambda cell, a: world.step(jnp.int32(8), cell, a, key=jr.key(0)))
    successor = step(jnp.asarray(visited[..., :-1].ravel()), action.ravel())
    np.testing.assert_array_equal(successor, visited[..., 1:].ravel())
    at_goal = visited[..., 1:] == world.goals()[:, None, None, None]
    expected = np.where(at_goal, np.float32(1.0), np.float32(-0.1))
    np.testing.assert_array_equal(random_rollouts.reward, expected)
    assert at_goal.any()


def test_transitions_join_the_episodes_but_not_their_ends(
    random_rollouts: Episodes,
) -> None:
    visited, steps = cells(random_rollouts), random_rollouts.transitions()
    assert steps.obs.shape == (5, 2, 8, 9)
    before = visited[..., :-1].reshape(5, 2, 8)
    after = visited[..., 1:].reshape(5, 2, 8)
    np.testing.assert_array_equal(steps.obs.argmax(-1), before)
    np.testing.assert_array_equal(steps.next_obs.argmax(-1), after)
    assert (after[..., 3] != before[..., 4]).any(), "resets must be visible"


def test_every_episode_starts_at_the_true_start(simulator: JaxSimulator) -> None:
    tasks = simulator.family.all_tasks()
    assert (cells(run(simulator, tasks, 0, "fixed"))[..., 0] == 0).all()
    uniform = cells(run(simulator, tasks, 0))[..., 0]
    assert (uniform != simulator.family.goals()[:, None, None]).all()
    assert len(np.unique(uniform)) > 4


def test_memory_survives_episodes_and_begins_anew_in_each_rollout(
    simulator: JaxSimulator,
) -> None:
    tasks = simulator.family.all_tasks()
    policies = for_every_task(Counting(jnp.int32(2)), 5)
    made = simulator.rollouts(
        policies, tasks, repeats=2, episodes=3, start="fixed", key=jr.key(0)
    )
    expected = np.broadcast_to((2 + np.arange(12)) % 5, (5, 2, 12))
    np.testing.assert_array_equal(made.action.reshape(5, 2, 12), expected)


def test_policy_n_runs_in_task_n(simulator: JaxSimulator) -> None:
    tasks = simulator.family.all_tasks()
    made = simulator.rollouts(
        Counting(jnp.arange(5)),
        tasks,
        repeats=1,
        episodes=1,
        start="fixed",
        key=jr.key(0),
    )
    np.testing.assert_array_equal(made.action[:, 0, 0, 0], np.arange(5))


def test_equal_keys_give_equal_bits_and_others_do_not(
    simulator: JaxSimulator, random_rollouts: Episodes
) -> None:
    tasks = simulator.family.all_tasks()
    assert eqx.tree_equal(run(simulator, tasks, 0), random_rollouts)
    assert not eqx.tree_equal(run(simulator, tasks, 1), random_rollouts)
    # each task, repeat and episode has its own draws
    assert len(np.unique(random_rollouts.action.reshape(20, 4), axis=0)) > 15


def test_more_tasks_leave_the_first_ones_unchanged(
    simulator: JaxSimulator, random_rollouts: Episodes
) -> None:
    few = run(simulator, simulator.family.all_tasks()[:3], 0)
    assert eqx.tree_equal(few, jax.tree.map(lambda x: x[:3], random_rollouts))


def test_jit_equals_eager(world: Gridworld) -> None:
    def one() -> Episodes:
        policy, task = RandomPolicy(Discrete(5)), jnp.int32(8)
        return rollout(world, policy, task, episodes=2, start="uniform", key=jr.key(3))

    compiled = jax.jit(one)()
    with jax.disable_jit():
        assert eqx.tree_equal(one(), compiled)


def rollout_by_hand(family: TaskFamily, task, key) -> Episodes:
    """The documented use of keys, with loops."""
    made = []
    for episode in range(2):
        key_reset, key_steps = jr.split(jr.fold_in(key, episode))
        state = family.reset(task, "fixed", key=key_reset)
        seen, actions, rewards = [family.observe(state)], [], []
        for key_step in jr.split(key_steps, family.spec.horizon):
            key_act, key_move = jr.split(key_step)
            actions.append(family.spec.action.sample(key=key_act))
            state = family.step(task, state, actions[-1], key=key_move)
            seen.append(family.observe(state))
            step = Transition(seen[-2], actions[-1], jnp.zeros(()), seen[-1])
            rewards.append(family.reward(task, step))
        made.append(Episodes(*map(jnp.stack, (seen, actions, rewards))))
    return jax.tree.map(lambda *x: jnp.stack(x), *made)


def test_many_at_once_equal_a_loop() -> None:
    family, key = NoisyWalk(), jr.key(11)
    tasks = jr.normal(jr.key(0), (3, 2))
    together = run(JaxSimulator(family), tasks, 11, "fixed")
    assert together.obs.dtype == jnp.float32
    one = jax.jit(lambda task, key: rollout_by_hand(family, task, key))
    for n in range(3):
        for repeat in range(2):
            alone = one(tasks[n], jr.fold_in(jr.fold_in(key, n), repeat))
            here = jax.tree.map(lambda x, n=n, r=repeat: x[n, r], together)
            for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(here), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
