"""What one keeps of an agent: no more than acting needs, and it acts the same."""

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.agent import Agent
from borelax.agents.dqn import DQN
from borelax.agents.networks import MLP, Standardise
from borelax.agents.sac import SAC
from borelax.types import Box, Discrete, Spec

AGENTS = {
    "DQN": (DQN(hidden=(8,)), Spec(3, Discrete(4), horizon=2, episodes=1)),
    "SAC": (SAC(hidden=(8,)), Spec(3, Box(2), horizon=2, episodes=1)),
}


@pytest.mark.parametrize("name", AGENTS)
def test_what_is_kept_acts_as_the_whole_does(name: str) -> None:
    agent, spec = AGENTS[name]
    assert isinstance(agent, Agent)
    whole = eqx.filter_jit(agent.init)(spec, key=jr.key(0))
    keys = iter(jr.split(jr.key(3), 100))  # all weights different, as after training
    noisy = lambda x: x + jr.normal(next(keys), x.shape)  # noqa: E731
    whole = jax.tree.map(lambda x: noisy(x) if x.ndim else x, whole)
    kept, obs = agent.acting(whole), jr.normal(jr.key(1), (50, 3))

    @eqx.filter_jit
    def act(state) -> jax.Array:
        keys = jr.split(jr.key(2), 50)
        one = lambda o, k: agent.act(state, o, explore=0.5, key=k)  # noqa: E731
        return jax.vmap(one)(obs, keys)

    np.testing.assert_array_equal(act(kept), act(whole))
    assert len(np.unique(act(kept), axis=0)) > 1, "the case must tell actions apart"


@pytest.mark.parametrize("name", AGENTS)
def test_one_network_and_its_scale_are_kept(name: str) -> None:
    agent, spec = AGENTS[name]
    kept = agent.acting(eqx.filter_jit(agent.init)(spec, key=jr.key(0)))
    outputs = 2 * 2 if name == "SAC" else 4
    alike = (MLP((3, 8, outputs), key=jr.key(1)), Standardise.identity(3))
    shapes = [leaf.shape for leaf in jax.tree.leaves(alike)]
    assert [leaf.shape for leaf in jax.tree.leaves(kept)] == shapes
