"""Laws of ways: who was where two tasks pay, in one episode, and in which order."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from borelax.ambiguity.ways import Ways, find_ways
from borelax.types import Episodes, Transition

PLACES = jnp.arange(4.0)
"""On a line; task n pays at place n."""


def reward(task, step: Transition):
    return (jnp.abs(step.next_obs[0] - task) < 0.5).astype(jnp.float32)


def walks(*rows: list[float]) -> Episodes:
    """Logs of four tasks, each with these episodes from place -1; nothing is paid."""
    places = np.array([[-1.0, *row] for row in rows])
    obs = np.tile(places[None, :, None, :, None], (4, 1, 1, 1, 1))
    steps = (4, len(rows), 1, places.shape[1] - 1)
    return Episodes(
        jnp.asarray(obs, jnp.float32),
        jnp.zeros((*steps, 1)),
        jnp.zeros(steps),
    )


def found(episodes: Episodes, tasks=PLACES, pays=reward) -> Ways:
    return find_ways(episodes, tasks, pays, np.random.default_rng(0))


def test_a_way_leads_from_the_earlier_to_the_later():
    ways = found(walks([0, 1, 2, 3]))
    np.testing.assert_array_equal(ways.shown, np.triu(np.ones((4, 4), bool), 1))
    np.testing.assert_array_equal(ways.apart, ~np.eye(4, dtype=bool))
    assert ways.missing == pytest.approx(0.5)
    assert found(walks([0, 1, 2, 3], [3, 2, 1, 0])).missing == 0


def test_those_who_go_to_one_place_show_no_way():
    straight = walks(*([place] * 4 for place in range(4)))
    assert found(straight).missing == 1
    one_more = walks(*([place] * 4 for place in range(4)), [2, 2, 0, 0])
    assert found(one_more).missing == pytest.approx(11 / 12)


def test_tasks_that_pay_at_the_same_step_need_no_way():
    near = jnp.array([0.0, 0.3, 2.0, 2.3])
    ways = found(walks([0.1, 0.1], [2.1, 2.1]), near)
    assert not ways.apart[0, 1] and not ways.apart[2, 3] and ways.apart[0, 2]
    assert ways.missing == pytest.approx(8 / 12)
    for places in ([-1, 0], [0, 0], [-1, -1]):  # paid at times, always, never
        assert found(walks(places), jnp.zeros(4)).missing == 0


def test_a_task_that_nobody_is_paid_by_has_no_way_to_it():
    ways = found(walks([0, 1, 2, 0], [2, 1, 0, 2]))
    assert ways.missing == pytest.approx(6 / 12)
    assert not ways.shown[:, 3].any() and not ways.shown[3].any()


def test_units_of_the_reward_do_not_matter():
    logs = walks([0, 1, 2, 3], [2, 2, 1, 1])

    def other(task, step):
        return 50 * reward(task, step) - 80

    np.testing.assert_array_equal(found(logs).shown, found(logs, pays=other).shown)


def test_what_all_tasks_charge_alike_is_of_no_account():
    logs = walks([0, 1, 2, 0], [2, 1, 0, 2])
    effort = jnp.linspace(0.0, 9.0, logs.action.size).reshape(logs.action.shape)

    def costly(task, step):
        return reward(task, step) - step.action[0]

    worn = replace(logs, action=effort)
    np.testing.assert_array_equal(found(worn, pays=costly).shown, found(logs).shown)
    assert found(worn, pays=costly).missing == pytest.approx(6 / 12)


def test_speeds_are_told_by_what_is_paid_near_them():
    """A dense reward: everyone passes the slower ones on the way to the own."""

    def near(task, step):
        return -jnp.abs(step.next_obs[0] - task)

    tasks = jnp.array([0.0, 1.0, 2.0, 9.0])
    ways = found(walks([0, 4, 9, 9]), tasks, near)
    assert ways.apart[0, 3] and ways.shown[0, 3] and not ways.shown[3, 0]


def test_many_episodes_are_sampled(monkeypatch):
    logs = walks([0, 1, 2, 3], [3, 2, 1, 0], *[[0, 0, 0, 0]] * 8)
    every = found(logs)
    assert every.episodes == 40 and every.missing == 0
    monkeypatch.setattr("borelax.ambiguity.ways.MOST_EPISODES", 3)
    some = found(logs)
    assert some.episodes == 3 and (some.shown <= every.shown).all()
    assert some.missing > 0, "these three are of those who stay"


def test_padding_shows_nothing():
    logs = walks([0, 1, 2, 3])
    ended = replace(logs, length=jnp.full((4, 1, 1), 2))
    assert found(ended).shown.sum() == 1 and found(ended).shown[0, 1]
