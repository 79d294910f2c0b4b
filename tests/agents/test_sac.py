"""SAC on problems whose values are known, and its CQL penalty worked by hand."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.distributions import TanhGaussian
from borelax.agents.networks import Standardise
from borelax.agents.sac import (
    SAC,
    SACState,
    cql_penalty,
    q_values,
    sample_actions,
    two_of,
)
from borelax.errors import ConfigError
from borelax.learn import scan_updates
from borelax.types import Box, Discrete, Spec, Transition

AGENT = SAC(
    hidden=(32,),
    lr=0.003,
    discount=0.5,
    batch_size=64,
    target_rate=0.1,
    entropy_weight=0.0,
)
SPEC = Spec(obs_size=2, action=Box(1), horizon=4, episodes=1)
OBS = jnp.eye(2)


def batch_of(reward, next_index, key) -> Transition:
    """Random actions in both states; ``reward(state, action)``; where each leads."""
    key_state, key_action = jr.split(key)
    state = jr.randint(key_state, (64,), 0, 2)
    action = jr.uniform(key_action, (64, 1), minval=-1.0)
    reward = jax.vmap(reward)(state, action[:, 0])
    return Transition(OBS[state], action, reward, OBS[jnp.asarray(next_index)[state]])


@eqx.filter_jit
def fresh(agent: SAC) -> SACState:
    return agent.init(SPEC, key=jr.key(0))


@eqx.filter_jit
def train(agent: SAC, reward, next_index: tuple[int, int]) -> SACState:
    state, _ = scan_updates(
        agent.update,
        agent.init(SPEC, key=jr.key(0)),
        lambda key: batch_of(reward, next_index, key),
        first=jnp.asarray(0),
        num_updates=1_500,
        key=jr.key(1),
    )
    return state


def values(state: SACState, action: float) -> np.ndarray:
    return np.asarray(q_values(state.critics, OBS, jnp.full((2, 1), action)).mean(0))


def greedy(agent: SAC, state: SACState) -> np.ndarray:
    act = jax.vmap(lambda o: agent.act(state, o, explore=0.0, key=jr.key(0))[0])
    return np.asarray(act(OBS))


def test_constant_reward_is_worth_its_discounted_sum() -> None:
    state = train(AGENT, lambda s, a: jnp.ones(()), (0, 1))
    np.testing.assert_allclose(values(state, 0.3), [2.0, 2.0], atol=0.1)


def test_the_best_action_is_found_and_delayed_reward_flows_back() -> None:
    # state 1 pays for actions near 0.5 and leads to 0; state 0 pays nothing
    def reward(s, a):
        return s * (1 - jnp.square(a - 0.5))

    state = train(AGENT, reward, (1, 0))
    assert greedy(AGENT, state)[1] == pytest.approx(0.5, abs=0.15)
    # v1 = 1 + γ v0, v0 = γ v1
    np.testing.assert_allclose(values(state, 0.5), [2 / 3, 4 / 3], atol=0.12)


def test_entropy_is_paid_for() -> None:
    def flat(s, a):
        return jnp.zeros(())

    keen = train(replace(AGENT, entropy_weight=0.5), flat, (0, 1))
    # the uniform policy has entropy log 2 per step: value of the future, not of now
    expected = 0.5 * 0.5 * np.log(2) / (1 - 0.5)
    np.testing.assert_allclose(values(keen, 0.0), [expected] * 2, atol=0.06)


def test_cql_penalty_worked_by_hand() -> None:
    values = jnp.array([[[1.0]], [[3.0]]])  # two draws, one critic, one state
    log_density = jnp.log(jnp.array([[0.5], [0.25]]))
    by_hand = np.log((np.e / 0.5 + np.e**3 / 0.25) / 2) - 2.0
    penalty = cql_penalty(values, log_density, jnp.array([[2.0]]))
    assert float(penalty) == pytest.approx(by_hand, rel=1e-5)


def test_cql_penalty_of_a_constant_is_the_volume() -> None:
    """∫ exp(c) da over [-1, 1] is 2 exp(c), whatever the draws are weighted with."""
    flat = jnp.full((7, 2, 3), 1.5)
    log_density = jnp.full((7, 3), -jnp.log(2.0))
    penalty = cql_penalty(flat, log_density, jnp.full((2, 3), 1.5))
    assert float(penalty) == pytest.approx(np.log(2), rel=1e-5)


def test_a_penalty_over_some_states_is_that_of_a_batch_of_them() -> None:
    """Of the critics' gradient, what the penalty adds: only those states are in it."""
    steps = batch_of(lambda s, a: s * a, (0, 1), jr.key(3))
    first = jax.tree.map(lambda x: x[:5], steps)

    @eqx.filter_jit
    def gradient(agent: SAC, batch: Transition):
        new, _ = agent.update(agent.init(SPEC, key=jr.key(0)), batch, key=jr.key(4))
        return new.critic_optimiser[0].mu.layers[0].weight

    careful = replace(AGENT, cql_weight=50.0)
    some = gradient(replace(careful, cql_states=5), steps) - gradient(AGENT, steps)
    of_them = gradient(careful, first) - gradient(AGENT, first)
    np.testing.assert_allclose(some, of_them, atol=1e-4)
    assert abs(some).max() > 1e-2


@pytest.mark.parametrize("states", [0, 8])
def test_cql_lowers_actions_that_the_data_lack(states: int) -> None:
    def batch(key) -> Transition:
        steps = batch_of(lambda s, a: jnp.ones(()), (0, 1), key)
        return replace(steps, action=jnp.abs(steps.action))  # never negative

    @eqx.filter_jit
    def trained(agent: SAC) -> SACState:
        start = agent.init(SPEC, key=jr.key(0))
        first = jnp.asarray(0)
        return scan_updates(
            agent.update, start, batch, first=first, num_updates=400, key=jr.key(1)
        )[0]

    plain = trained(AGENT)
    careful = trained(replace(AGENT, cql_weight=1.0, cql_states=states))
    gap = values(careful, 0.5) - values(careful, -0.8)
    assert (gap > 0.5).all()
    assert (gap > values(plain, 0.5) - values(plain, -0.8) + 0.3).all()


def test_more_critics_learn_the_same_values() -> None:
    agent = replace(AGENT, num_critics=4)
    state = train(agent, lambda s, a: jnp.ones(()), (0, 1))
    np.testing.assert_allclose(values(state, 0.3), [2.0, 2.0], atol=0.1)


def test_targets_are_the_lower_of_two_critics_drawn_anew() -> None:
    """Critics whose targets say 0, 1, …, 4 everywhere, and themselves say 9."""
    agent, state = replace(AGENT, num_critics=5), fresh(replace(AGENT, num_critics=5))
    constant = eqx.tree_at(
        lambda net: (net.layers[-1].weight, net.layers[-1].bias),
        state.targets,
        (jnp.zeros((5, 32, 1)), jnp.arange(5.0)[:, None]),
    )
    nines = eqx.tree_at(
        lambda net: net.layers[-1].bias, constant, jnp.full((5, 1), 9.0)
    )
    state = replace(state, targets=constant, critics=nines)
    seen = set()
    for key in jr.split(jr.key(5), 20):
        found = agent._next_value(state, OBS, key=key)
        pair = two_of(5, key=jr.split(key)[1])
        np.testing.assert_array_equal(found, jnp.full(len(OBS), pair.min()))
        seen.add(int(pair.min()))
    assert seen == {0, 1, 2, 3}


def test_a_scale_of_inputs_is_worth_scaled_inputs_and_is_not_trained() -> None:
    scale = Standardise(mean=jnp.asarray([0.5, -1.0]), scale=jnp.asarray([2.0, 3.0]))
    plain = fresh(AGENT)
    scaled = eqx.tree_at(lambda s: s.standardise, plain, scale)
    batch = batch_of(lambda s, a: s * a, (1, 0), jr.key(3))
    seen = replace(
        batch, obs=jax.vmap(scale)(batch.obs), next_obs=jax.vmap(scale)(batch.next_obs)
    )
    update = eqx.filter_jit(AGENT.update)
    one, _ = update(scaled, batch, key=jr.key(4))
    other, _ = update(plain, seen, key=jr.key(4))
    unscaled, _ = update(plain, batch, key=jr.key(4))
    assert eqx.tree_equal(one.standardise, scale)
    for part in ("actor", "critics", "targets"):
        close = eqx.tree_equal(
            getattr(one, part), getattr(other, part), rtol=1e-5, atol=1e-6
        )
        assert close and not eqx.tree_equal(getattr(one, part), getattr(unscaled, part))

    def act(state: SACState, obs) -> float:
        return float(AGENT.act(state, obs, explore=0.0, key=jr.key(0))[0])

    assert act(scaled, OBS[0]) == pytest.approx(act(plain, scale(OBS[0])), rel=1e-5)
    assert act(scaled, OBS[0]) != pytest.approx(act(plain, OBS[0]), rel=1e-3)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_two_of_the_critics_are_two_and_any_two(count: int) -> None:
    keys = jr.split(jr.key(4), 6_000)
    first, second = np.asarray(jax.vmap(lambda k: two_of(count, key=k))(keys)).T
    pairs = np.zeros((count, count), int)
    np.add.at(pairs, (first, second), 1)
    assert (pairs.diagonal() == 0).all()
    expected = 6_000 / (count * (count - 1))
    off = pairs[~np.eye(count, dtype=bool)]
    assert abs(off - expected).max() < 5 * np.sqrt(expected)


def test_each_row_of_a_batch_has_noise_of_its_own() -> None:
    """Rows of one observation are independent draws of its one distribution."""
    actor = fresh(AGENT).actor
    policy = TanhGaussian.from_network(actor(OBS[0]))
    rows = jnp.tile(OBS[:1], (4_000, 1))
    actions, log_probs = eqx.filter_jit(sample_actions)(actor, rows, key=jr.key(6))
    raw = np.arctanh(np.asarray(actions, np.float64)[:, 0])
    noise = (raw - float(policy.mean[0])) / np.exp(float(policy.log_std[0]))
    assert abs(noise.mean()) < 4 / np.sqrt(4_000)
    assert abs(noise.std() - 1) < 4 / np.sqrt(8_000)
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 4 / np.sqrt(4_000)
    _, again = jax.vmap(policy.from_noise)(jnp.asarray(noise[:, None], jnp.float32))
    np.testing.assert_allclose(log_probs, again, atol=1e-3)


def test_fresh_actors_explore() -> None:
    """Before they learn anything, their actions spread by about 0.22."""
    obs = jr.normal(jr.key(7), (500, 2))

    @jax.jit
    def deviations(key: jax.Array) -> jax.Array:
        actor = AGENT.init(SPEC, key=key).actor
        return jax.vmap(lambda o: TanhGaussian.from_network(actor(o)).log_std)(obs)

    found = np.stack([deviations(jr.key(seed)) for seed in range(8)])
    assert np.exp(found.mean()) == pytest.approx(0.22, abs=0.1)
    assert np.exp(np.quantile(found, 0.05)) > 0.03


def test_exploring_samples_and_exploiting_does_not() -> None:
    state, keys = fresh(AGENT), jr.split(jr.key(1), 20)

    @jax.jit
    def act(explore: jax.Array) -> jax.Array:
        one = lambda k: AGENT.act(state, OBS[0], explore=explore, key=k)  # noqa: E731
        return jax.vmap(one)(keys)

    assert len(np.unique(act(1.0))) == 20
    assert len(np.unique(act(0.0))) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"lr": -1.0},
        {"lr": float("nan")},
        {"discount": 1.5},
        {"hidden": ()},
        {"num_critics": 1},
        {"entropy_weight": -0.1},
        {"cql_weight": float("nan")},
        {"cql_states": -1},
        {"decay_updates": -1},
    ],
)
def test_bad_values_are_refused(bad: dict) -> None:
    with pytest.raises(ConfigError):
        SAC(**bad)


def test_the_step_size_decays_to_nothing() -> None:
    agent = replace(AGENT, decay_updates=1)
    state, update = fresh(agent), eqx.filter_jit(agent.update)
    batch = batch_of(lambda s, a: jnp.ones(()), (0, 1), jr.key(2))
    once, _ = update(state, batch, key=jr.key(3))
    twice, _ = update(once, batch, key=jr.key(3))
    first = lambda s: np.asarray(s.actor.layers[0].weight)  # noqa: E731
    assert not np.array_equal(first(state), first(once))
    np.testing.assert_array_equal(first(once), first(twice))


def test_discrete_actions_are_refused() -> None:
    with pytest.raises(TypeError, match="DQN"):
        SAC().init(replace(SPEC, action=Discrete(3)), key=jr.key(0))
