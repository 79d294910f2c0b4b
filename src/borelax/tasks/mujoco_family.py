"""A family whose dynamics are a MuJoCo model: all but the physics, for one simulation.

MuJoCo moves the model; the family says where it starts, what the agent sees and what
pays. Write a frozen dataclass with these methods, as for any ``TaskFamily``.
"""

from typing import ClassVar, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Float

from borelax.tasks.family import Task, TaskDistribution
from borelax.types import Key


class Physics(eqx.Module):
    """Positions and velocities of a model's joints, as MuJoCo orders them."""

    qpos: Float[Array, "*batch nq"]
    qvel: Float[Array, "*batch nv"]


@runtime_checkable
class MujocoFamily(TaskDistribution, Protocol):
    """p(R) over one model: tasks differ in their rewards."""

    model_file: ClassVar[str]
    """A model of Gymnasium's MuJoCo environments by its file's name, such as
    ``ant.xml``; or the path of any other."""
    frame_skip: ClassVar[int]
    """Steps of the physics in one step of the agent."""

    def reset(self, task: Task, start: str, default: Physics, *, key: Key) -> Physics:
        """Draw a first state; ``default`` is the model's own, at rest."""
        ...

    def observe(self, before: Physics, after: Physics) -> Float[Array, "obs"]:
        """What the agent sees after a step; at a reset, both are the first state."""
        ...
