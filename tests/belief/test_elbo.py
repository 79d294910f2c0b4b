"""The objective, term by term, against numbers worked out with numpy."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array, Float

from borelax.belief.decoder import BernoulliPerCell
from borelax.belief.elbo import BeliefModel, gaussian_kl, negative_elbo
from borelax.belief.encoder import Encoder, Gaussian
from borelax.types import Discrete, Spec, Transition


class Foretold(Encoder):
    """An encoder whose beliefs are given, whatever happens."""

    beliefs: Gaussian

    def __init__(self, beliefs: Gaussian):
        spec = Spec(obs_size=2, action=Discrete(2), horizon=2, episodes=1)
        sizes = {"state_size": 1, "action_size": 0, "reward_size": 1}
        super().__init__(spec, latent_size=1, hidden_size=1, **sizes, key=jr.key(0))
        self.beliefs = beliefs

    def filter(self, steps: Transition) -> Gaussian:
        return self.beliefs


MEANS, LOGVARS = np.array([0.3, -0.2, 1.1]), np.array([-0.4, -1.0, -2.0])
SLOPES, OFFSETS = np.array([1.5, -0.7]), np.array([0.2, -0.1])
KEY = jr.key(8)


@pytest.fixture(scope="module")
def two_steps() -> Transition:
    """Cell 0 without the goal's reward, then cell 1 with it."""
    return Transition(
        obs=jnp.asarray([[1.0, 0.0], [1.0, 0.0]]),
        action=jnp.asarray([0, 1]),
        reward=jnp.asarray([-0.1, 1.0]),
        next_obs=jnp.asarray([[1.0, 0.0], [0.0, 1.0]]),
    )


@pytest.fixture(scope="module")
def hand_made() -> BeliefModel:
    """Three given beliefs, and a decoder that is one line per cell."""
    decoder = BernoulliPerCell(
        2, latent_size=1, hidden=(), threshold=0.5, key=jr.key(0)
    )
    decoder = eqx.tree_at(
        lambda d: (d.network.layers[0].weight, d.network.layers[0].bias),
        decoder,
        (jnp.asarray(SLOPES[None], jnp.float32), jnp.asarray(OFFSETS, jnp.float32)),
    )
    beliefs = Gaussian(
        jnp.asarray(MEANS[:, None], jnp.float32),
        jnp.asarray(LOGVARS[:, None], jnp.float32),
    )
    return BeliefModel(Foretold(beliefs), decoder)


def kl_by_hand(mean, var, mean_q, var_q) -> float:
    return (
        np.log(np.sqrt(var_q / var)) + (var + (mean - mean_q) ** 2) / (2 * var_q) - 0.5
    )


def test_elbo_of_two_steps_by_hand(
    hand_made: BeliefModel, two_steps: Transition
) -> None:
    loss, metrics = negative_elbo(hand_made, two_steps, kl_weight=0.3, key=KEY)

    noise = np.asarray(jr.normal(jr.split(KEY, 3)[2], (3, 1)))[:, 0]
    log_likelihood = 0.0
    for time in range(3):  # every one of b_0, b_1, b_2 decodes both steps
        z = MEANS[time] + np.sqrt(np.exp(LOGVARS[time])) * noise[time]
        chance = 1 / (1 + np.exp(-(SLOPES * z + OFFSETS)))
        log_likelihood += np.log(1 - chance[0]) + np.log(chance[1])
    var = np.exp(LOGVARS)
    kl = kl_by_hand(MEANS[0], var[0], 0.0, 1.0)
    kl += kl_by_hand(MEANS[1], var[1], MEANS[0], var[0])
    kl += kl_by_hand(MEANS[2], var[2], MEANS[1], var[1])

    np.testing.assert_allclose(loss, -log_likelihood + 0.3 * kl, rtol=1e-5)
    np.testing.assert_allclose(metrics["kl"], kl, rtol=1e-5)
    np.testing.assert_allclose(metrics["reward_nll"], -log_likelihood / 6, rtol=1e-5)


def test_steps_apart_are_decoded_in_place_of_the_rollouts(
    hand_made: BeliefModel, two_steps: Transition
) -> None:
    """The rollout's steps among them, it is as before; each stands for more of them."""
    elbo = partial(negative_elbo, hand_made, two_steps, kl_weight=0.3, key=KEY)
    same, own = elbo(two_steps), elbo()
    np.testing.assert_array_equal(same[0], own[0])
    twice = elbo(jax.tree.map(lambda x: jnp.concatenate([x, x]), two_steps))
    np.testing.assert_allclose(twice[0], own[0], rtol=1e-6)
    one = elbo(jax.tree.map(lambda x: x[:1], two_steps))
    other = elbo(jax.tree.map(lambda x: x[1:], two_steps))
    np.testing.assert_allclose((one[0] + other[0]) / 2, own[0], rtol=1e-6)
    assert abs(one[0] - other[0]) > 0.1


@pytest.mark.parametrize("decoded_beliefs", [0, 1])
def test_early_beliefs_need_not_decode(
    decoded_beliefs: int, hand_made: BeliefModel, two_steps: Transition
) -> None:
    """From the last on, the last stands for all three; from the prior on, all do."""
    elbo = partial(negative_elbo, hand_made, two_steps, kl_weight=0.3)

    def loss(since: int | None, key) -> Float[Array, ""]:
        late = None if since is None else jnp.asarray(since)
        return elbo(since=late, decoded_beliefs=decoded_beliefs, key=key)[0]

    def mean(since: int | None) -> Float[Array, ""]:
        keys = jr.split(jr.key(1), 20_000)
        return jax.jit(jax.vmap(partial(loss, since)))(keys).mean()

    def last_alone() -> Float[Array, ""]:
        gaussian = hand_made.encoder.filter(two_steps)
        last = jax.tree.map(lambda x: jnp.repeat(x[2:], 3, axis=0), gaussian)
        model = BeliefModel(Foretold(last), hand_made.decoder)
        score = partial(negative_elbo, model, two_steps, kl_weight=0.0)
        keys = jr.split(jr.key(2), 20_000)
        kl = elbo(key=KEY)[1]["kl"]
        return jax.jit(jax.vmap(lambda k: score(key=k)[0]))(keys).mean() + 0.3 * kl

    np.testing.assert_allclose(mean(0), mean(None), rtol=0.02)
    np.testing.assert_allclose(mean(2), last_alone(), rtol=0.02)
    assert abs(mean(2) - mean(0)) > 0.1 * abs(mean(0))


def test_kl_weight_enters_linearly(
    hand_made: BeliefModel, two_steps: Transition
) -> None:
    none, half, full = (
        negative_elbo(hand_made, two_steps, kl_weight=weight, key=KEY)
        for weight in (0.0, 0.5, 1.0)
    )
    kl = full[1]["kl"]
    np.testing.assert_allclose(half[0] - none[0], 0.5 * kl, rtol=1e-4)
    np.testing.assert_allclose(full[0] - none[0], kl, rtol=1e-4)
    assert kl > 0.1


@pytest.mark.parametrize(
    "some",
    [
        {"decoded_steps": 1},
        {"decoded_beliefs": 1},
        {"decoded_steps": 1, "decoded_beliefs": 2},
    ],
)
def test_some_steps_and_beliefs_stand_for_all_of_them(
    some: dict[str, int], hand_made: BeliefModel, two_steps: Transition
) -> None:
    """One random step of two, counted twice, or belief of three: the same mean."""

    def losses(**decoded: int) -> np.ndarray:
        elbo = partial(negative_elbo, kl_weight=0.3, **decoded)
        one = jax.jit(jax.vmap(lambda key: elbo(hand_made, two_steps, key=key)[0]))
        return np.asarray(one(jr.split(jr.key(1), 20_000)))

    few, every = losses(**some), losses()
    error = np.sqrt((few.var() + every.var()) / 20_000)
    assert abs(few.mean() - every.mean()) < 4 * error
    assert few.std() > 1.1 * every.std(), "it must have been a random choice"
    np.testing.assert_array_equal(losses(decoded_steps=2, decoded_beliefs=3), every)


def test_gradient_reaches_means_and_variances_through_the_draw(
    hand_made: BeliefModel, two_steps: Transition
) -> None:
    grads = eqx.filter_grad(
        lambda m: negative_elbo(m, two_steps, kl_weight=0.0, key=KEY)[0]
    )(hand_made)
    assert np.abs(grads.encoder.beliefs.mean).min() > 1e-3
    assert np.abs(grads.encoder.beliefs.logvar).min() > 1e-3


def test_kl_of_equals_is_zero() -> None:
    p = Gaussian(jnp.asarray([0.4, -3.0]), jnp.asarray([1.2, -5.0]))
    assert gaussian_kl(p, p) == 0


@pytest.mark.parametrize("seed", range(3))
def test_kl_equals_numerical_integration(seed: int) -> None:
    mean_p, mean_q, logvar_p, logvar_q = jr.normal(jr.key(seed), (4, 3))
    kl = gaussian_kl(Gaussian(mean_p, logvar_p), Gaussian(mean_q, logvar_q))
    x = np.linspace(-40, 40, 400_001)

    def log_density(mean, logvar):
        return -0.5 * (np.log(2 * np.pi) + logvar + (x - mean) ** 2 / np.exp(logvar))

    total = 0.0
    for d in range(3):
        p = log_density(float(mean_p[d]), float(logvar_p[d]))
        q = log_density(float(mean_q[d]), float(logvar_q[d]))
        total += np.trapezoid(np.exp(p) * (p - q), x)
    np.testing.assert_allclose(kl, total, rtol=1e-4)
