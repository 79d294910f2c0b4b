"""Policy replaying: other tasks' policies are run in each task, once, and in truth."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.relabel.policies import Replayed, ReplayPolicies, other_tasks
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.tasks.escape_room import EscapeRoom
from tests.relabel.coded import Coded, N, R, coded_logs

KEY = jr.key(4)


def replay(simulator, logs: TaskLogs, count: int, start: str = "uniform") -> Replayed:
    return ReplayPolicies(rollouts=count)(logs, simulator, start=start, key=KEY)


@pytest.mark.parametrize(("tasks", "count"), [(2, 5), (4, 6), (4, 8), (5, 3), (9, 1)])
def test_every_other_task_visits_evenly_and_none_itself(tasks: int, count: int) -> None:
    visitors = np.asarray(other_tasks(tasks, count, key=KEY))
    assert visitors.shape == (tasks, count)
    for own, row in enumerate(visitors):
        visits = np.bincount(row, minlength=tasks)
        assert visits[own] == 0
        others = np.delete(visits, own)
        assert others.max() - others.min() <= 1


def test_who_visits_first_is_random() -> None:
    keys = jr.split(KEY, 2_000)
    first = jax.jit(jax.vmap(lambda k: other_tasks(4, 1, key=k)))(keys)
    counts = np.bincount(np.asarray(first)[:, 2, 0], minlength=4)
    assert counts[2] == 0
    assert abs(np.delete(counts, 2) - 2_000 / 3).max() < 5 * np.sqrt(2_000 * 2 / 9)


def test_visits_are_made_by_the_visitors_policy_in_the_own_task() -> None:
    """The rewards, which tell the task, are checked in test_source.py."""
    simulator, logs = Coded(), coded_logs()
    made = replay(simulator, logs, 6, start="fixed")
    assert made.visits.reward.shape[:2] == (N, 6)
    by = np.asarray(made.visits.obs)[:, :, 0, 0, 0]
    np.testing.assert_array_equal(by, made.visitors)
    numbers = np.asarray(made.visits.obs)[:, :, 0, 0, 1]
    np.testing.assert_array_equal(numbers, np.tile(R + np.arange(6), (N, 1)))
    assert eqx.tree_equal(made.own, logs.episodes)


def test_visits_begin_where_the_logs_do_and_each_has_its_key() -> None:
    simulator = Coded()
    replay(simulator, coded_logs(), 6, start="excluding")
    assert {start for start, _ in simulator.asked} == {"excluding"}
    keys = np.stack([jr.key_data(key) for _, key in simulator.asked])
    assert len(np.unique(keys, axis=0)) == len(keys) == 6


def test_logs_without_policies_are_refused() -> None:
    logs = coded_logs()
    with pytest.raises(ConfigError, match=r"needs the agents' policies.*hold none"):
        replay(Coded(), TaskLogs(logs.tasks, logs.episodes), 2)


@pytest.mark.parametrize("count", [0, -1])
def test_an_empty_replay_is_refused(count: int) -> None:
    with pytest.raises(ConfigError, match="rollouts must be above zero"):
        ReplayPolicies(rollouts=count)


class Towards(eqx.Module):
    """Walks in one direction, whatever happens."""

    direction: jax.Array

    def start(self):
        return ()

    def act(self, memory, obs, *, key):
        return self.direction

    def remember(self, memory, step):
        return ()


@pytest.fixture(scope="module")
def room() -> JaxSimulator:
    return JaxSimulator(EscapeRoom(horizon=14))


@pytest.fixture(scope="module")
def escapes(room: JaxSimulator) -> TaskLogs:
    """Three doors; each agent walks from the centre straight through its own."""
    doors = jnp.asarray([0.5, 1.5, 2.5])
    ways = Towards(jnp.stack([jnp.cos(doors), jnp.sin(doors)], axis=1))
    episodes = room.rollouts(
        ways, doors, repeats=1, episodes=2, start="fixed", key=jr.key(0)
    )
    return TaskLogs(doors, episodes, ways)


def test_whose_door_it_is_not_meets_the_wall(
    room: JaxSimulator, escapes: TaskLogs
) -> None:
    """Replayed steps obey the own task, which is not the task they were learned in."""
    made = replay(room, escapes, 2, start="fixed")
    steps = made.visits.transitions()  # [N, P, T]

    def stepped(tasks: jax.Array) -> jax.Array:
        one = lambda t, s, a: room.family.step(t, s, a, key=KEY)  # noqa: E731
        over_steps = jax.vmap(jax.vmap(one, (None, 0, 0)))
        return jax.vmap(over_steps)(tasks, steps.obs, steps.action)

    own = jnp.repeat(escapes.tasks[:, None], 2, axis=1)
    theirs = escapes.tasks[made.visitors]
    np.testing.assert_allclose(stepped(own), steps.next_obs, atol=1e-6)
    assert not np.allclose(stepped(theirs), steps.next_obs, atol=1e-3)
    way = escapes.policies.direction[made.visitors]
    np.testing.assert_array_equal(steps.action, jnp.repeat(way[:, :, None], 28, axis=2))
    assert escapes.episodes.reward.sum() > 0 and not np.any(steps.reward)


def test_equal_keys_give_equal_bits_and_others_other_visits(
    room: JaxSimulator, escapes: TaskLogs
) -> None:
    one = replay(room, escapes, 2)
    assert eqx.tree_equal(replay(room, escapes, 2), one)
    other = ReplayPolicies(rollouts=2)(escapes, room, start="uniform", key=jr.key(5))
    assert not np.array_equal(other.visits.obs, one.visits.obs)
    begun = np.asarray(one.visits.obs)[:, :, :, 0].reshape(-1, 2)
    assert len(np.unique(begun, axis=0)) == len(begun), "each episode has its own start"


def test_visitors_take_turns_and_none_is_at_home(
    room: JaxSimulator, escapes: TaskLogs
) -> None:
    both = ReplayPolicies(rollouts=3, turns=2)
    made = both(escapes, room, start="fixed", key=KEY)
    actions = np.asarray(made.visits.action).reshape(3, 3, 4, 7, 2)  # turns of 7 steps
    assert (actions == actions[:, :, :, :1]).all(), "nobody is interrupted"
    ways = np.asarray(escapes.policies.direction)
    who = (actions[:, :, :, 0, None] == ways).all(-1).argmax(-1)  # [N, P, turns]
    np.testing.assert_array_equal(who[:, :, 0], made.visitors)
    for own, turns in enumerate(who.reshape(3, -1)):
        np.testing.assert_array_equal(
            np.bincount(turns, minlength=3), np.where(np.arange(3) == own, 0, 6)
        )


def test_more_turns_than_steps_are_refused(
    room: JaxSimulator, escapes: TaskLogs
) -> None:
    with pytest.raises(ConfigError, match="15 policies cannot take turns in 14 steps"):
        ReplayPolicies(turns=15)(escapes, room, start="fixed", key=KEY)
    with pytest.raises(ConfigError, match="turns must be above zero"):
        ReplayPolicies(turns=0)
