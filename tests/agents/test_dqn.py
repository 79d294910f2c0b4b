"""DQN on problems whose values are known, and on one worked by hand."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.dqn import DQN, DQNState, double_q_value
from borelax.agents.networks import Standardise
from borelax.errors import ConfigError
from borelax.learn import scan_updates
from borelax.types import Box, Discrete, Spec, Transition

AGENT = DQN(hidden=(16,), lr=0.01, discount=0.5, batch_size=8, target_rate=0.1)
SPEC = Spec(obs_size=2, action=Discrete(2), horizon=4, episodes=1)


@eqx.filter_jit
def fresh(agent: DQN) -> DQNState:
    return agent.init(SPEC, key=jr.key(0))


@eqx.filter_jit
def train(batch: Transition, state: DQNState) -> DQNState:
    """Every update sees all steps there are."""
    state, _ = scan_updates(
        AGENT.update,
        state,
        lambda key: batch,
        first=jnp.asarray(0),
        num_updates=1_500,
        key=jr.key(1),
    )
    return state


def batch_of(steps: list[tuple]) -> Transition:
    """Steps (obs, action, reward, next obs), repeated until there are eight."""
    obs, action, reward, after = zip(*(steps * 8)[:8], strict=True)
    return Transition(
        jnp.asarray(obs, jnp.float32),
        jnp.asarray(action),
        jnp.asarray(reward, jnp.float32),
        jnp.asarray(after, jnp.float32),
    )


def values(state: DQNState, *obs: tuple) -> np.ndarray:
    return np.asarray(jax.vmap(state.q)(jnp.asarray(obs, jnp.float32)))


def learned(steps: list[tuple], *obs: tuple) -> np.ndarray:
    return values(train(batch_of(steps), fresh(AGENT)), *obs)


HERE, THERE, END = (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)
CLOSE = {"atol": 0.02}


def test_constant_reward_is_worth_the_geometric_sum() -> None:
    found = learned([(HERE, a, 3.0, HERE) for a in (0, 1)], HERE)
    np.testing.assert_allclose(found, [[6.0, 6.0]], atol=0.05)


def test_reward_that_is_the_observation() -> None:
    # the next state is worth nothing: there every reward is 0, for ever
    steps = [((x, 1.0), a, x, END) for x in (-1.0, 1.0) for a in (0, 1)]
    steps += [(END, a, 0.0, END) for a in (0, 1)] * 2
    found = learned(steps, (-1.0, 1.0), (1.0, 1.0), END)
    np.testing.assert_allclose(found, [[-1, -1], [1, 1], [0, 0]], **CLOSE)


def test_delayed_reward_is_discounted_once_per_step() -> None:
    steps = [(HERE, a, 0.0, THERE) for a in (0, 1)]
    steps += [(THERE, a, 2.0, END) for a in (0, 1)]
    steps += [(END, a, 0.0, END) for a in (0, 1)] * 2
    found = learned(steps, HERE, THERE, END)
    np.testing.assert_allclose(found, [[1, 1], [2, 2], [0, 0]], **CLOSE)


def test_reward_of_an_action_and_the_best_one_is_bootstrapped() -> None:
    steps = [(HERE, 0, 0.0, HERE), (HERE, 1, 1.0, HERE)]
    found = learned(steps, HERE)  # Q(1) = 1/(1-γ) = 2 and Q(0) = 0 + γ·2
    np.testing.assert_allclose(found, [[1.0, 2.0]], **CLOSE)


def test_double_q_value_takes_the_online_choice_at_the_target_value() -> None:
    online = jnp.asarray([[1.0, 5.0, 2.0], [9.0, 0.0, 0.0]])
    target = jnp.asarray([[10.0, 20.0, 30.0], [-1.0, 7.0, 8.0]])
    np.testing.assert_array_equal(double_q_value(online, target), [20.0, -1.0])


def test_one_update_by_hand() -> None:
    """Loss, goal and the moves of both slow copies, with distinct q and target."""
    agent = replace(AGENT, target_rate=0.1, average_rate=0.25)
    state, other = fresh(agent), agent.init(SPEC, key=jr.key(9)).q
    state = eqx.tree_at(lambda s: s.target, state, other)
    batch = batch_of([(HERE, 0, 1.0, THERE), (THERE, 1, -1.0, HERE)])
    new, metrics = eqx.filter_jit(agent.update)(state, batch, key=jr.key(0))

    online, target = (
        values(state, HERE, THERE),
        np.asarray(jax.vmap(other)(jnp.asarray([HERE, THERE]))),
    )
    best = online.argmax(axis=1)
    goal_here = 1.0 + 0.5 * target[1, best[1]]
    goal_there = -1.0 + 0.5 * target[0, best[0]]
    errors = [online[0, 0] - goal_here, online[1, 1] - goal_there]
    np.testing.assert_allclose(metrics["td_error"], np.square(errors).mean(), rtol=1e-5)
    taken = (online[0, 0] + online[1, 1]) / 2
    np.testing.assert_allclose(metrics["q_mean"], taken, rtol=1e-5)

    for name, rate in (("target", 0.1), ("average", 0.25)):
        before, after = getattr(state, name), getattr(new, name)
        for a, b, q in zip(*map(jax.tree.leaves, (before, after, new.q)), strict=True):
            np.testing.assert_allclose(b, (1 - rate) * a + rate * q, atol=1e-6)
    assert not eqx.tree_equal(new.q, state.q)


def test_exploring_is_uniform_and_greedy_ignores_the_key() -> None:
    state, obs = fresh(AGENT), jnp.asarray(HERE)
    keys = jr.split(jr.key(2), 4_000)

    @jax.jit
    def actions(explore: jax.Array) -> jax.Array:
        return jax.vmap(lambda k: AGENT.act(state, obs, explore=explore, key=k))(keys)

    best = int(values(state, HERE)[0].argmax())
    assert set(np.asarray(actions(0.0)).tolist()) == {best}
    for explore in (1.0, 0.5):  # the best action also comes by chance
        share = np.mean(np.asarray(actions(explore)) == best)
        expected = 1 - explore / 2
        assert abs(share - expected) < 4 * np.sqrt(0.25 / 4_000)


def test_acting_uses_the_average_of_the_standardised_observation() -> None:
    state = fresh(AGENT)
    scale = Standardise(mean=jnp.asarray([3.0, -1.0]), scale=jnp.asarray([2.0, -5.0]))
    other = AGENT.init(SPEC, key=jr.key(5)).q
    changed = eqx.tree_at(lambda s: (s.average, s.standardise), state, (other, scale))
    for obs in jr.normal(jr.key(6), (6, 2)) * 4:
        expected = int(other((obs - scale.mean) * scale.scale).argmax())
        assert AGENT.act(changed, obs, explore=0.0, key=jr.key(0)) == expected


def test_the_scale_of_inputs_is_used_and_not_trained() -> None:
    scale = Standardise(mean=jnp.asarray([0.5, 0.5]), scale=jnp.asarray([2.0, 2.0]))
    state = eqx.tree_at(lambda s: s.standardise, fresh(AGENT), scale)
    steps = [(HERE, a, 3.0, THERE) for a in (0, 1)]
    steps += [(THERE, a, -3.0, HERE) for a in (0, 1)]
    after = train(batch_of(steps), state)
    assert eqx.tree_equal(after.standardise, scale)
    # V(here) = 3 - γ·V(there)'s size, so ±2; the network sees ±1 for 0 and 1
    found = values(after, (1.0, -1.0), (-1.0, 1.0))
    np.testing.assert_allclose(found, [[2, 2], [-2, -2]], atol=0.05)


def test_step_size_falls_to_zero_where_asked() -> None:
    agent = replace(AGENT, decay_updates=3)
    state, update = fresh(agent), eqx.filter_jit(agent.update)
    batch, moved = batch_of([(HERE, 0, 1.0, THERE)]), []
    for _ in range(5):
        new, _ = update(state, batch, key=jr.key(0))
        moved.append(not eqx.tree_equal(new.q, state.q))
        state = new
    assert moved == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"lr": -1e-3}, r"DQN.lr must be above zero, not -0.001"),
        ({"lr": float("nan")}, r"DQN.lr must be above zero, not nan"),
        ({"lr": float("inf")}, r"DQN.lr must be above zero, not inf"),
        ({"batch_size": 0}, r"DQN.batch_size must be above zero, not 0"),
        ({"discount": 1.5}, r"DQN.discount must lie in \[0, 1\], not 1.5"),
        ({"discount": float("nan")}, r"DQN.discount must lie in \[0, 1\], not nan"),
        ({"target_rate": -0.1}, r"DQN.target_rate must lie in \[0, 1\], not -0.1"),
        ({"average_rate": 2.0}, r"DQN.average_rate must lie in \[0, 1\], not 2.0"),
        ({"hidden": ()}, r"DQN.hidden must hold positive widths, not \(\)"),
        ({"hidden": (8, 0)}, r"DQN.hidden must hold positive widths, not \(8, 0\)"),
        ({"decay_updates": -1}, r"DQN.decay_updates must not be negative"),
    ],
)
def test_values_that_cannot_learn_are_refused(values: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        DQN(**values)


def test_continuous_actions_are_refused() -> None:
    with pytest.raises(TypeError, match="DQN needs discrete actions"):
        DQN().init(replace(SPEC, action=Box(2)), key=jr.key(0))
