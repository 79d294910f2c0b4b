"""Steps per second of MuJoCo families: agents in the loop, against MuJoCo alone.

    python benchmarks/simulation.py --simulations 160 --threads 2

MuJoCo alone is its own batch on as many threads, under random controls drawn before the
clock starts. The two are timed in turns, because other work may share the machine, and
the best turn of each counts. Steps are the agent's: five of the physics.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from rich.console import Console
from rich.table import Table

from borelax.agents.sac import SAC
from borelax.simulate.mujoco_engine import load_model, simulations
from borelax.simulate.mujoco_simulator import MujocoSimulator
from borelax.simulate.policy import AgentPolicy
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.family import draw_tasks
from borelax.tasks.half_cheetah_vel import HalfCheetahVel

FAMILIES = (HalfCheetahVel, AntSemiCircle)
REPEATS = 2


def bare_seconds(family, count: int, threads: int) -> float:
    """One episode of every simulation, open loop."""
    model = load_model(family.model_file)
    random = np.random.default_rng(0)
    controls = random.uniform(-1, 1, (family.horizon, count, model.nu))
    physics = simulations(model, count, threads)
    rows = np.concatenate([model.qpos0, np.zeros(model.nv)])
    started = time.perf_counter()
    physics.begin(np.tile(rows, (count, 1)))
    for control in controls:
        physics.step(control, family.frame_skip)
    return time.perf_counter() - started


def looped_seconds(family, count: int, threads: int) -> float:
    """The same with one agent per task, as logs are collected."""
    num_tasks, agent = count // REPEATS, SAC(hidden=(128, 128))
    tasks = draw_tasks(family, num_tasks, key=jr.key(0))
    init = eqx.filter_vmap(lambda k: agent.acting(agent.init(family.spec, key=k)))
    states = init(jr.split(jr.key(1), num_tasks))
    policies = AgentPolicy(agent, states, jnp.ones(num_tasks))
    started = time.perf_counter()
    made = MujocoSimulator(family, threads).rollouts(
        policies, tasks, repeats=REPEATS, episodes=1, start="fixed", key=jr.key(2)
    )
    jax.block_until_ready(made)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=160)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--horizon", type=int, default=50)
    parser.add_argument("--turns", type=int, default=8)
    options = parser.parse_args()
    device = jax.devices()[0].device_kind
    title = f"{options.simulations} simulations, policies on {device}"
    table = Table(title=title, title_style="bold")
    table.add_column("domain")
    for name in ("MuJoCo alone, steps/s", "agents in the loop", "ratio"):
        table.add_column(name, justify="right")
    for kind in FAMILIES:
        family = kind(horizon=options.horizon)
        given = (family, options.simulations, options.threads)
        looped_seconds(*given)  # compiles
        turns = [
            (bare_seconds(*given), looped_seconds(*given)) for _ in range(options.turns)
        ]
        bare, looped = map(min, zip(*turns, strict=True))
        steps = options.simulations * options.horizon
        rates = (f"{steps / seconds:,.0f}" for seconds in (bare, looped))
        table.add_row(family.name, *rates, f"{bare / looped:.0%}")
    Console().print(table)


if __name__ == "__main__":
    main()
