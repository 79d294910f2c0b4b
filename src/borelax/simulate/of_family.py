"""Which simulator runs a family."""

from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.simulator import Simulator
from borelax.tasks.family import TaskFamily


def simulator_of(family: TaskFamily) -> Simulator:
    """The simulator that can run a family."""
    return JaxSimulator(family)
