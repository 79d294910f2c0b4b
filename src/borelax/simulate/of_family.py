"""Which simulator runs a family."""

from borelax.simulate.gym_simulator import GymSimulator
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.mujoco_engine import engine
from borelax.simulate.mujoco_simulator import MujocoSimulator
from borelax.simulate.simulator import Simulator
from borelax.tasks.family import TaskFamily
from borelax.tasks.gym_check import check_gym_tasks
from borelax.tasks.gym_tasks import GymTasks
from borelax.tasks.mujoco_family import MujocoFamily


def simulator_of(family: TaskFamily | GymTasks | MujocoFamily) -> Simulator:
    """The simulator that can run a family; a user's environments are checked first."""
    if isinstance(family, GymTasks):
        check_gym_tasks(family)
        return GymSimulator(family)
    if isinstance(family, MujocoFamily):
        return MujocoSimulator(family)
    return JaxSimulator(family)


def engine_of(family: TaskFamily | GymTasks | MujocoFamily) -> str | None:
    """The program that computes a family's physics, where it is not borelax."""
    if isinstance(family, MujocoFamily):
        return engine(family.model_file)
    return None
