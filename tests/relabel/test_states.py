"""Hyper-states: the belief before each step stands beside what was seen."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from borelax.belief.elbo import BeliefModel
from borelax.belief.view import BeliefView, LearnedBelief
from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.oracles.gridworld_belief import ExactPosterior
from borelax.relabel.states import hyper_state, relabel_states
from borelax.tasks.gridworld import Gridworld
from borelax.types import Episodes


class Tally(eqx.Module):
    """A belief that counts steps and sums rewards and actions: easy to foretell."""

    def start(self):
        return jnp.zeros(3)

    def update(self, memory, step):
        return memory + jnp.stack([1.0, step.reward, step.action.astype(jnp.float32)])

    def features(self, memory):
        return memory

    def along(self, steps):
        told = jnp.stack([jnp.ones_like(steps.reward), steps.reward, steps.action])
        return jnp.concatenate([jnp.zeros((1, 3)), jnp.cumsum(told, axis=1).T])


@pytest.fixture(scope="module")
def rollout(logs: TaskLogs) -> Episodes:
    """One in which the goal is found, and a reset leads somewhere else."""
    found = np.asarray(logs.episodes.reward).max((2, 3)) == 1
    obs = np.asarray(logs.episodes.obs)
    jumps = (obs[:, :, 0, -1] != obs[:, :, 1, 0]).any(-1)
    n, r = np.argwhere(found & jumps)[0]
    return jax.tree.map(lambda x: x[n, r], logs.episodes)


def test_observations_and_beliefs_stand_side_by_side(rollout: Episodes) -> None:
    hyper = relabel_states(Tally(), rollout)
    assert hyper.obs.shape == (1, 9, 9 + 3)
    seen = rollout.obs.astype(jnp.float32)
    np.testing.assert_array_equal(hyper.obs[0, :4, :9], seen[0, :4])
    np.testing.assert_array_equal(hyper.obs[0, 4:8, :9], seen[1, :4])
    np.testing.assert_array_equal(hyper.action[0], rollout.action.reshape(8))
    np.testing.assert_array_equal(hyper.reward[0], rollout.reward.reshape(8))
    np.testing.assert_array_equal(hyper.obs[0, :, 9], np.arange(9))
    sums = np.cumsum(np.asarray(rollout.reward).reshape(8))
    np.testing.assert_allclose(hyper.obs[0, 1:, 10], sums, atol=1e-6)


def test_an_episodes_end_leads_to_the_next_start_with_the_belief_after(
    rollout: Episodes,
) -> None:
    steps = relabel_states(Tally(), rollout).transitions()
    last = 3
    next_hyper = np.asarray(steps.next_obs[last])
    np.testing.assert_array_equal(next_hyper[:9], rollout.obs[1, 0])
    assert (next_hyper[:9] != rollout.obs[0, -1]).any()
    assert next_hyper[9] == 4, "the step just made is part of the belief"


def test_the_rollouts_end_leads_to_the_true_successor(rollout: Episodes) -> None:
    steps = relabel_states(Tally(), rollout).transitions()
    next_hyper = np.asarray(steps.next_obs[-1])
    np.testing.assert_array_equal(next_hyper[:9], rollout.obs[1, -1])
    assert next_hyper[9] == 8


def test_after_a_cut_stands_the_true_successor(rollout: Episodes) -> None:
    plain = relabel_states(Tally(), rollout).transitions()
    for cut in (False, True):
        given = replace(rollout, cut=jnp.array([cut, True]))
        hyper = relabel_states(Tally(), given)
        assert hyper.obs.shape == (2, 5, 9 + 3)
        steps = hyper.transitions()
        for name in ("obs", "action", "reward"):
            np.testing.assert_array_equal(getattr(steps, name), getattr(plain, name))
        after = np.asarray(plain.next_obs).copy()
        if cut:
            after[3, :9] = rollout.obs[0, -1]
        np.testing.assert_array_equal(steps.next_obs, after)


@pytest.mark.parametrize("kind", ["exact", "learned"])
def test_features_are_those_of_step_by_step_updates(
    kind: str, world: Gridworld, model: BeliefModel, rollout: Episodes
) -> None:
    """What the agent learns from is what its policy will see."""
    belief = {
        "exact": ExactPosterior(jnp.arange(1), world),
        "learned": LearnedBelief(model, BeliefView(decoded=True, latest_reward=True)),
    }[kind]
    hyper = eqx.filter_jit(relabel_states)(belief, rollout)
    memory, steps = belief.start(), rollout.transitions()
    for time in range(9):
        features = hyper.obs[0, time, 9:]
        np.testing.assert_allclose(belief.features(memory), features, atol=1e-5)
        if time < 8:
            step = jax.tree.map(lambda x, t=time: x[t], steps)
            memory = belief.update(memory, step)
    assert not np.allclose(hyper.obs[0, 0, 9:], hyper.obs[0, -1, 9:], atol=1e-3)


def test_expected_rewards_take_the_place_of_rewards_and_of_nothing_else(
    model: BeliefModel, rollout: Episodes
) -> None:
    belief = LearnedBelief(model, BeliefView())
    relabel = eqx.filter_jit(relabel_states)
    paid = relabel(belief, rollout)
    expected = relabel(belief, rollout, expected_rewards=True)
    wanted = belief.rewards_along(rollout.transitions())[None]
    np.testing.assert_allclose(expected.reward, wanted, rtol=1e-5)
    assert (np.abs(expected.reward - paid.reward) > 1e-3).all()
    again = eqx.tree_at(lambda e: e.reward, expected, paid.reward)
    assert eqx.tree_equal(again, paid)


def test_only_a_learned_belief_expects_rewards(
    world: Gridworld, rollout: Episodes
) -> None:
    exact = ExactPosterior(jnp.arange(1), world)
    with pytest.raises(ConfigError, match=r"leave out --exact-belief or --meta\.exp"):
        relabel_states(exact, rollout, expected_rewards=True)


def test_hyper_state_is_observation_then_belief() -> None:
    joined = hyper_state(jnp.asarray([1.0, 2.0]), jnp.asarray([3.0]))
    np.testing.assert_array_equal(joined, [1.0, 2.0, 3.0])
