"""Composite rollouts, by either repair, on logs that say where each number is from."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.relabel.source import (
    Provenance,
    Relabelling,
    RolloutSource,
    borrowed_slots,
)
from tests.relabel.coded import Coded, E, H, N, R, coded_logs

DRAWS = 3_000
VISITS = 6
REPAIRS = {"rewards": RelabelRewards(), "policies": ReplayPolicies(rollouts=VISITS)}


@pytest.fixture(scope="module")
def coded() -> TaskLogs:
    return coded_logs()


@pytest.fixture(scope="module", params=REPAIRS)
def repair(request) -> RelabelRewards | ReplayPolicies:
    return REPAIRS[request.param]


def source_of(relabelling: Relabelling, logs: TaskLogs) -> RolloutSource:
    assert isinstance(relabelling, Relabelling)
    return relabelling(logs, Coded(), start="uniform", key=jr.key(0))


def many(source: RolloutSource, seed: int = 0) -> Provenance:
    draw = eqx.filter_jit(lambda s, key: s.draw_with_makers(DRAWS, key=key))
    return draw(source, jr.key(seed))


@pytest.fixture(scope="module")
def drawn(repair, coded: TaskLogs) -> Provenance:
    return many(source_of(repair, coded))


def places(drawn: Provenance) -> np.ndarray:
    """(maker, rollout) of each drawn episode [draws, E, 2]; time and slot must fit."""
    obs = np.asarray(drawn.rollouts.obs)
    slot, time = np.mgrid[:E, : H + 1]
    np.testing.assert_array_equal(obs[..., 2], np.broadcast_to(slot, obs.shape[:-1]))
    np.testing.assert_array_equal(obs[..., 3], np.broadcast_to(time, obs.shape[:-1]))
    assert (obs[..., :2] == obs[:, :, :1, :2]).all(), "episodes must be whole"
    return obs[:, :, 0, :2].astype(int)


def check_truth(drawn: Provenance) -> None:
    """Makers are told truly; rewards are of the own task; actions stay in place."""
    np.testing.assert_array_equal(places(drawn)[..., 0], drawn.maker)
    before, after = (
        np.asarray(drawn.rollouts.obs)[:, :, i] for i in (slice(H), slice(1, None))
    )
    np.testing.assert_array_equal(drawn.rollouts.action, before.sum(-1) % 5)
    expected = after @ [1.0, 0.1, 0.01, 0.001]
    expected += 10 * np.asarray(drawn.task)[:, None, None]
    np.testing.assert_allclose(drawn.rollouts.reward, expected, rtol=1e-6)


def check_evenly_lent(own: np.ndarray, lender: np.ndarray) -> None:
    """Every other task lends equally often, and none to itself."""
    counts = np.zeros((N, N), int)
    np.add.at(counts, (own, lender), 1)
    assert (counts.diagonal() == 0).all()
    expected = len(own) / (N * (N - 1))
    off = counts[~np.eye(N, dtype=bool)]
    assert abs(off - expected).max() < 5 * np.sqrt(expected)


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
    slots = borrowed_slots(DRAWS, episodes, key=jr.key(3))
    is_one = (np.asarray(slots) == one).all(axis=1)
    is_other = (np.asarray(slots) == other).all(axis=1)
    assert (is_one | is_other).all()
    assert abs(is_one.mean() - 0.5) < 4 * 0.5 / np.sqrt(DRAWS)


def test_makers_rewards_and_actions_are_true(drawn: Provenance) -> None:
    check_truth(drawn)


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
    check_evenly_lent(own, np.where(maker[:, 0] != own, maker[:, 0], maker[:, -1]))
    mine = maker == own[:, None]
    assert len(np.unique(places(drawn)[mine], axis=0)) == N * R, "all must occur"


def test_drawing_changes_nothing_and_equal_keys_give_equal_bits(
    repair, coded: TaskLogs, drawn: Provenance
) -> None:
    source = source_of(repair, coded)
    before = jax.tree.map(np.array, source)
    other = many(source, seed=1)
    assert eqx.tree_equal(jax.tree.map(np.array, source), before)
    assert eqx.tree_equal(many(source), drawn)
    assert not eqx.tree_equal(other, drawn)
    assert eqx.tree_equal(source.draw(DRAWS, key=jr.key(0)), drawn.rollouts)


def test_steps_apart_are_of_all_agents_and_paid_by_the_rollouts_task(
    coded: TaskLogs,
) -> None:
    source = source_of(RelabelRewards(decode_apart=True), coded)
    draw = eqx.filter_jit(lambda s, key: s.draw_to_decode(DRAWS, 5, key=key))
    drawn = draw(source, jr.key(0))
    rollouts = source.draw(DRAWS, key=jr.split(jr.key(0), 3)[0])
    assert drawn.since is None
    assert eqx.tree_equal(drawn.steps, rollouts.transitions())
    task = np.asarray(drawn.steps.reward[:, 0]).round(-1) / 10
    steps = jax.tree.map(np.asarray, drawn.apart)
    assert steps.reward.shape == (DRAWS, 5) and steps.valid is None
    np.testing.assert_array_equal(steps.obs[..., :3], steps.next_obs[..., :3])
    np.testing.assert_array_equal(steps.obs[..., 3] + 1, steps.next_obs[..., 3])
    np.testing.assert_array_equal(steps.action, steps.obs.sum(-1) % 5)
    paid = 10 * task[:, None] + steps.next_obs @ [1.0, 0.1, 0.01, 0.001]
    np.testing.assert_allclose(steps.reward, paid, rtol=1e-6)
    places = np.moveaxis(steps.obs, -1, 0).astype(int)
    for place, count in zip(places, (N, R, E, H), strict=True):
        expected = place.size / count
        counts = np.bincount(place.ravel(), minlength=count)
        assert abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_unless_asked_rollouts_are_decoded_themselves(coded: TaskLogs) -> None:
    for relabelling in (*REPAIRS.values(), KeepAsIs()):
        source = source_of(relabelling, coded)
        drawn = source.draw_to_decode(20, 5, key=jr.key(0))
        assert drawn.apart is None and drawn.since is None
        like = source.draw(20, key=jr.key(0)).transitions()
        assert eqx.tree_equal(drawn.steps, like)


def test_a_single_task_is_refused(repair, coded: TaskLogs) -> None:
    alone = jax.tree.map(lambda x: x[:1], coded)
    with pytest.raises(ConfigError, match=r"borrows from other.*--relabel none"):
        source_of(repair, alone)
    source_of(KeepAsIs(), alone)


def test_kept_rollouts_are_the_logged_ones(coded: TaskLogs) -> None:
    source = source_of(KeepAsIs(), coded)
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
