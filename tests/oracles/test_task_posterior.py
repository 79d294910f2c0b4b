"""Exact beliefs in the plane: never wrong, never wider, and comparable to learned."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.belief.elbo import BeliefModel
from borelax.belief.fit import FitBelief
from borelax.belief.step_decoder import StepDecoder
from borelax.belief.view import BeliefFilter
from borelax.oracles.exact_belief import exact_belief
from borelax.oracles.oracle import PlaneJudge, oracle_of
from borelax.oracles.prediction_error import expected_targets, prediction_errors
from borelax.oracles.search_oracle import search_oracle, search_world
from borelax.oracles.task_posterior import (
    NUM_CELLS,
    AnglePosterior,
    WindPosterior,
)
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.policy import RandomPolicy, for_every_task
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.semicircle import SemiCircle, goal_at
from borelax.tasks.wind import Wind
from borelax.types import Episodes, Transition

NUM_TASKS = 40


def run(family, policy, tasks) -> Episodes:
    """One rollout of each task [N, 1, E, …]."""
    return JaxSimulator(family).rollouts(
        for_every_task(policy, NUM_TASKS),
        tasks,
        repeats=1,
        episodes=family.episodes,
        start="fixed",
        key=jr.key(0),
    )


@pytest.fixture(scope="module", params=[SemiCircle(), EscapeRoom()], ids=str)
def family(request) -> SemiCircle | EscapeRoom:
    return request.param


@pytest.fixture(scope="module")
def angles() -> np.ndarray:
    return np.random.default_rng(0).uniform(0, np.pi, NUM_TASKS)


@pytest.fixture(scope="module")
def searched(family, angles) -> Episodes:
    """The stored search in tasks that lie anywhere between the grid's."""
    tasks = jax.vmap(search_world(family).task)(jnp.asarray(angles, jnp.float32))
    return run(family, search_oracle(family).policy(), tasks)


def test_the_true_cell_is_never_lost_and_the_belief_sharpens(
    family, angles, searched
) -> None:
    posterior = AnglePosterior(jnp.asarray(0), family)
    steps = searched.transitions()
    along = jax.jit(jax.vmap(posterior.along))
    cells = np.asarray(along(jax.tree.map(lambda x: x[:, 0], steps)))
    np.testing.assert_allclose(cells.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(cells[:, 0], 1 / NUM_CELLS, atol=1e-6)
    true = (angles / np.pi * NUM_CELLS).astype(int)
    near = np.clip(true[:, None] + [-1, 0, 1], 0, NUM_CELLS - 1)
    for cell, rollout in zip(near, cells, strict=True):
        assert (rollout[:, cell].max(axis=1) > 0).all()
    possible = (cells > 0).sum(axis=-1)
    assert (np.diff(possible, axis=1) <= 0).all()
    assert possible[:, -1].max() <= 10 and possible[:, 4].min() == NUM_CELLS


def test_an_ant_learns_as_much_of_the_goal_as_a_point_on_the_same_way(angles) -> None:
    """Torques cost, legs move, and neither says anything."""
    point, ant, rng = SemiCircle(), AntSemiCircle(), np.random.default_rng(1)
    way = np.cumsum(rng.uniform(-0.1, 0.1, (NUM_TASKS, 121, 2)), axis=1)
    way[:, :, 1] = np.abs(way[:, :, 1]) + 0.4
    legs = rng.normal(size=(NUM_TASKS, 121, 27))
    torques = rng.uniform(-1, 1, (NUM_TASKS, 120, 8)).astype(np.float32)
    goals = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def told(family, seen, actions):
        seen, unpaid = jnp.asarray(seen, jnp.float32), jnp.zeros((NUM_TASKS, 120))
        actions = jnp.asarray(actions)
        steps = Transition(seen[:, :-1], actions, unpaid, seen[:, 1:])
        of_steps = jax.vmap(family.reward, in_axes=(None, 0))
        steps = replace(steps, reward=jax.vmap(of_steps)(goals, steps))
        posterior = AnglePosterior(jnp.asarray(0), family)
        return np.asarray(jax.jit(jax.vmap(posterior.along))(steps))

    of_ant = told(ant, np.concatenate([way, legs], axis=2), torques)
    of_point = told(point, way, torques[..., :2])
    np.testing.assert_allclose(of_ant, of_point, atol=1e-6)
    assert ((of_point[:, -1] > 0).sum(axis=1) < NUM_CELLS).any(), "nothing was learned"
    assert ((of_point[:, -1] > 0).sum(axis=1) < 16).any(), "no goal was found"


def test_along_a_rollout_equals_repeated_updates(family, searched) -> None:
    posterior = AnglePosterior(jnp.asarray(0), family)
    steps = jax.tree.map(lambda x: x[7, 0], searched.transitions())
    along = eqx.filter_jit(posterior.along)(steps)
    update = eqx.filter_jit(posterior.update)
    memory = posterior.start()
    for time in range(40):
        np.testing.assert_allclose(along[time], posterior.features(memory), atol=1e-6)
        memory = update(memory, jax.tree.map(lambda x, t=time: x[t], steps))


def test_impossible_evidence_changes_nothing() -> None:
    family = SemiCircle()
    posterior = AnglePosterior(jnp.asarray(0), family)
    rollouts = run(family, RandomPolicy(family.spec.action), jnp.ones((NUM_TASKS, 2)))
    step = jax.tree.map(lambda x: x[0, 0, 0], rollouts.transitions())
    paid = eqx.tree_at(lambda s: s.reward, step, jnp.ones(()))  # far from any goal
    after = posterior.update(posterior.start(), paid)
    np.testing.assert_array_equal(after, posterior.start())


def test_one_step_tells_the_wind() -> None:
    wind = Wind(horizon=6)
    winds = jr.uniform(jr.key(1), (NUM_TASKS, 2), minval=-0.05, maxval=0.05)
    rollouts = run(wind, RandomPolicy(wind.spec.action), winds)
    steps = jax.tree.map(lambda x: x[:, 0], rollouts.transitions())
    features = jax.vmap(WindPosterior(jnp.asarray(0), wind).along)(steps)
    assert features.shape == (NUM_TASKS, 7, 3) and (features[:, 0] == 0).all()
    expected = jnp.concatenate([winds / 0.05, jnp.ones((NUM_TASKS, 1))], axis=-1)
    for time in range(1, 7):
        np.testing.assert_allclose(features[:, time], expected, atol=1e-4)


def learned(family, transitions: bool) -> BeliefModel:
    """Two seeds of a model without training; probes go out through the wall."""
    fit = FitBelief(
        hidden_size=8,
        state_size=4,
        reward_size=4,
        latent_size=3,
        decoder=StepDecoder(hidden=(8,), transitions=transitions, probes=5),
    )
    keys = jr.split(jr.key(2), 2)
    models = eqx.filter_jit(
        eqx.filter_vmap(lambda key: fit.init_model(family.spec, key=key))
    )(keys)
    probes = models.decoder.probes
    turn = jr.uniform(jr.key(3), (2, 5), maxval=jnp.pi)
    out = jnp.stack([jnp.cos(turn), jnp.sin(turn)], axis=-1)
    probes = eqx.tree_at(
        lambda p: (p.obs, p.action, p.next_obs), probes, (0.95 * out, out, 1.05 * out)
    )
    return eqx.tree_at(lambda m: m.decoder.probes, models, probes)


def first_seed(models: BeliefModel) -> BeliefModel:
    arrays, rest = eqx.partition(models, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda x: x[0], arrays), rest)


@pytest.mark.parametrize("transitions", [False, True])
def test_a_certain_posterior_expects_what_the_task_does(
    family, transitions: bool
) -> None:
    decoder = first_seed(learned(family, transitions)).decoder
    posterior = AnglePosterior(jnp.asarray(0), family)
    tasks, _ = posterior.distribution(posterior.start())
    expect = jax.jit(lambda memory: expected_targets(posterior, decoder, memory))
    certain = jax.vmap(expect)(jnp.eye(256, dtype=bool))
    task = jax.tree.map(lambda x: x[70], tasks)
    for number, row in enumerate(certain[70].reshape(5, -1)):
        probe = jax.tree.map(lambda x, i=number: x[i], decoder.probes)
        moved = family.step(task, probe.obs, probe.action, key=jr.key(0)) - probe.obs
        answer = moved if transitions else family.reward(task, probe)[None]
        np.testing.assert_allclose(row, answer, atol=1e-5)
    prior = expect(posterior.start())
    np.testing.assert_allclose(prior, certain.mean(axis=0), atol=1e-5)
    tells = family.differs_in == ("transitions" if transitions else "rewards")
    assert bool((certain.std(axis=0) > 1e-3).all()) == tells


def test_an_ants_posterior_expects_the_chance_of_a_goal_less_the_price_of_torques():
    ant = AntSemiCircle()
    fit = FitBelief(hidden_size=4, decoder=StepDecoder(hidden=(4,), probes=3))
    decoder = eqx.filter_jit(fit.init_model)(ant.spec, key=jr.key(0)).decoder
    turn = jnp.asarray([1.0, 1.5, 2.0])
    places = jnp.zeros((3, 29)).at[:, :2].set(jax.vmap(goal_at)(turn))
    torques = jr.uniform(jr.key(1), (3, 8), minval=-1.0)
    probes = Transition(places, torques, jnp.zeros(3), places)
    decoder = eqx.tree_at(lambda d: d.probes, decoder, probes)
    posterior = AnglePosterior(jnp.asarray(0), ant)
    chance = 4 * np.arcsin(0.1) / np.pi
    expected = chance - 0.1 * np.square(torques).sum(axis=1)
    found = expected_targets(posterior, decoder, posterior.start())
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_a_decoder_of_zeros_is_wrong_by_all_that_is_expected() -> None:
    wind = Wind(horizon=5)
    winds = jr.uniform(jr.key(1), (NUM_TASKS, 2), minval=-0.05, maxval=0.05)
    one = run(wind, RandomPolicy(wind.spec.action), winds)
    rollouts = jax.tree.map(lambda x: jnp.stack([x, x]), one)
    models = learned(wind, transitions=True)
    silent = jax.tree.map(
        jnp.zeros_like, eqx.filter(models.decoder.heads, eqx.is_array)
    )
    heads = eqx.combine(silent, models.decoder.heads)
    models = eqx.tree_at(lambda m: m.decoder.heads, models, heads)
    judge = oracle_of(wind)
    assert isinstance(judge, PlaneJudge)
    judged = judge.judge_belief(models, rollouts, key=jr.key(0))
    moves = 0.1 * np.asarray(models.decoder.probes.action)  # [2, 5, 2], no wind known
    blown = moves[:, None] + np.asarray(winds)[None, :, None]
    for seed, error in enumerate(judged["prediction_error_per_seed"]):
        after = 5 * np.abs(blown[seed]).mean() + np.abs(moves[seed]).mean()
        assert error == pytest.approx(after / 6, rel=1e-3)
    assert judged["prediction_error"] == pytest.approx(
        np.mean(judged["prediction_error_per_seed"])
    )


def test_beliefs_are_judged_and_given_once_per_seed(family, searched) -> None:
    judge = oracle_of(family)
    exact = exact_belief(family, 3)
    assert isinstance(exact, BeliefFilter) and exact.seed.shape == (3,)
    assert judge.judge_belief(None, searched, key=jr.key(0)) == {
        "prediction_error": 0.0
    }
    values = judge.values()
    assert set(values) == {
        "bayes_optimal",
        "upper_bound",
        "known_task",
        "thompson_per_episode",
        "thompson_per_step",
        "exact",
    }
    assert set(oracle_of(Wind()).values()) == {
        "bayes_optimal",
        "known_task",
        "memoryless",
        "exact",
    }
    errors = prediction_errors(
        exact,
        learned(family, transitions=False),
        jax.tree.map(lambda x: jnp.stack([x[:4], x[:4]]), searched),
    )
    assert errors.shape == (2,) and (errors > 0).all()
