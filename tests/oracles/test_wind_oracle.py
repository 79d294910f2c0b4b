"""Wind: the simulated agent earns the claimed return, and no first action beats it."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.oracles.wind import (
    WindOracle,
    WindPolicy,
    first_action_values,
    spread_winds,
    steps_to_goal,
    wind_oracle,
)
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.policy import for_every_task
from borelax.tasks.wind import GOAL, Wind, WindHard


@pytest.fixture(
    scope="module",
    params=[Wind(), WindHard(horizon=40, episodes=2), Wind(horizon=8)],
    ids=str,
)
def wind(request) -> Wind:
    return request.param


@pytest.fixture(scope="module")
def solved(wind: Wind) -> WindOracle:
    return wind_oracle(wind)


def test_bounds_are_in_order(wind: Wind, solved: WindOracle) -> None:
    values = solved.to_json()
    assert values["exact"] is True
    assert 0 < values["memoryless"] <= values["bayes_optimal"] <= values["known_task"]
    assert all(len(each) == wind.episodes for each in solved.per_episode.values())
    assert solved.known_task[1:] == solved.bayes_optimal[1:]


def test_the_simulated_agent_earns_it(wind: Wind, solved: WindOracle) -> None:
    policy = WindPolicy(jnp.asarray(solved.first_action), wind)
    rollouts = JaxSimulator(wind).rollouts(
        for_every_task(policy, 4_096),
        spread_winds(wind, 4_096),
        repeats=1,
        episodes=wind.episodes,
        start="fixed",
        key=jr.key(0),
    )
    returns = rollouts.reward.sum(axis=-1).mean(axis=(0, 1))
    np.testing.assert_allclose(returns, solved.bayes_optimal, atol=0.02)


def test_no_first_action_is_better(wind: Wind, solved: WindOracle) -> None:
    actions = jr.uniform(jr.key(1), (60, 2), minval=-1.0, maxval=1.0)
    best = jnp.asarray(solved.first_action)[None]
    values = first_action_values(
        wind, jnp.concatenate([best, actions]), spread_winds(wind, 2_048)
    )
    assert values[0] >= values[1:].max() - 5e-3
    assert values[1:].min() < values[0] - 0.1


def test_the_default_wind_by_hand() -> None:
    """Only the wind along y matters: n is the first with n·(0.1 + w) ≥ 0.8."""
    speeds = 0.05 + 0.1 * (np.arange(200_000) + 0.5) / 200_000
    by_hand = (26 - np.ceil(0.8 / speeds)).mean()
    solved = wind_oracle(Wind())
    assert solved.known_task[0] == pytest.approx(by_hand, abs=2e-3)
    assert solved.memoryless[0] == pytest.approx(16.71, abs=0.02)


def test_fewest_steps_against_all_sequences() -> None:
    """Of rest and eight directions; what they reach is in the box, and no sooner."""
    wind = Wind(horizon=5, step_size=0.4, strongest=0.2, goal_radius=0.3)
    axis = 0.4 * np.array([-1.0, 0.0, 1.0])
    moves = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    for blowing in np.asarray(spread_winds(wind, 30)):
        claimed = int(steps_to_goal(wind, jnp.zeros(2), jnp.asarray(blowing)))
        places, reached = np.zeros((1, 2)), 6
        for step in range(1, 6):
            after = places[:, None] + moves[None] + blowing
            places = np.unique(after.reshape(-1, 2).round(6), axis=0)
            if np.linalg.norm(places - GOAL, axis=-1).min() <= 0.3:
                reached = min(reached, step)
        assert claimed <= reached <= claimed + 1


def test_spread_winds_fill_the_box_evenly() -> None:
    winds = np.asarray(spread_winds(Wind(), 1_024)) / 0.05
    assert np.abs(winds).max() <= 1
    counts, *_ = np.histogram2d(*winds.T, bins=8, range=[[-1, 1], [-1, 1]])
    assert counts.min() >= 14 and counts.max() <= 18
    assert jax.tree.leaves(winds)[0].mean() == pytest.approx(0, abs=1e-3)
