"""The parts that trace a shortfall, tried with beliefs that are known to be exact."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.belief.elbo import BeliefModel
from borelax.belief.encoder import Encoder, Gaussian
from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.oracles.exact_belief import exact_belief
from borelax.oracles.gridworld_belief import (
    ExactPosterior,
    goal_distribution,
    posterior_errors,
)
from borelax.oracles.gridworld_posterior import (
    exact_posterior,
    goal_prior,
    update_posterior,
)
from borelax.oracles.oracle import GridworldJudge, oracle_of
from borelax.tasks.gridworld import Gridworld
from borelax.types import Episodes, Transition


class ExactEncoder(Encoder):
    """Carries the posterior itself where a learned encoder has its hidden state."""

    seed: jax.Array
    world: Gridworld = eqx.field(static=True)
    forgets: bool = eqx.field(static=True)

    def __init__(self, world: Gridworld, seed: jax.Array, forgets: bool):
        sizes = {"state_size": 1, "action_size": 0, "reward_size": 1}
        super().__init__(
            world.spec, latent_size=9, hidden_size=1, **sizes, key=jr.key(0)
        )
        self.seed, self.world, self.forgets = seed, world, forgets

    def start(self):
        return goal_prior(self.world)

    def update(self, hidden, step: Transition):
        after = update_posterior(self.world, hidden, step.next_obs, step.reward)
        return hidden if self.forgets else after

    def belief(self, hidden) -> Gaussian:
        return Gaussian(hidden, jnp.zeros(9))

    def filter(self, steps: Transition) -> Gaussian:
        def one(hidden, step):
            hidden = self.update(hidden, step)
            return hidden, hidden

        _, after = jax.lax.scan(one, self.start(), steps)
        return jax.vmap(self.belief)(jnp.concatenate([self.start()[None], after]))


class Plain(eqx.Module):
    """Decodes a latent that is already a distribution; adds mass where no goal is."""

    stray: float = 0.0

    def summarise(self, steps):
        raise AssertionError("not needed")

    def log_likelihood(self, latent, summary):
        raise AssertionError("not needed")

    def predict(self, latent):
        return latent.at[0].add(self.stray)

    def expected_reward(self, latent, step):
        raise AssertionError("not needed")

    def fitted_to(self, steps):
        return self


def models(world: Gridworld, *, forgets: bool = False) -> BeliefModel:
    """Two seeds of the same stub."""
    encoders = eqx.filter_jit(
        eqx.filter_vmap(lambda seed: ExactEncoder(world, seed, forgets))
    )(jnp.arange(2))
    return BeliefModel(encoders, Plain())


@pytest.fixture(scope="module")
def rollouts(logs: TaskLogs) -> Episodes:
    """Random ones for two seeds [2, 5, 6, E, …]."""
    return jax.tree.map(lambda x: jnp.stack([x, x]), logs.episodes)


@pytest.fixture(scope="module")
def judge(world: Gridworld) -> GridworldJudge:
    return GridworldJudge(world)


def test_exact_filter_along_a_rollout_equals_its_updates(
    world: Gridworld, logs: TaskLogs
) -> None:
    belief = ExactPosterior(jnp.asarray(0), world)
    steps = jax.tree.map(lambda x: x[3], logs.episodes).transitions()  # [6, T]
    along = jax.vmap(belief.along)(steps)
    memory = jnp.broadcast_to(belief.start(), (6, 9))
    for time in range(8):
        features = jax.vmap(belief.features)(memory)
        np.testing.assert_array_equal(along[:, time], features)
        step = jax.tree.map(lambda x, t=time: x[:, t], steps)
        memory = jax.vmap(belief.update)(memory, step)
    np.testing.assert_array_equal(along[:, -1], memory)
    assert (along[:, -1] != along[:, 0]).any()


def test_exact_model_has_no_error_and_the_bayes_optimal_return(
    world: Gridworld, rollouts: Episodes, judge: GridworldJudge
) -> None:
    judged = judge.judge_belief(models(world), rollouts, key=jr.key(0))
    assert judged["posterior_error"] == pytest.approx(0.0, abs=1e-6)
    assert judged["posterior_error_per_seed"] == pytest.approx([0.0, 0.0], abs=1e-6)
    best = judge.values()["bayes_optimal"]
    assert judged["exact_plan_return"] == pytest.approx(best, abs=1e-5)


def test_a_forgetful_model_is_found_out(
    world: Gridworld, rollouts: Episodes, judge: GridworldJudge
) -> None:
    judged = judge.judge_belief(models(world, forgets=True), rollouts, key=jr.key(0))
    flat = jax.tree.map(lambda x: x[0].reshape(30, *x.shape[3:]), rollouts)
    exact = jax.vmap(lambda r: exact_posterior(world, r.transitions()))(flat)
    distance = 0.5 * np.abs(exact - goal_prior(world)[None, None]).sum(-1).mean()
    assert judged["posterior_error"] == pytest.approx(distance, rel=1e-5)
    assert distance > 0.2
    best = judge.values()["bayes_optimal"]
    assert judged["exact_plan_return"] < best - 1


def test_errors_by_hand(world: Gridworld) -> None:
    """Of a model that never moves from its prior, on a rollout with known cells."""
    cells = np.array([[0, 1, 2, 2, 1], [0, 3, 6, 3, 0]])  # the goal is 6
    obs = jnp.asarray(np.eye(9)[cells], jnp.uint8)
    reward = jnp.asarray(np.where(cells[:, 1:] == 6, 1.0, -0.1), jnp.float32)
    one = Episodes(obs, jnp.zeros((2, 4), jnp.int32), reward)
    place = jax.tree.map(lambda x: jnp.broadcast_to(x, (2, 1, 1, *x.shape)), one)
    errors = posterior_errors(world, models(world, forgets=True), place)
    # nothing known; cell 2 ruled out: |1/5| lost there; cell 6 found: 4/5 elsewhere
    expected = [0, 0, 0.2, 0.2, 0.2, 0.2, 0.8, 0.8, 0.8]
    np.testing.assert_allclose(errors[0, 0, 0], expected, atol=1e-6)


def test_mass_outside_the_goals_is_not_counted(world: Gridworld) -> None:
    prior = goal_prior(world)
    found = goal_distribution(Plain(stray=3.0), world, prior)
    np.testing.assert_allclose(found, prior, atol=1e-6)


def test_an_exact_belief_is_not_judged(
    rollouts: Episodes, judge: GridworldJudge
) -> None:
    assert judge.judge_belief(None, rollouts, key=jr.key(0)) == {"posterior_error": 0.0}
    assert exact_belief(judge.gridworld, 3).seed.shape == (3,)


def test_families_without_an_oracle_are_refused() -> None:
    with pytest.raises(ConfigError, match="no oracle for str"):
        oracle_of("semicircle")
