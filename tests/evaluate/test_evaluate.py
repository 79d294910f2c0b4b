"""Returns counted by hand, for policies whose way is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.evaluate.evaluate import (
    Evaluate,
    returns_per_episode,
    summarise_returns,
)
from borelax.oracles.gridworld_returns import straight_action
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.types import Episodes


class GoTo(eqx.Module):
    """Goes straight to its own cell, up before right, and stays there."""

    cell: jax.Array

    def start(self):
        return ()

    def act(self, memory, obs, *, key):
        return straight_action(3, jnp.argmax(obs), self.cell).astype(jnp.int32)

    def remember(self, memory, step):
        return ()


ROUTES = {8: [3, 6, 7, 8], 2: [1, 2, 2, 2], 6: [3, 6, 6, 6]}
"""Cells entered in the four steps of an episode, on the 3 × 3 grid."""
POLICIES = GoTo(jnp.asarray(list(ROUTES)))


def evaluate(simulator: JaxSimulator, policies, **values) -> Episodes:
    phase = Evaluate(num_tasks=5, **values)
    return phase(simulator, simulator.family.all_tasks(), policies, key=jr.key(0))


@pytest.fixture(scope="module")
def rollouts(simulator: JaxSimulator) -> Episodes:
    return evaluate(simulator, POLICIES, repeats=2)


def test_shapes_are_seeds_tasks_repeats_episodes(rollouts: Episodes) -> None:
    assert rollouts.obs.shape == (3, 5, 2, 2, 5, 9)
    assert rollouts.reward.shape == rollouts.action.shape == (3, 5, 2, 2, 4)


def test_every_seed_goes_its_own_way_from_the_fixed_start(rollouts: Episodes) -> None:
    cells = np.asarray(rollouts.obs).argmax(-1)
    assert (cells[..., 0] == 0).all()
    for seed, route in enumerate(ROUTES.values()):
        expected = np.broadcast_to(route, (5, 2, 2, 4))
        np.testing.assert_array_equal(cells[seed, ..., 1:], expected)


def test_returns_are_those_of_the_known_ways(
    simulator: JaxSimulator, rollouts: Episodes
) -> None:
    goals = simulator.family.goals()
    expected = [
        np.mean(
            [sum(1.0 if cell == goal else -0.1 for cell in route) for goal in goals]
        )
        for route in ROUTES.values()
    ]
    per_episode = returns_per_episode(rollouts)
    expected = np.repeat(np.asarray(expected)[:, None], 2, axis=1)
    np.testing.assert_allclose(per_episode, expected, atol=1e-6)
    of_own_goal = rollouts.reward[0, list(goals).index(8)].sum(-1)
    np.testing.assert_allclose(of_own_goal, 1 - 3 * 0.1, atol=1e-6)


def test_seeds_together_equal_one_by_one(
    simulator: JaxSimulator, rollouts: Episodes
) -> None:
    for seed in range(3):
        alone = evaluate(simulator, GoTo(POLICIES.cell[seed : seed + 1]), repeats=2)
        together = jax.tree.map(lambda x, s=seed: x[s : s + 1], rollouts)
        assert eqx.tree_equal(alone, together)


def test_more_episodes_than_in_training(
    simulator: JaxSimulator, rollouts: Episodes
) -> None:
    longer = evaluate(simulator, POLICIES, repeats=2, episodes=5)
    assert longer.reward.shape == (3, 5, 2, 5, 4)
    first = jax.tree.map(lambda x: x[:, :, :, :2], longer)
    assert eqx.tree_equal(first, rollouts)


def test_per_episode_returns_are_sums_over_steps_and_means_over_the_rest() -> None:
    # [S 2, N 2, repeats 1, E 2, H 2]
    reward = jnp.asarray(
        [
            [[[[1.0, 2.0], [10.0, 20.0]]], [[[3.0, 4.0], [30.0, 40.0]]]],
            [[[[0.0, 0.0], [1.0, 1.0]]], [[[2.0, 2.0], [-1.0, -3.0]]]],
        ]
    )
    obs = jnp.zeros((2, 2, 1, 2, 3, 1))
    found = returns_per_episode(Episodes(obs, jnp.zeros_like(reward), reward))
    np.testing.assert_array_equal(found, [[5.0, 50.0], [2.0, -1.0]])


def test_summary_adds_episodes_and_spreads_over_seeds() -> None:
    summary = summarise_returns(jnp.asarray([[1.0, 2.0], [3.0, 6.0]]))
    assert summary == {
        "mean": 6.0,
        "std": 3.0,
        "per_seed": [3.0, 9.0],
        "per_episode": [[1.0, 2.0], [3.0, 6.0]],
    }


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"num_tasks": 0}, "Evaluate.num_tasks must be above zero, not 0"),
        ({"repeats": 0}, "Evaluate.repeats must be above zero, not 0"),
        ({"episodes": -1}, "Evaluate.episodes must not be negative"),
    ],
)
def test_an_empty_test_is_refused(values: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Evaluate(**values)
