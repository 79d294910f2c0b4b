"""A task that needs memory: only a belief that keeps the cue can name it at the end."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.agents.dqn import DQN
from borelax.meta.fit import FitMeta
from borelax.meta.policy import BeliefPolicy
from borelax.relabel.source import AsLogged
from borelax.types import Discrete, Episodes, Spec, Transition


class Remembering(eqx.Module):
    """Adds up the cues it saw where ``keep`` is 1; where it is 0, forgets them."""

    keep: jax.Array

    def start(self):
        return jnp.zeros(2)

    def update(self, memory, step: Transition):
        return self.keep * (memory + step.obs[:2])

    def features(self, memory):
        return memory

    def along(self, steps: Transition):
        def one(memory, step):
            memory = self.update(memory, step)
            return memory, memory

        _, after = jax.lax.scan(one, self.start(), steps)
        return jnp.concatenate([self.start()[None], after])


BLANK = jnp.asarray([0.0, 0.0, 1.0])
CUES = jnp.asarray([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def cued_rollouts() -> Episodes:
    """A cue, two blank steps, and 1 for naming the cue at the last: all 16 ways."""
    cue, *action = np.mgrid[:2, :2, :2, :2].reshape(4, 16)
    blank = jnp.broadcast_to(BLANK, (16, 3, 3))
    obs = jnp.concatenate([CUES[cue][:, None], blank], axis=1)
    reward = np.zeros((16, 3), np.float32)
    reward[:, 2] = action[2] == cue
    actions = jnp.asarray(np.stack(action, axis=-1))
    return Episodes(obs[:, None], actions[:, None], jnp.asarray(reward)[:, None])


def answer(policy: BeliefPolicy, cue: jax.Array) -> jax.Array:
    """What the policy names at the end."""
    memory = policy.start()
    for obs, after in ((CUES[cue], BLANK), (BLANK, BLANK)):
        action = policy.act(memory, obs, key=jr.key(0))
        memory = policy.remember(memory, Transition(obs, action, jnp.zeros(()), after))
    return policy.act(memory, BLANK, key=jr.key(0))


@pytest.mark.parametrize("return_steps", [1, 2, 5])
def test_only_an_agent_whose_belief_remembers_solves_the_memory_task(
    return_steps: int,
) -> None:
    spec = Spec(obs_size=3, action=Discrete(2), horizon=3, episodes=1)
    source = AsLogged(jax.tree.map(lambda x: x[None], cued_rollouts()))
    agent = DQN(hidden=(16,), lr=0.01, discount=0.9, batch_size=64, target_rate=0.05)
    fit = FitMeta(
        parts=1,
        rollouts_per_part=64,
        updates_per_part=300,
        updates=600,
        return_steps=return_steps,
        agent=agent,
    )
    beliefs = Remembering(jnp.asarray([1.0, 0.0]))
    policies = BeliefPolicy(beliefs, agent, fit(source, beliefs, spec, key=jr.key(1)))
    answers = eqx.filter_vmap(lambda p: jax.vmap(lambda c: answer(p, c))(jnp.arange(2)))
    remembers, forgets = np.asarray(answers(policies))
    assert remembers.tolist() == [0, 1]
    assert forgets[0] == forgets[1], "without memory it can be right on one cue only"
