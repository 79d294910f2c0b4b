"""The one seam between learning and environments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Float

from borelax.tasks.family import ShapedFamily, TaskDistribution
from borelax.types import Episodes, Key, Spec, Transition

RewardFunction = Callable[[Any, Transition], Float[Array, ""]]


@runtime_checkable
class Simulator(Protocol):
    """Runs policies in tasks. Learners cannot tell one simulator from another."""

    @property
    def spec(self) -> Spec:
        """Sizes, horizon and episodes per rollout."""
        ...

    @property
    def reward(self) -> RewardFunction | None:
        """The family's reward of a logged step; None: rewards cannot be relabelled."""
        ...

    @property
    def training_reward(self) -> RewardFunction | None:
        """What agents learn from while logs are collected; None: the reward itself."""
        ...

    def rollouts(
        self,
        policies: Any,
        tasks: Any,
        *,
        repeats: int,
        episodes: int,
        start: str,
        key: Key,
    ) -> Episodes:
        """Run policy n in task n, ``repeats`` rollouts each: [N, repeats, E, …]."""
        ...


def host_device() -> Any:
    """The CPU; where JAX was told to leave it alone, what there is."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return jax.local_devices()[0]


@dataclass(frozen=True)
class OfFamily:
    """A method of a family that equals the same method of an equal family.

    Python's bound methods do not, and a program that holds one is compiled anew.
    """

    family: TaskDistribution
    name: str

    def __call__(self, task: Any, step: Transition) -> Float[Array, ""]:
        """Call it."""
        return getattr(self.family, self.name)(task, step)


@dataclass(frozen=True)
class FamilySimulator:
    """What simulators of a family have in common: all but how it moves."""

    family: TaskDistribution

    @property
    def spec(self) -> Spec:
        """The family's."""
        return self.family.spec

    @property
    def reward(self) -> RewardFunction:
        """The family's."""
        return OfFamily(self.family, "reward")

    @property
    def training_reward(self) -> RewardFunction | None:
        """The family's, if it has one."""
        shaped = isinstance(self.family, ShapedFamily)
        return OfFamily(self.family, "training_reward") if shaped else None
