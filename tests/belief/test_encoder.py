"""The encoder is a filter: it reads steps in order and never ahead."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.networks import Linear
from borelax.belief.elbo import BeliefModel
from borelax.belief.encoder import Encoder, Gaussian
from borelax.belief.fit import FitBelief
from borelax.logs import TaskLogs
from borelax.types import Box, Discrete, Spec, Transition


@pytest.fixture(scope="module")
def rollouts(logs: TaskLogs) -> Transition:
    """The first rollout of each task: [5, 8]."""
    return jax.tree.map(lambda x: x[:, 0], logs.episodes).transitions()


@pytest.fixture(scope="module", params=[0, 6], ids=["plain", "with notes"])
def encoder(request, model: BeliefModel, rollouts: Transition) -> Encoder:
    """With inputs standardised, as in training."""
    encoder = model.encoder
    if request.param:
        encoder = with_notes(Spec(9, Discrete(5), horizon=4, episodes=2), request.param)
    return encoder.scaled_to(rollouts)


def with_notes(spec: Spec, size: int) -> Encoder:
    fit = FitBelief(hidden_size=8, state_size=4, latent_size=3, notes_size=size)
    return eqx.filter_jit(fit.init_model)(spec, key=jr.key(3)).encoder


@eqx.filter_jit
def filtered(encoder: Encoder, rollouts: Transition) -> Gaussian:
    return jax.vmap(encoder.filter)(rollouts)


def one_of(steps: Transition, *place: int) -> Transition:
    return jax.tree.map(lambda x: x[place], steps)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def linear(layer: Linear, x: np.ndarray) -> np.ndarray:
    return x @ np.asarray(layer.weight) + np.asarray(layer.bias)


def told_by_hand(encoder: Encoder, step: Transition) -> np.ndarray:
    """(next_obs, action, reward), each through its layer."""
    obs = (np.asarray(step.next_obs) - encoder.scale_obs.mean) * encoder.scale_obs.scale
    scale = encoder.scale_reward
    reward = (np.asarray(step.reward)[None] - scale.mean) * scale.scale
    return np.concatenate(
        [
            np.maximum(linear(encoder.state_layer, obs), 0),
            np.eye(5)[int(step.action)],
            np.maximum(linear(encoder.reward_layer, reward), 0),
        ]
    )


def gru_by_hand(encoder: Encoder, hidden: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Cho et al. 2014, gate by gate."""
    from_input = np.split(linear(encoder.gru.inputs, told), 3)
    from_hidden = np.split(linear(encoder.gru.recurrent, hidden), 3)
    reset = sigmoid(from_input[0] + from_hidden[0])
    keep = sigmoid(from_input[1] + from_hidden[1])
    candidate = np.tanh(from_input[2] + reset * from_hidden[2])
    return keep * hidden + (1 - keep) * candidate


def test_filter_equals_the_equations(encoder: Encoder, rollouts: Transition) -> None:
    beliefs, notes = filtered(encoder, rollouts), encoder.notes
    hidden, kept, read = np.zeros(8), np.zeros(0 if notes is None else 6), np.zeros(0)
    for time in range(9):
        if notes is not None:
            read = np.maximum(linear(notes.read, kept), 0)
        mean, logvar = (
            linear(head, np.concatenate([hidden, read]))
            for head in (encoder.mean_head, encoder.logvar_head)
        )
        np.testing.assert_allclose(beliefs.mean[2, time], mean, atol=1e-5)
        np.testing.assert_allclose(beliefs.logvar[2, time], logvar, atol=1e-5)
        if time < 8:
            told = told_by_hand(encoder, one_of(rollouts, 2, time))
            hidden = gru_by_hand(encoder, hidden, told)
        if time < 8 and notes is not None:
            kept = np.maximum(kept, linear(notes.take, told))


def test_notes_depend_on_what_was_seen_not_on_when_or_how_often(
    rollouts: Transition,
) -> None:
    """The law: a heard step changes nothing, and order does not matter."""
    encoder = with_notes(Spec(9, Discrete(5), horizon=4, episodes=2), 6)
    deaf = [head.weight.at[:8].set(0.0) for head in heads(encoder)]
    only = eqx.tree_at(lambda e: [h.weight for h in heads(e)], encoder, deaf)
    order = jnp.array([5, 2, 2, 7, 0, 1, 6, 3, 4, 5])
    shuffled = jax.tree.map(lambda x: x[:, order], rollouts)
    plain, other = filtered(only, rollouts).mean, filtered(only, shuffled).mean
    np.testing.assert_allclose(plain[:, -1], other[:, -1], atol=1e-6)
    np.testing.assert_array_equal(other[:, 2], other[:, 3])
    assert (abs(plain[:, -1] - plain[:, 0]).max(axis=-1) > 1e-3).all()


def heads(encoder: Encoder) -> list[Linear]:
    return [encoder.mean_head, encoder.logvar_head]


def test_padding_is_not_noted(encoder: Encoder, rollouts: Transition) -> None:
    padded = replace(rollouts, valid=jnp.broadcast_to(jnp.arange(8) < 5, (5, 8)))
    short = jax.tree.map(lambda x: x[:, :5], rollouts)
    beliefs, before = filtered(encoder, padded), filtered(encoder, short)
    np.testing.assert_allclose(beliefs.mean[:, :6], before.mean, atol=1e-6)
    same = jnp.broadcast_to(beliefs.mean[:, 5:6], (5, 3, 3))
    np.testing.assert_array_equal(beliefs.mean[:, 6:], same)


def test_filter_equals_repeated_updates(encoder: Encoder, rollouts: Transition) -> None:
    beliefs, hidden = filtered(encoder, rollouts), encoder.start()
    update = eqx.filter_jit(lambda hidden, step: encoder.update(hidden, step))
    for time in range(8):
        hidden = update(hidden, one_of(rollouts, 4, time))
        belief = encoder.belief(hidden)
        np.testing.assert_allclose(beliefs.mean[4, time + 1], belief.mean, atol=1e-6)
        np.testing.assert_allclose(
            beliefs.logvar[4, time + 1], belief.logvar, atol=1e-6
        )


@pytest.mark.parametrize("name", ["action", "reward", "next_obs"])
def test_belief_reads_every_input_but_never_the_future(
    name: str, encoder: Encoder, rollouts: Transition
) -> None:
    changed_at = 3
    old = getattr(rollouts, name)
    new = old.at[:, changed_at:].set(1 - old[:, changed_at:])
    perturbed = eqx.tree_at(lambda steps: getattr(steps, name), rollouts, new)
    before, after = filtered(encoder, rollouts), filtered(encoder, perturbed)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        until, since = slice(changed_at + 1), slice(changed_at + 1, None)
        np.testing.assert_array_equal(a[:, until], b[:, until])
        assert (np.abs(a[:, since] - b[:, since]).max(-1) > 1e-4).all()


def test_belief_does_not_read_where_a_step_began(
    encoder: Encoder, rollouts: Transition
) -> None:
    moved = eqx.tree_at(lambda steps: steps.obs, rollouts, rollouts.obs[:, ::-1])
    assert eqx.tree_equal(filtered(encoder, moved), filtered(encoder, rollouts))


def test_prior_is_the_same_for_all_rollouts(
    encoder: Encoder, rollouts: Transition
) -> None:
    prior, beliefs = encoder.belief(encoder.start()), filtered(encoder, rollouts)
    for a, b in zip(jax.tree.leaves(prior), jax.tree.leaves(beliefs), strict=True):
        assert (b[:, 0] == b[:1, 0]).all()
        np.testing.assert_allclose(b[0, 0], a, atol=1e-6)
        assert (b[0, -1] != b[1, -1]).any()


def test_logvar_is_the_log_of_the_variance() -> None:
    gaussian = Gaussian(
        mean=jnp.asarray([1.0, -2.0]), logvar=jnp.log(jnp.asarray([9.0, 0.25]))
    )
    np.testing.assert_allclose(gaussian.std, [3.0, 0.5], rtol=1e-6)
    draws = jax.vmap(lambda k: gaussian.sample(key=k))(jr.split(jr.key(0), 20_000))
    np.testing.assert_allclose(draws.mean(axis=0), [1.0, -2.0], atol=0.1)
    np.testing.assert_allclose(draws.var(axis=0), [9.0, 0.25], rtol=0.05)


def test_inputs_are_standardised_by_the_data(
    model: BeliefModel, encoder: Encoder, rollouts: Transition
) -> None:
    assert not np.any(model.encoder.scale_obs.mean)
    after = np.asarray(rollouts.next_obs).reshape(-1, 9)
    rewards = np.asarray(rollouts.reward).ravel()
    np.testing.assert_allclose(encoder.scale_obs.mean, after.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(encoder.scale_reward.mean, [rewards.mean()], rtol=1e-5)
    scaled = (rewards - encoder.scale_reward.mean) * encoder.scale_reward.scale
    np.testing.assert_allclose(scaled.std(), 1, rtol=1e-4)


def test_time_constants_spread_over_the_rollout(encoder: Encoder) -> None:
    reset, keep, new = np.split(np.asarray(encoder.gru.inputs.bias), 3)
    assert not reset.any() and not new.any()
    constants = np.exp(keep)
    assert ((constants >= 1) & (constants <= 8)).all()
    assert constants.min() < 3 and constants.max() > 5


def test_continuous_actions_through_a_layer_of_their_own() -> None:
    spec = Spec(obs_size=3, action=Box(2), horizon=4, episodes=1)
    sizes = {"state_size": 4, "action_size": 3, "reward_size": 2}

    @jax.jit
    def both_ways():
        encoder = Encoder(spec, latent_size=2, hidden_size=6, **sizes, key=jr.key(0))
        obs, after = jr.normal(jr.key(1), (2, 4, 3))
        action, reward = jr.normal(jr.key(2), (4, 2)), jnp.arange(4.0)
        steps, hidden = Transition(obs, action, reward, after), encoder.start()
        for time in range(4):
            hidden = encoder.update(hidden, one_of(steps, time))
        return encoder.filter(steps).mean[-1], encoder.belief(hidden).mean

    np.testing.assert_allclose(*both_ways(), atol=1e-6)
