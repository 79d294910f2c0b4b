"""Rollouts of pieces: cut in truth, from everywhere, paid by their own task."""

from math import comb

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.relabel.pieces import even_pieces, in_pieces
from borelax.relabel.rewards import RelabelRewards
from borelax.relabel.source import Provenance
from borelax.types import Episodes
from tests.relabel.coded import Coded, E, H, N, R, coded_logs

DRAWS = 2_000
PIECES = 8
"""Of one step each: there are 4 episodes of 2."""


def drawn(share: float, seed: int = 0) -> Provenance:
    settings = RelabelRewards(meta_pieces=share, pieces=PIECES)
    source = settings(coded_logs(), Coded(), start="uniform", key=jr.key(0))
    return source.draw_with_makers(DRAWS, key=jr.key(seed))


@pytest.fixture(scope="module")
def all_cut() -> Provenance:
    return drawn(1.0)


def test_pieces_are_consecutive_steps_of_whom_they_say(all_cut: Provenance) -> None:
    obs = np.asarray(all_cut.rollouts.obs)
    assert obs.shape == (DRAWS, PIECES, 2, 4)
    np.testing.assert_array_equal(obs[..., 0, :3], obs[..., 1, :3])
    np.testing.assert_array_equal(obs[..., 0, 3] + 1, obs[..., 1, 3])
    np.testing.assert_array_equal(obs[..., 0, 0], all_cut.maker)
    expected = np.asarray(obs[..., :1, :].sum(-1) % 5)
    np.testing.assert_array_equal(all_cut.rollouts.action, expected)


def test_every_piece_is_paid_by_the_rollouts_task(all_cut: Provenance) -> None:
    steps = all_cut.rollouts.transitions()
    paid = 10 * np.asarray(all_cut.task)[:, None] + np.asarray(
        steps.next_obs @ jnp.asarray([1.0, 0.1, 0.01, 0.001])
    )
    np.testing.assert_allclose(steps.reward, paid, rtol=1e-6)


@pytest.mark.parametrize("from_start", [0.0, 0.5, 1.0])
def test_pieces_are_from_everywhere_and_some_from_the_start(from_start: float) -> None:
    settings = RelabelRewards(meta_pieces=1.0, pieces=PIECES, from_start=from_start)
    source = settings(coded_logs(), Coded(), start="uniform", key=jr.key(0))
    obs = np.asarray(source.draw(DRAWS, key=jr.key(0)).obs)
    first = obs[:, :, 0].reshape(-1, 4).astype(int)
    places = np.ravel_multi_index(first.T, (N, R, E, H))
    counts = np.bincount(places, minlength=N * R * E * H).reshape(-1, H)
    at_start = from_start + (1 - from_start) / H
    chance = np.array([at_start, 1 - at_start]) / (N * R * E)
    expected = DRAWS * PIECES * chance
    assert (abs(counts - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("most", [0.0, 0.3, 1.0])
def test_each_rollout_draws_how_many_of_its_pieces_are_own(most: float) -> None:
    settings = RelabelRewards(meta_pieces=1.0, meta_own=most, pieces=PIECES)
    source = settings(coded_logs(), Coded(), start="uniform", key=jr.key(0))
    made = source.draw_with_makers(DRAWS, key=jr.key(3))
    own = (np.asarray(made.maker) == np.asarray(made.task)[:, None]).sum(axis=1)
    share = (np.arange(1_000) + 0.5)[:, None] / 1_000 * most
    count = np.arange(PIECES + 1)
    ways = np.array([comb(PIECES, n) for n in count])
    chances = ways * share**count * (1 - share) ** (PIECES - count)
    expected = chances.mean(axis=0)
    seen = np.bincount(own, minlength=PIECES + 1) / DRAWS
    assert abs(seen - expected).max() < 4 * np.sqrt(0.25 / DRAWS)


def test_a_share_is_cut_and_the_rest_is_as_without_pieces() -> None:
    some, none, every = drawn(0.4), drawn(0.0), drawn(1.0)
    whole = in_pieces(none, PIECES)
    as_whole = [
        eqx.tree_equal(*(jnp.asarray(x.rollouts.obs[i]) for x in (some, whole)))
        for i in range(200)
    ]
    as_cut = [
        eqx.tree_equal(*(jnp.asarray(x.rollouts.obs[i]) for x in (some, every)))
        for i in range(200)
    ]
    np.testing.assert_array_equal(as_whole, ~np.asarray(as_cut))
    assert some.rollouts.cut is not None
    np.testing.assert_array_equal(
        some.rollouts.cut[:200], np.repeat(np.asarray(as_cut)[:, None], PIECES, axis=1)
    )
    assert abs(np.mean(as_cut) - 0.4) < 4 * np.sqrt(0.24 / 200)


def test_cutting_a_rollout_keeps_every_step_and_its_maker() -> None:
    made = drawn(0.0)
    cut = in_pieces(made, PIECES)
    assert cut.rollouts.reward.shape == (DRAWS, PIECES, 1)
    assert eqx.tree_equal(cut.rollouts.transitions(), made.rollouts.transitions())
    np.testing.assert_array_equal(cut.maker, np.repeat(made.maker, 2, axis=1))


@pytest.mark.parametrize(
    ("wanted", "episodes", "horizon", "pieces"),
    [(6, 2, 60, 6), (6, 2, 20, 4), (1, 2, 60, 2), (8, 4, 2, 8), (12, 4, 2, 8)],
)
def test_as_many_pieces_as_cut_episodes_evenly(
    wanted: int, episodes: int, horizon: int, pieces: int
) -> None:
    assert even_pieces(wanted, episodes, horizon) == pieces


def test_a_number_that_does_not_fit_gives_fewer_pieces() -> None:
    settings = RelabelRewards(meta_pieces=1.0, pieces=PIECES + 3)
    source = settings(coded_logs(), Coded(), start="uniform", key=jr.key(0))
    made = source.draw_with_makers(DRAWS, key=jr.key(0))
    assert eqx.tree_equal(made, drawn(1.0))


@pytest.mark.parametrize("share", ["meta_pieces", "belief_in_vain"])
def test_early_ends_cannot_be_cut(share: str) -> None:
    logs = coded_logs()
    old = logs.episodes
    length = jnp.full(old.reward.shape[:-1], H)
    settings = RelabelRewards(**{share: 0.5}, pieces=PIECES)

    def source_with(length):
        episodes = Episodes(old.obs, old.action, old.reward, length)
        logs_now = TaskLogs(logs.tasks, episodes)
        return settings(logs_now, Coded(), start="uniform", key=jr.key(0))

    with pytest.raises(ConfigError, match="end early cannot be cut"):
        source_with(length.at[1, 2, 3].set(H - 1))
    source = source_with(length)  # none ended early
    if share == "meta_pieces":
        made = source.draw_with_makers(DRAWS, key=jr.key(0))
        assert eqx.tree_equal(made, drawn(0.5))
    decoded = source.draw_to_decode(DRAWS, 3, key=jr.key(0))
    assert bool(jnp.isfinite(decoded.steps.reward).all())


def test_the_belief_has_shares_of_its_own() -> None:
    settings = RelabelRewards(
        belief_pieces=1.0, belief_own=0.5, meta_own=0.2, pieces=PIECES
    )
    source = settings(coded_logs(), Coded(), start="uniform", key=jr.key(0))
    assert eqx.tree_equal(source.draw_with_makers(DRAWS, key=jr.key(0)), drawn(0.0))
    made = source.for_belief().draw_with_makers(DRAWS, key=jr.key(0))
    assert eqx.tree_equal(made, drawn(1.0))


@pytest.mark.parametrize(
    "whose", ["belief_pieces", "belief_own", "meta_pieces", "meta_own", "from_start"]
)
@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_more_than_everything_is_refused(whose: str, share: float) -> None:
    with pytest.raises(ConfigError, match=rf"{whose} must lie in \[0, 1\]"):
        RelabelRewards(**{whose: share})
