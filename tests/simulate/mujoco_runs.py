"""Small MuJoCo families, policies and rollouts for the tests."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from borelax.agents.sac import SAC
from borelax.simulate.mujoco_simulator import MujocoSimulator
from borelax.simulate.policy import AgentPolicy
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.family import draw_tasks
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from borelax.types import Transition

ANT, CHEETAH = AntSemiCircle(horizon=4), HalfCheetahVel(horizon=4)
FAMILIES = [ANT, CHEETAH]


class Noting(eqx.Module):
    """Acts by what it remembers: the sum of rewards and observations."""

    first: jax.Array
    size: int = eqx.field(static=True)

    def start(self):
        return self.first

    def act(self, memory, obs, *, key):
        noise = jr.uniform(key, (self.size,), minval=-0.1, maxval=0.1)
        return noise + jnp.sin(memory + obs[-1])

    def remember(self, memory, step: Transition):
        return memory + step.reward + step.next_obs[2]


def noting(family, count: int) -> Noting:
    return Noting(jnp.arange(float(count)), family.spec.action.size)


def start_of(family) -> str:
    return "uniform" if "uniform" in family.starts else "fixed"


def run(family, policies, count: int = 3, *, threads: int = 1, seed: int = 0):
    tasks = draw_tasks(family, count, key=jr.key(5))
    start = start_of(family)
    return MujocoSimulator(family, threads).rollouts(
        policies, tasks, repeats=2, episodes=2, start=start, key=jr.key(seed)
    )


def agents(family, count: int) -> AgentPolicy:
    """Networks, which round otherwise when they are compiled otherwise."""
    agent, keys = SAC(hidden=(8,)), jr.split(jr.key(1), count)
    init = eqx.filter_vmap(lambda k: agent.acting(agent.init(family.spec, key=k)))
    return AgentPolicy(agent, init(keys), jnp.ones(count))
