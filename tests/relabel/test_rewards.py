"""Reward relabelling: the same steps, as another task would have paid them."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.simulate.jax_simulator import JaxSimulator
from tests.relabel.coded import Coded, coded_logs, relabel_all


def test_own_task_gives_back_the_logged_rewards(
    simulator: JaxSimulator, logs: TaskLogs
) -> None:
    again = relabel_all(simulator.reward, logs.tasks, logs.episodes)
    assert eqx.tree_equal(again, logs.episodes)


def test_another_task_changes_only_the_reward(
    simulator: JaxSimulator, logs: TaskLogs
) -> None:
    other = jnp.roll(logs.tasks, 1)
    relabelled = relabel_all(simulator.reward, other, logs.episodes)
    np.testing.assert_array_equal(relabelled.obs, logs.episodes.obs)
    np.testing.assert_array_equal(relabelled.action, logs.episodes.action)
    entered = np.asarray(logs.episodes.obs)[:, :, :, 1:].argmax(-1)
    at_goal = entered == np.asarray(other)[:, None, None, None]
    assert at_goal.any()
    expected = np.where(at_goal, np.float32(1.0), np.float32(-0.1))
    np.testing.assert_array_equal(relabelled.reward, expected)


def test_nothing_is_simulated() -> None:
    simulator = Coded()
    RelabelRewards()(coded_logs(), simulator, start="uniform", key=jr.key(0))
    assert simulator.asked == []


def test_no_reward_function_is_refused() -> None:
    logs, blind = coded_logs(), Coded(reward=None)
    with pytest.raises(ConfigError, match="needs the tasks' reward function"):
        RelabelRewards()(logs, blind, start="uniform", key=jr.key(0))
    KeepAsIs()(logs, blind, start="uniform", key=jr.key(0))
