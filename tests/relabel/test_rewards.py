"""Relabelling on logs in which every number says where it is from."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.relabel.rewards import (
    KeepAsIs,
    RelabelRewards,
    borrowed_slots,
    relabel,
)
from borelax.relabel.source import Provenance, RolloutSource
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.types import Discrete, Episodes, Spec, Transition

DRAWS = 3_000
N, R, E, H = 4, 3, 4, 2


def coded_reward(task, step: Transition):
    """10·task + a number that tells all next observations apart."""
    return 10 * task + step.next_obs @ jnp.asarray([1.0, 0.1, 0.01, 0.001])


class Coded:
    """A simulator that is only asked for its reward."""

    spec = Spec(obs_size=4, action=Discrete(5), horizon=H, episodes=E)

    def __init__(self, reward=coded_reward):
        self.reward = reward

    def rollouts(self, policies, tasks, **rest) -> Episodes:
        raise AssertionError("relabelling does not simulate")


@pytest.fixture(scope="module")
def coded() -> TaskLogs:
    """Observations are (task, rollout, episode, time)."""
    places = np.stack(np.mgrid[:N, :R, :E, : H + 1], axis=-1)
    action = places[..., :-1, :].sum(-1) % 5
    tasks = jnp.arange(N, dtype=jnp.float32)
    episodes = Episodes(
        jnp.asarray(places, jnp.float32),
        jnp.asarray(action),
        jnp.zeros((N, R, E, H)),
    )
    return TaskLogs(tasks, relabel_all(coded_reward, tasks, episodes))


def relabel_all(reward, tasks, episodes: Episodes) -> Episodes:
    """Every rollout of task n [N, R] under tasks[n]."""
    return jax.vmap(jax.vmap(partial(relabel, reward), (None, 0)))(tasks, episodes)


def many(source: RolloutSource, seed: int = 0) -> Provenance:
    draw = eqx.filter_jit(lambda s, key: s.draw_with_makers(DRAWS, key=key))
    return draw(source, jr.key(seed))


@pytest.fixture(scope="module")
def drawn(coded: TaskLogs) -> Provenance:
    return many(RelabelRewards()(coded, Coded()))


def places(drawn: Provenance) -> np.ndarray:
    """(task, rollout) of each drawn episode [draws, E, 2]; time and slot must fit."""
    obs = np.asarray(drawn.rollouts.obs)
    slot, time = np.mgrid[:E, : H + 1]
    np.testing.assert_array_equal(obs[..., 2], np.broadcast_to(slot, obs.shape[:-1]))
    np.testing.assert_array_equal(obs[..., 3], np.broadcast_to(time, obs.shape[:-1]))
    assert (obs[..., :2] == obs[:, :, :1, :2]).all(), "episodes must be whole"
    return obs[:, :, 0, :2].astype(int)


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


@pytest.mark.parametrize(
    ("episodes", "one", "other"),
    [
        (1, [1], [0]),
        (2, [1, 0], [0, 1]),
        (3, [1, 1, 0], [0, 1, 1]),
        (4, [1, 1, 0, 0], [0, 0, 1, 1]),
        (5, [1, 1, 1, 0, 0], [0, 0, 1, 1, 1]),
    ],
)
def test_borrowed_are_the_first_or_last_half_by_a_fair_coin(
    episodes: int, one: list[int], other: list[int]
) -> None:
    keys = jr.split(jr.key(3), DRAWS)
    slots = jax.vmap(lambda k: borrowed_slots(episodes, key=k))(keys)
    is_one = (np.asarray(slots) == one).all(axis=1)
    is_other = (np.asarray(slots) == other).all(axis=1)
    assert (is_one | is_other).all()
    assert abs(is_one.mean() - 0.5) < 4 * 0.5 / np.sqrt(DRAWS)


def test_makers_are_told_truly(drawn: Provenance) -> None:
    np.testing.assert_array_equal(places(drawn)[..., 0], drawn.maker)


def test_half_of_each_rollout_is_borrowed_from_one_other_rollout(
    drawn: Provenance,
) -> None:
    place, own = places(drawn), np.asarray(drawn.task)
    borrowed = np.asarray(drawn.maker) != own[:, None]
    first, last = borrowed[:, 0], borrowed[:, -1]
    assert (first != last).all()
    np.testing.assert_array_equal(borrowed[:, 1], first)
    np.testing.assert_array_equal(borrowed[:, 2], last)
    assert abs(first.mean() - 0.5) < 4 * 0.5 / np.sqrt(DRAWS)
    # both halves are consecutive episodes of one rollout
    np.testing.assert_array_equal(place[:, 0], place[:, 1])
    np.testing.assert_array_equal(place[:, 2], place[:, 3])


def test_every_other_task_lends_and_none_to_itself(drawn: Provenance) -> None:
    own, maker = np.asarray(drawn.task), np.asarray(drawn.maker)
    lender = np.where(maker[:, 0] != own, maker[:, 0], maker[:, -1])
    counts = np.zeros((N, N), int)
    np.add.at(counts, (own, lender), 1)
    assert (counts.diagonal() == 0).all()
    expected = DRAWS / (N * (N - 1))
    off = counts[~np.eye(N, dtype=bool)]
    assert abs(off - expected).max() < 5 * np.sqrt(expected)
    pairs = np.unique(places(drawn)[:, 0], axis=0)
    assert len(pairs) == N * R, "every rollout of every task must occur"


def test_all_rewards_are_of_the_own_task(drawn: Provenance) -> None:
    after = np.asarray(drawn.rollouts.obs)[:, :, 1:]
    expected = after @ [1.0, 0.1, 0.01, 0.001]
    expected += 10 * np.asarray(drawn.task)[:, None, None]
    np.testing.assert_allclose(drawn.rollouts.reward, expected, rtol=1e-6)


def test_actions_stay_with_their_observations(drawn: Provenance) -> None:
    before = np.asarray(drawn.rollouts.obs)[:, :, :-1]
    np.testing.assert_array_equal(drawn.rollouts.action, before.sum(-1) % 5)


def test_drawing_changes_nothing_and_equal_keys_give_equal_bits(
    coded: TaskLogs, drawn: Provenance
) -> None:
    source = RelabelRewards()(coded, Coded())
    before = jax.tree.map(np.array, source.episodes)
    many(source, seed=1)
    assert eqx.tree_equal(jax.tree.map(np.array, source.episodes), before)
    assert eqx.tree_equal(many(source), drawn)
    assert not eqx.tree_equal(many(source, seed=1), drawn)
    assert eqx.tree_equal(source.draw(DRAWS, key=jr.key(0)), drawn.rollouts)


def test_kept_rollouts_are_the_logged_ones(coded: TaskLogs) -> None:
    source = KeepAsIs()(coded, Coded())
    drawn = many(source)
    place = places(drawn)
    assert (place == place[:, :1]).all()
    task, rollout = place[:, 0].T
    logged = jax.tree.map(lambda x: x[task, rollout], coded.episodes)
    assert eqx.tree_equal(drawn.rollouts, logged)
    np.testing.assert_array_equal(drawn.task, task)
    np.testing.assert_array_equal(drawn.maker, place[..., 0])
    assert len(np.unique(place[:, 0], axis=0)) == N * R
    assert eqx.tree_equal(source.draw(DRAWS, key=jr.key(0)), drawn.rollouts)


def test_no_reward_function_is_refused(coded: TaskLogs) -> None:
    with pytest.raises(ConfigError, match="needs the tasks' reward function"):
        RelabelRewards()(coded, Coded(reward=None))
    KeepAsIs()(coded, Coded(reward=None))


def test_a_single_task_is_refused(coded: TaskLogs) -> None:
    alone = jax.tree.map(lambda x: x[:1], coded)
    with pytest.raises(ConfigError, match="borrows from other tasks"):
        RelabelRewards()(alone, Coded())
    KeepAsIs()(alone, Coded())
