"""Which simulator runs a family."""

from borelax.simulate.gym_simulator import GymSimulator
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.simulator import Simulator
from borelax.tasks.family import TaskFamily
from borelax.tasks.gym_check import check_gym_tasks
from borelax.tasks.gym_tasks import GymTasks


def simulator_of(family: TaskFamily | GymTasks) -> Simulator:
    """The simulator that can run a family; a user's environments are checked first."""
    if isinstance(family, GymTasks):
        check_gym_tasks(family)
        return GymSimulator(family)
    return JaxSimulator(family)
