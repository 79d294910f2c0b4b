"""Phase 3: the belief comes to agree with Bayes' rule, and repeats its bits."""

import inspect
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.dqn import DQN
from borelax.belief.decoder import CellDecoder
from borelax.belief.elbo import BeliefModel
from borelax.belief.fit import FitBelief
from borelax.collect.collect import Collect
from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.oracles.gridworld_belief import posterior_errors
from borelax.oracles.gridworld_posterior import exact_posterior, goal_prior
from borelax.relabel.rewards import RelabelRewards
from borelax.relabel.source import RolloutSource
from borelax.report.trained import of_seed
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.policy import RandomPolicy
from borelax.tasks.gridworld import Gridworld
from borelax.types import Spec

SIZES = {"state_size": 9, "reward_size": 4, "latent_size": 5}
TINY = FitBelief(
    updates=6,
    rollouts_per_update=4,
    hidden_size=8,
    decoder=CellDecoder(hidden=(8,)),
    updates_per_chunk=2,
    **SIZES,
)


@pytest.fixture(scope="module")
def source(logs: TaskLogs, simulator: JaxSimulator) -> RolloutSource:
    return RelabelRewards()(logs, simulator, start="uniform", key=jr.key(0))


def fit(source: RolloutSource, spec: Spec, num_seeds: int, journal=None) -> BeliefModel:
    return TINY(source, spec, num_seeds=num_seeds, key=jr.key(5), journal=journal)


@pytest.fixture(scope="module")
def two_seeds(source: RolloutSource, world: Gridworld) -> BeliefModel:
    return fit(source, world.spec, 2)


@pytest.mark.parametrize(
    ("relabel", "notes_size"),
    [
        (RelabelRewards(), 0),
        (RelabelRewards(decode_apart=True), 0),
        (RelabelRewards(decode_apart=True, belief_in_vain=0.5), 16),
    ],
)
def test_trained_belief_agrees_with_the_exact_posterior(
    relabel: RelabelRewards, notes_size: int
) -> None:
    """Total variation below 0.1 on rollouts where that of the prior is above 0.3."""
    world = Gridworld(size=3, horizon=6, episodes=2)
    simulator, tasks = JaxSimulator(world), world.all_tasks()
    agent = DQN(hidden=(8,), batch_size=8)
    collect = Collect(num_tasks=5, pool_rollouts=60, iterations=0, agent=agent)
    collected = collect(simulator, tasks, key=jr.key(1))
    source = relabel(collected, simulator, start="uniform", key=jr.key(0))
    fit = FitBelief(
        updates=1_500,
        rollouts_per_update=32,
        lr=0.02,
        final_lr_share=0.02,
        hidden_size=24,
        notes_size=notes_size,
        decoder=CellDecoder(hidden=(32,)),
        **SIZES,
    )
    models = fit(source, world.spec, num_seeds=1, key=jr.key(0))

    unseen = simulator.rollouts(
        RandomPolicy(world.spec.action),
        tasks,
        repeats=20,
        episodes=2,
        start="uniform",
        key=jr.key(9),
    )
    errors = posterior_errors(world, models, jax.tree.map(lambda x: x[None], unseen))
    rollouts = jax.tree.map(lambda x: x.reshape(100, *x.shape[2:]), unseen)
    exact = jax.vmap(lambda r: exact_posterior(world, r.transitions()))(rollouts)
    of_prior = 0.5 * np.abs(exact - goal_prior(world)[None, None]).sum(-1)
    assert errors.mean() < 0.1
    assert errors[..., -1].mean() < 0.12, "late in the rollout, too"
    assert of_prior.mean() > 0.3


def test_equal_keys_give_equal_bits(
    source: RolloutSource, world: Gridworld, two_seeds: BeliefModel
) -> None:
    assert eqx.tree_equal(fit(source, world.spec, 2), two_seeds)


def test_seeds_begin_with_other_weights_and_draw_other_rollouts(
    source: RolloutSource, world: Gridworld, alike
) -> None:
    from_one_start = fit(source, world.spec, 2, alike)
    for model in (alike.first.model, from_one_start):
        for leaf in jax.tree.leaves(model.decoder.network):
            assert (leaf[0] != leaf[1]).any()


def test_a_seed_does_not_depend_on_how_many_follow(
    source: RolloutSource, world: Gridworld, two_seeds: BeliefModel
) -> None:
    alone = eqx.filter(fit(source, world.spec, 1), eqx.is_array)
    together = eqx.filter(two_seeds, eqx.is_array)
    for a, b in zip(*map(jax.tree.leaves, (alone, together)), strict=True):
        np.testing.assert_allclose(a[0], b[0], rtol=1e-5, atol=1e-6)


def test_resumed_equals_uninterrupted(
    source: RolloutSource, world: Gridworld, two_seeds: BeliefModel, keep_at
) -> None:
    journal = keep_at(4)
    assert eqx.tree_equal(fit(source, world.spec, 2, journal), two_seeds)
    assert eqx.tree_equal(fit(source, world.spec, 2, journal), two_seeds)
    assert journal.begun == [0, 4]


def test_like_has_the_shapes_of_the_result(
    world: Gridworld, two_seeds: BeliefModel
) -> None:
    like = TINY.like(world.spec, 2)
    assert jax.tree.structure(like) == jax.tree.structure(two_seeds)
    for a, b in zip(*map(jax.tree.leaves, (like, two_seeds)), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


def test_the_scale_of_inputs_comes_from_the_data_and_is_not_trained(
    source: RolloutSource, two_seeds: BeliefModel
) -> None:
    encoder = two_seeds.encoder
    assert (encoder.scale_obs.mean[0] == encoder.scale_obs.mean[1]).all()
    entered = source.draw(3_000, key=jr.key(1)).transitions()
    mean = np.asarray(entered.next_obs).mean(axis=(0, 1))
    np.testing.assert_allclose(encoder.scale_obs.mean[0], mean, atol=0.05)
    deviation = np.asarray(entered.reward).std()
    np.testing.assert_allclose(encoder.scale_reward.scale[0], 1 / deviation, rtol=0.15)
    levels = two_seeds.decoder.levels
    np.testing.assert_allclose(levels, [[-0.1, 1.0]] * 2, rtol=1e-5)


@pytest.fixture(scope="module")
def apart(logs: TaskLogs, simulator: JaxSimulator) -> RolloutSource:
    relabel = RelabelRewards(decode_apart=True)
    return relabel(logs, simulator, start="uniform", key=jr.key(0))


@pytest.mark.parametrize(("asked", "count"), [(5, 5), (0, 2 * 4), (100, 2 * 4)])
def test_steps_apart_are_paid_as_the_rollout_is(
    asked: int, count: int, apart: RolloutSource, world: Gridworld
) -> None:
    """Where both come to a cell that pays, it is the same."""
    fit = replace(TINY, decoded_steps=asked, rollouts_per_update=300)
    batch = fit.draw(apart, key=jr.key(2))
    assert batch.apart is not None
    assert batch.apart.reward.shape == (300, count)
    paid = np.zeros((2, 300, world.size**2))
    for row, steps in zip(paid, (batch.steps, batch.apart), strict=True):
        cell = np.asarray(steps.next_obs).argmax(-1)
        np.add.at(row, (np.arange(300)[:, None], cell), np.asarray(steps.reward) > 0)
    of_rollout, of_apart = paid > 0
    found = of_rollout.any(1) & of_apart.any(1)
    np.testing.assert_array_equal(of_rollout[found], of_apart[found])
    assert found.sum() > 20 and (of_apart.any(1) != of_rollout.any(1)).any()


def test_an_update_decodes_the_steps_apart_and_not_the_rollouts(
    source: RolloutSource, apart: RolloutSource, two_seeds: BeliefModel
) -> None:
    """Decoded alone is what the loss of a blind encoder depends on."""
    model = of_seed(two_seeds, 0)
    deaf = eqx.tree_at(lambda m: m.encoder.scale_reward.scale, model, jnp.zeros(()))
    state = TINY.init_state(deaf)
    for given, decoded in ((source, "steps"), (apart, "apart")):
        batch = TINY.draw(given, key=jr.key(3))
        assert (batch.apart is None) == (given is source)

        def nll(batch):
            return float(TINY.update(state, batch, key=jr.key(4))[1]["reward_nll"])

        for part in ("steps", "apart"):
            steps = getattr(batch, part)
            if steps is None:
                continue
            raised = replace(steps, reward=jnp.full_like(steps.reward, 1.0))
            assert (nll(replace(batch, **{part: raised})) != nll(batch)) == (
                part == decoded
            )


def test_the_learner_is_given_no_task() -> None:
    """The types are the guarantee: a source, sizes, and nothing of the logs."""
    given = inspect.signature(FitBelief.__call__).parameters
    assert set(given) == {"self", "source", "spec", "num_seeds", "key", "journal"}
    assert given["source"].annotation is RolloutSource
    update = inspect.signature(FitBelief.update).parameters
    assert set(update) == {"self", "state", "batch", "key"}
    for function in (FitBelief.__call__, FitBelief.update, FitBelief.init_model):
        for parameter in inspect.signature(function).parameters.values():
            text = str(parameter.annotation)
            assert "Task" not in text and "logs" not in text.lower()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"updates": 0}, "FitBelief.updates must be above zero"),
        ({"lr": float("nan")}, "FitBelief.lr must be above zero, not nan"),
        ({"latent_size": 0}, "FitBelief.latent_size must be above zero"),
        ({"warmup_share": 1.5}, r"FitBelief.warmup_share must lie in \[0, 1"),
        ({"warmup_share": 1.0}, "FitBelief.warmup_share must be below 1"),
        ({"final_lr_share": -0.1}, r"FitBelief.final_lr_share must lie in \[0, 1\]"),
        ({"kl_weight": -1.0}, "FitBelief.kl_weight must not be negative"),
        ({"kl_weight": float("nan")}, "FitBelief.kl_weight must not be negative"),
        ({"action_size": -1}, "FitBelief.action_size must not be negative"),
        ({"notes_size": -1}, "FitBelief.notes_size must be 0 or more"),
        ({"max_grad_norm": -1.0}, "FitBelief.max_grad_norm must not be negative"),
    ],
)
def test_values_that_cannot_learn_are_refused(values: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        FitBelief(**values)
