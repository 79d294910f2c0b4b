"""Phase 4: the window of data, and repeatable training."""

import inspect
from dataclasses import fields, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.dqn import DQN
from borelax.belief.elbo import BeliefModel
from borelax.belief.view import BeliefFilter, BeliefView, LearnedBelief
from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.meta.fit import FitMeta, Window, draws_in_window
from borelax.oracles.gridworld_belief import ExactPosterior
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.relabel.source import AsLogged, RolloutSource
from borelax.relabel.states import relabel_states
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.tasks.gridworld import Gridworld
from borelax.types import Episodes, Transition

FIT = FitMeta(
    parts=3,
    rollouts_per_part=4,
    updates_per_part=2,
    updates=10,
    agent=DQN(hidden=(8,), batch_size=16),
)
KEY = jr.key(7)


@pytest.fixture(scope="module")
def source(logs: TaskLogs, simulator: JaxSimulator) -> RolloutSource:
    return RelabelRewards()(logs, simulator, start="uniform", key=jr.key(0))


@pytest.fixture(scope="module")
def exact(world: Gridworld) -> BeliefFilter:
    """The exact belief, for two seeds."""
    return ExactPosterior(jnp.arange(2), world)


@pytest.fixture(scope="module")
def trained(source: RolloutSource, exact: BeliefFilter, world: Gridworld):
    return FIT(source, exact, world.spec, key=KEY)


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_a_window_holds_the_latest_draws_each_in_its_part(parts: int) -> None:
    assert draws_in_window(parts, 0) == list(range(parts))
    for renewals in range(20):
        draws = draws_in_window(parts, renewals)
        assert sorted(draws) == list(range(renewals, renewals + parts))
        assert [draw % parts for draw in draws] == list(range(parts))


def test_window_resumed_equals_window_stepped_through(
    source: RolloutSource, exact: BeliefFilter
) -> None:
    stepped = Window(FIT, source, exact, key=KEY)
    seen = {}
    for updates in range(0, 10, 2):
        seen[updates] = jax.tree.map(np.array, stepped.after(updates))
    for updates in (0, 3, 8):
        resumed = Window(FIT, source, exact, key=KEY).after(updates)
        kept = seen[updates - updates % 2]
        assert eqx.tree_equal(jax.tree.map(np.array, resumed), kept)
    first, next_ = seen[0].obs, seen[2].obs  # [S, 3 parts of 4 rollouts, 1, T+1, …]
    assert first.shape == (2, 12, 1, 9, 18)
    assert (first[:, :4] != next_[:, :4]).any()
    np.testing.assert_array_equal(first[:, 4:], next_[:, 4:])


def test_window_holds_the_sources_rollouts_with_beliefs(
    source: RolloutSource, exact: BeliefFilter
) -> None:
    window = Window(FIT, source, exact, key=KEY).after(2)  # draws 3, 1, 2
    for seed in range(2):
        one = ExactPosterior(jnp.asarray(seed), exact.gridworld)
        for part, draw in enumerate((3, 1, 2)):
            key = jr.fold_in(jr.fold_in(KEY, seed), draw)
            rollouts = source.draw(4, key=key)
            expected = jax.vmap(lambda r, b=one: relabel_states(b, r))(rollouts)
            place = slice(4 * part, 4 * part + 4)
            found = jax.tree.map(lambda x, s=seed, p=place: x[s, p], window)
            assert eqx.tree_equal(found, expected)


def test_a_window_of_expected_rewards_holds_what_the_belief_expects(
    source: RolloutSource, model: BeliefModel
) -> None:
    arrays, rest = eqx.partition(model, eqx.is_array)
    stacked = eqx.combine(jax.tree.map(lambda x: x[None], arrays), rest)
    beliefs = LearnedBelief(stacked, BeliefView())
    one = replace(FIT, parts=1)
    paid, expected = (
        Window(fit, source, beliefs, key=KEY).after(0)
        for fit in (one, replace(one, expected_rewards=True))
    )
    np.testing.assert_array_equal(paid.obs, expected.obs)
    alone, key = LearnedBelief(model, BeliefView()), jr.fold_in(jr.fold_in(KEY, 0), 0)

    @eqx.filter_jit
    def expect(source: RolloutSource) -> jax.Array:
        steps = source.draw(4, key=key).transitions()
        return jax.vmap(alone.rewards_along)(steps)

    wanted = expect(source)
    np.testing.assert_allclose(expected.reward[0, :, 0], wanted, atol=1e-5)
    assert not np.allclose(paid.reward, expected.reward, atol=0.1)


def test_equal_keys_give_equal_bits(
    source: RolloutSource, exact: BeliefFilter, world: Gridworld, trained
) -> None:
    assert eqx.tree_equal(FIT(source, exact, world.spec, key=KEY), trained)


def test_seeds_begin_with_other_weights_and_learn_from_other_data(
    source: RolloutSource, exact: BeliefFilter, world: Gridworld, alike
) -> None:
    from_one_start = FIT(source, exact, world.spec, key=KEY, journal=alike)
    for state in (alike.first, from_one_start):
        for leaf in jax.tree.leaves(state.q):
            assert (leaf[0] != leaf[1]).any()


def test_resumed_equals_uninterrupted(
    source: RolloutSource, exact: BeliefFilter, world: Gridworld, trained, keep_at
) -> None:
    journal = keep_at(6)
    for _ in range(2):
        again = FIT(source, exact, world.spec, key=KEY, journal=journal)
        assert eqx.tree_equal(again, trained)
    assert journal.begun == [0, 6]


def test_like_has_the_shapes_of_the_result(
    exact: BeliefFilter, world: Gridworld, trained
) -> None:
    like = FIT.like(exact, world.spec)
    assert jax.tree.structure(like) == jax.tree.structure(trained)
    for a, b in zip(*map(jax.tree.leaves, (like, trained)), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


def test_hyper_states_are_standardised_by_the_first_window(
    source: RolloutSource, exact: BeliefFilter, world: Gridworld, trained
) -> None:
    key_data, _, _ = jr.split(KEY, 3)
    first = Window(FIT, source, exact, key=key_data).after(0)
    for seed in range(2):
        rows = np.asarray(first.obs[seed]).reshape(-1, 18)
        np.testing.assert_allclose(
            trained.standardise.mean[seed], rows.mean(axis=0), atol=1e-5
        )
        spread = rows.std(axis=0)
        expected = np.where(spread > 1e-6, 1 / np.maximum(spread, 1e-6), 1)
        np.testing.assert_allclose(trained.standardise.scale[seed], expected, rtol=1e-3)
    plain = replace(FIT, standardise=False, updates=2)
    raw = plain(source, exact, world.spec, key=KEY)
    assert not np.any(raw.standardise.mean)
    assert (np.asarray(raw.standardise.scale) == 1).all()


@pytest.mark.parametrize(
    ("latent", "decoded", "latest", "size"),
    [
        (True, False, False, 6),
        (False, True, False, 9),
        (True, True, False, 15),
        (True, False, True, 7),
    ],
)
def test_the_view_decides_what_is_shown(
    latent: bool, decoded: bool, latest: bool, size: int, model: BeliefModel
) -> None:
    view = BeliefView(latent=latent, decoded=decoded, latest_reward=latest)
    belief = model.encoder.belief(model.encoder.start())
    shown = np.asarray(view.features(model, belief, jnp.zeros(())))
    parts = [belief.mean, belief.logvar] if latent else []
    parts += [model.decoder.predict(belief.mean)] if decoded else []
    parts += [np.zeros(1)] if latest else []
    np.testing.assert_array_equal(shown, np.concatenate(parts))
    assert shown.shape == (size,)
    filtered = LearnedBelief(model, view)
    np.testing.assert_array_equal(filtered.features(filtered.start()), shown)


def test_a_blind_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match="must show the latent, the decoded belief"):
        BeliefView(latent=False, decoded=False)


def test_the_learner_is_given_no_task() -> None:
    """The types are the guarantee: rollouts come without their task."""
    given = inspect.signature(FitMeta.__call__).parameters
    assert set(given) == {"self", "source", "beliefs", "spec", "key", "journal"}
    assert given["source"].annotation is RolloutSource
    for parameter in given.values():
        text = str(parameter.annotation)
        assert "Task" not in text and "logs" not in text.lower()
    for source in (RolloutSource, AsLogged):
        assert inspect.signature(source.draw).return_annotation is Episodes
    told = {"obs", "action", "reward", "length", "ended", "cut"}
    assert {field.name for field in fields(Episodes)} == told
    step = {field.name for field in fields(Transition)}
    assert step == {"obs", "action", "reward", "next_obs", "valid", "ended", "ahead"}


def test_drawn_rollouts_carry_no_task(logs: TaskLogs, simulator: JaxSimulator) -> None:
    for relabelling in (RelabelRewards(), ReplayPolicies(rollouts=1), KeepAsIs()):

        def drawn(logs: TaskLogs, relabelling=relabelling) -> Episodes:
            source = relabelling(logs, simulator, start="uniform", key=KEY)
            return source.draw(2, key=KEY)

        assert type(eqx.filter_eval_shape(drawn, logs)) is Episodes


@pytest.mark.parametrize(
    "name",
    ["parts", "rollouts_per_part", "updates_per_part", "updates", "return_steps"],
)
def test_empty_data_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"FitMeta.{name} must be above zero, not 0"):
        FitMeta(**{name: 0})
