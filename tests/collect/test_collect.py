"""Phase 1 on a small grid: what the logs hold, and that agents learn."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.dqn import DQN
from borelax.collect.collect import Collect
from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.policy import AgentPolicy, RandomPolicy
from borelax.simulate.simulator import OfFamily
from borelax.tasks.gridworld import Gridworld
from borelax.types import Episodes, Transition
from tests.relabel.coded import relabel_all

COLLECT = Collect(
    num_tasks=5,
    pool_rollouts=4,
    iterations=12,
    rollouts_per_iteration=2,
    updates_per_iteration=60,
    explore_first=1.0,
    explore_last=0.1,
    explore_iterations=6,
    agent=DQN(hidden=(16,), lr=0.01, discount=0.8, batch_size=32, target_rate=0.05),
)
KEY = jr.key(2)


def collect(simulator: JaxSimulator, num_tasks: int, journal=None) -> TaskLogs:
    tasks = simulator.family.all_tasks()[:num_tasks]
    config = replace(COLLECT, num_tasks=num_tasks)
    return config(simulator, tasks, key=KEY, journal=journal)


class Watched(JaxSimulator):
    """Notes what it was asked for, and what came out."""

    def rollouts(self, policies, tasks, **rest) -> Episodes:
        made = super().rollouts(policies, tasks, **rest)
        self.seen.append((policies, rest["start"], made))
        return made


@pytest.fixture(scope="module")
def watched(simulator: JaxSimulator) -> Watched:
    watched = Watched(simulator.family)
    object.__setattr__(watched, "seen", [])
    return watched


@pytest.fixture(scope="module")
def trained(watched: Watched) -> TaskLogs:
    return collect(watched, 5)


def test_shapes(trained: TaskLogs) -> None:
    assert (trained.num_tasks, trained.num_rollouts) == (5, 4 + 12 * 2)
    assert COLLECT.num_rollouts == 28
    assert trained.episodes.obs.shape == (5, 28, 2, 5, 9)
    assert trained.episodes.obs.dtype == jnp.uint8
    assert trained.episodes.action.shape == (5, 28, 2, 4)
    assert trained.nbytes == 5 * 28 * 2 * (5 * 9 + 4 * 4 + 4 * 4)


def test_logs_hold_the_pool_and_then_every_round_in_order(
    watched: Watched, trained: TaskLogs
) -> None:
    made = [rollouts for _, _, rollouts in watched.seen]
    in_order = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), *made)
    assert eqx.tree_equal(in_order, trained.episodes)
    assert {start for _, start, _ in watched.seen} == {"uniform"}


def test_exploration_falls_linearly_and_then_stays(
    watched: Watched, trained: TaskLogs
) -> None:
    policies = [policy for policy, _, _ in watched.seen]
    assert isinstance(policies[0], RandomPolicy)
    explored = [np.asarray(policy.explore) for policy in policies[1:]]
    expected = [1.0 - 0.9 * min(i / 6, 1.0) for i in range(12)]
    np.testing.assert_allclose(explored, np.outer(expected, np.ones(5)), rtol=1e-6)


def test_rewards_are_those_of_each_task(
    simulator: JaxSimulator, trained: TaskLogs
) -> None:
    entered = np.asarray(trained.episodes.obs)[:, :, :, 1:].argmax(-1)
    at_goal = entered == np.asarray(trained.tasks)[:, None, None, None]
    expected = np.where(at_goal, np.float32(1.0), np.float32(-0.1))
    np.testing.assert_array_equal(trained.episodes.reward, expected)


def test_agents_begin_with_weights_of_their_own(logs: TaskLogs) -> None:
    for leaf in jax.tree.leaves(logs.policies.state.average):
        assert len(np.unique(leaf[:, 0], axis=0)) == 5


def test_equal_keys_give_equal_bits(simulator: JaxSimulator, trained: TaskLogs) -> None:
    assert eqx.tree_equal(collect(simulator, 5), trained)


def test_more_tasks_leave_the_first_ones_unchanged(
    simulator: JaxSimulator, trained: TaskLogs
) -> None:
    few = collect(simulator, 3)
    of_many = jax.tree.map(lambda x: x[:3], eqx.filter(trained, eqx.is_array))
    assert eqx.tree_equal(eqx.filter(few, eqx.is_array), of_many)


def test_each_agent_can_see_by_the_scale_of_its_own_random_rollouts(
    simulator: JaxSimulator,
) -> None:
    plain = replace(COLLECT, iterations=1)
    scaled = replace(plain, standardise=True)
    tasks = simulator.family.all_tasks()[:5]
    logs = scaled(simulator, tasks, key=KEY)
    scale, seen = logs.policies.state.standardise, np.asarray(logs.episodes.obs)
    for n in range(5):
        rows = seen[n, : COLLECT.pool_rollouts].reshape(-1, 9).astype(np.float32)
        np.testing.assert_allclose(scale.mean[n], rows.mean(0), atol=1e-6)
        spread = np.where(rows.std(0) > 0, rows.std(0), 1.0)
        np.testing.assert_allclose(scale.scale[n], 1 / spread, rtol=1e-5)
    unscaled = plain(simulator, tasks, key=KEY)
    before = np.s_[:, : COLLECT.pool_rollouts]
    np.testing.assert_array_equal(unscaled.episodes.obs[before], seen[before])
    scale = unscaled.policies.state.standardise
    assert (scale.mean == 0).all() and (scale.scale == 1).all()


def test_a_round_does_not_wait_for_what_it_acts(simulator: JaxSimulator) -> None:
    tasks = simulator.family.all_tasks()
    one = replace(COLLECT, iterations=1, rollouts_per_iteration=1)
    two = replace(one, rollouts_per_iteration=2)
    few, more = (c(simulator, tasks, key=KEY).policies for c in (one, two))
    assert eqx.tree_equal(few, more), "it learned from rollouts of the same round"
    fresh = replace(one, iterations=0)(simulator, tasks, key=KEY).policies
    assert not eqx.tree_equal(few.state, fresh.state), "it did not learn at all"


def test_resumed_equals_uninterrupted(
    simulator: JaxSimulator, trained: TaskLogs, keep_at
) -> None:
    journal = keep_at(5)
    assert eqx.tree_equal(collect(simulator, 5, journal), trained)
    assert eqx.tree_equal(collect(simulator, 5, journal), trained)
    assert journal.begun == [0, 5]


def run_final(simulator: JaxSimulator, policies, seed: int) -> Episodes:
    """What the agents do when they need not explore."""
    return simulator.rollouts(
        eqx.tree_at(lambda p: p.explore, policies, jnp.zeros(5)),
        simulator.family.all_tasks(),
        repeats=3,
        episodes=1,
        start="fixed",
        key=jr.key(seed),
    )


def test_final_policies_act_as_they_last_did_and_can_be_made_deterministic(
    simulator: JaxSimulator, trained: TaskLogs
) -> None:
    assert isinstance(trained.policies, AgentPolicy)
    np.testing.assert_allclose(trained.policies.explore, 0.1)
    one, other = (run_final(simulator, trained.policies, seed) for seed in (0, 1))
    assert eqx.tree_equal(one, other)
    assert (one.action == one.action[:, :1]).all()


def test_agents_learn_their_tasks(simulator: JaxSimulator, trained: TaskLogs) -> None:
    learned = run_final(simulator, trained.policies, 0).reward.sum((2, 3)).mean(1)
    # straight to a goal at distance d: 4 - d + 1 visits of 1, the rest -0.1
    goals = simulator.family.goals()
    visits = 5 - (goals % 3 + goals // 3)
    best = 1.1 * visits - 0.4
    np.testing.assert_allclose(learned, best, atol=1e-5)
    random = trained.episodes.reward[:, :4].sum(-1).mean()
    assert random < 0.5 * best.mean()


class Misled(Gridworld):
    """Agents are paid for the corner while they learn, whatever their goal."""

    def training_reward(self, task, step: Transition) -> jax.Array:
        return step.next_obs[0] + 0 * step.reward


def test_agents_learn_from_the_training_reward_and_logs_hold_the_true_one(
    simulator: JaxSimulator,
) -> None:
    misled = JaxSimulator(Misled(size=3, horizon=4, episodes=2))
    assert misled.training_reward == OfFamily(misled.family, "training_reward")
    assert simulator.training_reward is None, "most families have none"
    logs = collect(misled, 5)
    again = relabel_all(misled.reward, logs.tasks, logs.episodes)
    np.testing.assert_array_equal(logs.episodes.reward, again.reward)
    made = run_final(misled, logs.policies, 0)
    ends = np.asarray(made.obs)[..., -1, :].argmax(-1)
    assert not ends.any(), "all end in the corner"


def test_like_has_the_shapes_of_the_policies(
    simulator: JaxSimulator, trained: TaskLogs
) -> None:
    like = COLLECT.policies_like(simulator.spec)
    assert jax.tree.structure(like) == jax.tree.structure(trained.policies)
    for a, b in zip(*map(jax.tree.leaves, (like, trained.policies)), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"num_tasks": 0}, "Collect.num_tasks must be above zero"),
        ({"pool_rollouts": 0}, "Collect.pool_rollouts must be above zero"),
        ({"updates_per_iteration": -1}, "updates_per_iteration must be above zero"),
        ({"explore_first": 1.1}, r"explore_first must lie in \[0, 1\], not 1.1"),
        ({"explore_last": float("nan")}, "explore_last must lie"),
        ({"iterations": -1}, "Collect.iterations must not be negative"),
    ],
)
def test_values_without_logs_are_refused(values: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Collect(**values)
