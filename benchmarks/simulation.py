"""Steps per second of MuJoCo families: agents in the loop, against MuJoCo alone.

    python benchmarks/simulation.py --tasks 80 --rollouts 2 --threads 2

MuJoCo alone is its own batch on as many threads, under the very controls that the
agents chose, from the same starts: how long a step takes depends on what touches the
ground. The two are timed in turns, because other work may share the machine, and the
best turn of each counts, in seconds of the clock (steps/s, ratio) and of the processor
(CPU). Steps are the agent's: five of the physics.
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
from borelax.simulate.simulator import host_device
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.family import draw_tasks
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from borelax.types import Episodes

FAMILIES = (HalfCheetahVel, AntSemiCircle)


def clocks() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def alone(family, made: Episodes, threads: int) -> np.ndarray:
    """Seconds of one episode of every simulation, its controls known beforehand."""
    model = load_model(family.model_file)
    first = np.asarray(made.obs[:, :, 0, 0]).reshape(-1, family.spec.obs_size)
    if isinstance(family, HalfCheetahVel):  # its place is not seen, and of no account
        first = np.concatenate([np.zeros((len(first), 1)), first[:, :-1]], axis=1)
    actions = np.asarray(made.action[:, :, 0]).reshape(len(first), -1, model.nu)
    controls = np.ascontiguousarray(np.swapaxes(actions, 0, 1))
    started = clocks()
    physics = simulations(model, len(first), threads)
    physics.begin(first)
    for control in controls:
        physics.step(control, family.frame_skip)
    return clocks() - started


def with_agents(
    family, num_tasks: int, repeats: int, threads: int
) -> tuple[np.ndarray, Episodes]:
    """Seconds of the same with one agent per task, as logs are collected."""
    agent = SAC(hidden=(128, 128))
    tasks = draw_tasks(family, num_tasks, key=jr.key(0))
    init = eqx.filter_vmap(lambda k: agent.acting(agent.init(family.spec, key=k)))
    states = init(jr.split(jr.key(1), num_tasks))
    policies = AgentPolicy(agent, states, jnp.ones(num_tasks))
    started = clocks()
    made = MujocoSimulator(family, threads).rollouts(
        policies, tasks, repeats=repeats, episodes=1, start="fixed", key=jr.key(2)
    )
    jax.block_until_ready(made)
    return clocks() - started, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=80)
    parser.add_argument("--rollouts", type=int, default=2, help="of each task at once")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--horizon", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    count = options.tasks * options.rollouts
    title = f"{count} simulations, policies on {host_device().device_kind}"
    table = Table(title=title, title_style="bold")
    table.add_column("domain")
    for name in ("MuJoCo alone, steps/s", "agents in the loop", "ratio", "CPU"):
        table.add_column(name, justify="right")
    for kind in FAMILIES:
        family = kind(horizon=options.horizon)
        given = (family, options.tasks, options.rollouts, options.threads)
        _, made = with_agents(*given)  # compiles
        turns = [
            (alone(family, made, options.threads), with_agents(*given)[0])
            for _ in range(options.turns)
        ]
        bare, looped = np.min(turns, axis=0)
        steps = count * options.horizon
        rates = (f"{steps / seconds[0]:,.0f}" for seconds in (bare, looped))
        shares = (f"{share:.0%}" for share in bare / looped)
        table.add_row(family.name, *rates, *shares)
    Console().print(table)


if __name__ == "__main__":
    main()
