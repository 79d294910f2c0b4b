"""The deployed policy sees what its agent was trained on."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.dqn import DQN
from borelax.belief.view import FrozenBelief
from borelax.meta.policy import BeliefPolicy
from borelax.oracles.gridworld_belief import ExactPosterior
from borelax.oracles.gridworld_posterior import goal_prior
from borelax.relabel.states import relabel_states
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.policy import for_every_task
from borelax.tasks.gridworld import Gridworld
from borelax.types import Episodes

AGENT = DQN(hidden=(16,), batch_size=8)


@pytest.fixture(scope="module")
def policy(world: Gridworld) -> BeliefPolicy:
    """An untrained agent on the exact belief: it wanders, but deterministically."""
    state = AGENT.init(replace(world.spec, obs_size=18), key=jr.key(4))
    without_bias = jax.tree.map(lambda x: x if x.ndim == 2 else 0 * x, state.average)
    state = eqx.tree_at(lambda s: s.average, state, without_bias)
    first = state.average.layers[0].weight  # so that the belief matters:
    keen = first.at[9:].multiply(8)
    state = eqx.tree_at(lambda s: s.average.layers[0].weight, state, keen)
    return BeliefPolicy(ExactPosterior(jnp.asarray(0), world), AGENT, state)


def run(simulator: JaxSimulator, policy: BeliefPolicy, seed: int) -> Episodes:
    return simulator.rollouts(
        for_every_task(policy, 5),
        simulator.family.all_tasks(),
        repeats=1,
        episodes=2,
        start="uniform",
        key=jr.key(seed),
    )


@pytest.mark.parametrize("frozen", [False, True])
def test_actions_are_greedy_on_the_relabelled_hyper_states(
    simulator: JaxSimulator, policy: BeliefPolicy, frozen: bool
) -> None:
    if frozen:
        policy = replace(policy, belief=FrozenBelief(policy.belief))
    made = run(simulator, policy, 0)
    rollouts = jax.tree.map(lambda x: x[:, 0], made)
    hyper = jax.vmap(lambda r: relabel_states(policy.belief, r))(rollouts)
    obs = hyper.obs[:, 0, :-1]  # [N, T]: before each step
    greedy = jax.vmap(jax.vmap(policy.state.average))(obs).argmax(-1)
    np.testing.assert_array_equal(greedy, hyper.action[:, 0])
    assert len(np.unique(greedy)) > 1, "the case must tell actions apart"
    # what was seen decides alone only where nothing is remembered
    cells = np.asarray(obs)[..., :9].argmax(-1)
    pairs = np.unique(np.stack([cells, greedy], axis=-1).reshape(-1, 2), axis=0)
    assert (len(pairs) == len(np.unique(cells))) == frozen


def test_memory_is_the_belief_alone(
    world: Gridworld, simulator: JaxSimulator, policy: BeliefPolicy
) -> None:
    np.testing.assert_array_equal(policy.start(), goal_prior(world))
    made = jax.tree.map(lambda x: x[2, 0], run(simulator, policy, 1))
    steps = made.transitions()
    step = jax.tree.map(lambda x: x[0], steps)
    after = policy.remember(policy.start(), step)
    np.testing.assert_array_equal(after, policy.belief.update(policy.start(), step))


def test_acting_ignores_the_key(policy: BeliefPolicy, world: Gridworld) -> None:
    obs, act = world.observe(jnp.int32(4)), eqx.filter_jit(policy.act)
    actions = {int(act(policy.start(), obs, key=jr.key(seed))) for seed in range(20)}
    assert len(actions) == 1
