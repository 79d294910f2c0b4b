"""Which simulator runs a family."""

from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.mujoco_engine import mujoco_version
from borelax.simulate.mujoco_simulator import MujocoSimulator
from borelax.simulate.simulator import Simulator
from borelax.tasks.family import TaskFamily
from borelax.tasks.mujoco_family import MujocoFamily


def simulator_of(family: TaskFamily | MujocoFamily) -> Simulator:
    """The simulator that can run a family."""
    if isinstance(family, MujocoFamily):
        return MujocoSimulator(family)
    return JaxSimulator(family)


def engine_of(family: TaskFamily | MujocoFamily) -> str | None:
    """The program that computes a family's physics, where it is not borelax."""
    if isinstance(family, MujocoFamily):
        return f"MuJoCo {mujoco_version()}"
    return None
